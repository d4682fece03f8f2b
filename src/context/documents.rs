//! Documents of a block: skills are loaded by key, knowledge is searched.

use super::Context;
use super::provider::Document;
use crate::error::Result;
use crate::search::Matched;
use crate::storage::context::EntryInfo;

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
    /// let context = store.context("assistant").block("knowledge", Block::knowledge()).open()?;
    /// let key = context.set_document("knowledge", &Document::new("", "Opens at nine.").titled("shop"))?;
    /// assert_eq!(key, "shop");
    /// assert_eq!(context.search("knowledge", "when does the shop open", 10)?[0].content, "Opens at nine.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block has no documents,
    /// [`Error::InvalidValue`](crate::Error::InvalidValue) if the key is not one line of text; as [`set`](Self::set).
    pub fn set_document(&self, label: &str, document: &Document) -> Result<String> {
        let keys = self.set_documents(label, [document.clone()])?;
        Ok(keys.into_iter().next().unwrap_or_default())
    }

    /// Stores many documents as [`set_document`](Self::set_document) stores one, and returns their keys.
    ///
    /// In a stored block either all of them are written or none, much faster than one by one.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("knowledge", Block::knowledge()).open()?;
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
        let documents = documents.into_iter().collect();
        self.require(label)?.set_documents(self.backing(), documents)
    }

    /// Removes a stored document; `false` if there is none. Its versions stay, so that it can be restored.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("skills", Block::stored_skills()).open()?;
    /// context.set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    /// assert!(context.remove_document("skills", "pdf")?);
    /// assert_eq!(context.load("skills", "pdf")?, None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block keeps no documents in the store; as every write.
    pub fn remove_document(&self, label: &str, key: &str) -> Result<bool> {
        self.require(label)?.remove_document(self.backing(), key)
    }

    /// Returns the stored documents of a block, sorted by key, without their contents.
    ///
    /// ```
    /// use talktree::{Block, Document, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let context = store.context("assistant").block("skills", Block::stored_skills()).open()?;
    /// context.set_document("skills", &Document::new("pdf", "Use pdftotext.").described("Reads PDFs"))?;
    /// assert_eq!(context.documents("skills")?[0].key, "pdf");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`remove_document`](Self::remove_document).
    pub fn documents(&self, label: &str) -> Result<Vec<EntryInfo>> {
        self.require(label)?.documents(self.backing())
    }

    /// Returns the document of this key; `None` if there is none.
    ///
    /// [`remove_document`](Self::remove_document) has an example.
    ///
    /// # Errors
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block has no documents to load; as
    /// [`block`](Self::block).
    pub fn load(&self, label: &str, key: &str) -> Result<Option<String>> {
        self.require(label)?.load(self.backing(), key)
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
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block cannot be searched; as [`block`](Self::block).
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
        self.require(label)?.search(self.backing(), query, limit)
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
    /// let context = store.context("assistant").block("skills", Block::stored_skills()).open()?;
    /// context.append_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    /// context.append_document("skills", &Document::new("pdf", "Mind the columns."))?;
    /// assert_eq!(context.load("skills", "pdf")?.as_deref(), Some("Use pdftotext.\nMind the columns."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_document`](Self::set_document).
    pub fn append_document(&self, label: &str, document: &Document) -> Result<String> {
        self.require(label)?.append_document(self.backing(), document)
    }

    /// Replaces the content of a document and returns its key; title and description stay as they are if the given document has none.
    pub(crate) fn rewrite_document(&self, label: &str, document: &Document) -> Result<String> {
        self.require(label)?.rewrite_document(self.backing(), document)
    }
}
