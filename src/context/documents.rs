//! Documents of a block: skills that are loaded by key, knowledge that is searched.

use super::Context;
use super::loaded::{Loaded, is_of_skills, loaded};
use super::provider::Document;
use super::tool::answer;
use crate::error::Result;
use crate::message::Message;
use crate::search::Matched;
use crate::storage::context::EntryInfo;
use crate::view::{Order, View};

/// How many messages back it is looked for what is loaded.
const MAX_LOOKED_AT: usize = 10_000;

/// How many of them are read at once.
const BATCH: usize = 100;

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

    pub(super) fn look_up(
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

    pub(super) fn rewrite_document(&self, label: &str, document: &Document) -> Result<()> {
        self.require(label)?.rewrite_document(self.places(), document)
    }

    /// Returns label and key of each document that the model has loaded and not unloaded, by what the path to the head
    /// says: the calls of `load_context` in its last 10 000 messages.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Block, Document, Message, Part, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").context("skills", Block::stored_skills()).open()?;
    /// chat.context().set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    ///
    /// let input = json!({"label": "skills", "key": "pdf"});
    /// let answer = chat.tools().call("load_context", &input)?;
    /// chat.append(Message::new("assistant", vec![Part::tool_call("load_context", "c1", input)]))?;
    /// chat.append(Message::new("tool", vec![Part::tool_result("load_context", "c1", json!(answer))]))?;
    /// assert_eq!(chat.context().loaded()?, [("skills".to_owned(), "pdf".to_owned())]);
    ///
    /// assert_eq!(chat.context().unload("skills", "pdf")?, Some(1)); // one copy is hidden
    /// assert!(chat.context().loaded()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn loaded(&self) -> Result<Vec<(String, String)>> {
        if !self.mounted().iter().any(|block| block.block.source.is_skill()) {
            return Ok(Vec::new());
        }
        let loaded = loaded(&self.newest()?);
        let mut documents = Vec::new();
        for (label, key) in loaded.documents() {
            if self.is_shown(&loaded, label, key)? {
                documents.push((label.to_owned(), key.to_owned()));
            }
        }
        Ok(documents)
    }

    /// Returns whether a copy of a document is shown: one that a program unloaded is not, though no call of the model's
    /// says so.
    fn is_shown(&self, loaded: &Loaded, label: &str, key: &str) -> Result<bool> {
        let Some(store) = self.store() else { return Ok(true) };
        for (message, call) in loaded.results(label, key) {
            if !store.is_elided(message, call)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Hides each copy of a loaded document on the path to the head, and returns how many; `None` if it is not loaded.
    ///
    /// Histories show a short marker in its place from then on. The stored messages stay as they are.
    ///
    /// [`loaded`](Self::loaded) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`](crate::Error::UnknownBlock); as every write.
    pub fn unload(&self, label: &str, key: &str) -> Result<Option<usize>> {
        let block = self.require(label)?;
        if !block.block.source.is_skill() {
            return Err(block.cannot("be unloaded from: it holds no skills"));
        }
        let loaded = loaded(&self.newest()?);
        if !loaded.has(label, key) || !self.is_shown(&loaded, label, key)? {
            return Ok(None);
        }
        let results = loaded.results(label, key);
        let results: Vec<_> =
            results.map(|(message, call)| (message.clone(), call.to_owned())).collect();
        self.places().store()?.elide(&results, &answer::elided(label, key))?;
        Ok(Some(results.len()))
    }

    /// Returns the calls of skills in the newest messages of the path to the head, oldest first.
    fn newest(&self) -> Result<Vec<Message>> {
        let Some(conversation) = &self.places().conversation else { return Ok(Vec::new()) };
        let mut cursor = conversation.cursor(&View::head().raw(), Order::NewestFirst)?;
        let (mut messages, mut looked_at) = (Vec::new(), 0);
        while looked_at < MAX_LOOKED_AT {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                break;
            }
            looked_at += batch.len();
            for mut message in batch {
                // Ten thousand answers of other tools would be a lot to hold.
                message.parts.retain(is_of_skills);
                if !message.parts.is_empty() {
                    messages.push(message);
                }
            }
        }
        messages.reverse();
        Ok(messages)
    }
}
