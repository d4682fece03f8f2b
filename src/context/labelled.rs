//! A block under its label: reading and writing what is behind it.
//!
//! Invariant: no content is kept here. Each call reads it from the source, so that handles, threads and processes never
//! disagree, and a failed write changes nothing. A stored text that is made from another one is written by the write that
//! read the other one, so that it is of the same owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::backing::Backing;
use super::block::{Block, BlockInfo, Source};
use super::call_lock::{CallGuard, CallLock};
use super::document_key::{Holder, choose};
use super::label::{check_key, check_label};
use super::provider::{Document, ReadProvider, WriteProvider};
use super::slug;
use crate::callback;
use crate::error::{BoxError, Error, Result};
use crate::search::{Hit, Matched, Scope, SearchRequest};
use crate::storage::context::{BlockScope, Entry, EntryInfo, EntryVersion, NewEntry};
use crate::storage::sqlite::{BackendResult, Texts, Writing};

/// A block under its label. A session and its forks share it.
#[derive(Debug)]
pub(crate) struct LabelledBlock {
    pub(crate) label: String,
    pub(crate) block: Block,
    /// Whether the `init` of the provider has succeeded.
    is_begun: AtomicBool,
    /// Locked while that `init` runs: no other call may come before it.
    beginning: CallLock,
    /// Locked while the provider is written. An append reads before it writes; a write of another thread in between would
    /// be lost.
    writing: CallLock,
}

