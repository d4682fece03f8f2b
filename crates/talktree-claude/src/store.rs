//! The sessions of agents: the log of a store with the rules of the Claude Agent SDK.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use talktree::records::ids::session_id;
use talktree::{
    AppendedEntries, Derived, Error, Json, Record, Result, SessionDetails, Store, StoredTranscript,
    TranscriptFilter, TranscriptKey, Transcripts,
};

use crate::chain::{self, TranscriptMessage};
use crate::conversation::{Conversation, Projection, ProjectionReport, changed};
use crate::fork;
use crate::summary::{self, TranscriptInfo, fold_summary};

/// How many transcripts one read lists.
const PAGE: usize = 100;
/// How many conversations are kept at most.
const MAX_KEPT: usize = 8;
/// How many messages the kept conversations have at most, together.
const MAX_KEPT_MESSAGES: usize = 200_000;

/// The sessions of agents in a store, by the contract of the SDK's `SessionStore`.
///
/// [`append`](Self::append) is its verb; the other five are those of the [`log`](Self::log). Cheap to clone.
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
/// use talktree_claude::SessionStore;
///
/// let sessions = SessionStore::new(&Store::open_in_memory()?);
/// let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c");
/// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
/// sessions.append(&key, &[Json::parse(question)?])?;
/// assert_eq!(sessions.infos("-home-ann-shop")?[0].summary, "Fix the login.");
/// assert_eq!(sessions.log().load(&key)?.expect("it was appended").len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
pub struct SessionStore {
    store: Store,
    log: Transcripts,
    owner: Option<Arc<str>>,
    is_projecting: bool,
    /// The conversations that were written last, by the numbers of their transcripts.
    kept: Arc<Mutex<HashMap<u64, Conversation>>>,
}

/// What a copy of a session's conversation has; by default all of it.
///
/// ```
/// use talktree_claude::TranscriptFork;
///
/// let fork = TranscriptFork { title: Some("Second try".into()), ..TranscriptFork::default() };
/// assert_eq!(fork.last, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptFork {
    /// The `uuid` of the last entry that is copied, in the order of the transcript.
    pub last: Option<String>,
    /// The title of the copy; `None`: that of the session with ` (fork)`.
    pub title: Option<String>,
}

