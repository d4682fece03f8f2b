//! Documents of a block: skills that are loaded by key, knowledge that is searched.

use super::Context;
use super::provider::Document;
use crate::error::Result;
use crate::search::Matched;
use crate::storage::context::EntryInfo;

impl Context {
    /// Stores a document of a block of skills or knowledge, in place of one under its key, and returns the key.
    ///
    /// Without a key it is made of the title, else of the content: the same title has the same key, two titles never
    /// share one.
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
    /// [`Error::InvalidName`](crate::Error::InvalidName) if the key is no line of text; as [`set`](Self::set).
    pub fn set_document(&self, label: &str, document: &Document) -> Result<String> {
        let keys = self.set_documents(label, [document.clone()])?;
        Ok(keys.into_iter().next().unwrap_or_default())
    }

    /// Stores many documents, as [`set_document`](Self::set_document) does one, and returns their keys.
    ///
    /// In the store it is all of them or none, and much faster than one by one.
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
        self.require(label)?.set_documents(self.places(), documents)
    }

    /// Takes a stored document away, `false` if there is none. Its versions stay, so that it can be restored.
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
        self.require(label)?.remove_document(self.places(), key)
    }

    /// Returns the stored documents of a block, by key, without their contents.
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
        self.require(label)?.documents(self.places())
    }

    /// Returns the document of this key; `None` if there is none.
    ///
    /// [`remove_document`](Self::remove_document) has an example.
    ///
    /// # Errors
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block has no documents to load; as
    /// [`block`](Self::block).
    pub fn load(&self, label: &str, key: &str) -> Result<Option<String>> {
        self.require(label)?.load(self.places(), key)
    }

    /// Returns at most `limit` documents of a block that match, best first: of knowledge, of a provider, or messages of
    /// the conversation.
    ///
    /// The query is in the language of [`Store::search`](crate::Store::search). If nothing holds all words, any word will
    /// do.
    ///
    /// [`set_document`](Self::set_document) has an example.
    ///
    /// # Errors
    /// [`Error::BlockCannot`](crate::Error::BlockCannot) if the block cannot be searched; as [`block`](Self::block).
    pub fn search(&self, label: &str, query: &str, limit: usize) -> Result<Vec<Document>> {
        Ok(self.look_up(label, query, limit)?.0)
    }

    pub(crate) fn look_up(
        &self,
        label: &str,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Document>, Matched)> {
        self.require(label)?.search(self.places(), query, limit)
    }

    /// Adds to the content of a document, on a line of its own, and returns its key; it comes into being if it is not
    /// there. Title and description stay as they are where the document given has none.
    ///
    /// Of texts that several threads or processes add to a stored document, none is lost.
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
        self.require(label)?.append_document(self.places(), document)
    }

    pub(crate) fn rewrite_document(&self, label: &str, document: &Document) -> Result<()> {
        self.require(label)?.rewrite_document(self.places(), document)
    }
}
