//! The ledger of usage in memory: a list for each session.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::state::{Kept, State};
use crate::id::MessageId;
use crate::message::Message;
use crate::usage::{Usage, UsageFilter, UsageGroup, UsageRow, UsageTotal};

/// The usage of an answer.
#[derive(Debug, Clone)]
pub(super) struct Used {
    /// `None`: of no message, or of a deleted one.
    message: Option<MessageId>,
    /// The provider's id of an answer that came as several messages.
    answer: Option<String>,
    model: Option<String>,
    usage: Usage,
    at: DateTime<Utc>,
}

impl Used {
    pub(super) fn new(kept: &Kept, usage: &Usage, at: DateTime<Utc>) -> Self {
        let model = usage.model.clone().or_else(|| kept.info.model.clone());
        Self { message: None, answer: None, model, usage: usage.clone(), at }
    }

    pub(super) fn of_message(self, id: Option<&MessageId>) -> Self {
        Self { message: id.cloned(), ..self }
    }

    pub(super) fn is_of(&self, id: &MessageId) -> bool {
        self.message.as_ref() == Some(id)
    }

    fn total(&self) -> UsageTotal {
        UsageTotal {
            answers: 1,
            input: self.usage.input,
            output: self.usage.output,
            cache_read: self.usage.cache_read,
            cache_write: self.usage.cache_write,
            reasoning: self.usage.reasoning,
            costs: self.usage.cost.clone().into_iter().collect(),
        }
    }
}

/// Adds what a stored message says about its usage.
pub(super) fn record(kept: &mut Kept, message: &Message) {
    let Some(usage) = Usage::of(message) else { return };
    let used = Used::new(kept, &usage, message.created_at).of_message(Some(&message.id));
    add(kept, Used { answer: Usage::answer_of(message), ..used });
}

/// Adds usage: it replaces what was known of its message, and is a part of what was known of its answer.
pub(super) fn add(kept: &mut Kept, used: Used) {
    let of_message = |known: &&mut Used| known.message.is_some() && known.message == used.message;
    if let Some(known) = kept.usage.iter_mut().find(of_message) {
        (known.model, known.usage) = (used.model, used.usage);
        return;
    }
    let of_answer = |known: &&mut Used| known.answer.is_some() && known.answer == used.answer;
    if let Some(Used { usage: known, .. }) = kept.usage.iter_mut().find(of_answer) {
        known.input = known.input.max(used.usage.input);
        known.output = known.output.max(used.usage.output);
        known.reasoning = known.reasoning.max(used.usage.reasoning);
        return;
    }
    kept.usage.push(used);
}

/// Gives the answers that name no model that of their session.
pub(super) fn follow(kept: &mut Kept) {
    for used in kept.usage.iter_mut().filter(|used| used.model.is_none()) {
        used.model.clone_from(&kept.info.model);
    }
}

/// Notes that messages were deleted. Their usage still counts, because it was paid for.
pub(super) fn forget(kept: &mut Kept, is_gone: impl Fn(&MessageId) -> bool) {
    for used in &mut kept.usage {
        used.message = used.message.take().filter(|id| !is_gone(id));
    }
}

pub(super) fn total<'u>(all: impl IntoIterator<Item = &'u Used>) -> UsageTotal {
    let mut total = UsageTotal::default();
    all.into_iter().for_each(|used| total.add(used.total()));
    total
}

/// Returns the usage that a filter names, added up by group.
pub(super) fn report(state: &State, filter: &UsageFilter, group: UsageGroup) -> Vec<UsageRow> {
    let present = state.sessions.iter().flat_map(|kept| {
        let of = (&kept.info.owner, &kept.info.source);
        kept.usage.iter().map(move |used| (Some(&kept.info.id), of, used))
    });
    let former = state.former.iter().map(|(owner, source, used)| (None, (owner, source), used));
    let mut totals: BTreeMap<Option<String>, UsageTotal> = BTreeMap::new();
    for (session, (owner, source), used) in present.chain(former) {
        let is =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let is_named = filter.session.as_ref().is_none_or(|id| session == Some(id))
            && is(&filter.owner, owner)
            && is(&filter.author, &None)
            && is(&filter.model, &used.model)
            && is(&filter.source, source)
            && filter.since.is_none_or(|since| used.at >= since)
            && filter.until.is_none_or(|until| used.at < until);
        if !is_named {
            continue;
        }
        let name = match group {
            UsageGroup::All => None,
            UsageGroup::Model => used.model.clone(),
            UsageGroup::Day => Some(used.at.format("%Y-%m-%d").to_string()),
            UsageGroup::Author => None,
            UsageGroup::Owner => owner.clone(),
            UsageGroup::Session => session.map(ToString::to_string),
            UsageGroup::Source => source.clone(),
        };
        totals.entry(name).or_default().add(used.total());
    }
    let mut rows: Vec<_> =
        totals.into_iter().map(|(group, total)| UsageRow::new(group, total)).collect();
    match group {
        UsageGroup::Day => rows.reverse(),
        _ => rows.sort_by_key(|row| Reverse(row.total.input.saturating_add(row.total.output))),
    }
    rows
}
