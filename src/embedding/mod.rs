//! Embeddings: vectors that a model of the program gives to texts, so that a search finds what was meant in other words.
//!
//! talktree has no model. A program brings an [`Embedder`]; [`Store::embed`](crate::Store::embed) keeps a vector beside each
//! message, and [`Search::by_meaning`](crate::search::Search::by_meaning) adds the messages whose vectors are nearest to that
//! of the query. A store that was never embedded pays nothing.

mod vector;

use std::fmt;
use std::sync::Arc;

pub(crate) use vector::{Vector, cosine};

use crate::callback;
use crate::error::{BoxError, Error, Result};

/// The maximum number of dimensions of a vector.
pub const MAX_DIMENSIONS: usize = 4_096;

/// Gives texts vectors: a model for embeddings, or a call of one.
///
/// It may be slow and call the library: no transaction is open and no lock is held while it runs. If it fails or panics,
/// the caller gets [`Error::Embedder`], and nothing of that batch is stored. There is no time limit; an embedder that needs
/// one returns an error itself.
///
/// ```
/// use talktree::{BoxError, Embedder, Message, Store};
///
/// /// Counts the letters, so that anagrams mean the same.
/// struct Letters;
///
/// impl Embedder for Letters {
///     fn name(&self) -> &str {
///         "letters-1"
///     }
///
///     fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
///         let count = |text: &str, letter: u8| text.bytes().filter(|byte| *byte == letter).count() as f32;
///         Ok(texts.iter().map(|text| (b'a'..=b'z').map(|letter| count(text, letter)).collect()).collect())
///     }
/// }
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("listen"))?;
/// store.embed(&Letters, |_| {})?;
///
/// assert_eq!(store.search("silent").run()?.hits.len(), 0);
/// assert_eq!(store.search("silent").by_meaning(Letters).run()?.hits.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait Embedder: Send + Sync {
    /// The name of the model and its version. Vectors of different names are never compared.
    fn name(&self) -> &str;

    /// Returns a vector for each text, all with the same number of dimensions, at most [`MAX_DIMENSIONS`]. Their length does
    /// not matter.
    ///
    /// # Errors
    /// Any error; the caller gets it as [`Error::Embedder`].
    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError>;
}

impl<E: Embedder + ?Sized> Embedder for Arc<E> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn embed(&self, texts: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
        (**self).embed(texts)
    }
}

/// The vectors that a store has of one [`Embedder`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Embedding {
    /// The name of the embedder.
    pub embedder: String,
    /// The dimensions of its vectors; `None` before the first one.
    pub dimensions: Option<usize>,
    /// How many messages were given to it.
    pub embedded: u64,
    /// How many messages it still has to be given.
    pub pending: u64,
}

/// The vector of a query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueryVector {
    embedder: String,
    vector: Vector,
}

impl QueryVector {
    /// Returns the vector that the embedder gives to a text; `None` if the text is blank or its vector has no direction.
    ///
    /// # Errors
    /// [`Error::Embedder`].
    pub(crate) fn of(embedder: &dyn Embedder, text: &str) -> Result<Option<Self>> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let (name, vectors) = embed(embedder, &[text])?;
        let vector = vectors.into_iter().next().flatten();
        Ok(vector.map(|vector| Self { embedder: name, vector }))
    }

    /// Returns the name of the embedder.
    #[must_use]
    pub(crate) fn embedder(&self) -> &str {
        &self.embedder
    }

    pub(crate) fn vector(&self) -> &Vector {
        &self.vector
    }
}

impl fmt::Debug for QueryVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} by {:?}", self.vector, self.embedder)
    }
}

/// Calls the embedder; returns its name and a vector for each text, `None` for one without a direction.
pub(crate) fn embed(
    embedder: &dyn Embedder,
    texts: &[&str],
) -> Result<(String, Vec<Option<Vector>>)> {
    let called = callback::call(|| {
        let vectors = embedder.embed(texts);
        // Its error and its name are the program's, too, and may panic.
        (embedder.name().to_owned(), vectors)
    });
    let (name, vectors) = called.map_err(|failed| Error::Embedder { source: failed.into() })?;
    let vectors = vectors.map_err(|source| Error::Embedder { source })?;
    Ok((name, checked(texts.len(), &vectors)?))
}

/// Returns the name of an embedder.
pub(crate) fn name_of(embedder: &dyn Embedder) -> Result<String> {
    callback::call(|| embedder.name().to_owned())
        .map_err(|failed| Error::Embedder { source: failed.into() })
}

fn checked(texts: usize, vectors: &[Vec<f32>]) -> Result<Vec<Option<Vector>>> {
    let refused = |why: String| Err(Error::Embedder { source: why.into() });
    if vectors.len() != texts {
        return refused(format!("{texts} texts have {} vectors", vectors.len()));
    }
    let dimensions = vectors.first().map_or(0, Vec::len);
    if let Some(other) = vectors.iter().find(|vector| vector.len() != dimensions) {
        return refused(format!("one vector has {dimensions} dimensions, another {}", other.len()));
    }
    if texts > 0 && !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        return refused(format!(
            "a vector has {dimensions} dimensions; the maximum is {MAX_DIMENSIONS}"
        ));
    }
    if vectors.iter().flatten().any(|value| !value.is_finite()) {
        return refused("a vector has a value that is no finite number".to_owned());
    }
    Ok(vectors.iter().map(|vector| Vector::of(vector)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Gives(Vec<Vec<f32>>);

    impl Embedder for Gives {
        fn name(&self) -> &str {
            "gives"
        }

        fn embed(&self, _: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
            Ok(self.0.clone())
        }
    }

    /// Asserts why vectors for two texts are refused.
    #[track_caller]
    fn refuses(vectors: &[&[f32]], expected: &str) {
        let embedder = Gives(vectors.iter().map(|vector| vector.to_vec()).collect());
        let error = embed(&embedder, &["a", "b"]).unwrap_err().to_string();
        assert_eq!(error, format!("the embedder failed: {expected}"));
    }

    #[test]
    fn vectors_that_cannot_be_compared_are_refused() {
        refuses(&[&[1.0]], "2 texts have 1 vectors");
        refuses(&[&[1.0], &[1.0, 2.0]], "one vector has 1 dimensions, another 2");
        refuses(&[&[], &[]], "a vector has 0 dimensions; the maximum is 4096");
        refuses(
            &[&[1.0; 4_097], &[1.0; 4_097]],
            "a vector has 4097 dimensions; the maximum is 4096",
        );
        refuses(&[&[1.0], &[f32::NAN]], "a vector has a value that is no finite number");
    }

    #[test]
    fn a_vector_without_a_direction_is_none() -> Result<()> {
        let (_, vectors) = embed(&Gives(vec![vec![0.0, 0.0], vec![0.0, 1e-30]]), &["a", "b"])?;
        assert_eq!(vectors.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
        Ok(())
    }

    #[test]
    fn an_embedder_that_panics_is_an_error() {
        struct Panics;
        impl Embedder for Panics {
            fn name(&self) -> &str {
                "panics"
            }
            fn embed(&self, _: &[&str]) -> std::result::Result<Vec<Vec<f32>>, BoxError> {
                panic!("no model")
            }
        }
        let error = embed(&Panics, &["a"]).unwrap_err();
        assert_eq!(error.to_string(), "the embedder failed: it panicked: no model");
    }
}
