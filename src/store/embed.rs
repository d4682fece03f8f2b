//! Embedding the messages of a store.

use super::Store;
use crate::embedding::{self, Embedder, Embedding};
use crate::error::{Error, Result};
use crate::id::check_name;
use crate::report::Progress;

/// How many messages an embedder gets at once.
const BATCH: usize = 64;
/// How many bytes of a message an embedder gets: models read some hundred words.
const MAX_BYTES: usize = 8 << 10;

impl Store {
    /// Gives a vector to every message that has none of this embedder: those of its text parts, up to their first 8 KiB.
    ///
    /// Afterwards [`Search::by_meaning`](crate::search::Search::by_meaning) finds them. The first call makes the tables that
    /// hold the vectors; a vector takes a byte for each dimension. From then on every new or changed message
    /// is pending until the next call, and a search does not find it by its meaning; a deleted one loses its vector, an
    /// erased one too, and the copy that a fork makes has that of its original.
    ///
    /// The embedder gets up to 64 texts at once, outside any transaction. What it has done is stored after each batch: a call
    /// that fails or is interrupted is continued by the next one. `progress` is called after each batch.
    ///
    /// Several threads and processes may call it at once, but some texts are then embedded twice. Exports hold no vectors.
    ///
    /// ```
    /// use talktree::{BoxError, Embedder, Message, Store};
    ///
    /// struct Length;
    ///
    /// impl Embedder for Length {
    ///     fn name(&self) -> &str {
    ///         "length-1"
    ///     }
    ///
    ///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
    ///         Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    ///     }
    /// }
    ///
    /// let store = Store::open_in_memory()?;
    /// store.session("s")?.append_all(["red", "blue"].map(Message::user))?;
    /// let embedding = store.embed(&Length, |progress| println!("{} messages", progress.done))?;
    /// assert_eq!((embedding.embedded, embedding.pending), (2, 0));
    /// assert_eq!(embedding.dimensions, Some(2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Embedder`] if the embedder fails, or if its vectors have other dimensions than before: a changed model needs
    /// a new name. [`Error::InvalidValue`] if its name is empty or too long; [`Error::Interrupted`]; as every write.
    pub fn embed(
        &self,
        embedder: &dyn Embedder,
        mut progress: impl FnMut(Progress),
    ) -> Result<Embedding> {
        let name = embedding::name_of(embedder)?;
        check_name("embedder", &name)?;
        let watch = self.database.interrupt_signal().watch();
        let mut row = self.database.begin_embedding(&name)?;
        while self.database.queue_for_embedding(row)? {
            watch.check()?;
        }
        let total = self.embedding(&name)?.pending;
        let (mut done, mut from) = (0, None);
        // Messages that are appended meanwhile are left to the next call, so that this one ends.
        while done < total {
            watch.check()?;
            let batch = self.database.unembedded(row, from, BATCH)?;
            let Some(last) = batch.last() else { break };
            from = Some(last.address());
            done += batch.len() as u64;
            let texts: Vec<&str> = batch
                .iter()
                .map(|message| start(&message.text))
                .filter(|text| !text.is_empty())
                .collect();
            let vectors = match texts.is_empty() {
                true => Vec::new(),
                false => embedding::embed(embedder, &texts)?.1,
            };
            let found = vectors.iter().flatten().map(embedding::Vector::dimensions).next();
            check_dimensions(&name, row.dimensions, found)?;
            row.dimensions = row.dimensions.or(found);
            let mut vectors = vectors.into_iter();
            let with_vectors: Vec<_> = batch
                .into_iter()
                .map(|message| match start(&message.text).is_empty() {
                    true => (message, None),
                    false => (message, vectors.next().flatten()),
                })
                .collect();
            self.database.store_vectors(row, &with_vectors)?;
            progress(Progress::new(done, total.max(done)));
        }
        self.embedding(&name)
    }

    /// Returns which embedders the store has vectors of, by name. It counts the vectors, so it reads them all.
    ///
    /// ```
    /// let store = talktree::Store::open_in_memory()?;
    /// assert!(store.embeddings()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; [`Error::Interrupted`].
    pub fn embeddings(&self) -> Result<Vec<Embedding>> {
        self.database.embeddings()
    }

    /// Removes the vectors of an embedder, such as a former model; returns whether there were any.
    ///
    /// With the last one the tables are removed, too, and appends cost what they did before.
    ///
    /// ```
    /// let store = talktree::Store::open_in_memory()?;
    /// assert!(!store.remove_embedding("letters-1")?);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write; [`Error::Interrupted`]: nothing is removed then.
    pub fn remove_embedding(&self, embedder: &str) -> Result<bool> {
        self.database.remove_embedding(embedder)
    }

    fn embedding(&self, name: &str) -> Result<Embedding> {
        let all = self.database.embeddings()?;
        all.into_iter().find(|embedding| embedding.embedder == name).ok_or_else(|| {
            Error::Embedder { source: "its vectors were removed from the store meanwhile".into() }
        })
    }
}

/// Returns the part of a text that an embedder gets.
fn start(text: &str) -> &str {
    let text = text.trim();
    let end = (0..=MAX_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

fn check_dimensions(name: &str, known: Option<usize>, found: Option<usize>) -> Result<()> {
    match (known, found) {
        (Some(known), Some(found)) if known != found => Err(Error::Embedder {
            source: format!(
                "its vectors have {found} dimensions, those in the store {known}; give a changed model another name than {name:?}"
            )
            .into(),
        }),
        _ => Ok(()),
    }
}
