//! What a search finds.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Snippet;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Role;

/// How the query was read.
///
/// ```
/// use talktree::{Matched, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// assert_eq!(store.search("deploy friday").run()?.matched, Matched::All);
/// assert_eq!(store.search("deploy saturday").run()?.matched, Matched::Relaxed);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Matched {
    /// All words stand in the message.
    All,
    /// All words together found too little: any of them stands in it.
    Relaxed,
}

/// One message found.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// let question = chat.append(Message::user("Can we deploy on Friday?"))?.id;
/// let fold = chat.add_compaction("They plan.", &question, &question)?;
///
/// let hit = &store.search("friday").run()?.hits[0];
/// assert_eq!((&hit.session, &hit.id), (chat.id(), &question));
/// assert_eq!(hit.snippet.to_string(), "Can we deploy on **Friday**?");
/// assert_eq!((hit.on_path, &hit.under), (true, &Some(fold)));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session it was written in; of copies in forks, the one in scope.
    pub session: SessionId,
    /// The message.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// The stretch of its text around the match.
    pub snippet: Snippet,
    /// How well it fits; greater is better, comparable within one answer.
    pub score: f64,
    /// Whether all words stand in it.
    pub matched: Matched,
    /// Whether it lies on the path to its session's head.
    pub on_path: bool,
    /// The compaction it is folded under on that path.
    #[serde(rename = "under_compaction")]
    pub under: Option<CompactionId>,
    /// Every session that holds a copy of it.
    pub sessions: Vec<SessionId>,
}

/// The answer to a search for messages.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("Can we deploy on Friday?"))?;
///
/// let found = store.search("friday after:someday").run()?;
/// assert_eq!(found.notices.len(), 1);
/// let texts: Vec<String> = found.into_iter().map(|hit| hit.snippet.text).collect();
/// assert_eq!(texts, ["Can we deploy on Friday?"]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Found {
    /// The messages, best first.
    pub hits: Vec<Hit>,
    /// How the query was read.
    pub matched: Matched,
    /// What of the query could not be read as meant, for people.
    pub notices: Vec<String>,
}

impl Hit {
    /// Returns a hit off the head's path, found by all words, with a score of 0: for a storage of
    /// your own, which sets the rest.
    ///
    /// ```
    /// use talktree::{Found, Hit, Matched, Message, Snippet};
    ///
    /// let message = Message::user("hello");
    /// let snippet = Snippet { text: message.text(), marks: vec![0..5] };
    /// let mut hit = Hit::new("s".into(), message.id, message.role, message.created_at, snippet);
    /// hit.on_path = true;
    /// assert_eq!(Found::new(vec![hit], Matched::All).hits.len(), 1);
    /// ```
    #[must_use]
    pub fn new(
        session: SessionId,
        id: MessageId,
        role: Role,
        created_at: DateTime<Utc>,
        snippet: Snippet,
    ) -> Self {
        Self {
            sessions: vec![session.clone()],
            session,
            id,
            role,
            created_at,
            snippet,
            score: 0.0,
            matched: Matched::All,
            on_path: false,
            under: None,
        }
    }
}

impl Found {
    /// Returns an answer of these hits, best first, without notices.
    #[must_use]
    pub fn new(hits: Vec<Hit>, matched: Matched) -> Self {
        Self { hits, matched, notices: Vec::new() }
    }
}

impl IntoIterator for Found {
    type Item = Hit;
    type IntoIter = std::vec::IntoIter<Hit>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.into_iter()
    }
}

/// One conversation found.
///
/// ```
/// use talktree::Message;
///
/// let store = talktree::Store::open_in_memory()?;
/// let chat = store.create_session("Deployment")?;
/// chat.append(Message::user("Can we deploy on Friday?"))?;
///
/// let hit = &store.search("friday").by_session().run()?.sessions[0];
/// assert_eq!((&hit.session, hit.name.as_deref()), (chat.id(), Some("Deployment")));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionHit {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: Option<String>,
    /// How well it fits; greater is better, comparable within one answer.
    pub score: f64,
    /// Its best messages, best first.
    pub hits: Vec<Hit>,
}

/// The answer to a search for whole conversations.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday"] {
///     store.session(id)?.append(Message::user("Can we deploy on Friday?"))?;
/// }
/// for hit in store.search("friday").by_session().run()? {
///     assert_eq!(hit.hits.len(), 1);
/// }
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionsFound {
    /// The conversations, best first.
    pub sessions: Vec<SessionHit>,
    /// How the query was read.
    pub matched: Matched,
    /// What of the query could not be read as meant, for people.
    pub notices: Vec<String>,
}

impl IntoIterator for SessionsFound {
    type Item = SessionHit;
    type IntoIter = std::vec::IntoIter<SessionHit>;

    fn into_iter(self) -> Self::IntoIter {
        self.sessions.into_iter()
    }
}
