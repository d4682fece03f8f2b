//! Which sessions a list shows.

use chrono::{DateTime, Utc};

use crate::error::Result;
use crate::id::{SessionId, check_given};
use crate::outcome::SessionInfo;

/// Which sessions a list shows. The default shows all that are not in the trash.
///
/// A session is shown if every condition that is set holds.
///
/// ```
/// use talktree::{SessionFilter, SessionState};
///
/// let filter = SessionFilter {
///     owner: Some("user:42".to_owned()),
///     state: SessionState::Open,
///     ..SessionFilter::default()
/// };
/// assert!(filter.tag.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionFilter {
    /// The owner.
    pub owner: Option<String>,
    /// The program or file that it came from.
    pub source: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// A person who wrote in it, named by [`Author::key`](crate::Author::key).
    pub author: Option<String>,
    /// A tag that it has.
    pub tag: Option<String>,
    /// The session that it was forked from.
    pub parent_session: Option<SessionId>,
    /// Its last message is not older. A session that never had one counts from its creation, here and in `until`.
    pub since: Option<DateTime<Utc>>,
    /// Its last message is older.
    pub until: Option<DateTime<Utc>>,
    /// A text in its name, in any case.
    pub name: Option<String>,
    /// Whether it is pinned.
    pub is_pinned: Option<bool>,
    /// Its state.
    pub state: SessionState,
}

/// The states of sessions that a list shows.
///
/// ```
/// use talktree::SessionState;
///
/// assert_eq!(SessionState::default(), SessionState::Present);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SessionState {
    /// Not in the trash.
    #[default]
    Present,
    /// Neither ended nor in the trash.
    Open,
    /// Ended, and not in the trash.
    Ended,
    /// In the trash.
    Trash,
}

impl SessionFilter {
    /// Checks that owner, author, source, model and tag are not empty: no session has an empty one.
    pub(crate) fn check(&self) -> Result<()> {
        check_given([
            ("owner", &self.owner),
            ("author", &self.author),
            ("source", &self.source),
            ("model", &self.model),
            ("tag", &self.tag),
        ])
    }

    /// Returns a filter of the sessions of one owner.
    ///
    /// ```
    /// use talktree::SessionFilter;
    ///
    /// assert_eq!(SessionFilter::owned_by("user:42").owner.as_deref(), Some("user:42"));
    /// ```
    #[must_use]
    pub fn owned_by(owner: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), ..Self::default() }
    }

    /// Returns whether a session is shown, except that who wrote in it is not compared: its details do not say that.
    pub(crate) fn shows(&self, info: &SessionInfo) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let at = info.last_message_at.unwrap_or(info.created_at);
        let is_named = |text: &String| {
            let name = info.name.as_deref().unwrap_or_default();
            name.to_lowercase().contains(&text.to_lowercase())
        };
        is(&self.owner, &info.owner)
            && is(&self.source, &info.source)
            && is(&self.model, &info.model)
            && self.tag.as_ref().is_none_or(|tag| info.tags.contains(tag))
            && (self.parent_session.is_none() || self.parent_session == info.parent_session)
            && self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
            && self.name.as_ref().is_none_or(is_named)
            && self.is_pinned.is_none_or(|is_pinned| is_pinned == info.is_pinned)
            && self.state.holds(info)
    }
}

impl SessionState {
    fn holds(self, info: &SessionInfo) -> bool {
        let (is_deleted, is_ended) = (info.deleted_at.is_some(), info.ended_at.is_some());
        match self {
            Self::Present => !is_deleted,
            Self::Open => !is_deleted && !is_ended,
            Self::Ended => !is_deleted && is_ended,
            Self::Trash => is_deleted,
        }
    }
}
