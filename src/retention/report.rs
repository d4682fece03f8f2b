//! The report of a run of retention rules.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{RetentionAction, RetentionRule, TRASH};
use crate::erasure::ErasureCopies;
use crate::id::SessionId;
use crate::outcome::SessionInfo;

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