impl SessionStore {
    /// Returns the sessions of agents in a store.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        let (log, kept) = (store.transcripts(), Arc::default());
        Self { store: store.clone(), log, owner: None, is_projecting: false, kept }
    }

    /// Returns a handle of the same sessions whose appends are the data of this owner: see [`Transcripts::owned_by`].
    #[must_use]
    pub fn owned_by(&self, owner: impl Into<Arc<str>>) -> Self {
        let owner = owner.into();
        let log = self.log.owned_by(Arc::clone(&owner));
        Self { log, owner: Some(owner), ..self.clone() }
    }

    /// Returns a handle of the same sessions that projects them: its appends also write sessions of the store.
    ///
    /// A session shows the entries of one transcript as messages, with branches, side chains and compactions, as
    /// `talktree-import` reads them from a file. It is written in the transaction of the append. It is listed and searched as
    /// any other session, has the owner of the transcript, and is removed and erased with it.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let store = Store::open_in_memory()?;
    /// let sessions = SessionStore::new(&store).projecting();
    /// let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c");
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// sessions.append(&key, &[Json::parse(question)?])?;
    /// assert_eq!(store.session("4b1e7d5c")?.history()?[0].text(), "Fix the login.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn projecting(&self) -> Self {
        Self { is_projecting: true, ..self.clone() }
    }

    /// Returns the transcripts as they are stored: to load, list and delete them.
    #[must_use]
    pub fn log(&self) -> &Transcripts {
        &self.log
    }

    /// Appends entries as [`Transcripts::append`] does, with the summary of the session, and with the session that shows it if
    /// this handle projects.
    ///
    /// # Errors
    /// As [`Transcripts::append`].
    pub fn append(&self, key: &TranscriptKey, entries: &[Json]) -> Result<AppendedEntries> {
        self.write(key, entries, self.is_projecting)
    }

    fn write(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        is_projecting: bool,
    ) -> Result<AppendedEntries> {
        let mut written = None;
        let appended = self.log.append_with(key, entries, |before, new| {
            let mut derived = Derived::default();
            if before.key.is_main() && !new.is_empty() {
                let unread = match before.summary {
                    None if before.entries > 0 => self.log.load_after(key, 0)?,
                    _ => Vec::new(),
                };
                let entries = unread.iter().chain(new.iter().copied());
                derived.summary = Some(fold_summary(before.summary.as_ref(), entries));
            }
            if is_projecting {
                written = match self.derive(before, new, &mut derived) {
                    Ok(conversation) => Some((before.number, conversation)),
                    // An earlier entry is damaged: the new ones are stored all the same.
                    Err(Error::Corrupt { .. }) => None,
                    Err(error) => return Err(error),
                };
            }
            Ok(derived)
        })?;
        if let Some((number, conversation)) = written.filter(|(number, _)| *number > 0) {
            self.keep(number, conversation);
        }
        Ok(appended)
    }

    /// Reads the conversation of a transcript with new entries, and derives what its session gets.
    fn derive(
        &self,
        before: &StoredTranscript,
        new: &[&Json],
        derived: &mut Derived,
    ) -> Result<Conversation> {
        let (mut conversation, unread) = self.conversation(before)?;
        let (head, was) = (conversation.head().cloned(), conversation.details());
        let waiting = unread.iter().chain(new.iter().copied());
        waiting.clone().for_each(|entry| conversation.read(entry));
        derived.replaces =
            conversation.connect() && before.session.is_some() && !before.is_session_changed;
        if conversation.len() == 0 || conversation.entries == before.shown {
            return Ok(conversation);
        }
        let mut details = conversation.details();
        let main = TranscriptKey::new(&before.key.project, &before.key.session);
        match &before.session {
            None if !before.key.is_main() => {
                let shown_by = self.log.find(&main)?.and_then(|main| main.session);
                details.parent_session =
                    Some(shown_by.unwrap_or_else(|| session_id(&*main.session)));
            }
            Some(id) if details != was => {
                details = changed(&was, details, self.store.session(id)?.info()?.as_ref());
            }
            Some(_) => details = SessionDetails::default(),
            None => {}
        }
        // A session that is there keeps its owner.
        let owner = before.owner.clone().filter(|_| before.session.is_none());
        let new_owner = self.owner.as_deref().filter(|_| before.owner.is_none());
        details.owner = owner.or(new_owner.map(str::to_owned));
        if !before.is_session_changed {
            details.updated_at = conversation.written_long_ago();
        }
        let id = match before.key.is_main() {
            true => session_id(&*main.session),
            false => session_id(format!("{}/{}", main.session, before.key.subpath)),
        };
        let mut records = vec![Record::Session { id, details }];
        match derived.replaces {
            false => conversation.write(&mut records, before.shown, waiting),
            true => {
                let all = self.log.load_after(&before.key, 0)?;
                conversation.write(&mut records, 0, all.iter().chain(new.iter().copied()));
            }
        }
        if derived.replaces || conversation.head() != head.as_ref() {
            records.push(Record::Head { id: conversation.head().cloned() });
        }
        derived.session = Some(records);
        Ok(conversation)
    }

    /// Returns the conversation that a session shows, and the entries that are stored and not shown.
    fn conversation(&self, stored: &StoredTranscript) -> Result<(Conversation, Vec<Json>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut conversation = kept.remove(&stored.number).unwrap_or_default();
        drop(kept);
        if conversation.entries > stored.shown {
            conversation = Conversation::default();
        }
        let known = conversation.entries;
        if known >= stored.entries {
            return Ok((conversation, Vec::new()));
        }
        let mut unread = self.log.load_after(&stored.key, known)?;
        unread.truncate((stored.entries - known) as usize);
        let shown = (stored.shown - known).min(unread.len() as u64);
        unread.drain(..shown as usize).for_each(|entry| conversation.read(&entry));
        conversation.connect();
        Ok((conversation, unread))
    }

    /// Keeps a conversation that was written; others are forgotten if they are too many.
    fn keep(&self, number: u64, conversation: Conversation) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let messages: usize = kept.values().map(Conversation::len).sum();
        if kept.len() >= MAX_KEPT || messages > MAX_KEPT_MESSAGES {
            kept.clear();
        }
        kept.insert(number, conversation);
    }

    /// Projects what is stored of a transcript. Returns how its session shows it; `None` if none does: it has no messages, or
    /// its session was erased and must not come back.
    ///
    /// Calling it again changes nothing. It is one transaction, however long the transcript is.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let store = Store::open_in_memory()?;
    /// let (sessions, key) = (SessionStore::new(&store), TranscriptKey::new("project", "session"));
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// sessions.append(&key, &[Json::parse(question)?])?;
    /// assert!(sessions.projection(&key)?.is_none());
    ///
    /// let projection = sessions.project(&key)?.expect("it has a message");
    /// assert_eq!(store.session(&projection.session)?.history()?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every write.
    pub fn project(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        self.write(key, &[], true)?;
        self.projection(key)
    }

    /// Projects all transcripts that the filter shows, in order of their creation, each in a transaction of its own.
    ///
    /// Calling it again changes nothing.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptFilter, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let store = Store::open_in_memory()?;
    /// let sessions = SessionStore::new(&store);
    /// let question = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"Fix the login."}}"#;
    /// for session in ["monday", "tuesday"] {
    ///     sessions.append(&TranscriptKey::new("p", session), &[Json::parse(question)?])?;
    /// }
    /// let report = sessions.project_all(&TranscriptFilter::default())?;
    /// assert_eq!((report.sessions, store.sessions()?.len()), (2, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`project`](Self::project). What was projected before the error stays.
    pub fn project_all(&self, filter: &TranscriptFilter) -> Result<ProjectionReport> {
        let (mut report, mut after) = (ProjectionReport::default(), None);
        loop {
            let page = self.log.list(filter, after, PAGE)?;
            let Some(last) = page.last() else { return Ok(report) };
            after = Some(last.number);
            for transcript in &page {
                match self.project(&transcript.key)? {
                    None => report.without_session += 1,
                    Some(shown) => {
                        report.sessions += 1;
                        report.missing_parents += shown.missing_parents.len() as u64;
                        report.left_out += shown.left_out;
                    }
                }
            }
        }
    }

    /// Returns how a session shows a transcript; `None` if none does.
    ///
    /// It reads the transcript, unless this handle has projected it a moment ago.
    ///
    /// # Errors
    /// [`Error::Storage`] if the database fails.
    pub fn projection(&self, key: &TranscriptKey) -> Result<Option<Projection>> {
        let Some(stored) = self.log.find(key)? else { return Ok(None) };
        let Some(id) = stored.session.clone() else { return Ok(None) };
        let (conversation, _) = self.conversation(&stored)?;
        let session = self.store.session(&id)?;
        let mut left_out = conversation.unread;
        for id in conversation.ids() {
            left_out += u64::from(session.message(id)?.is_none());
        }
        let projection = Projection {
            session: id,
            entries: stored.shown,
            waiting: stored.entries.saturating_sub(stored.shown),
            left_out,
            missing_parents: conversation.missing_parents(),
            is_changed: stored.is_session_changed,
        };
        self.keep(stored.number, conversation);
        Ok(Some(projection))
    }

    /// Returns the sessions of a project as a list shows them, the one that was appended to last first.
    ///
    /// Sessions of subagents, and those without title and prompt, are left out. It reads the summaries and no transcript.
    ///
    /// # Errors
    /// [`Error::Storage`] if the database fails.
    pub fn infos(&self, project: &str) -> Result<Vec<TranscriptInfo>> {
        let mut stored = self.log.of_project(project)?;
        stored.sort_by_key(|stored| std::cmp::Reverse(stored.mtime));
        Ok(stored.iter().filter_map(TranscriptInfo::of).collect())
    }

    /// Returns what a list shows of a session; `None` if it is unknown or hidden.
    ///
    /// It is made from the session's summary, as in [`infos`](Self::infos). The SDK's own function searches the ends of the
    /// transcript, and takes the time of its last entry instead of that of the append.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let entry = Json::parse(r#"{"type":"user","message":{"content":"Fix the login."}}"#)?;
    /// sessions.append(&TranscriptKey::new("p", "s"), &[entry])?;
    /// sessions.rename("p", "s", "Login")?;
    /// let info = sessions.info("p", "s")?.expect("it has a title");
    /// assert_eq!((info.summary.as_str(), info.first_prompt.as_deref()), ("Login", Some("Fix the login.")));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] if the database fails.
    pub fn info(&self, project: &str, session: &str) -> Result<Option<TranscriptInfo>> {
        let stored = self.log.find(&TranscriptKey::new(project, session))?;
        Ok(stored.as_ref().and_then(TranscriptInfo::of))
    }

    /// Returns the messages of a session's conversation, oldest first; none if it is unknown.
    ///
    /// The conversation leads to the message that was written last. After a compaction it begins with the summary. The
    /// results of parallel tool calls follow their answer. Messages of subagents and of the program itself are left out.
    ///
    /// ```
    /// use talktree::{Json, Role, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let entry = |text: &str| Json::parse(text);
    /// sessions.append(&TranscriptKey::new("p", "s"), &[
    ///     entry(r#"{"type":"user","uuid":"1","message":{"content":"Name a colour."}}"#)?,
    ///     entry(r#"{"type":"assistant","uuid":"2","parentUuid":"1","message":{"content":"red"}}"#)?,
    ///     entry(r#"{"type":"assistant","uuid":"3","parentUuid":"1","message":{"content":"blue"}}"#)?,
    /// ])?;
    /// let messages = sessions.messages("p", "s")?;
    /// assert_eq!((messages[1].role.clone(), messages[1].uuid.as_str()), (Role::Assistant, "3"));
    /// assert_eq!(messages[1].message.value()["content"], "blue");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](Transcripts::load).
    pub fn messages(&self, project: &str, session: &str) -> Result<Vec<TranscriptMessage>> {
        let entries = self.log.load(&TranscriptKey::new(project, session))?;
        Ok(chain::messages(&entries.unwrap_or_default()))
    }

    /// Returns the ids of a session's subagents, in any order.
    ///
    /// # Errors
    /// [`Error::Storage`] if the database fails.
    pub fn subagents(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let subpaths = self.log.subpaths(project, session)?;
        let agents = subpaths.iter().filter_map(|subpath| chain::agent_of(subpath));
        let distinct: BTreeSet<String> = agents.map(str::to_owned).collect();
        Ok(distinct.into_iter().collect())
    }

    /// Returns the messages of a subagent, oldest first, with what started it; none if it is unknown.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::SessionStore;
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let key = TranscriptKey::new("p", "s").subpath("subagents/agent-7f");
    /// sessions.append(&key, &[
    ///     Json::parse(r#"{"type":"user","uuid":"1","isSidechain":true,"message":{"content":"Check."}}"#)?,
    ///     Json::parse(r#"{"type":"agent_metadata","toolUseId":"call"}"#)?,
    /// ])?;
    /// assert_eq!(sessions.subagents("p", "s")?, ["7f"]);
    /// let messages = sessions.subagent_messages("p", "s", "7f")?;
    /// assert_eq!(messages[0].parent_call.as_deref(), Some("call"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](Transcripts::load).
    pub fn subagent_messages(
        &self,
        project: &str,
        session: &str,
        agent: &str,
    ) -> Result<Vec<TranscriptMessage>> {
        let subpaths = self.log.subpaths(project, session)?;
        let of_agent = |subpath: &String| chain::agent_of(subpath) == Some(agent);
        let Some(subpath) = subpaths.into_iter().find(of_agent).filter(|_| !agent.is_empty())
        else {
            return Ok(Vec::new());
        };
        let entries = self.log.load(&TranscriptKey::new(project, session).subpath(subpath))?;
        Ok(chain::messages_of_subagent(&entries.unwrap_or_default()))
    }

    /// Gives a session a title. A session that is unknown is created with it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the title is blank; as [`append`](Self::append).
    pub fn rename(&self, project: &str, session: &str, title: &str) -> Result<()> {
        let title = Value::from(summary::not_blank("title", title)?);
        let entry = crate::about(session, "custom-title", "customTitle", title);
        self.append(&TranscriptKey::new(project, session), &[entry]).map(drop)
    }

    /// Gives a session a tag, which replaces the former one; `None` removes it. A session that is unknown is created.
    ///
    /// Characters that are not shown (formats, private use) are removed from the tag.
    ///
    /// ```
    /// use talktree::Store;
    /// use talktree_claude::SessionStore;
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// sessions.rename("p", "s", "Login")?;
    /// sessions.tag("p", "s", Some("c\u{200B}i"))?;
    /// assert_eq!(sessions.info("p", "s")?.and_then(|info| info.tag).as_deref(), Some("ci"));
    /// sessions.tag("p", "s", None)?;
    /// assert_eq!(sessions.info("p", "s")?.and_then(|info| info.tag), None);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if nothing of the tag is visible; as [`append`](Self::append).
    pub fn tag(&self, project: &str, session: &str, tag: Option<&str>) -> Result<()> {
        let tag = Value::from(tag.map(summary::tag).transpose()?.unwrap_or_default());
        let entry = crate::about(session, "tag", "tag", tag);
        self.append(&TranscriptKey::new(project, session), &[entry]).map(drop)
    }

    /// Copies the conversation of a session to a new one and returns the id of the copy.
    ///
    /// The copy has new uuids, and each entry says what it is a
    /// copy of. Titles, tags, records of progress and subagents are not copied. The copy gets the owner of the session, or
    /// that of this handle if the session has none.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::{SessionStore, TranscriptFork};
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let entry = Json::parse(r#"{"type":"user","uuid":"1","message":{"content":"Fix the login."}}"#)?;
    /// sessions.append(&TranscriptKey::new("p", "s"), &[entry])?;
    /// let copy = sessions.fork("p", "s", &TranscriptFork::default())?;
    /// assert_eq!(sessions.messages("p", &copy)?[0].session, copy);
    /// assert_eq!(sessions.info("p", &copy)?.unwrap().summary, "Fix the login. (fork)");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownSession`] if the session has no entries, [`Error::UnknownMessage`] if its `last` is not among them,
    /// [`Error::InvalidValue`] if there is no message to copy; as [`append`](Self::append).
    pub fn fork(&self, project: &str, session: &str, options: &TranscriptFork) -> Result<String> {
        let source = TranscriptKey::new(project, session);
        let entries = self.log.load(&source)?;
        let entries = entries.ok_or_else(|| Error::UnknownSession { id: session.into() })?;
        // Read after the entries, so that an owner who was set with them is seen.
        let owner = self.log.find(&source)?.and_then(|stored| stored.owner);
        let copies = owner.map_or_else(|| self.clone(), |owner| self.owned_by(owner));
        let id = crate::uuid();
        let entries = fork::copy(session, &id, options, &entries)?;
        copies.append(&TranscriptKey::new(project, &id), &entries)?;
        Ok(id)
    }
}

impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore")
            .field("log", &self.log)
            .field("is_projecting", &self.is_projecting)
            .finish_non_exhaustive()
    }
}