impl LabelledBlock {
    pub(super) fn new(label: &str, block: Block) -> Result<Self> {
        check_label(label)?;
        let label = label.to_owned();
        if block.scope != BlockScope::Session && !block.source.has_scope() {
            let what = "be shared across sessions: it is not kept in the store";
            return Err(Error::BlockCannot { label, what });
        }
        Ok(Self {
            label,
            block,
            is_begun: AtomicBool::new(false),
            beginning: CallLock::default(),
            writing: CallLock::default(),
        })
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
            Source::Stored | Source::StoredSkills | Source::Knowledge => {
                backing.store.read(|texts| self.stored_content(texts))
            }
            Source::Text(text) => Ok(text.to_string()),
            Source::Read(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.get())
            }
            Source::Write(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.get())
            }
            Source::Skills(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.get())
            }
            Source::Search(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.get())
            }
            Source::History => {
                // A count would change with each message, and the prompt would drift.
                let whose = match self.block.scope {
                    BlockScope::Session => "this conversation",
                    BlockScope::Owner => "this and earlier conversations with the same person",
                    BlockScope::Shared => "all conversations",
                };
                Ok(format!("What was said in {whose}."))
            }
        }
    }

    /// Returns the content of a block that is kept in the store; nothing for any other.
    pub(super) fn stored_content(&self, texts: &Texts<'_>) -> BackendResult<String> {
        let (scope, label) = (self.scope(), self.label.as_str());
        match &self.block.source {
            Source::Stored => {
                Ok(texts.entry(scope, label, "")?.map(|entry| entry.content).unwrap_or_default())
            }
            Source::StoredSkills => {
                let lines = texts.documents(scope, label)?.into_iter().map(|entry| {
                    let EntryInfo { key, title, description, .. } = entry;
                    Document { key, title, description, content: String::new() }.list_line()
                });
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
            Source::Knowledge => match texts.count(scope, label)? {
                1 => Ok("1 entry indexed.".to_owned()),
                count => Ok(format!("{count} entries indexed.")),
            },
            _ => Ok(String::new()),
        }
    }

    pub(super) fn set(&self, backing: &Backing, content: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        match &self.block.source {
            Source::Write(provider) => {
                let _guard = self.lock(&self.writing, backing)?;
                self.write(backing, provider.as_ref(), content.to_owned())
            }
            _ => {
                self.check_tokens(content)?;
                let entry = NewEntry::new("", content);
                backing.store.write(|texts| texts.put(self.scope(), &self.label, &entry, false))?;
                Ok(self.block.info(&self.label, content.to_owned()))
            }
        }
    }

    pub(super) fn remove_text(&self, backing: &Backing) -> Result<bool> {
        self.check_plain()?;
        match &self.block.source {
            Source::Write(_) => Err(self.cannot("be removed: its text is not in the store")),
            _ => backing.store.write(|texts| texts.remove(self.scope(), &self.label, "")),
        }
    }

    pub(super) fn append(&self, backing: &Backing, text: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        if let Source::Write(provider) = &self.block.source {
            let _guard = self.lock(&self.writing, backing)?;
            let content = joined(&self.content(backing)?, text);
            return self.write(backing, provider.as_ref(), content);
        }
        let written = self.renew(
            backing,
            |_| Ok(String::new()),
            |_, present| {
                let was = present.map(|entry| entry.content).unwrap_or_default();
                Document { content: joined(&was, text), ..Document::default() }
            },
        )?;
        Ok(self.block.info(&self.label, written.content))
    }

    fn write(
        &self,
        backing: &Backing,
        provider: &dyn WriteProvider,
        content: String,
    ) -> Result<BlockInfo> {
        self.check_tokens(&content)?;
        self.ask(backing, provider, |provider| provider.set(&content))?;
        Ok(self.block.info(&self.label, content))
    }

    fn lock<'a>(&self, lock: &'a CallLock, backing: &Backing) -> Result<CallGuard<'a>> {
        let timeout = backing.store.busy_timeout();
        lock.lock(timeout).ok_or_else(|| Error::BlockBusy {
            label: self.label.clone(),
            waited_ms: match lock.is_own() {
                true => 0,
                false => u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            },
        })
    }

    /// Writes documents and returns their keys. In the store either all of them are written or none.
    pub(super) fn set_documents(
        &self,
        backing: &Backing,
        documents: Vec<Document>,
    ) -> Result<Vec<String>> {
        self.check_keyed()?;
        self.check_writable()?;
        for document in &documents {
            self.check_tokens(&document.content)?;
            if !document.key.is_empty() {
                check_key(&document.key)?;
            }
        }
        if self.block.source.is_stored() {
            return self.store_documents(backing, documents);
        }
        let documents: Vec<_> = documents.into_iter().map(keyed).collect();
        let _guard = self.lock(&self.writing, backing)?;
        documents.iter().try_for_each(|document| self.provide(backing, document))?;
        Ok(documents.into_iter().map(|document| document.key).collect())
    }

    /// Writes documents to the store.
    fn store_documents(
        &self,
        backing: &Backing,
        mut documents: Vec<Document>,
    ) -> Result<Vec<String>> {
        let given = documents.iter().enumerate().filter(|(_, document)| !document.key.is_empty());
        // The documents of this call by key.
        let mut taken: HashMap<String, usize> =
            given.map(|(at, document)| (document.key.clone(), at)).collect();
        backing.store.write(|texts| {
            for at in 0..documents.len() {
                if documents[at].key.is_empty() {
                    let key = choose(&documents[at], |key| match taken.get(key) {
                        Some(other) => Ok(Some(Holder::of(&documents[*other]))),
                        None => self.holder(texts, key),
                    })?;
                    taken.insert(key.clone(), at);
                    documents[at].key = key;
                }
            }
            documents.iter().try_for_each(|document| self.put(texts, document))
        })?;
        Ok(documents.into_iter().map(|document| document.key).collect())
    }

    /// Returns the stored document of a key.
    fn holder(&self, texts: &Texts<'_>, key: &str) -> BackendResult<Option<Holder>> {
        Ok(texts.entry(self.scope(), &self.label, key)?.map(Holder::from))
    }

    fn put(&self, texts: &Writing<'_>, document: &Document) -> BackendResult<()> {
        let is_searchable = self.block.source.is_searchable();
        texts.put(self.scope(), &self.label, &entry_of(document), is_searchable)
    }

    fn provide(&self, backing: &Backing, document: &Document) -> Result<()> {
        match &self.block.source {
            Source::Skills(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.set_keyed(document))
            }
            Source::Search(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.set_keyed(document))
            }
            _ => Err(self.cannot("hold documents: it is one text")),
        }
    }

    /// Adds a text to the end of a document, on a new line. Title and description stay unless `more` has others.
    pub(super) fn append_document(&self, backing: &Backing, more: &Document) -> Result<String> {
        self.check_keyed()?;
        self.check_writable()?;
        if self.block.source.is_stored() {
            return self.renew_document(backing, more, |was| joined(was, &more.content));
        }
        let more = keyed(more.clone());
        check_key(&more.key)?;
        let _guard = self.lock(&self.writing, backing)?;
        let content = joined(&self.load(backing, &more.key)?.unwrap_or_default(), &more.content);
        self.check_tokens(&content)?;
        self.provide(backing, &Document { content, ..more.clone() })?;
        Ok(more.key)
    }

    /// Replaces the text of a document and returns its key. Title and description stay unless `new` has others.
    pub(super) fn rewrite_document(&self, backing: &Backing, new: &Document) -> Result<String> {
        self.check_keyed()?;
        self.check_writable()?;
        match self.block.source.is_stored() {
            true => self.renew_document(backing, new, |_| new.content.clone()),
            false => {
                let keys = self.set_documents(backing, vec![new.clone()])?;
                Ok(keys.into_iter().next().unwrap_or_default())
            }
        }
    }

    fn renew_document(
        &self,
        backing: &Backing,
        new: &Document,
        content: impl Fn(&str) -> String,
    ) -> Result<String> {
        let Document { title, description, .. } = new;
        if !new.key.is_empty() {
            check_key(&new.key)?;
        }
        let find = |texts: &Texts<'_>| match new.key.is_empty() {
            false => Ok(new.key.clone()),
            true => choose(new, |key| self.holder(texts, key)),
        };
        let written = self.renew(backing, find, |key, present| {
            let (was, known) = match &present {
                Some(entry) => (entry.content.as_str(), (&entry.title, &entry.description)),
                None => ("", (&None, &None)),
            };
            Document {
                key: key.to_owned(),
                title: title.as_ref().or(known.0.as_ref()).cloned(),
                description: description.as_ref().or(known.1.as_ref()).cloned(),
                content: content(was),
            }
        })?;
        Ok(written.key)
    }

    /// Writes a new version of a stored text, made from the current one, and returns it. `find` returns the key.
    fn renew(
        &self,
        backing: &Backing,
        find: impl Fn(&Texts<'_>) -> BackendResult<String>,
        make: impl Fn(&str, Option<Entry>) -> Document,
    ) -> Result<Document> {
        backing.store.write(|texts| {
            let key = find(texts)?;
            let written = make(&key, texts.entry(self.scope(), &self.label, &key)?);
            self.check_tokens(&written.content)?;
            self.put(texts, &written)?;
            Ok(written)
        })
    }

    pub(super) fn remove_document(&self, backing: &Backing, key: &str) -> Result<bool> {
        self.check_documents()?;
        self.check_writable()?;
        match key {
            "" => Ok(false),
            _ => backing.store.write(|texts| texts.remove(self.scope(), &self.label, key)),
        }
    }

    pub(super) fn documents(&self, backing: &Backing) -> Result<Vec<EntryInfo>> {
        self.check_documents()?;
        backing.store.read(|texts| texts.documents(self.scope(), &self.label))
    }

    pub(super) fn load(&self, backing: &Backing, key: &str) -> Result<Option<String>> {
        match &self.block.source {
            Source::Skills(provider) => {
                self.ask(backing, provider.as_ref(), |provider| provider.load(key))
            }
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
                    self.ask(backing, provider.as_ref(), |provider| provider.search(query, limit))?;
                found.truncate(limit);
                Ok((found, Matched::All))
            }
            Source::Knowledge => {
                let found = backing.store.search(self.scope(), &self.label, query, limit)?;
                Ok((found.0.into_iter().map(document).collect(), found.1))
            }
            Source::History => {
                let mut request = SearchRequest::new(query, Scope::Store);
                request.omits_hidden = true;
                request.limit = limit;
                let found = backing.search_sessions(self.block.scope, request)?;
                Ok((found.hits.into_iter().map(said).collect(), found.matched))
            }
            _ => Err(self.cannot("be searched")),
        }
    }

    pub(super) fn versions(&self, backing: &Backing, key: &str) -> Result<Vec<EntryVersion>> {
        self.check_stored()?;
        backing.store.read(|texts| texts.versions(self.scope(), &self.label, key))
    }

    pub(super) fn version(
        &self,
        backing: &Backing,
        key: &str,
        version: u64,
    ) -> Result<EntryVersion> {
        self.check_stored()?;
        backing.store.read(|texts| self.version_in(texts, key, version))
    }

    fn version_in(
        &self,
        texts: &Texts<'_>,
        key: &str,
        version: u64,
    ) -> BackendResult<EntryVersion> {
        let found = texts.version(self.scope(), &self.label, key, version)?;
        let unknown = || Error::UnknownVersion {
            label: self.label.clone(),
            key: Some(key.to_owned()).filter(|key| !key.is_empty()),
            version,
        };
        Ok(found.ok_or_else(unknown)?)
    }

    pub(super) fn restore(&self, backing: &Backing, key: &str, version: u64) -> Result<()> {
        self.version(backing, key, version)?;
        self.check_writable()?;
        // Another kind of block may have used the label; this block would not show its texts.
        match key {
            "" => self.check_plain()?,
            _ => self.check_keyed()?,
        }
        backing.store.write(|texts| {
            let found = self.version_in(texts, key, version)?;
            let Some(content) = found.content else {
                return texts.remove(self.scope(), &self.label, key).map(drop);
            };
            self.check_tokens(&content)?;
            let entry = NewEntry {
                title: found.title.as_deref(),
                description: found.description.as_deref(),
                ..NewEntry::new(key, &content)
            };
            let is_searchable = self.block.source.is_searchable();
            texts.put(self.scope(), &self.label, &entry, is_searchable)
        })
    }

    fn entry(&self, backing: &Backing, key: &str) -> Result<Option<Entry>> {
        backing.store.read(|texts| texts.entry(self.scope(), &self.label, key))
    }

    fn scope(&self) -> BlockScope {
        self.block.scope
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

    /// Calls a provider, after its `init`. A panic is an error.
    fn ask<P: ReadProvider + ?Sized, T>(
        &self,
        backing: &Backing,
        provider: &P,
        call: impl FnOnce(&P) -> std::result::Result<T, BoxError>,
    ) -> Result<T> {
        if !self.is_begun.load(Ordering::Acquire) {
            self.begin(backing, provider)?;
        }
        self.call(|| call(provider))
    }

    /// Calls the `init` of a provider, unless another thread did.
    fn begin<P: ReadProvider + ?Sized>(&self, backing: &Backing, provider: &P) -> Result<()> {
        let _guard = self.lock(&self.beginning, backing)?;
        if !self.is_begun.load(Ordering::Acquire) {
            self.call(|| provider.init(&self.label))?;
            self.is_begun.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn call<T>(&self, call: impl FnOnce() -> std::result::Result<T, BoxError>) -> Result<T> {
        let answer = callback::call(call).unwrap_or_else(|failed| Err(failed.into()));
        answer.map_err(|source| Error::Provider { label: self.label.clone(), source })
    }
}

fn keyed(document: Document) -> Document {
    match document.key.is_empty() {
        true => {
            Document { key: slug::unique(document.title.as_deref(), &document.content), ..document }
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
        // An empty title or description removes the one that was there.
        title: document.title.as_deref().filter(|title| !title.is_empty()),
        description: document.description.as_deref().filter(|text| !text.is_empty()),
        ..NewEntry::new(&document.key, &document.content)
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
