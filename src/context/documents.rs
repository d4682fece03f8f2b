//! Documents of a block: skills are loaded by key, knowledge is searched. And the versions of stored texts.
//!
//! Invariant: a stored text that is made from another one is written by the write that read the other one, so that it is of
//! the same owner.

use super::block::{Block, Source};
use super::key::{check_key, choose, unique};
use super::provider::LabelledBlock;
use super::{Context, Keep, joined};
use crate::error::{Error, Result};
use crate::search::{Hit, Matched};
use crate::sql::BackendResult;
use crate::storage::context::{BlockScope, Document, StoredText};
use crate::storage::sqlite::{Texts, Writing};

impl Context {
    /// Stores a document in a block of skills or knowledge and returns its key. A document with the same key is replaced.
    ///
    /// Without a key, the key is made from the title or, without a title, from the content: `How to deploy` gets
    /// `how-to-deploy`. If a document with another title has that key, a hash follows. The same title writes the same
    /// document again.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("knowledge", Block::knowledge()).open()?;
    /// let context = chat.context();
    /// let key = context.set_document("knowledge", &Document::new("", "Opens at nine.").titled("shop"))?;
    /// assert_eq!(key, "shop");
    /// assert_eq!(context.search("knowledge", "when does the shop open", 10)?[0].content, "Opens at nine.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block has no documents,
    /// [`Error::InvalidValue`] if the key is not one line of text; as [`set`](Self::set).
    pub fn set_document(&self, label: &str, document: &Document) -> Result<String> {
        self.write_document(label, document, Keep::Nothing)
    }

