//! Retention: rules that say which sessions a store discards, and when.
//!
//! A *rule* has conditions. A session that meets all of them is *discarded*: put into the trash, or removed for good, or
//! erased. Rules are tried in order, and the first one that a session meets decides. A rule can also have a *total*: it
//! keeps the newest sessions that fit, and discards the older ones. The *term* of the trash is how long a session stays
//! there before it is removed. Nothing is discarded unless a program runs a [`Retention`].
//!
//! Invariant: a pinned session is never discarded, and no session is discarded because of a time in the future.

mod judge;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::id::{check_name, shorten};
use crate::outcome::SessionInfo;
pub use judge::{DiscardedSession, RetentionReport, RuleReport};
pub(crate) use judge::{Judge, rule_in_trash};

/// The name of the term of the trash in reports.
pub(crate) const TRASH: &str = "trash";

/// Rules that say which sessions are discarded. [`Store::retention`](crate::Store::retention) runs them.
///
/// ```
/// use std::time::Duration;
/// use talktree::{Retention, RetentionRule, Store};
///
/// let day = Duration::from_secs(86_400);
/// let retention = Retention::new()
///     .rule(RetentionRule::new("stale").source("telegram").idle_for(90 * day))
///     .rule(RetentionRule::new("too much").keep_messages(100_000).per_owner().remove())
///     .empty_trash_after(30 * day);
///
/// let store = Store::open_in_memory()?;
/// let report = store.retention(retention).dry_run()?;
/// assert!(report.sessions.is_empty());
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "rules do nothing until they are run"]
pub struct Retention {
    rules: Vec<RetentionRule>,
    trash_term: Option<Duration>,
    allows_all: bool,
}

impl Retention {
    /// Returns a retention without rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule after the others. The first rule that a session meets decides.
    pub fn rule(mut self, rule: RetentionRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Removes sessions that have been in the trash for this long.
    pub fn empty_trash_after(mut self, term: Duration) -> Self {
        self.trash_term = Some(term);
        self
    }

    /// Allows rules that every session of a store meets. Otherwise such a rule is [`Error::RuleMeetsAll`], because the
    /// rule or the clock may be wrong.
    pub fn allow_all(mut self) -> Self {
        self.allows_all = true;
        self
    }

    /// Returns the rules, in order.
    pub fn rules(&self) -> &[RetentionRule] {
        &self.rules
    }

    /// Returns how long a session stays in the trash; `None`: until somebody removes it.
    #[must_use]
    pub fn trash_term(&self) -> Option<Duration> {
        self.trash_term
    }

    /// Checks that there is a rule or a term of the trash, that each rule has a condition, and that all names differ.
    ///
    /// ```
    /// use talktree::{Retention, RetentionRule};
    ///
    /// let refused = Retention::new().rule(RetentionRule::new("empty")).check();
    /// assert_eq!(
    ///     refused.unwrap_err().to_string(),
    ///     r#"retention rule "empty" cannot be used: it has no condition, so every session would meet it"#
    /// );
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] with the name of the rule.
    pub fn check(&self) -> Result<()> {
        let refuse = |name: &str, why: &str| {
            let (given, why) = (shorten(name).into_owned(), why.to_owned());
            Err(Error::InvalidValue { what: "retention rule", given, why })
        };
        if self.rules.is_empty() && self.trash_term.is_none() {
            return refuse("", "there is no rule, and no term of the trash");
        }
        let mut names = HashSet::from([TRASH]);
        for rule in &self.rules {
            check_name("retention rule", rule.name())?;
            if !names.insert(rule.name()) {
                return refuse(
                    rule.name(),
                    "another rule, or the term of the trash, has this name",
                );
            }
            rule.check().or_else(|why| refuse(rule.name(), why))?;
        }
        Ok(())
    }

    /// Returns whether a rule erases.
    pub(crate) fn has_erasing(&self) -> bool {
        self.rules.iter().any(|rule| rule.action() == RetentionAction::Erase)
    }

    pub(crate) fn allows_all(&self) -> bool {
        self.allows_all
    }
}

/// Returns whether a time is at least `term` before `now`; a time in the future is not.
pub(crate) fn is_past(at: DateTime<Utc>, term: Duration, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(at).to_std().is_ok_and(|age| age >= term)
}

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
    /// that is stopped leaves sessions whose turn it was not as they were: the next run continues. Those that it has begun to
    /// erase are gone; [`Store::finish_erasure`](crate::Store::finish_erasure) overwrites their bytes.
    /// A session in the trash is erased, too, if this rule is the first one that it meets. If it meets an earlier rule with
    /// another action, it stays until the [term](crate::Retention::empty_trash_after) of the trash is over. In the trash, a
    /// rule with a total is met by every session that meets its other conditions.
    Erase,
}

/// A rule of a [`Retention`]: a session that meets all its conditions is discarded.
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
    owner: Option<String>,
    source: Option<String>,
    model: Option<String>,
    tag: Option<String>,
    is_ended: bool,
    age: Option<Duration>,
    idle: Option<Duration>,
    messages: Option<u64>,
    bytes: Option<u64>,
    total: Option<Total>,
    is_per_owner: bool,
    action: RetentionAction,
}

/// The most that the sessions that a rule keeps may have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Total {
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
    fn is_met_by(&self, info: &SessionInfo, now: DateTime<Utc>) -> bool {
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
    fn check(&self) -> Result<(), &'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn refused(retention: &Retention) -> String {
        retention.check().map_err(|error| error.to_string()).unwrap_err()
    }

    #[test]
    fn a_retention_that_can_do_nothing_is_refused() {
        assert!(refused(&Retention::new()).contains("there is no rule"));
        for (rule, why) in [
            (RetentionRule::new("r"), "\"r\" cannot be used: it has no condition"),
            (RetentionRule::new("r").remove(), "it has no condition"),
            (RetentionRule::new("r").owner("ann").per_owner(), "it has no total"),
            (RetentionRule::new(""), "it is empty"),
            (RetentionRule::new("trash").ended(), "has this name"),
            (RetentionRule::new("r").owner(""), "its owner is empty"),
            (RetentionRule::new("r").keep_sessions(9).erase(), "it erases and has a total"),
        ] {
            let text = refused(&Retention::new().rule(rule));
            assert!(text.contains(why), "{text}");
        }
        let twice = Retention::new()
            .rule(RetentionRule::new("r").ended())
            .rule(RetentionRule::new("r").idle_for(DAY));
        assert!(refused(&twice).contains("another rule"));
        assert!(Retention::new().empty_trash_after(DAY).check().is_ok());
    }

    #[test]
    fn a_term_may_be_longer_than_any_age() {
        assert!(!is_past(DateTime::<Utc>::MIN_UTC, Duration::MAX, Utc::now()));
    }
}
