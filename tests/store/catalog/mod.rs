//! Sessions as a list, the outside keys that lead to them, the trash, usage, and what becomes of their context. Each rule runs on
//! an empty store.

mod bindings;
mod changes;
mod contexts;
mod lists;
mod names;
mod races;
mod trash;
mod usage;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use talktree::{
    BindingEnd, Message, Result, Session, SessionDetails, SessionFilter, SessionId, SessionInfo,
    SessionManager, Store,
};

use crate::common::Scratch;

struct Probe {
    store: Store,
    bot: SessionManager,
    scratch: Scratch,
}

/// What a resume is asked for.
#[derive(Clone)]
struct ResumeRequest {
    key: String,
    owner: Option<String>,
    expire_after: Duration,
    new_id: SessionId,
    details: SessionDetails,
}

impl ResumeRequest {
    fn new(key: impl Into<String>) -> Self {
        let (owner, expire_after) = (None, Duration::ZERO);
        let (new_id, details) = (SessionId::new(), SessionDetails::default());
        Self { key: key.into(), owner, expire_after, new_id, details }
    }
}

#[derive(Debug)]
struct Resumed {
    session: SessionId,
    is_new: bool,
    former: Option<(SessionId, BindingEnd)>,
}

/// Returns a time long ago, some microseconds after a fixed one.
fn at(micros: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds(1_600_000_000_000_000 + micros)
}

/// Returns the present as it is stored, in microseconds.
fn now() -> DateTime<Utc> {
    let micros = Utc::now().timestamp_micros();
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

fn owned_by(owner: &str) -> SessionDetails {
    SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() }
}

impl Probe {
    fn new() -> Result<Self> {
        let scratch = Scratch::new()?;
        let store = scratch.store.clone();
        Ok(Self { bot: SessionManager::builder(&store).build()?, store, scratch })
    }

    fn is_sound(&self) -> Result<()> {
        assert_eq!(self.scratch.store.verify(|_| {})?.damages, []);
        Ok(())
    }

    fn create(&self, id: &str) -> Result<()> {
        self.create_as(&id.into(), &SessionDetails::default())
    }

    fn create_as(&self, id: &SessionId, details: &SessionDetails) -> Result<()> {
        self.store.create_session_as(id.clone(), details.clone()).map(drop)
    }

    fn chat(&self, id: &str) -> Result<Session> {
        self.store.session(id)
    }

    /// Appends a message of this time to a session.
    fn say(&self, id: &str, time: DateTime<Utc>) -> Result<()> {
        self.append(id, &Message::user(format!("text of {id}")).at(time))
    }

    fn append(&self, id: &str, message: &Message) -> Result<()> {
        self.chat(id)?.append(message.clone()).map(drop)
    }

    fn resumed(&self, request: &ResumeRequest) -> Result<Resumed> {
        let ResumeRequest { key, owner, expire_after, new_id, details } = request.clone();
        let resume =
            self.bot.resume(key).expire_after(expire_after).details(details).new_id(new_id);
        let resume = owner.into_iter().fold(resume, |resume, owner| resume.owner(owner));
        let resumed = resume.run()?;
        let (session, is_new, former) =
            (resumed.session.id().clone(), resumed.is_new, resumed.former);
        Ok(Resumed { session, is_new, former })
    }

    fn info(&self, id: &str) -> Result<SessionInfo> {
        let info = self.bot.get(&id.into())?;
        Ok(info.unwrap_or_else(|| panic!("{id:?} is not in the store")))
    }

    /// Returns the sessions that a filter shows, read in pages of this size.
    fn listed_by(&self, filter: &SessionFilter, size: usize) -> Result<Vec<SessionInfo>> {
        let (mut listed, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = self
                .store
                .list()
                .filter(filter.clone())
                .after(after.as_deref())
                .limit(size)
                .run()?;
            assert!(page.sessions.len() <= size, "a page exceeds its limit");
            listed.extend(page.sessions.into_iter().map(|listed| listed.info));
            match page.after {
                None => return Ok(listed),
                next => after = next,
            }
        }
    }

    /// Returns the ids of the sessions that a filter shows.
    fn listed(&self, filter: &SessionFilter) -> Result<Vec<String>> {
        let listed = self.listed_by(filter, 3)?;
        Ok(listed.into_iter().map(|info| info.id.to_string()).collect())
    }
}
