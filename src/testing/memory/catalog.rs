//! Many sessions in memory.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex};

use super::context::MemoryContext;
use super::handle::{CatalogSession, bind};
use super::state::{Handle, Kept, Shared, State, Whose, listed_at, lock};
use super::usage;
use crate::catalog::{
    Binding, BindingEnd, BindingFilter, ListedSession, ResumeRequest, Resumed, SessionChange,
    SessionCursor, SessionFilter, SessionPage,
};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::{Role, now};
use crate::outcome::{SessionDetails, SessionInfo};
use crate::retention::RetentionAction;
use crate::search::{
    Found, HITS_PER_SESSION, Hit, Matched, Scope, SearchRequest, SessionHit, SessionsFound,
};
use crate::storage::SessionProvider;
use crate::storage::catalog::{SessionCatalog, SessionStorage};
use crate::usage::{UsageFilter, UsageGroup, UsageRow};

/// Many sessions in memory, with their contexts and bindings.
///
/// Each list and each search reads all sessions.
///
/// ```
/// use talktree::testing::MemoryCatalog;
/// use talktree::{ExpectedHead, Message, Parent, ResumeRequest, SessionCatalog};
///
/// let catalog = MemoryCatalog::new();
/// let resumed = catalog.resume(&ResumeRequest::new("telegram:4711"))?;
/// let chat = catalog.session(&resumed.session).session;
/// chat.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("hello")])?;
/// let again = catalog.resume(&ResumeRequest::new("telegram:4711"))?;
/// assert_eq!((again.session, again.is_new), (resumed.session, false));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryCatalog {
    shared: Shared,
}

impl MemoryCatalog {
    /// Returns a catalog without sessions.
    #[must_use]
    pub fn new() -> Self {
        Self { shared: Arc::new(Mutex::default()) }
    }
}

impl SessionCatalog for MemoryCatalog {
    fn session(&self, id: &SessionId) -> SessionStorage {
        let handle = Handle::new(&self.shared, id.clone());
        let context = Some(Arc::new(MemoryContext::over(Arc::clone(&handle))) as Arc<_>);
        SessionStorage { session: Arc::new(CatalogSession(handle)), context }
    }

    fn info(&self, id: &SessionId) -> Result<Option<SessionInfo>> {
        Ok(lock(&self.shared).find(id).map(|kept| kept.info.clone()))
    }

    fn create(&self, id: &SessionId, details: &SessionDetails) -> Result<()> {
        lock(&self.shared).create(id, details).map(drop)
    }

    fn list(
        &self,
        filter: &SessionFilter,
        after: Option<SessionCursor>,
        limit: usize,
    ) -> Result<SessionPage> {
        filter.check()?;
        let state = lock(&self.shared);
        let place = |kept: &Kept| SessionCursor::new(listed_at(&kept.info), kept.key);
        let is_after = |kept: &&Kept| after.is_none_or(|after| place(kept) < after);
        let is_written_in = |kept: &&Kept| {
            filter.author.as_ref().is_none_or(|author| kept.session.is_written_in_by(author))
        };
        let mut found: Vec<&Kept> = state
            .sessions
            .iter()
            .filter(|kept| filter.shows(&kept.info))
            .filter(is_written_in)
            .filter(is_after)
            .collect();
        found.sort_by_key(|kept| Reverse(place(kept)));
        let is_more = limit > 0 && found.len() > limit;
        found.truncate(limit);
        let after = found.last().filter(|_| is_more).map(|last| place(last));
        let sessions = found.into_iter().map(listed).collect::<Result<_>>()?;
        Ok(SessionPage::new(sessions, after))
    }

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()> {
        change.check()?;
        let mut state = lock(&self.shared);
        let kept = state.find_mut(id).ok_or_else(|| unknown(id))?;
        kept.change(|info| info.change(change, now()))
    }

    fn remove(&self, id: &SessionId) -> Result<()> {
        remove(&mut lock(&self.shared), id)
    }

    fn discard(&self, sessions: &[SessionInfo], action: RetentionAction) -> Result<Vec<bool>> {
        let mut state = lock(&self.shared);
        let mut discard = |known: &SessionInfo| {
            let Some(kept) = state.find_mut(&known.id).filter(|kept| kept.info == *known) else {
                return Ok(false);
            };
            match action {
                RetentionAction::Remove => remove(&mut state, &known.id)?,
                _ => kept.info.change(&SessionChange::Delete, now())?,
            }
            Ok(true)
        };
        sessions.iter().map(&mut discard).collect()
    }

    fn resume(&self, request: &ResumeRequest) -> Result<Resumed> {
        request.check()?;
        let mut state = lock(&self.shared);
        let mut former = None;
        if let Some(at) = open_binding(&state, &request.key) {
            let (session, bound_at) =
                (state.bindings[at].session.clone(), state.bindings[at].bound_at);
            let kept = state.find_mut(&session).ok_or_else(|| unknown(&session))?;
            match kept_from(&kept.info, bound_at, request) {
                None => {
                    if kept.info.owner.is_none() {
                        let owner = SessionChange::Owner(request.owner.clone());
                        kept.change(|info| info.change(&owner, now()))?;
                    }
                    return Ok(Resumed::new(session, false, None));
                }
                Some(why) => former = Some((at, session, why)),
            }
        }
        let owner = request.owner.clone().or_else(|| request.details.owner.clone());
        state.create(&request.new_id, &SessionDetails { owner, ..request.details.clone() })?;
        if let Some((at, _, why)) = &former {
            end(&mut state.bindings[*at], *why);
        }
        bind(&mut state, request.key.clone(), request.new_id.clone());
        let former = former.map(|(_, session, why)| (session, why));
        Ok(Resumed::new(request.new_id.clone(), true, former))
    }

