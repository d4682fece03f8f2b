//! Bindings: outside keys and the sessions they point to.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::error::Result;
use crate::id::{SessionId, check_name};
use crate::outcome::SessionDetails;

/// An outside key and a session that it points to, or pointed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Binding {
    /// The key, such as `telegram:12345`.
    pub key: String,
    /// The session.
    pub session: SessionId,
    /// Since when.
    pub bound_at: DateTime<Utc>,
    /// Until when; `None` if it points there now.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it does not point there any more.
    pub end: Option<BindingEnd>,
    /// The order of bindings in the store: a later one has a greater number.
    pub number: u64,
}

/// Why a key does not point to a session any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BindingEnd {
    /// No message was written for the time given.
    Expired,
    /// The session was ended.
    Ended,
    /// The session was put into the trash. One that is removed takes its bindings with it.
    Deleted,
    /// The session is of another owner.
    OtherOwner,
    /// The session was continued in a new one, which the key points to instead.
    Continued,
    /// The end of the session's history cannot be read.
    Unreadable,
    /// The program took the binding away.
    Unbound,
}

/// Which bindings are listed. The default lists all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BindingFilter {
    /// Of this key.
    pub key: Option<String>,
    /// To this session.
    pub session: Option<SessionId>,
    /// Only those that hold now.
    pub is_open: bool,
}

/// What a resume is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ResumeRequest {
    /// The key, such as `telegram:12345`.
    pub(crate) key: String,
    /// The owner that the session must have.
    pub(crate) owner: Option<String>,
    /// How long after its last message a session is not resumed any more; zero: it always is.
    pub(crate) expire_after: Duration,
    /// The id of a session that has to be created.
    pub(crate) new_id: SessionId,
    /// The details of a session that has to be created. Its owner is that of the request.
    pub(crate) details: SessionDetails,
}

/// The session that a key points to.
#[derive(Debug)]
pub(crate) struct Resumed {
    /// The session.
    pub(crate) session: SessionId,
    /// Whether it was created.
    pub(crate) is_new: bool,
    /// The session that the key pointed to until now, and why it does not any more.
    pub(crate) former: Option<(SessionId, BindingEnd)>,
}

impl BindingEnd {
    const ALL: [Self; 7] = [
        Self::Continued,
        Self::Expired,
        Self::Ended,
        Self::Deleted,
        Self::OtherOwner,
        Self::Unreadable,
        Self::Unbound,
    ];

    /// Returns the name, such as `expired`.
    ///
    /// ```
    /// use talktree::BindingEnd;
    ///
    /// assert_eq!(BindingEnd::OtherOwner.as_str(), "other_owner");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::Deleted => "deleted",
            Self::OtherOwner => "other_owner",
            Self::Continued => "continued",
            Self::Unreadable => "unreadable",
            Self::Unbound => "unbound",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == name)
    }
}

impl fmt::Display for BindingEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl BindingFilter {
    /// Returns whether a binding is listed.
    pub(crate) fn shows(&self, binding: &Binding) -> bool {
        self.key.as_ref().is_none_or(|key| *key == binding.key)
            && self.session.as_ref().is_none_or(|session| *session == binding.session)
            && !(self.is_open && binding.ended_at.is_some())
    }
}

impl ResumeRequest {
    /// Returns a request for a key: any owner, no expiry, a new random id.
    pub(crate) fn new(key: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            owner: None,
            expire_after: Duration::ZERO,
            new_id: SessionId::new(),
            details: SessionDetails::default(),
        }
    }

    /// Checks key, id and details.
    pub(crate) fn check(&self) -> Result<()> {
        check_name("key", &self.key)?;
        self.new_id.check()?;
        if let Some(owner) = &self.owner {
            check_name("owner", owner)?;
        }
        self.details.check()
    }

    /// Returns whether a session whose last message (or binding, if that is later) has this time is too old.
    ///
    /// A time in the future, as after a clock was set back, is not.
    pub(crate) fn is_expired(&self, last: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let idle = now.signed_duration_since(last).to_std().unwrap_or_default();
        !self.expire_after.is_zero() && idle >= self.expire_after
    }
}
