//! A block at work: under its label, over the places where its texts are.
//!
//! Invariant: nothing of a block is kept here. What it holds is asked for each time, so that handles, threads and processes
//! never disagree, and a write that failed has changed nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::backing::Backing;
use super::block::{Block, BlockInfo, Source, breaks_line, check_label, listed};
use super::provider::{Document, ReadProvider, WriteProvider};
use super::slug;
use crate::error::{BoxError, Error, Result};
use crate::id::shorten;
use crate::search::{Hit, Matched, Scope, SearchRequest};
use crate::storage::context::{Entry, EntryInfo, EntryVersion, NewEntry, Owner, Put};

/// How often a write is tried again because another one came first.
const MAX_TRIES: usize = 1_000;

/// A block under its label; forks of a session share it.
#[derive(Debug)]
pub(super) struct Mounted {
    pub(super) label: String,
    pub(super) block: Block,
    /// Whether the provider was told its label.
    is_begun: Mutex<bool>,
    /// Held while a provider is written: an addition reads what is there first, and what another thread wrote between
    /// would be lost.
    writing: Mutex<()>,
}

impl Mounted {
    pub(super) fn new(label: &str, block: Block) -> Result<Self> {
        check_label(label)?;
        let label = label.to_owned();
        if block.is_shared && !block.source.is_stored() {
            let what = "be shared across sessions: it is not kept in the store";
            return Err(Error::BlockCannot { label, what });
        }
        Ok(Self { label, block, is_begun: Mutex::new(false), writing: Mutex::new(()) })
    }

    /// Returns the block as it reads now.
    pub(super) fn info(&self, places: &Backing) -> Result<BlockInfo> {
        Ok(self.block.info(&self.label, self.content(places)?))
    }

    /// Returns what the block can do; its content is not read.
    pub(super) fn kind(&self) -> BlockInfo {
        self.block.info(&self.label, String::new())
    }

