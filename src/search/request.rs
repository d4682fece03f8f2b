//! What is asked of a search.

use chrono::{DateTime, Utc};

use crate::id::{MessageId, SessionId};

/// How many hits a search answers with when no limit is given.
pub(crate) const DEFAULT_LIMIT: usize = 20;

/// How many messages a conversation is found with at most.
pub(crate) const HITS_PER_SESSION: usize = 3;

/// Where to search.
///
/// ```
/// use talktree::{Message, Scope, SearchRequest, SessionProvider, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("Which colour?"))?.id;
/// chat.append(Message::assistant("A red colour."))?;
///
/// let scope = Scope::Path("s".into(), Some(question));
/// assert_eq!(chat.provider().search(&SearchRequest::new("colour", scope))?.hits.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Scope {
    /// Every session of the store.
    #[default]
    Store,
    /// These sessions, all their branches; none of them: nothing.
    Sessions(Vec<SessionId>),
    /// The path to one message of a session; `None`: to its head.
    Path(SessionId, Option<MessageId>),
}

impl Scope {
    /// Returns the scope of one session, all its branches.
    ///
    /// ```
    /// use talktree::Scope;
    ///
    /// assert_eq!(Scope::session("s"), Scope::Sessions(vec!["s".into()]));
    /// ```
    #[must_use]
    pub fn session(id: impl Into<SessionId>) -> Self {
        Self::Sessions(vec![id.into()])
    }

    /// Returns the part of the scope that lies in these sessions.
    pub(crate) fn within(&self, ids: &[SessionId]) -> Self {
        match self {
            Self::Store => Self::Sessions(ids.to_vec()),
            Self::Sessions(own) => {
                Self::Sessions(own.iter().filter(|id| ids.contains(id)).cloned().collect())
            }
            Self::Path(own, _) if ids.contains(own) => self.clone(),
            Self::Path(..) => Self::Sessions(Vec::new()),
        }
    }
}

/// A query and how to answer it.
///
/// ```
/// use talktree::{Scope, SearchRequest};
///
/// let mut request = SearchRequest::new("deploy friday", Scope::session("s"));
/// assert_eq!((request.limit, request.offset), (20, 0));
/// request.offset = 20; // the second page
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchRequest {
    /// What a person typed; see [`Query`](super::Query) for the language.
    pub text: String,
    /// Where to search.
    pub scope: Scope,
    /// How many hits to answer with at the most.
    pub limit: usize,
    /// How many of the best to leave out, for the pages after the first.
    pub offset: usize,
    /// When it is asked, for questions that speak of `last week`; `None` for now.
    pub now: Option<DateTime<Utc>>,
}

impl SearchRequest {
    /// Returns a request for the 20 best hits within a scope.
    ///
    /// ```
    /// use talktree::{Scope, SearchRequest};
    ///
    /// let request = SearchRequest::new("deploy friday", Scope::Store);
    /// assert_eq!((request.limit, request.now), (20, None));
    /// ```
    #[must_use]
    pub fn new(text: impl Into<String>, scope: Scope) -> Self {
        Self { text: text.into(), scope, limit: DEFAULT_LIMIT, offset: 0, now: None }
    }
}
