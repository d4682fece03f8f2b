//! Retention: rules that say which sessions a store discards, and when.
//!
//! A *rule* has conditions. A session that meets all of them is *discarded*: put into the trash, or removed for good, or
//! erased. Rules are tried in order, and the first one that a session meets decides. A rule can also have a *total*: it
//! keeps the newest sessions that fit, and discards the older ones. The *term* of the trash is how long a session stays
//! there before it is removed. Nothing is discarded unless a program runs a [`Retention`].
//!
//! Invariant: a pinned session is never discarded, and no session is discarded because of a time in the future.

mod judge;
mod report;
mod rule;

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::catalog::SessionFilter;
use crate::error::{Error, Result};
use crate::id::{check_name, shorten};

pub(crate) use judge::{Judge, rule_in_trash};
pub use report::{DiscardedSession, RetentionReport, RuleReport};
pub use rule::{RetentionAction, RetentionRule};

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

    /// Returns a filter that shows every session that can meet a rule. If all rules share a condition, it is part of the
    /// filter, and fewer sessions are read.
    pub(crate) fn filter(&self, now: DateTime<Utc>) -> SessionFilter {
        fn shared<'r, T: PartialEq>(
            mut values: impl Iterator<Item = &'r Option<T>>,
        ) -> Option<&'r T> {
            let first = values.next()?.as_ref()?;
            values.all(|other| other.as_ref() == Some(first)).then_some(first)
        }
        let rules = || self.rules.iter();
        let idle = rules().map(|rule| rule.idle).collect::<Option<Vec<_>>>();
        // The bound of a filter is exclusive.
        let last = idle.into_iter().flatten().min().and_then(|idle| {
            now.checked_sub_signed(TimeDelta::from_std(idle).ok()?)?
                .checked_add_signed(TimeDelta::microseconds(1))
        });
        SessionFilter {
            owner: shared(rules().map(|rule| &rule.owner)).cloned(),
            source: shared(rules().map(|rule| &rule.source)).cloned(),
            model: shared(rules().map(|rule| &rule.model)).cloned(),
            tag: shared(rules().map(|rule| &rule.tag)).cloned(),
            until: last,
            ..SessionFilter::default()
        }
    }
}

/// Returns whether a time is at least `term` before `now`; a time in the future is not.
pub(crate) fn is_past(at: DateTime<Utc>, term: Duration, now: DateTime<Utc>) -> bool {
    now.signed_duration_since(at).to_std().is_ok_and(|age| age >= term)
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
    fn the_filter_has_what_all_rules_have_in_common() {
        let now = Utc::now();
        let rule = |name| RetentionRule::new(name).owner("ann").idle_for(9 * DAY);
        let both = Retention::new()
            .rule(rule("one").source("mail"))
            .rule(rule("two").idle_for(3 * DAY).source("telegram"));
        let filter = both.filter(now);
        assert_eq!((filter.owner.as_deref(), filter.source), (Some("ann"), None));
        let last = now - TimeDelta::days(3) + TimeDelta::microseconds(1);
        assert_eq!(filter.until, Some(last));
        let other = both.rule(RetentionRule::new("three").ended());
        assert_eq!(other.filter(now), SessionFilter::default());
        // Older than any time that can be represented.
        let for_ever = Retention::new().rule(RetentionRule::new("r").idle_for(Duration::MAX));
        assert_eq!(for_ever.filter(now), SessionFilter::default());
        assert!(!is_past(DateTime::<Utc>::MIN_UTC, Duration::MAX, now));
    }
}