    pub(super) fn content(&self, places: &Backing) -> Result<String> {
        match &self.block.source {
            Source::Text(text) => Ok(text.to_string()),
            Source::Read(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Write(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Skills(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Search(provider) => self.ask(provider.as_ref(), |provider| provider.get()),
            Source::Stored => {
                Ok(self.entry(places, "")?.map(|entry| entry.content).unwrap_or_default())
            }
            Source::StoredSkills => {
                let lines = self.documents(places)?.into_iter().map(|document| {
                    listed(
                        &document.key,
                        &document.description.or(document.title).unwrap_or_default(),
                    )
                });
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
            Source::Knowledge => match places.store()?.count(self.owner(), &self.label)? {
                1 => Ok("1 entry indexed.".to_owned()),
                count => Ok(format!("{count} entries indexed.")),
            },
            Source::History => {
                // Not how many: it would be another text after each message, and drift.
                places.conversation()?;
                Ok("What was said in this conversation.".to_owned())
            }
        }
    }

    /// Replaces the content.
    pub(super) fn set(&self, places: &Backing, content: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        match &self.block.source {
            Source::Write(provider) => {
                let _turn = self.turn();
                self.write(provider.as_ref(), content.to_owned())
            }
            _ => {
                self.check_tokens(content)?;
                let entry = NewEntry { content, ..NewEntry::default() };
                places.store()?.put(self.owner(), &self.label, &entry, false, None)?;
                Ok(self.block.info(&self.label, content.to_owned()))
            }
        }
    }

    /// Adds to the content, on a line of its own.
    pub(super) fn append(&self, places: &Backing, text: &str) -> Result<BlockInfo> {
        self.check_plain()?;
        if let Source::Write(provider) = &self.block.source {
            let _turn = self.turn();
            return self.write(provider.as_ref(), joined(&self.content(places)?, text));
        }
        let content = self.renew(places, "", |present| {
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

    /// Stores documents of a keyed block and returns the keys they are under. In the store it is all of them or none.
    pub(super) fn set_documents(
        &self,
        places: &Backing,
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
        self.write_documents(places, &documents)?;
        Ok(documents.into_iter().map(|document| document.key).collect())
    }

    fn write_documents(&self, places: &Backing, documents: &[Document]) -> Result<()> {
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
                places.store()?.put_all(self.owner(), &self.label, &entries, is_searchable)?;
            }
        }
        Ok(())
    }

    /// Adds to a document, on a line of its own; it comes into being if it is not there. What it is called stays as it is
    /// where nothing else is said.
    pub(super) fn append_document(&self, places: &Backing, more: &Document) -> Result<String> {
        self.check_keyed()?;
        self.check_writable()?;
        let more = keyed(more.clone());
        if self.block.source.is_stored() {
            self.renew_document(places, &more, |was| joined(was, &more.content))?;
            return Ok(more.key);
        }
        check_key(&more.key)?;
        let _turn = self.turn();
        let content = joined(&self.load(places, &more.key)?.unwrap_or_default(), &more.content);
        self.check_tokens(&content)?;
        self.write_documents(places, &[Document { content, ..more.clone() }])?;
        Ok(more.key)
    }

    /// Replaces the text of a document. What it is called stays as it is where nothing else is said.
    pub(super) fn rewrite_document(&self, places: &Backing, new: &Document) -> Result<()> {
        self.check_keyed()?;
        self.check_writable()?;
        match self.block.source.is_stored() {
            true => self.renew_document(places, new, |_| new.content.clone()),
            false => self.set_documents(places, vec![new.clone()]).map(drop),
        }
    }

    fn renew_document(
        &self,
        places: &Backing,
        new: &Document,
        content: impl Fn(&str) -> String,
    ) -> Result<()> {
        let Document { key, title, description, .. } = new;
        check_key(key)?;
        self.renew(places, key, |present| {
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

    /// Makes a new version of a stored text from the present one, however many others do so, and returns its content.
    fn renew(
        &self,
        places: &Backing,
        key: &str,
        make: impl Fn(Option<Entry>) -> Document,
    ) -> Result<String> {
        for _ in 0..MAX_TRIES {
            let present = self.entry(places, key)?;
            let version = present.as_ref().map_or(0, |entry| entry.version);
            let document = make(present);
            self.check_tokens(&document.content)?;
            let (store, is_searchable) = (places.store()?, self.block.source.is_searchable());
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

    /// Takes a stored document away; its versions stay.
    pub(super) fn remove_document(&self, places: &Backing, key: &str) -> Result<bool> {
        self.check_documents()?;
        self.check_writable()?;
        match key {
            "" => Ok(false),
            _ => places.store()?.remove(self.owner(), &self.label, key),
        }
    }

    /// Returns the stored documents, by key, without their contents.
    pub(super) fn documents(&self, places: &Backing) -> Result<Vec<EntryInfo>> {
        self.check_documents()?;
        places.store()?.documents(self.owner(), &self.label)
    }

    /// Returns the document of this key.
    pub(super) fn load(&self, places: &Backing, key: &str) -> Result<Option<String>> {
        match &self.block.source {
            Source::Skills(provider) => self.ask(provider.as_ref(), |provider| provider.load(key)),
            Source::StoredSkills | Source::Knowledge if key.is_empty() => Ok(None),
            Source::StoredSkills | Source::Knowledge => {
                Ok(self.entry(places, key)?.map(|entry| entry.content))
            }
            _ => Err(self.cannot("be loaded from")),
        }
    }

    /// Returns the documents that match, best first, and how.
    pub(super) fn search(
        &self,
        places: &Backing,
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
                let found = places.store()?.search(self.owner(), &self.label, query, limit)?;
                Ok((found.0.into_iter().map(document).collect(), found.1))
            }
            Source::History => {
                let conversation = places.conversation()?;
                let scope = Scope::session(conversation.id().clone());
                let request = SearchRequest { limit, ..SearchRequest::new(query, scope) };
                let found = conversation.search(&request)?;
                Ok((found.hits.into_iter().map(said).collect(), found.matched))
            }
            _ => Err(self.cannot("be searched")),
        }
    }

    /// Returns the versions of a stored text, oldest first.
    pub(super) fn versions(&self, places: &Backing, key: &str) -> Result<Vec<EntryVersion>> {
        self.check_stored()?;
        places.store()?.versions(self.owner(), &self.label, key)
    }

    /// Returns one version of a stored text.
    pub(super) fn version(
        &self,
        places: &Backing,
        key: &str,
        version: u64,
    ) -> Result<EntryVersion> {
        self.check_stored()?;
        let found = places.store()?.version(self.owner(), &self.label, key, version)?;
        found.ok_or_else(|| Error::UnknownVersion {
            label: self.label.clone(),
            key: Some(key.to_owned()).filter(|key| !key.is_empty()),
            version,
        })
    }

    /// Brings a former version back, as a new one.
    pub(super) fn restore(&self, places: &Backing, key: &str, version: u64) -> Result<()> {
        let found = self.version(places, key, version)?;
        self.check_writable()?;
        // The label may have held texts of another kind; this block would not show them.
        match key {
            "" => self.check_plain()?,
            _ => self.check_keyed()?,
        }
        let label = &self.label;
        let Some(content) = found.content else {
            places.store()?.remove(self.owner(), label, key)?;
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
        places.store()?.put(self.owner(), label, &entry, is_searchable, None)?;
        Ok(())
    }

    fn entry(&self, places: &Backing, key: &str) -> Result<Option<Entry>> {
        places.store()?.entry(self.owner(), &self.label, key)
    }

    fn owner(&self) -> Owner {
        if self.block.is_shared { Owner::Shared } else { Owner::Session }
    }

    pub(super) fn cannot(&self, what: &'static str) -> Error {
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

    /// A plain write is for blocks that are one text.
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

    /// Calls a provider, which learns its label first.
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

/// Returns the document with a key: its own, or one made of its title or its content.
fn keyed(document: Document) -> Document {
    match document.key.is_empty() {
        true => {
            Document { key: slug::key(document.title.as_deref(), &document.content), ..document }
        }
        false => document,
    }
}

/// Checks that a key can stand in a line of the prompt, for a model to name the document by.
fn check_key(key: &str) -> Result<()> {
    let why = if key.trim().is_empty() {
        "it is blank"
    } else if key.contains(breaks_line) {
        "it has a line break or a control character"
    } else {
        return Ok(());
    };
    let (what, given) = ("document key", shorten(key).into_owned());
    Err(Error::InvalidName { what, given, why: why.to_owned() })
}

/// Returns the content with a text on a line of its own behind it.
fn joined(content: &str, text: &str) -> String {
    match content.is_empty() || text.starts_with('\n') {
        true => format!("{content}{text}"),
        false => format!("{content}\n{text}"),
    }
}

fn entry_of(document: &Document) -> NewEntry<'_> {
    NewEntry {
        key: &document.key,
        // An empty one says nothing, and takes away what was said.
        title: document.title.as_deref().filter(|title| !title.is_empty()),
        description: document.description.as_deref().filter(|text| !text.is_empty()),
        content: &document.content,
    }
}

fn document(entry: Entry) -> Document {
    let Entry { key, title, description, content, .. } = entry;
    Document { key, title, description, content }
}

/// Returns a message that was found, as a document: its id is the key.
fn said(hit: Hit) -> Document {
    let about = format!("{}, {}", hit.role, hit.created_at.format("%Y-%m-%d %H:%M"));
    Document::new(hit.id.as_str(), hit.snippet.to_string()).described(about)
}
