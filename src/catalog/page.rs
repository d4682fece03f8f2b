//! A page of a list of sessions.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::message::Message;
use crate::outcome::SessionInfo;

/// The most characters of a preview.
const MAX_PREVIEW: usize = 120;

/// A session of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedSession {
    /// Its details.
    #[serde(flatten)]
    pub info: SessionInfo,
    /// The first line that a user wrote in it, of at most 120 characters, for sessions without a name. `None` if there is
    /// none among its first messages.
    pub preview: Option<String>,
}

/// A page of a list of sessions, the one with the newest message first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// Where the next page begins; `None` if this is the last one.
    pub after: Option<SessionCursor>,
}

/// A place in a list of sessions. As text it can be given to another program.
///
/// A session that gets a new message moves to the front of the list; the place stays where it was.
///
/// ```
/// use talktree::SessionCursor;
///
/// let cursor: SessionCursor = "1735689600000000.7".parse()?;
/// assert_eq!(cursor.to_string(), "1735689600000000.7");
/// assert!("page 2".parse::<SessionCursor>().is_err());
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionCursor {
    at: i64,
    key: i64,
}

impl ListedSession {
    /// Returns a session of a list; `first` is its first message of a user.
    pub(crate) fn new(info: SessionInfo, first: Option<&Message>) -> Self {
        let text = first.map(Message::text).unwrap_or_default();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let preview = line.map(|line| match line.char_indices().nth(MAX_PREVIEW - 1) {
            Some((end, last)) if end + last.len_utf8() < line.len() => format!("{}…", &line[..end]),
            _ => line.to_owned(),
        });
        Self { info, preview }
    }
}

impl SessionCursor {
    pub(crate) fn from_micros(at: i64, key: i64) -> Self {
        Self { at, key }
    }

    pub(crate) fn micros(self) -> i64 {
        self.at
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.key)
    }
}

impl FromStr for SessionCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text
            .split_once('.')
            .and_then(|(at, key)| Some(Self { at: at.parse().ok()?, key: key.parse().ok()? }));
        parsed.ok_or_else(|| Error::InvalidValue {
            what: "place in a list of sessions",
            given: crate::id::shorten(text).into_owned(),
            why: "it is not one that a list returned".to_owned(),
        })
    }
}

impl Serialize for SessionCursor {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