    fn unbind(&self, key: &str) -> Result<Option<SessionId>> {
        let mut state = lock(&self.shared);
        let Some(at) = open_binding(&state, key) else { return Ok(None) };
        end(&mut state.bindings[at], BindingEnd::Unbound);
        Ok(Some(state.bindings[at].session.clone()))
    }

    fn bindings(
        &self,
        filter: &BindingFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Binding>> {
        let state = lock(&self.shared);
        let newest_first = state.bindings.iter().rev();
        let shown = newest_first
            .filter(|binding| before.is_none_or(|before| binding.number < before))
            .filter(|binding| filter.shows(binding));
        Ok(shown.take(limit).cloned().collect())
    }

    fn usage(&self, filter: &UsageFilter, group: UsageGroup) -> Result<Vec<UsageRow>> {
        Ok(usage::report(&lock(&self.shared), filter, group))
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        search(&self.shared, request)
    }

    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let state = lock(&self.shared);
        let mut sessions = Vec::new();
        for kept in searched(&state, request) {
            let mut hits = hits_in(kept, request)?;
            hits.truncate(HITS_PER_SESSION);
            if let Some(score) = hits.first().map(|hit| hit.score) {
                let (session, name) = (kept.info.id.clone(), kept.info.name.clone());
                sessions.push(SessionHit { session, name, score, hits });
            }
        }
        sessions = sessions.into_iter().skip(request.offset).take(request.limit).collect();
        let (matched, notices) = (Matched::All, Vec::new());
        Ok(SessionsFound { sessions, matched, steps: Vec::new(), notices, is_partial: false })
    }
}

/// Removes a session; its usage stays in the totals.
fn remove(state: &mut State, id: &SessionId) -> Result<()> {
    let at = state.sessions.iter().position(|kept| kept.info.id == *id);
    let kept = state.sessions.remove(at.ok_or_else(|| unknown(id))?);
    state.blocks.retain(|(whose, _), _| *whose != Whose::Session(kept.key));
    state.bindings.retain(|binding| binding.session != *id);
    let SessionInfo { owner, source, .. } = kept.info;
    let former = kept.usage.into_iter().map(|used| (owner.clone(), source.clone(), used));
    state.former.extend(former);
    Ok(())
}

fn unknown(id: &SessionId) -> Error {
    Error::UnknownSession { id: id.clone() }
}

fn listed(kept: &Kept) -> Result<ListedSession> {
    let messages = kept.session.raw_history(None)?;
    let first = messages.iter().find(|message| message.role == Role::User);
    Ok(ListedSession::new(kept.info.clone(), first))
}

/// Returns the index of the open binding of a key.
fn open_binding(state: &State, key: &str) -> Option<usize> {
    state.bindings.iter().position(|binding| binding.key == key && binding.ended_at.is_none())
}

fn end(binding: &mut Binding, why: BindingEnd) {
    (binding.ended_at, binding.end) = (Some(now()), Some(why));
}

/// Returns why a session must not be resumed.
fn kept_from(
    info: &SessionInfo,
    bound_at: chrono::DateTime<chrono::Utc>,
    request: &ResumeRequest,
) -> Option<BindingEnd> {
    let is_of_another =
        request.owner.is_some() && info.owner.is_some() && info.owner != request.owner;
    match () {
        () if info.deleted_at.is_some() => Some(BindingEnd::Deleted),
        () if info.ended_at.is_some() => Some(BindingEnd::Ended),
        () if is_of_another => Some(BindingEnd::OtherOwner),
        () if request.is_expired(listed_at(info).max(bound_at), now()) => Some(BindingEnd::Expired),
        () => None,
    }
}

/// Searches the messages of all sessions within the request's scope.
pub(super) fn search(shared: &Shared, request: &SearchRequest) -> Result<Found> {
    let state = lock(shared);
    let mut hits = Vec::new();
    for kept in searched(&state, request) {
        hits.extend(hits_in(kept, request)?);
    }
    hits.sort_by_key(|hit| Reverse(hit.created_at));
    let hits = hits.into_iter().skip(request.offset).take(request.limit).collect();
    Ok(Found::new(hits, Matched::All))
}

/// Returns the sessions that a request searches; none in the trash.
fn searched<'s>(state: &'s State, request: &'s SearchRequest) -> impl Iterator<Item = &'s Kept> {
    let is_within = |kept: &&Kept| match &request.scope {
        Scope::Store => true,
        Scope::Sessions(ids) => ids.contains(&kept.info.id),
        Scope::Path(id, _) => *id == kept.info.id,
    };
    let is_owned = |kept: &&Kept| request.owner.is_none() || kept.info.owner == request.owner;
    let present = state.sessions.iter().filter(|kept| kept.info.deleted_at.is_none());
    present.filter(is_within).filter(is_owned)
}

fn hits_in(kept: &Kept, request: &SearchRequest) -> Result<Vec<Hit>> {
    let scope = match &request.scope {
        Scope::Path(..) => request.scope.clone(),
        _ => Scope::session(kept.info.id.clone()),
    };
    let all = SearchRequest { scope, limit: usize::MAX, offset: 0, ..request.clone() };
    Ok(kept.session.search(&all)?.hits)
}
