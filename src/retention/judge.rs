//! Which rule discards a session, and the report of what a run discarded.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::Total;
use super::{RetentionAction, RetentionRule, TRASH};
use crate::erasure::ErasureCopies;
use crate::error::Result;
use crate::id::SessionId;
use crate::outcome::SessionInfo;

/// Decides about sessions, one after the other, the one with the newest message first.
///
/// A dry run and a run use the same judge.
pub(crate) struct Judge<'r> {
    rules: &'r [RetentionRule],
    now: DateTime<Utc>,
    /// What each rule has kept so far; by owner if the rule is per owner.
    kept: Vec<HashMap<Option<String>, Kept>>,
}

/// What a total has been used for.
#[derive(Debug, Default)]
struct Kept {
    used: u64,
    /// A session did not fit.
    is_full: bool,
}

impl<'r> Judge<'r> {
    pub(crate) fn new(rules: &'r [RetentionRule], now: DateTime<Utc>) -> Self {
        Self { rules, now, kept: rules.iter().map(|_| HashMap::new()).collect() }
    }

    /// Returns the index of the rule that discards a session. `bytes` returns the size of its messages.
    pub(crate) fn rule_for(
        &mut self,
        info: &SessionInfo,
        mut bytes: impl FnMut() -> Result<u64>,
    ) -> Result<Option<usize>> {
        for (at, rule) in self.rules.iter().enumerate() {
            if !is_met(rule, info, self.now, &mut bytes)? {
                continue;
            }
            if let Some(total) = rule.total {
                let (size, max) = match total {
                    Total::Sessions(max) => (1, max),
                    Total::Messages(max) => (info.messages, max),
                    Total::Bytes(max) => (bytes()?, max),
                };
                let owner = info.owner.clone().filter(|_| rule.is_per_owner);
                let kept = self.kept[at].entry(owner).or_default();
                if kept.takes(size, max, info.is_pinned) {
                    continue;
                }
            }
            // A pinned session goes on to the totals of later rules: it counts there, too.
            if !info.is_pinned {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

/// Returns the index of the first rule that a session in the trash meets. Such a session counts in no total, so a total is
/// not looked at: the rule may have put it there.
pub(crate) fn rule_in_trash(
    rules: &[RetentionRule],
    info: &SessionInfo,
    now: DateTime<Utc>,
    mut bytes: impl FnMut() -> Result<u64>,
) -> Result<Option<usize>> {
    for (at, rule) in rules.iter().enumerate() {
        if !info.is_pinned && is_met(rule, info, now, &mut bytes)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns whether a session meets all conditions of a rule but its total.
fn is_met(
    rule: &RetentionRule,
    info: &SessionInfo,
    now: DateTime<Utc>,
    bytes: &mut impl FnMut() -> Result<u64>,
) -> Result<bool> {
    Ok(rule.is_met_by(info, now)
        && match rule.bytes {
            Some(max) => bytes()? > max,
            None => true,
        })
}

impl Kept {
    /// Returns whether a session is kept. A pinned one is counted in any case.
    fn takes(&mut self, size: u64, max: u64, is_pinned: bool) -> bool {
        let used = self.used.saturating_add(size);
        self.is_full |= used > max;
        if is_pinned || !self.is_full {
            self.used = used;
        }
        !self.is_full
    }
}

/// What a run of a [`Retention`](crate::Retention) discarded, or what it would discard.
///
/// ```
/// use talktree::{Message, Retention, RetentionRule, Store};
///
/// let store = Store::open_in_memory()?;
/// for id in ["monday", "tuesday"] {
///     store.session(id)?.append(Message::user("hello"))?;
/// }
/// let newest = Retention::new().rule(RetentionRule::new("newest").keep_sessions(1).remove());
/// let expected = store.retention(newest.clone()).dry_run()?;
/// assert_eq!((expected.rules[0].sessions, expected.rules[0].messages), (1, 1));
/// assert_eq!(store.retention(newest).run()?, expected);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct RetentionReport {
    /// What each rule discarded, in the order of the rules. The term of the trash, if there is one, is last, as `trash`.
    pub rules: Vec<RuleReport>,
    /// The discarded sessions: first those from the trash, then the others; in both the newest last message first.
    pub sessions: Vec<DiscardedSession>,
    /// The copies of erased messages that are left, by session.
    pub copies_left: Vec<ErasureCopies>,
    /// Whether the write-ahead log still contains erased text, because another reader uses it.
    /// [`Store::finish_erasure`](crate::Store::finish_erasure) empties it.
    pub is_log_in_use: bool,
}

/// What one rule discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleReport {
    /// The name of the rule.
    pub rule: String,
    /// What is done with its sessions.
    pub action: RetentionAction,
    /// How many sessions it discarded.
    pub sessions: u64,
    /// How many messages they have.
    pub messages: u64,
    /// The size of the messages, in bytes of JSON.
    pub bytes: u64,
}

/// A session that was discarded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DiscardedSession {
    /// The id.
    pub id: SessionId,
    /// The name.
    pub name: Option<String>,
    /// The owner.
    pub owner: Option<String>,
    /// The name of the rule.
    pub rule: String,
    /// What is done with it.
    pub action: RetentionAction,
    /// How many messages it has.
    pub messages: u64,
    /// The size of the messages, in bytes of JSON.
    pub bytes: u64,
    /// The time of its last message.
    pub last_message_at: Option<DateTime<Utc>>,
}

impl RetentionReport {
    /// Returns a report of rules that discarded nothing yet.
    pub(crate) fn new(rules: &[RetentionRule], has_term: bool) -> Self {
        let mut named: Vec<(&str, RetentionAction)> =
            rules.iter().map(|rule| (rule.name(), rule.action())).collect();
        if has_term {
            named.push((TRASH, RetentionAction::Remove));
        }
        let report = |(rule, action): (&str, RetentionAction)| RuleReport {
            rule: rule.to_owned(),
            action,
            sessions: 0,
            messages: 0,
            bytes: 0,
        };
        Self { rules: named.into_iter().map(report).collect(), ..Self::default() }
    }

    /// Notes a session that the rule of this index discarded.
    pub(crate) fn add(&mut self, info: &SessionInfo, rule: usize, bytes: u64) {
        let of_rule = &mut self.rules[rule];
        of_rule.sessions += 1;
        of_rule.messages += info.messages;
        of_rule.bytes += bytes;
        self.sessions.push(DiscardedSession {
            id: info.id.clone(),
            name: info.name.clone(),
            owner: info.owner.clone(),
            rule: of_rule.rule.clone(),
            action: of_rule.action,
            messages: info.messages,
            bytes,
            last_message_at: info.last_message_at,
        });
    }

    /// Removes sessions that were noted and not discarded.
    pub(crate) fn take_back<'s>(&mut self, kept: impl Iterator<Item = &'s SessionInfo>) {
        let kept: HashSet<&SessionId> = kept.map(|info| &info.id).collect();
        let rules = &mut self.rules;
        self.sessions.retain(|session| {
            let is_kept = kept.contains(&session.id);
            let of_rule = rules.iter_mut().find(|rule| is_kept && rule.rule == session.rule);
            if let Some(of_rule) = of_rule {
                of_rule.sessions -= 1;
                of_rule.messages -= session.messages;
                of_rule.bytes -= session.bytes;
            }
            !is_kept
        });
    }

    /// Returns how many messages were discarded.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.rules.iter().map(|rule| rule.messages).sum()
    }

    /// Returns the size of these messages, in bytes of JSON.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rules.iter().map(|rule| rule.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::outcome::SessionDetails;

    /// Asks a judge about sessions with so many messages, newest first: `p` is pinned, a letter before the number is the
    /// owner. Returns the index of the rule for each, `.` for none.
    fn judged(rules: &[RetentionRule], sessions: &str) -> Result<String> {
        let now = Utc::now();
        let mut judge = Judge::new(rules, now);
        let mut answer = String::new();
        for (at, word) in sessions.split_whitespace().enumerate() {
            let number = word.trim_start_matches(char::is_alphabetic);
            let letters = &word[..word.len() - number.len()];
            let created_at = now - TimeDelta::days(at as i64);
            let mut info =
                SessionInfo::from_details(word.into(), SessionDetails::default(), created_at);
            info.messages = number.parse().unwrap_or_default();
            info.is_pinned = letters.ends_with('p');
            info.owner = Some(letters.trim_end_matches('p').to_owned()).filter(|o| !o.is_empty());
            match judge.rule_for(&info, || Ok(10 * info.messages))? {
                Some(rule) => answer += &rule.to_string(),
                None => answer.push('.'),
            }
        }
        Ok(answer)
    }

    #[test]
    fn a_total_keeps_the_newest_that_fit() -> Result<()> {
        let rule = || RetentionRule::new("r");
        let day = std::time::Duration::from_secs(86_400);
        for (rules, sessions, expected) in [
            (vec![rule().keep_sessions(2)], "9 9 9 9", "..00"),
            (vec![rule().keep_messages(10)], "5 5 5 1", "..00"),
            // None fits after the first that did not.
            (vec![rule().keep_messages(10)], "5 6 1", ".00"),
            (vec![rule().keep_bytes(100)], "5 5 5", "..0"),
            (vec![rule().keep_messages(0)], "0 1 0", ".00"),
            // A pinned one stays, and counts.
            (vec![rule().keep_messages(10)], "5 p9 1 p9 1", "..0.0"),
            (vec![rule().keep_sessions(1).per_owner()], "a1 b1 a1 1 b1 1", "..0.00"),
            (vec![rule().keep_sessions(1)], "a1 b1 a1 1 b1 1", ".00000"),
            // The first rule decides; its sessions are not in the totals of later ones.
            (vec![rule().more_messages_than(8), rule().keep_sessions(2)], "9 1 9 1 1", "0.0.1"),
            (vec![rule().more_messages_than(8), rule().keep_sessions(2)], "p9 1 9 1 1", "..011"),
            (vec![rule().more_bytes_than(80)], "8 9 p9", ".0."),
            (vec![rule().idle_for(2 * day).keep_sessions(1)], "1 1 1 1 1", "...00"),
            (vec![rule().older_than(2 * day)], "1 1 1 p1 1", "..0.0"),
        ] {
            assert_eq!(judged(&rules, sessions)?, expected, "{rules:?} of {sessions}");
        }
        Ok(())
    }

    #[test]
    fn a_time_in_the_future_meets_no_rule() -> Result<()> {
        let now = Utc::now();
        let zero = std::time::Duration::ZERO;
        let rules =
            [RetentionRule::new("age").older_than(zero), RetentionRule::new("idle").idle_for(zero)];
        let mut info = SessionInfo::from_details(
            "s".into(),
            SessionDetails::default(),
            now + TimeDelta::hours(1),
        );
        assert_eq!(Judge::new(&rules, now).rule_for(&info, || Ok(0))?, None);
        info.created_at = now;
        info.last_message_at = Some(now + TimeDelta::microseconds(1));
        assert_eq!(Judge::new(&rules[1..], now).rule_for(&info, || Ok(0))?, None);
        assert_eq!(Judge::new(&rules, now).rule_for(&info, || Ok(0))?, Some(0));
        Ok(())
    }
}
