//! A session of a catalog: a provider that creates it with its first write and refuses writes to a removed one.

use std::sync::Arc;

use super::session::MemorySession;
use super::state::{Handle, Kept, State, lock, touch};
use super::usage::{self, Used};
use crate::catalog::{Binding, BindingEnd};
use crate::compaction::{Compaction, CompactionStatus, Seen};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Message, now};
use crate::outcome::{Appended, Deleted, SessionDetails, SessionInfo, Updated};
use crate::search::{Found, SearchRequest};
use crate::storage::SessionProvider;
use crate::usage::{Usage, UsageTotal};
use crate::view::{ExpectedHead, Parent};

pub(super) struct CatalogSession(pub(super) Arc<Handle>);

impl CatalogSession {
    /// Reads the session; one that does not exist reads as empty.
    fn read<T>(&self, work: impl FnOnce(&MemorySession) -> Result<T>) -> Result<T> {
        let state = lock(&self.0.shared);
        match self.0.find(&state) {
            Some(kept) => work(&kept.session),
            None => work(&MemorySession::new(self.0.id.clone())),
        }
    }

    /// Writes to the session. One that does not exist is created, unless the write left it without a message.
    fn write<T>(&self, work: impl FnOnce(&MemorySession) -> Result<T>) -> Result<T> {
        self.write_then(work, |_, _| {})
    }

    /// Writes to the session, and notes in the same step what the write did.
    fn write_then<T>(
        &self,
        work: impl FnOnce(&MemorySession) -> Result<T>,
        then: impl FnOnce(&mut Kept, &T),
    ) -> Result<T> {
        let mut state = lock(&self.0.shared);
        if let Some(kept) = self.0.find_mut(&mut state)? {
            let answer = work(&kept.session)?;
            note(kept);
            then(kept, &answer);
            return Ok(answer);
        }
        self.0.id.check()?;
        let session = MemorySession::new(self.0.id.clone());
        let answer = work(&session)?;
        if session.count() > 0 {
            let kept = state.add(session, SessionInfo::new(self.0.id.clone(), now()));
            note(kept);
            then(kept, &answer);
            // Binds the handle.
            self.0.find(&state);
        }
        Ok(answer)
    }
}

fn note(kept: &mut Kept) {
    kept.info.messages = kept.session.count();
    touch(&mut kept.info);
}

impl SessionProvider for CatalogSession {
    fn id(&self) -> &SessionId {
        &self.0.id
    }

    fn identity(&self) -> Result<String> {
        self.read(|session| session.identity())
    }

    fn info(&self) -> Result<Option<SessionInfo>> {
        let state = lock(&self.0.shared);
        Ok(self.0.find(&state).map(|kept| kept.info.clone()))
    }

    fn set_details(&self, details: &SessionDetails) -> Result<()> {
        details.check()?;
        let mut state = lock(&self.0.shared);
        let kept = self.0.find_or_create(&mut state)?;
        kept.change(|info| info.set(details, now()))?;
        usage::follow(kept);
        Ok(())
    }

    fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        self.read(|session| session.message(id))
    }

    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read(|session| session.history(leaf))
    }

    fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read(|session| session.raw_history(leaf))
    }

    fn latest_leaf(&self) -> Result<Option<Message>> {
        self.read(SessionProvider::latest_leaf)
    }

    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
        self.read(|session| session.branches(id))
    }

    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        self.read(|session| session.path_length(leaf))
    }

    fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>> {
        let append = |session: &MemorySession| session.append(parent, expected, messages);
        self.write_then(append, |kept, appended| {
            let is_new = |(_, answer): &(&Message, &Appended)| answer.is_new;
            messages
                .iter()
                .zip(appended)
                .filter(is_new)
                .for_each(|(message, _)| usage::record(kept, message));
            if let Some((last, _)) = messages.iter().zip(appended).rfind(is_new) {
                // A wrong clock may give a time in the future.
                kept.info.last_message_at = Some(last.created_at.min(now()));
            }
        })
    }

    fn update(&self, message: &Message) -> Result<Updated> {
        self.write_then(
            |session| session.update(message),
            |kept, updated| {
                if updated.is_changed {
                    usage::record(kept, message);
                }
            },
        )
    }

    fn delete(&self, ids: &[MessageId]) -> Result<Deleted> {
        self.write_then(
            |session| session.delete(ids),
            |kept, deleted| usage::forget(kept, |id| deleted.messages.contains(id)),
        )
    }

    fn clear(&self) -> Result<()> {
        self.write_then(SessionProvider::clear, |kept, ()| {
            kept.frozen = None;
            usage::forget(kept, |_| true);
        })
    }

    fn add_compaction(&self, compaction: &Compaction) -> Result<CompactionStatus> {
        let add = |session: &MemorySession| session.add_compaction(compaction);
        self.write_then(add, |kept, _| kept.frozen = None)
    }

    fn commit_compaction(
        &self,
        compaction: &Compaction,
        leaf: &MessageId,
        seen: &Seen,
    ) -> Result<bool> {
        let commit = |session: &MemorySession| session.commit_compaction(compaction, leaf, seen);
        self.write_then(commit, |kept, _| kept.frozen = None)
    }

    fn compactions(&self) -> Result<Vec<Compaction>> {
        self.read(SessionProvider::compactions)
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        self.read(|session| session.search(request))
    }

    fn head(&self) -> Result<Option<MessageId>> {
        self.read(SessionProvider::head)
    }

    fn checkout(&self, id: Option<&MessageId>) -> Result<()> {
        self.write(|session| session.checkout(id))
    }

    fn checkout_if_head(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
        self.write(|session| session.checkout_if_head(expected, id))
    }

    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read(|session| session.expand(id))
    }

    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        self.read(|session| session.expand_raw(id))
    }

    fn add_usage(&self, message: Option<&MessageId>, of: &Usage) -> Result<()> {
        let mut state = lock(&self.0.shared);
        let session = || self.0.id.clone();
        if let Some(id) = message {
            let unknown = || Error::UnknownMessage { session: session(), id: id.clone() };
            let found = self.0.find(&state).map(|kept| kept.session.message(id)).transpose()?;
            found.flatten().ok_or_else(unknown)?;
        }
        let kept = self.0.find_or_create(&mut state)?;
        usage::add(kept, Used::new(kept, of, now()).of_message(message));
        touch(&mut kept.info);
        Ok(())
    }

    fn usage(&self) -> Result<UsageTotal> {
        let state = lock(&self.0.shared);
        Ok(self.0.find(&state).map(|kept| usage::total(&kept.usage)).unwrap_or_default())
    }

    fn path_usage(&self, leaf: Option<&MessageId>) -> Result<UsageTotal> {
        let path = self.raw_history(leaf)?;
        let state = lock(&self.0.shared);
        let is_on_path = |used: &&Used| path.iter().any(|message| used.is_of(&message.id));
        let used = self.0.find(&state).map(|kept| kept.usage.iter().filter(is_on_path));
        Ok(usage::total(used.into_iter().flatten()))
    }

    fn split(
        &self,
        id: &SessionId,
        opening: &Message,
        end_reason: &str,
    ) -> Result<Arc<dyn SessionProvider>> {
        let mut state = lock(&self.0.shared);
        let unknown = || Error::UnknownSession { id: self.0.id.clone() };
        let source = self.0.find_mut(&mut state)?.ok_or_else(unknown)?;
        let (from, info, head) = (source.key, source.info.clone(), source.session.head()?);
        if state.find(id).is_some() {
            return Err(Error::SessionExists { id: id.clone() });
        }
        info.check_split(end_reason)?;
        let session = MemorySession::new(id.clone());
        session.append(&Parent::Root, &ExpectedHead::Any, std::slice::from_ref(opening))?;
        let details = SessionDetails {
            name: info.name,
            model: info.model,
            source: info.source,
            metadata: info.metadata,
            owner: info.owner,
            parent_session: Some(info.id),
            fork_point: head,
            ..SessionDetails::default()
        };
        let child = state.create(id, &details)?;
        child.session = Arc::new(session);
        child.info.last_message_at = Some(opening.created_at.min(now()));
        note(child);
        let to = child.key;
        state.copy_texts(from, to);
        if let Some(source) = self.0.find_mut(&mut state)? {
            let end_reason = Some(end_reason.to_owned());
            source.info.set(&SessionDetails { end_reason, ..SessionDetails::default() }, now())?;
        }
        continue_bindings(&mut state, &self.0.id, id);
        let handle = Handle::new(&self.0.shared, id.clone());
        handle.find(&state);
        Ok(Arc::new(Self(handle)))
    }
}

/// Binds the keys of a session to the one that continues it.
fn continue_bindings(state: &mut State, from: &SessionId, to: &SessionId) {
    let (mut keys, ended_at) = (Vec::new(), Some(now()));
    for binding in &mut state.bindings {
        if binding.session == *from && binding.ended_at.is_none() {
            (binding.ended_at, binding.end) = (ended_at, Some(BindingEnd::Continued));
            keys.push(binding.key.clone());
        }
    }
    for key in keys {
        bind(state, key, to.clone());
    }
}

/// Binds a key that points nowhere to a session.
pub(super) fn bind(state: &mut State, key: String, session: SessionId) {
    state.last_binding += 1;
    state.bindings.push(Binding::new(key, session, now(), state.last_binding));
}
