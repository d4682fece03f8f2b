//! A rule: which sessions are discarded, and how.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::is_past;
use crate::outcome::SessionInfo;

/// What is done with a discarded session.
///
/// ```
/// use talktree::RetentionAction;
///
/// assert_eq!(RetentionAction::default(), RetentionAction::Trash);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetentionAction {
    /// It is put into the trash, from which it can be restored.
    #[default]
    Trash,
    /// It is removed for good, with its messages, compactions, labels and context.
    Remove,
    /// It is erased, as [`Store::erase`](crate::Store::erase) does: no byte of it is left in the file. Copies in forks stay,
    /// and its usage stays in totals. The end of the run erases all such sessions; one that changes before its turn stays. A run
    /// that is stopped leaves sessions whose turn it was not as they were: the next run continues. The few that it has begun to
    /// erase are in the trash and cannot be restored; [`Store::finish_erasure`](crate::Store::finish_erasure) erases them.
    /// A session in the trash is erased, too, if this rule is the first one that it meets. If it meets an earlier rule with
    /// another action, it stays until the [term](crate::Retention::empty_trash_after) of the trash is over. In the trash, a
    /// rule with a total is met by every session that meets its other conditions.
    Erase,
}

/// A rule of a [`Retention`](crate::Retention): a session that meets all its conditions is discarded.
///
/// A rule with a total (`keep_..`) counts the sessions that meet its other conditions and that no rule before it discards,
/// the one with the newest message first. It keeps those that fit into the total, until one does not; that one and all
/// older ones are discarded. Pinned sessions count, and stay.
///
/// ```
/// use std::time::Duration;
/// use talktree::{Message, Retention, RetentionRule, SessionChange, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday", "wednesday"] {
///     store.session(id)?.append(Message::user("hello"))?;
/// }
/// store.change_session(&"monday".into(), &SessionChange::Pin(true))?;
///
/// let newest = RetentionRule::new("newest").keep_sessions(1);
/// let report = store.retention(Retention::new().rule(newest)).run()?;
/// assert_eq!(report.sessions.len(), 1);
/// assert_eq!(report.sessions[0].id, "tuesday"); // it is in the trash
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a rule does nothing until it is run"]
pub struct RetentionRule {
    name: String,
    pub(super) owner: Option<String>,
    pub(super) source: Option<String>,
    pub(super) model: Option<String>,
    pub(super) tag: Option<String>,
    is_ended: bool,
    age: Option<Duration>,
    pub(super) idle: Option<Duration>,
    messages: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) total: Option<Total>,
    pub(super) is_per_owner: bool,
    action: RetentionAction,
}

/// The most that the sessions that a rule keeps may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    Sessions(u64),
    Messages(u64),
    Bytes(u64),
}

