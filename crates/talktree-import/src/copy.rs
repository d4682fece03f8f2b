//! Copies a store into another one, on whichever engine each of them is.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc;
use std::thread;

use serde::Serialize;
use talktree::{
    BindingFilter, Document, Error, Progress, Result, Session, SessionDetails, SessionId,
    SessionInfo, SessionManager, Store, StoredText,
};

use crate::export::hash_of;

/// How many messages are stored in one transaction; a longer session has one of its own.
const BATCH: u64 = 2_000;
/// How many records are in memory.
const AHEAD: usize = 64;
/// How many bindings one read returns.
const PAGE: usize = 1_000;

/// What [`copy`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Copied {
    /// How many sessions were written.
    pub sessions: u64,
    /// How many were equal already.
    pub unchanged: u64,
    /// How many versions of texts of context blocks were written.
    pub texts: u64,
    /// How many keys were bound to their sessions.
    pub bindings: u64,
    /// The sessions that are not as they are in the other store: other ones, changed there, or refused by it.
    pub different: Vec<SessionId>,
}

/// Copies the sessions of a store that are not in the trash into another store, with the texts of context blocks and the keys that
/// lead to them.
///
/// What is copied is one snapshot. Of a session this is everything that [`content_hash`](crate::export::content_hash) compares:
/// afterwards the hashes of the two stores are equal, if nothing else is in the second one and
/// [`different`](Copied::different) is empty. The usage of its messages is counted again. Texts have all their versions, with the
/// time of the copy.
///
/// Not copied are sessions in the trash, the log of the head, frozen prompts (the next prompt is rendered again), texts that were
/// removed, former keys, usage of no message and of what was deleted or removed, transcripts, inboxes, vectors, and which sessions
/// must not be imported again.
///
/// A second call continues one that was interrupted, adds what is new since, and writes nothing that is equal. A session whose newest
/// branch ends with a message of the second store's own stays as it is there, and so does a message that was changed there.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::copy;
/// use talktree_import::export::content_hash;
///
/// let (from, to) = (Store::open_in_memory()?, Store::open_in_memory()?);
/// from.session("s")?.append(Message::user("hi"))?;
/// assert_eq!(copy(&from, &to, |_| {})?.sessions, 1);
/// assert_eq!(content_hash(&to)?, content_hash(&from)?);
/// assert_eq!(copy(&from, &to, |_| {})?.unchanged, 1);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::Interrupted`] if either store is; as every read and write.
pub fn copy(from: &Store, to: &Store, progress: impl FnMut(Progress)) -> Result<Copied> {
    let watch = to.interrupt_handle();
    from.export(&mut io::sink(), |from, _| {
        let copying = Copying { from, to, copied: Copied::default(), texts: HashSet::new() };
        copying.run(&|| watch.check(), progress)
    })
}

struct Copying<'a> {
    from: &'a Store,
    to: &'a Store,
    copied: Copied,
    /// Whose texts are copied: one session's, one owner's or those of all, with the label.
    texts: HashSet<(Option<SessionId>, Option<String>, String)>,
}

