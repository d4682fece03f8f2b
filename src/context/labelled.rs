//! A block under its label: reading and writing what is behind it.
//!
//! Invariant: no content is kept here. Each call reads it from the source, so that handles, threads and processes never
//! disagree, and a failed write changes nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::backing::Backing;
use super::block::{Block, BlockInfo, Source};
use super::label::{check_key, check_label, listed};
use super::provider::{Document, ReadProvider, WriteProvider};
use super::slug;
use crate::error::{BoxError, Error, Result};
use crate::search::{Hit, Matched, Scope, SearchRequest};
use crate::storage::context::{Entry, EntryInfo, EntryVersion, NewEntry, Owner, Put};

/// How many times a write is tried while other writers come first.
const MAX_TRIES: usize = 1_000;

/// A block under its label. A session and its forks share it.
#[derive(Debug)]
pub(crate) struct LabelledBlock {
    pub(crate) label: String,
    pub(crate) block: Block,
    /// Whether the `init` of the provider was called.
    is_begun: Mutex<bool>,
    /// Held while a provider is written. An append reads before it writes; without the lock, the write of another thread
    /// in between would be lost.
    writing: Mutex<()>,
}

impl LabelledBlock {
    pub(super) fn new(label: &str, block: Block) -> Result<Self> {
        check_label(label)?;
        let label = label.to_owned();
        if block.is_shared && !block.source.is_stored() {
            let what = "be shared across sessions: it is not kept in the store";
            return Err(Error::BlockCannot { label, what });
        }
        Ok(Self { label, block, is_begun: Mutex::new(false), writing: Mutex::new(()) })
    }

    pub(super) fn info(&self, backing: &Backing) -> Result<BlockInfo> {
        Ok(self.block.info(&self.label, self.content(backing)?))
    }

    /// Returns what the block can do, with an empty content: no provider is called.
    pub(crate) fn kind(&self) -> BlockInfo {
        self.block.info(&self.label, String::new())
    }