    /// Stores many documents as [`set_document`](Self::set_document) stores one, and returns their keys.
    ///
    /// In a stored block either all of them are written or none, much faster than one by one.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("knowledge", Block::knowledge()).open()?;
    /// let context = chat.context();
    /// context.set_documents("knowledge", (1..=100).map(|n| Document::new(n.to_string(), "A fact.")))?;
    /// assert_eq!(context.block("knowledge")?.unwrap().content, "100 entries indexed.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_document`](Self::set_document).
    pub fn set_documents(
        &self,
        label: &str,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Vec<String>> {
        self.write_documents(label, documents.into_iter().collect(), Keep::Nothing)
    }

    /// Removes a stored document; `false` if there is none. Its versions stay, so that it can be restored.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    /// let context = chat.context();
    /// context.set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    /// assert!(context.remove_document("skills", "pdf")?);
    /// assert_eq!(context.load("skills", "pdf")?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block keeps no documents in the store; as every write.
    pub fn remove_document(&self, label: &str, key: &str) -> Result<bool> {
        let block = self.require(label)?;
        block.check_documents()?;
        block.check_writable()?;
        match key {
            "" => Ok(false),
            _ => self.store().write(|writing| writing.remove(block.block.scope, label, key)),
        }
    }

    /// Returns the stored documents of a block, sorted by key, without their contents.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    /// let context = chat.context();
    /// context.set_document("skills", &Document::new("pdf", "Use pdftotext.").described("Reads PDFs"))?;
    /// assert_eq!(context.documents("skills")?[0].key, "pdf");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`remove_document`](Self::remove_document).
    pub fn documents(&self, label: &str) -> Result<Vec<StoredText>> {
        let block = self.require(label)?;
        block.check_documents()?;
        self.read(&block, |texts| texts.documents())
    }

    /// Returns the document of this key; `None` if there is none.
    ///
    /// [`remove_document`](Self::remove_document) has an example.
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block has no documents to load; as
    /// [`block`](Self::block).
    pub fn load(&self, label: &str, key: &str) -> Result<Option<String>> {
        let block = self.require(label)?;
        match &block.block.source {
            Source::Skills(provider) => block.ask(self.store(), || provider.load(key)),
            Source::StoredSkills | Source::Knowledge if key.is_empty() => Ok(None),
            Source::StoredSkills | Source::Knowledge => {
                Ok(self.read(&block, |texts| texts.text(key))?.and_then(|text| text.content))
            }
            _ => Err(block.cannot("be loaded from")),
        }
    }

    /// Returns at most `limit` documents of a block that match, best first. A block of the history returns messages,
    /// but no hidden ones: it is what a model may search.
    ///
    /// The query is in the language of [`Store::search`](crate::Store::search). If no document has all words, those with
    /// any of them are returned.
    ///
    /// [`set_document`](Self::set_document) has an example.
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block cannot be searched; as [`block`](Self::block).
    pub fn search(&self, label: &str, query: &str, limit: usize) -> Result<Vec<Document>> {
        Ok(self.look_up(label, query, limit)?.0)
    }

    /// Searches as [`search`](Self::search) does, and says whether a document has all words.
    pub(crate) fn look_up(
        &self,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Document>, Matched)> {
        let block = self.require(label)?;
        match &block.block.source {
            Source::Search(provider) => {
                let mut found = block.ask(self.store(), || provider.search(query, limit))?;
                found.truncate(limit);
                Ok((found, Matched::All))
            }
            Source::Knowledge => self.store().search(block.block.scope, label, query, limit),
            Source::History => {
                let found = self.backing().search_sessions(block.block.scope, query, limit)?;
                Ok((found.hits.into_iter().map(document_of).collect(), found.matched))
            }
            _ => Err(block.cannot("be searched")),
        }
    }

    /// Adds a text to the end of a document, on a new line, and returns the key. A missing document is created. Title and
    /// description stay as they are if the given document has none.
    ///
    /// Several threads and processes may append to a stored document at once; no text is lost.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    /// let context = chat.context();
    /// context.append_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    /// context.append_document("skills", &Document::new("pdf", "Mind the columns."))?;
    /// assert_eq!(context.load("skills", "pdf")?.as_deref(), Some("Use pdftotext.\nMind the columns."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_document`](Self::set_document).
    pub fn append_document(&self, label: &str, document: &Document) -> Result<String> {
        self.write_document(label, document, Keep::All)
    }

    pub(crate) fn write_document(
        &self,
        label: &str,
        document: &Document,
        keep: Keep,
    ) -> Result<String> {
        let keys = self.write_documents(label, vec![document.clone()], keep)?;
        Ok(keys.into_iter().next().unwrap_or_default())
    }

    /// Writes documents and returns their keys. In the store either all of them are written or none.
    fn write_documents(
        &self,
        label: &str,
        mut documents: Vec<Document>,
        keep: Keep,
    ) -> Result<Vec<String>> {
        let block = self.require(label)?;
        block.check_keyed()?;
        block.check_writable()?;
        let mut given = documents.iter().filter(|document| !document.key.is_empty());
        given.try_for_each(|document| check_key(&document.key))?;
        if block.block.source.is_stored() {
            documents = self.store().write(|writing| {
                let mut documents = documents.clone();
                // Those with a key first, so that no other one gets it.
                let (given, others): (Vec<_>, Vec<_>) =
                    documents.iter_mut().partition(|document| !document.key.is_empty());
                let mut all = given.into_iter().chain(others);
                all.try_for_each(|document| put(&block, writing, document, keep))?;
                Ok(documents)
            })?;
        } else {
            let _guard = block.lock_writes(self.store())?;
            for document in &mut documents {
                if document.key.is_empty() {
                    document.key = unique(document.title.as_deref(), &document.content);
                }
                if keep == Keep::All {
                    let was = self.load(label, &document.key)?.unwrap_or_default();
                    document.content = joined(&was, &document.content);
                }
                block.check_tokens(&document.content)?;
            }
            let write =
                |document| block.ask(self.store(), || block.block.source.set_keyed(document));
            documents.iter().try_for_each(write)?;
        }
        Ok(documents.into_iter().map(|document| document.key).collect())
    }

    /// Returns the labels under which the store keeps texts of this session, of its owner or of all sessions, each with a
    /// block that reads them, whether or not the context has one.
    ///
    /// Descriptions and limits are not stored, so these blocks have none. There may be texts of several under one label: those
    /// of the session come first, then those of its owner, then those of all. A context reads only those of its block.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let other = store.session("s")?.context().clone(); // without blocks
    /// let (label, block) = other.stored()?.remove(0);
    /// other.add(&label, block)?;
    /// assert_eq!(other.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn stored(&self) -> Result<Vec<(String, Block)>> {
        let mut stored = Vec::new();
        for scope in BlockScope::ALL {
            stored.extend(self.store().labels(scope)?.into_iter().map(|found| {
                let block = Block::of(match (found.has_text, found.is_searchable) {
                    (true, _) => Source::Stored,
                    (false, true) => Source::Knowledge,
                    (false, false) => Source::StoredSkills,
                });
                (found.label, Block { scope, ..block })
            }));
        }
        Ok(stored)
    }

