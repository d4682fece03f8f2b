//! The file of rules.

use std::path::Path;

use serde::Deserialize;
use talktree::{Retention, RetentionRule};

use crate::failure::{Failure, Result};
use crate::input::read_text;
use crate::span::Span;
use crate::text::{quoted, shown};

/// What a file may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    empty_trash_after: Option<Span>,
    #[serde(default)]
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    owner: Option<String>,
    source: Option<String>,
    model: Option<String>,
    tag: Option<String>,
    #[serde(default)]
    ended: bool,
    older_than: Option<Span>,
    idle_for: Option<Span>,
    more_messages_than: Option<u64>,
    more_bytes_than: Option<u64>,
    keep_sessions: Option<u64>,
    keep_messages: Option<u64>,
    keep_bytes: Option<u64>,
    #[serde(default)]
    per_owner: bool,
    #[serde(default)]
    action: Action,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Trash,
    Remove,
    Erase,
}

/// Reads the rules of a file, or of standard input for `-`.
pub(super) fn read(path: &Path) -> Result<Retention> {
    let text = read_text(path, "the file of rules")?;
    let wrong = |why: String| Failure::Input(format!("{}: {}", shown(path), why.trim_end()));
    let rules: Rules = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut retention = Retention::new();
    if let Some(term) = rules.empty_trash_after {
        retention = retention.empty_trash_after(term.length());
    }
    for rule in rules.rule {
        retention = retention.rule(rule.read().map_err(wrong)?);
    }
    retention.check().map_err(|error| wrong(error.to_string()))?;
    Ok(retention)
}

impl Rule {
    fn read(self) -> Result<RetentionRule, String> {
        type Set<T> = fn(RetentionRule, T) -> RetentionRule;
        let mut rule = RetentionRule::new(self.name);
        let texts: [(_, Set<String>); 4] = [
            (self.owner, RetentionRule::owner),
            (self.source, RetentionRule::source),
            (self.model, RetentionRule::model),
            (self.tag, RetentionRule::tag),
        ];
        for (text, set) in texts {
            rule = text.into_iter().fold(rule, set);
        }
        let spans: [(_, Set<std::time::Duration>); 2] = [
            (self.older_than, RetentionRule::older_than),
            (self.idle_for, RetentionRule::idle_for),
        ];
        for (span, set) in spans {
            rule = span.map(Span::length).into_iter().fold(rule, set);
        }
        let totals = [self.keep_sessions, self.keep_messages, self.keep_bytes];
        if totals.iter().flatten().count() > 1 {
            return Err(format!(
                "rule {} has more than one of keep_sessions, keep_messages and keep_bytes",
                quoted(rule.name())
            ));
        }
        let numbers: [(_, Set<u64>); 5] = [
            (self.more_messages_than, RetentionRule::more_messages_than),
            (self.more_bytes_than, RetentionRule::more_bytes_than),
            (self.keep_sessions, RetentionRule::keep_sessions),
            (self.keep_messages, RetentionRule::keep_messages),
            (self.keep_bytes, RetentionRule::keep_bytes),
        ];
        for (number, set) in numbers {
            rule = number.into_iter().fold(rule, set);
        }
        rule = if self.ended { rule.ended() } else { rule };
        rule = if self.per_owner { rule.per_owner() } else { rule };
        Ok(match self.action {
            Action::Trash => rule,
            Action::Remove => rule.remove(),
            Action::Erase => rule.erase(),
        })
    }
}