    pub(super) fn content(&self, backing: &Backing) -> Result<String> {
        match &self.block.source {
            Source::Text(text) => Ok(text.to_string()),
            Source::Read(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Write(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Skills(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Search(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Stored => {
                Ok(self.entry(backing, "")?.map(|entry| entry.content).unwrap_or_default())
            }
            Source::StoredSkills => {
                let lines = self.documents(backing)?.into_iter().map(|document| {
                    listed(
                        &document.key,
                        &document.description.or(document.title).unwrap_or_default(),
                    )
                });
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
            Source::Knowledge => match backing.store()?.count(self.owner(), &self.label)? {
                1 => Ok("1 entry indexed.".to_owned()),
                count => Ok(format!("{count} entries indexed.")),
            },
            Source::History => {
                // A count would change with each message, and the prompt would drift.
                backing.conversation()?;
                Ok("What was said in this conversation.".to_owned())
            }
        }
    }

    pub(super) fn set(&self, backing: &Backing, content: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        match &self.block.source {
            Source::Write(provider) => {
                let _turn = self.turn();
                self.write(provider.as_ref(), content.to_owned())
            }
            _ => {
                self.check_tokens(content)?;
                let entry = NewEntry { content, ..NewEntry::default() };
                backing.store()?.put(self.owner(), &self.label, &entry, false, None)?;
                Ok(self.block.info(&self.label, content.to_owned()))
            }
        }
    }

    pub(super) fn remove_text(&self, backing: &Backing) -> Result<bool> {
        self.check_plain()?;
        match &self.block.source {
            Source::Write(_) => Err(self.cannot("be removed: its text is not in the store")),
            _ => backing.store()?.remove(self.owner(), &self.label, ""),
        }
    }

    pub(super) fn append(&self, backing: &Backing, text: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        if let Source::Write(provider) = &self.block.source {
            let _turn = self.turn();
            return self.write(provider.as_ref(), joined(&self.content(backing)?, text));
        }
        let content = self.renew(backing, "", |present| {
            let was = present.map(|entry| entry.content).unwrap_or_default();
            Document { content: joined(&was, text), ..Document::default() }
        })?;
        Ok(self.block.info(&self.label, content))
    }

    fn write(&self, provider: &dyn WriteProvider, content: String) -> Result<BlockInfo> {
        self.check_tokens(&content)?;
        self.ask(provider, |provider| provider.set(&content))?;
        Ok(self.block.info(&self.label, content))
    }

    /// Waits until no other thread writes to the provider.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes documents and returns their keys. In the store either all of them are written or none.
    pub(super) fn set_documents(
        &self,
        backing: &Backing,
        documents: Vec<Document>,
    ) -> Result<Vec<String>> {
        self.check_keyed()?;
        self.check_writable()?;
        let keyed = documents.into_iter().map(|document| {
            self.check_tokens(&document.content)?;
            let document = keyed(document);
            check_key(&document.key)?;
            Ok(document)
        });
        let documents = keyed.collect::<Result<Vec<_>>>()?;
        let _turn = (!self.block.source.is_stored()).then(|| self.turn());
        self.write_documents(backing, &documents)?;
        Ok(documents.into_iter().map(|document| document.key).collect())
    }

    fn write_documents(&self, backing: &Backing, documents: &[Document]) -> Result<()> {
        match &self.block.source {
            Source::Skills(provider) => documents.iter().try_for_each(|document| {
                self.ask(provider.as_ref(), |provider| provider.set_keyed(document))
            })?,
            Source::Search(provider) => documents.iter().try_for_each(|document| {
                self.ask(provider.as_ref(), |provider| provider.set_keyed(document))
            })?,
            source => {
                let entries: Vec<_> = documents.iter().map(entry_of).collect();
                let is_searchable = source.is_searchable();
                backing.store()?.put_all(self.owner(), &self.label, &entries, is_searchable)?;
            }
        }
        Ok(())
    }

    /// Adds a text to the end of a document, on a new line. Title and description stay unless `more` has others.
    pub(super) fn append_document(&self, backing: &Backing, more: &Document) -> Result<String> {
        self.check_keyed()?;
        self.check_writable()?;
        let more = keyed(more.clone());
        if self.block.source.is_stored() {
            self.renew_document(backing, &more, |was| joined(was, &more.content))?;
            return Ok(more.key);
        }
        check_key(&more.key)?;
        let _turn = self.turn();
        let content = joined(&self.load(backing, &more.key)?.unwrap_or_default(), &more.content);
        self.check_tokens(&content)?;
        self.write_documents(backing, &[Document { content, ..more.clone() }])?;
        Ok(more.key)
    }

    /// Replaces the text of a document. Title and description stay unless `new` has others.
    pub(super) fn rewrite_document(&self, backing: &Backing, new: &Document) -> Result<()> {
        self.check_keyed()?;
        self.check_writable()?;
        match self.block.source.is_stored() {
            true => self.renew_document(backing, new, |_| new.content.clone()),
            false => self.set_documents(backing, vec![new.clone()]).map(drop),
        }
    }

    fn renew_document(
        &self,
        backing: &Backing,
        new: &Document,
        content: impl Fn(&str) -> String,
    ) -> Result<()> {
        let Document { key, title, description, .. } = new;
        check_key(key)?;
        self.renew(backing, key, |present| {
            let (was, known) = match &present {
                Some(entry) => (entry.content.as_str(), (&entry.title, &entry.description)),
                None => ("", (&None, &None)),
            };
            Document {
                key: key.clone(),
                title: title.as_ref().or(known.0.as_ref()).cloned(),
                description: description.as_ref().or(known.1.as_ref()).cloned(),
                content: content(was),
            }
        })?;
        Ok(())
    }

    /// Writes a new version of a stored text, made from the current one, and returns its content. If another writer came
    /// first, it starts again from the newer version.
    fn renew(
        &self,
        backing: &Backing,
        key: &str,
        make: impl Fn(Option<Entry>) -> Document,
    ) -> Result<String> {
        for _ in 0..MAX_TRIES {
            let present = self.entry(backing, key)?;
            let version = present.as_ref().map_or(0, |entry| entry.version);
            let document = make(present);
            self.check_tokens(&document.content)?;
            let (store, is_searchable) = (backing.store()?, self.block.source.is_searchable());
            let answer = store.put(
                self.owner(),
                &self.label,
                &entry_of(&document),
                is_searchable,
                Some(version),
            )?;
            if !matches!(answer, Put::Moved { .. }) {
                return Ok(document.content);
            }
        }
        Err(self.cannot("be added to: others write to it without a pause"))
    }

    pub(super) fn remove_document(&self, backing: &Backing, key: &str) -> Result<bool> {
        self.check_documents()?;
        self.check_writable()?;
        match key {
            "" => Ok(false),
            _ => backing.store()?.remove(self.owner(), &self.label, key),
        }
    }

    pub(super) fn documents(&self, backing: &Backing) -> Result<Vec<EntryInfo>> {
        self.check_documents()?;
        backing.store()?.documents(self.owner(), &self.label)
    }

    pub(super) fn load(&self, backing: &Backing, key: &str) -> Result<Option<String>> {
        match &self.block.source {
            Source::Skills(provider) => self.ask(provider.as_ref(), |provider| provider.load(key)),
            Source::StoredSkills | Source::Knowledge if key.is_empty() => Ok(None),
            Source::StoredSkills | Source::Knowledge => {
                Ok(self.entry(backing, key)?.map(|entry| entry.content))
            }
            _ => Err(self.cannot("be loaded from")),
        }
    }

    pub(super) fn search(
        &self,
        backing: &Backing,
        query: &str,
        limit: usize,
    ) -> Result<(Vec<Document>, Matched)> {
        match &self.block.source {
            Source::Search(provider) => {
                let mut found =
                    self.ask(provider.as_ref(), |provider| provider.search(query, limit))?;
                found.truncate(limit);
                Ok((found, Matched::All))
            }
            Source::Knowledge => {
                let found = backing.store()?.search(self.owner(), &self.label, query, limit)?;
                Ok((found.0.into_iter().map(document).collect(), found.1))
            }
            Source::History => {
                let conversation = backing.conversation()?;
                let scope = Scope::session(conversation.id().clone());
                let request = SearchRequest { limit, ..SearchRequest::new(query, scope) };
                let found = conversation.search(&request)?;
                Ok((found.hits.into_iter().map(said).collect(), found.matched))
            }
            _ => Err(self.cannot("be searched")),
        }
    }

    pub(super) fn versions(&self, backing: &Backing, key: &str) -> Result<Vec<EntryVersion>> {
        self.check_stored()?;
        backing.store()?.versions(self.owner(), &self.label, key)
    }

    pub(super) fn version(
        &self,
        backing: &Backing,
        key: &str,
        version: u64,
    ) -> Result<EntryVersion> {
        self.check_stored()?;
        let found = backing.store()?.version(self.owner(), &self.label, key, version)?;
        found.ok_or_else(|| Error::UnknownVersion {
            label: self.label.clone(),
            key: Some(key.to_owned()).filter(|key| !key.is_empty()),
            version,
        })
    }

    pub(super) fn restore(&self, backing: &Backing, key: &str, version: u64) -> Result<()> {
        let found = self.version(backing, key, version)?;
        self.check_writable()?;
        // Another kind of block may have used the label; this block would not show its texts.
        match key {
            "" => self.check_plain()?,
            _ => self.check_keyed()?,
        }
        let label = &self.label;
        let Some(content) = found.content else {
            backing.store()?.remove(self.owner(), label, key)?;
            return Ok(());
        };
        self.check_tokens(&content)?;
        let entry = NewEntry {
            key,
            title: found.title.as_deref(),
            description: found.description.as_deref(),
            content: &content,
        };
        let is_searchable = self.block.source.is_searchable();
        backing.store()?.put(self.owner(), label, &entry, is_searchable, None)?;
        Ok(())
    }

    fn entry(&self, backing: &Backing, key: &str) -> Result<Option<Entry>> {
        backing.store()?.entry(self.owner(), &self.label, key)
    }

    fn owner(&self) -> Owner {
        if self.block.is_shared { Owner::Shared } else { Owner::Session }
    }

    pub(crate) fn cannot(&self, what: &'static str) -> Error {
        Error::BlockCannot { label: self.label.clone(), what }
    }

    fn check_stored(&self) -> Result<()> {
        match self.block.source.is_stored() {
            true => Ok(()),
            false => Err(self.cannot("be asked for its versions: it is not kept in the store")),
        }
    }

    fn check_documents(&self) -> Result<()> {
        match self.block.source {
            Source::StoredSkills | Source::Knowledge => Ok(()),
            _ => Err(self.cannot("list documents: it keeps none in the store")),
        }
    }

    fn check_writable(&self) -> Result<()> {
        match self.block.is_writable() {
            true => Ok(()),
            false => Err(Error::BlockReadOnly { label: self.label.clone() }),
        }
    }

    /// Checks that the block is one text and can be written.
    pub(super) fn check_plain(&self) -> Result<()> {
        self.check_writable()?;
        let source = &self.block.source;
        match source.is_skill() || source.is_searchable() {
            true => Err(Error::BlockKeyed { label: self.label.clone(), call: "set_document" }),
            false => Ok(()),
        }
    }

    fn check_keyed(&self) -> Result<()> {
        let source = &self.block.source;
        match source.is_skill() || source.is_searchable() {
            true => Ok(()),
            false => Err(self.cannot("hold documents: it is one text")),
        }
    }

    fn check_tokens(&self, content: &str) -> Result<()> {
        self.block.check_tokens(&self.label, crate::tokens::estimate_tokens(content))
    }

    /// Calls a provider, after its `init`.
    fn ask<P: ReadProvider + ?Sized, T>(
        &self,
        provider: &P,
        call: impl FnOnce(&P) -> std::result::Result<T, BoxError>,
    ) -> Result<T> {
        let failed = |source| Error::Provider { label: self.label.clone(), source };
        let mut is_begun = self.is_begun.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_begun {
            provider.init(&self.label).map_err(failed)?;
            *is_begun = true;
        }
        drop(is_begun);
        call(provider).map_err(failed)
    }
}

fn keyed(document: Document) -> Document {
    match document.key.is_empty() {
        true => {
            Document { key: slug::key(document.title.as_deref(), &document.content), ..document }
        }
        false => document,
    }
}

fn joined(content: &str, text: &str) -> String {
    match content.is_empty() || text.starts_with('\n') {
        true => format!("{content}{text}"),
        false => format!("{content}\n{text}"),
    }
}

fn entry_of(document: &Document) -> NewEntry<'_> {
    NewEntry {
        key: &document.key,
        // An empty title or description removes the one that was there.
        title: document.title.as_deref().filter(|title| !title.is_empty()),
        description: document.description.as_deref().filter(|text| !text.is_empty()),
        content: &document.content,
    }
}

fn document(entry: Entry) -> Document {
    let Entry { key, title, description, content, .. } = entry;
    Document { key, title, description, content }
}

/// Returns a message that was found as a document: the key is its id.
fn said(hit: Hit) -> Document {
    let about = format!("{}, {}", hit.role, hit.created_at.format("%Y-%m-%d %H:%M"));
    Document::new(hit.id.as_str(), hit.snippet.to_string()).described(about)
}