impl Copying<'_> {
    fn run(
        mut self,
        check: &dyn Fn() -> Result<()>,
        mut progress: impl FnMut(Progress),
    ) -> Result<Copied> {
        let mut sessions = self.from.sessions()?;
        // A fork comes after what it was forked from: their common messages are stored as copies again.
        sessions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let manager = SessionManager::builder(self.to).build()?;
        let total = sessions.len() as u64;
        let mut batch = Vec::new();
        for (done, info) in (0..).zip(sessions) {
            check()?;
            progress(Progress::new(done, total));
            if self.is_equal(&info.id)? {
                self.copied.unchanged += 1;
                self.texts_of(&info)?;
            } else if self.is_other(&info.id)? {
                self.copied.different.push(info.id);
            } else {
                self.bind(&manager, &info.id)?;
                batch.push(info);
                if batch.iter().map(|info| 1 + info.messages).sum::<u64>() >= BATCH {
                    self.sessions(&mut batch)?;
                }
            }
        }
        self.sessions(&mut batch)?;
        // Those that all sessions share, if there is none.
        self.texts(&SessionId::new(), None)?;
        progress(Progress::new(total, total));
        Ok(self.copied)
    }

    /// Stores sessions in one transaction, and then what belongs to them.
    fn sessions(&mut self, batch: &mut Vec<SessionInfo>) -> Result<()> {
        let (sender, records) = mpsc::sync_channel(AHEAD);
        thread::scope(|scope| {
            let sessions = batch.iter().map(|info| self.from.session(&info.id));
            let sessions = sessions.collect::<Result<Vec<Session>>>()?;
            scope.spawn(move || {
                for session in sessions {
                    let gone = |_| Error::Interrupted;
                    let read = session.records(|record| sender.send(Ok(record)).map_err(gone));
                    if let Err(error) = read {
                        // Nobody receives it if the import has ended.
                        let _ = sender.send(Err(error));
                    }
                }
            });
            self.to.import(records)
        })?;
        for info in batch.drain(..) {
            if self.is_equal(&info.id)? {
                self.copied.sessions += 1;
                self.texts_of(&info)?;
            } else {
                self.copied.different.push(info.id);
            }
        }
        Ok(())
    }

    fn is_equal(&self, id: &SessionId) -> Result<bool> {
        let copy = self.to.session(id)?;
        Ok(copy.info()?.is_some_and(|info| info.deleted_at.is_none())
            && hash_of(&copy)? == hash_of(&self.from.session(id)?)?)
    }

    /// Returns whether the other store refuses a session, or has messages in it that are not of this one.
    fn is_other(&self, id: &SessionId) -> Result<bool> {
        if self.to.is_import_forbidden(id)? {
            return Ok(true);
        }
        match self.to.session(id)?.latest_leaf()? {
            Some(leaf) => Ok(self.from.session(id)?.message(&leaf.id)?.is_none()),
            None => Ok(false),
        }
    }

    /// Binds the key that leads to a session. The session is created if the other store does not have it.
    fn bind(&mut self, manager: &SessionManager, id: &SessionId) -> Result<()> {
        let filter =
            BindingFilter { session: Some(id.clone()), is_open: true, ..BindingFilter::default() };
        for binding in self.from.bindings(&filter, None, PAGE)? {
            match manager.resume(binding.key).new_id(id.clone()).run() {
                Ok(resumed) => self.copied.bindings += u64::from(resumed.is_new),
                // A key was bound since the session was copied.
                Err(Error::SessionExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn texts_of(&mut self, info: &SessionInfo) -> Result<()> {
        if self.texts(&info.id, info.owner.as_deref())? > 0 {
            // Its time is that of the last write.
            let details =
                SessionDetails { updated_at: Some(info.updated_at), ..SessionDetails::default() };
            self.to.session(&info.id)?.set_details(&details)?;
        }
        Ok(())
    }

    /// Copies the texts that a session reads; returns how many versions of its own were written.
    fn texts(&mut self, id: &SessionId, owner: Option<&str>) -> Result<u64> {
        let mut own = 0;
        for (label, block) in self.from.session(id)?.context().stored()? {
            let is_own = !block.is_shared() && !block.is_per_owner();
            let owner = owner.filter(|_| block.is_per_owner()).map(str::to_owned);
            if !self.texts.insert((is_own.then(|| id.clone()), owner, label.clone())) {
                continue;
            }
            let open = |store: &Store| {
                store.session_builder(id.clone()).block(label.clone(), block.clone()).open()
            };
            let written = copy_label(&open(self.from)?, &open(self.to)?, &label)?;
            self.copied.texts += written;
            own += if is_own { written } else { 0 };
        }
        Ok(own)
    }
}

/// Copies what is stored under a label; returns how many versions were written.
fn copy_label(from: &Session, to: &Session, label: &str) -> Result<u64> {
    let (from, to) = (from.context(), to.context());
    let info = from.block(label)?.unwrap_or_default();
    let keys: Vec<Option<String>> = match info.is_skill || info.is_searchable {
        true => from.documents(label)?.into_iter().map(|document| Some(document.key)).collect(),
        false => vec![None],
    };
    let mut written = 0;
    for key in keys {
        let versions = from.versions(label, key.as_deref())?;
        let known = to.versions(label, key.as_deref())?;
        let pairs = versions.iter().zip(&known);
        let equal = pairs.take_while(|(one, other)| is_same(one, other)).count();
        let new = match (versions.last(), known.last()) {
            (Some(last), Some(there)) if is_same(last, there) => &[],
            // What was written there is followed by the present text.
            _ if equal < known.len() => &versions[versions.len().saturating_sub(1)..],
            _ => &versions[equal..],
        };
        for version in new.iter().cloned() {
            let StoredText { title, description, content, .. } = version;
            match (content, key.clone()) {
                (Some(content), None) => to.set(label, &content).map(drop)?,
                (Some(content), Some(key)) => {
                    let mut document = Document::new(key, content);
                    (document.title, document.description) = (title, description);
                    to.set_document(label, &document).map(drop)?;
                }
                (None, None) => to.remove_text(label).map(drop)?,
                (None, Some(key)) => to.remove_document(label, &key).map(drop)?,
            }
            written += 1;
        }
    }
    Ok(written)
}

fn is_same(one: &StoredText, other: &StoredText) -> bool {
    (&one.title, &one.description, &one.content)
        == (&other.title, &other.description, &other.content)
}
