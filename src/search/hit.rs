//! The results of a search.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Snippet, Taken};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Role;

/// Whether a query was relaxed.
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
    /// The message contains every word.
    All,
    /// The message needs only some of the words: the query is a question, or no message has all of them.
    Relaxed,
    /// The message has none of the words; it [means](super::Search::by_meaning) something near.
    Meaning,
}

/// One message found.
///
/// ```
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// let question = chat.append(Message::user("Can we deploy on Friday?"))?.id;
/// let compaction = chat.add_compaction("They plan.", &question, &question)?.id;
///
/// let hit = &store.search("friday").run()?.hits[0];
/// assert_eq!((&hit.session, &hit.id), (chat.id(), &question));
/// assert_eq!(hit.snippet.to_string(), "Can we deploy on **Friday**?");
/// assert_eq!((hit.on_path, &hit.under), (true, &Some(compaction)));
///
/// assert_eq!(store.search("fridays").run()?.hits[0].words, ["Friday"]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hit {
    /// The session of the message; for copies in forks, the one in scope.
    pub session: SessionId,
    /// The id of the message.
    pub id: MessageId,
    /// The role of the message.
    pub role: Role,
    /// The time of the message.
    pub created_at: DateTime<Utc>,
    /// The part of the text around the match.
    pub snippet: Snippet,
    /// The matching words of the snippet that the query does not have in this form: other forms, other spellings, words that
    /// begin with a word of the query. As written in the text, each once.
    pub words: Vec<String>,
    /// The relevance: greater is better, comparable within one result.
    pub score: f64,
    /// Whether the message contains every word.
    pub matched: Matched,
    /// Whether the message is on the path to its session's head.
    pub on_path: bool,
    /// The compaction on that path that covers the message.
    #[serde(rename = "under_compaction")]
    pub under: Option<CompactionId>,
    /// Every session in the scope of the search that holds a copy of the message.
    ///
    /// Copies outside it, in sessions of another owner for example, are not named, and neither are copies in the trash.
    pub sessions: Vec<SessionId>,
}

/// The result of a search for messages.
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
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// Whether the query was relaxed.
    pub matched: Matched,
    /// What was done because the query finds little or nothing as it is written; empty if it finds enough.
    pub steps: Vec<Taken>,
    /// For people: which parts of the query were ignored or searched as words.
    pub notices: Vec<String>,
    /// Whether the search ended before it had seen everything, so that there may be more hits, and better ones.
    ///
    /// It reached its [`timeout`](super::Search::timeout), or a prefix expands to more words than are looked up
    /// ([`MAX_EXPANSIONS`](super::MAX_EXPANSIONS)). Every hit is a true match.
    pub is_partial: bool,
}

impl Found {
    /// Returns a complete result of these hits, best first, without notices.
    #[must_use]
    pub fn new(hits: Vec<Hit>, matched: Matched) -> Self {
        Self { hits, matched, steps: Vec::new(), notices: Vec::new(), is_partial: false }
    }
}

impl IntoIterator for Found {
    type Item = Hit;
    type IntoIter = std::vec::IntoIter<Hit>;

    fn into_iter(self) -> Self::IntoIter {
        self.hits.into_iter()
    }
}

/// One session found.
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
    /// The id of the session.
    pub session: SessionId,
    /// The name of the session.
    pub name: Option<String>,
    /// The relevance: greater is better, comparable within one result.
    pub score: f64,
    /// The best messages of the session, best first.
    pub hits: Vec<Hit>,
}

/// The result of a search for sessions.
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
    /// The sessions, best first.
    pub sessions: Vec<SessionHit>,
    /// Whether the query was relaxed.
    pub matched: Matched,
    /// What was done because the query finds little or nothing as it is written; empty if it finds enough.
    pub steps: Vec<Taken>,
    /// For people: which parts of the query were ignored or searched as words.
    pub notices: Vec<String>,
    /// Whether the search ended before it had seen everything; see [`Found::is_partial`].
    pub is_partial: bool,
}

impl IntoIterator for SessionsFound {
    type Item = SessionHit;
    type IntoIter = std::vec::IntoIter<SessionHit>;

    fn into_iter(self) -> Self::IntoIter {
        self.sessions.into_iter()
    }
}