impl RetentionRule {
    /// Returns a rule of this name, which reports and errors show. It puts sessions into the trash, and needs a condition.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            owner: None,
            source: None,
            model: None,
            tag: None,
            is_ended: false,
            age: None,
            idle: None,
            messages: None,
            bytes: None,
            total: None,
            is_per_owner: false,
            action: RetentionAction::Trash,
        }
    }

    /// Sessions of this owner.
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sessions from this program or file.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sessions with this model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sessions with this tag.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Sessions that were ended.
    pub fn ended(mut self) -> Self {
        self.is_ended = true;
        self
    }

    /// Sessions that were created at least so long ago. An imported session has the time of its source.
    pub fn older_than(mut self, age: Duration) -> Self {
        self.age = Some(age);
        self
    }

    /// Sessions whose last message is at least so old; one that never had one counts from its creation. An imported message
    /// has the time of its source. Other changes, such as a new name, do not count.
    pub fn idle_for(mut self, idle: Duration) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Sessions with more messages than this, on all branches.
    pub fn more_messages_than(mut self, messages: u64) -> Self {
        self.messages = Some(messages);
        self
    }

    /// Sessions whose messages take more than this, in bytes of JSON. Costs a read of the sizes of all their messages.
    pub fn more_bytes_than(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Keeps the newest sessions, so many at most, and discards the others. A rule has one total: the last one set.
    pub fn keep_sessions(mut self, sessions: u64) -> Self {
        self.total = Some(Total::Sessions(sessions));
        self
    }

    /// Keeps the newest sessions that have together at most so many messages, and discards the others.
    pub fn keep_messages(mut self, messages: u64) -> Self {
        self.total = Some(Total::Messages(messages));
        self
    }

    /// Keeps the newest sessions whose messages take together at most so many bytes of JSON, and discards the others.
    /// Costs a read of the sizes of all messages.
    pub fn keep_bytes(mut self, bytes: u64) -> Self {
        self.total = Some(Total::Bytes(bytes));
        self
    }

    /// Applies the total to each owner separately; the sessions without an owner have a total of their own.
    pub fn per_owner(mut self) -> Self {
        self.is_per_owner = true;
        self
    }

    /// Removes the sessions for good, instead of putting them into the trash.
    pub fn remove(mut self) -> Self {
        self.action = RetentionAction::Remove;
        self
    }

    /// Erases the sessions, so that no byte of them is left, instead of putting them into the trash. Not with a total.
    pub fn erase(mut self) -> Self {
        self.action = RetentionAction::Erase;
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is done with a session that meets the rule.
    #[must_use]
    pub fn action(&self) -> RetentionAction {
        self.action
    }

    /// Returns whether a session meets the conditions on its details: all but sizes in bytes and totals.
    pub(super) fn is_met_by(&self, info: &SessionInfo, now: DateTime<Utc>) -> bool {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let last = info.last_message_at.unwrap_or(info.created_at);
        is(&self.owner, &info.owner)
            && is(&self.source, &info.source)
            && is(&self.model, &info.model)
            && self.tag.as_ref().is_none_or(|tag| info.tags.contains(tag))
            && (!self.is_ended || info.ended_at.is_some())
            && self.age.is_none_or(|age| is_past(info.created_at, age, now))
            && self.idle.is_none_or(|idle| is_past(last, idle, now))
            && self.messages.is_none_or(|messages| info.messages > messages)
    }

    /// Returns what is wrong with the rule, besides its name.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        for (text, why) in [
            (&self.owner, "its owner is empty"),
            (&self.source, "its source is empty"),
            (&self.model, "its model is empty"),
            (&self.tag, "its tag is empty"),
        ] {
            if text.as_ref().is_some_and(String::is_empty) {
                return Err(why);
            }
        }
        if self.is_per_owner && self.total.is_none() {
            return Err("it has no total, so there is nothing to count per owner");
        }
        if self.action == RetentionAction::Erase && self.total.is_some() {
            return Err("it erases and has a total, but sessions in the trash count in no total");
        }
        match *self == (Self { action: self.action, ..Self::new(&self.name) }) {
            true => Err("it has no condition, so every session would meet it"),
            false => Ok(()),
        }
    }
}

/// The conditions and the action in words.
///
/// ```
/// use std::time::Duration;
/// use talktree::RetentionRule;
///
/// let rule = RetentionRule::new("stale").source("telegram").idle_for(Duration::from_secs(7 * 86_400));
/// assert_eq!(rule.to_string(), "from \"telegram\", idle for 7d: put into the trash");
/// ```
impl fmt::Display for RetentionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        for (what, text) in [
            ("of owner", &self.owner),
            ("from", &self.source),
            ("with model", &self.model),
            ("with tag", &self.tag),
        ] {
            parts.extend(text.as_ref().map(|text| format!("{what} {text:?}")));
        }
        parts.extend(self.is_ended.then(|| "ended".to_owned()));
        parts.extend(self.age.map(|age| format!("created {} ago or earlier", span(age))));
        parts.extend(self.idle.map(|idle| format!("idle for {}", span(idle))));
        parts.extend(
            self.messages.map(|count| format!("of more than {}", plural(count, "message"))),
        );
        parts.extend(self.bytes.map(|bytes| format!("of more than {}", plural(bytes, "byte"))));
        let each = if self.is_per_owner { " of each owner" } else { "" };
        parts.extend(self.total.map(|total| match total {
            Total::Sessions(max) => format!("but the newest {max}{each}"),
            Total::Messages(max) => {
                format!("but the newest with {} in all{each}", plural(max, "message"))
            }
            Total::Bytes(max) => {
                format!("but the newest with {} in all{each}", plural(max, "byte"))
            }
        }));
        let action = match self.action {
            RetentionAction::Trash => "put into the trash",
            RetentionAction::Remove => "removed",
            RetentionAction::Erase => "erased",
        };
        write!(f, "{}: {action}", parts.join(", "))
    }
}

/// Returns a count with its noun.
fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns a span in the largest unit in which it is a whole number.
fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    for (unit, length) in [("d", 86_400), ("h", 3_600), ("min", 60)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{span:?}")
}