    /// Returns the versions of a stored block or, with a `key`, of a document of the block, oldest first; the last one is
    /// the current version.
    ///
    /// The newest 1 000 versions are kept.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
    /// context.set("memory", "Likes tea.")?;
    /// context.set("memory", "Likes coffee.")?;
    ///
    /// let versions = context.versions("memory", None)?;
    /// assert_eq!(versions[0].content.as_deref(), Some("Likes tea."));
    /// context.restore("memory", None, 1)?;
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes tea.");
    /// assert_eq!(context.versions("memory", None)?.len(), 3);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`] if the block is not kept in the store; as every read.
    pub fn versions(&self, label: &str, key: Option<&str>) -> Result<Vec<StoredText>> {
        let block = self.require(label)?;
        block.check_stored()?;
        self.read(&block, |texts| texts.versions(key.unwrap_or_default()))
    }

    /// Returns one version of a stored block or, with a `key`, of a document of the block. The other versions are not
    /// read.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
    /// context.set("memory", "Likes tea.")?;
    /// context.set("memory", "Likes coffee.")?;
    /// assert_eq!(context.version("memory", None, 1)?.content.as_deref(), Some("Likes tea."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownVersion`]; as [`versions`](Self::versions).
    pub fn version(&self, label: &str, key: Option<&str>, version: u64) -> Result<StoredText> {
        let block = self.require(label)?;
        block.check_stored()?;
        self.read(&block, |texts| version_of(&block, texts, key.unwrap_or_default(), version))
    }

    /// Restores a version by writing it as a new one. If the version was a removal, the text is removed again.
    ///
    /// [`versions`](Self::versions) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownVersion`], [`Error::BlockOverLimit`]; [`Error::BlockKeyed`] if a block of documents is given no key,
    /// [`Error::BlockCannot`] if a block of one text is given a key; as [`versions`](Self::versions) and as every write.
    pub fn restore(&self, label: &str, key: Option<&str>, version: u64) -> Result<()> {
        self.version(label, key, version)?;
        let (block, key) = (self.require(label)?, key.unwrap_or_default());
        block.check_writable()?;
        // Another kind of block may have used the label; this block would not show its texts.
        match key {
            "" => block.check_plain()?,
            _ => block.check_keyed()?,
        }
        self.store().write(|writing| {
            let found = version_of(&block, &block.texts(writing)?, key, version)?;
            let StoredText { key, title, description, content, .. } = found;
            match content {
                Some(content) => {
                    let mut document = Document { key, title, description, content };
                    put(&block, writing, &mut document, Keep::Nothing)
                }
                None => writing.remove(block.block.scope, label, &key).map(drop),
            }
        })
    }

    fn read<T>(
        &self,
        block: &LabelledBlock,
        work: impl FnOnce(&Texts<'_>) -> BackendResult<T>,
    ) -> Result<T> {
        self.store().read(|reading| work(&block.texts(reading)?))
    }
}

/// Writes a text of a block. A document without a key gets one.
pub(super) fn put(
    block: &LabelledBlock,
    writing: &Writing<'_>,
    new: &mut Document,
    keep: Keep,
) -> BackendResult<()> {
    let texts = block.texts(writing)?;
    if new.key.is_empty() && block.block.source.is_keyed() {
        new.key = choose(new, |key| texts.text(key))?;
    }
    if keep != Keep::Nothing
        && let Some(was) = texts.text(&new.key)?
    {
        new.title = new.title.take().or(was.title);
        new.description = new.description.take().or(was.description);
        if keep == Keep::All {
            new.content = joined(&was.content.unwrap_or_default(), &new.content);
        }
    }
    block.check_tokens(&new.content)?;
    let is_searchable = block.block.source.is_searchable();
    writing.put(block.block.scope, &block.label, new, is_searchable)
}

fn version_of(
    block: &LabelledBlock,
    texts: &Texts<'_>,
    key: &str,
    version: u64,
) -> BackendResult<StoredText> {
    let unknown = || Error::UnknownVersion {
        label: block.label.clone(),
        key: Some(key.to_owned()).filter(|key| !key.is_empty()),
        version,
    };
    Ok(texts.version(key, version)?.ok_or_else(unknown)?)
}

/// Returns a message that was found as a document: the key is its id.
fn document_of(hit: Hit) -> Document {
    let about = format!("{}, {}", hit.role, hit.created_at.format("%Y-%m-%d %H:%M"));
    Document::new(hit.id.as_str(), hit.snippet.to_string()).described(about)
}
