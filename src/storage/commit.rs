//! Commits a compaction plan on any storage, with calls that take ids only.
//!
//! This takes several calls. A storage that other writers may change in between should override it with one
//! transaction.

use std::collections::HashSet;

use super::SessionProvider;
use crate::compaction::{Compaction, CompactionStatus, Seen, Stale};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;

/// Replaces a range with a summary if the view of it is still what was seen; returns whether the summary is visible
/// at the head.
pub(super) fn by_ids<P: SessionProvider + ?Sized>(
    provider: &P,
    compaction: &Compaction,
    leaf: &MessageId,
    seen: &Seen,
) -> Result<bool> {
    let stale = |why: Stale| Error::Stale { why };
    let known = known(provider, seen)?.map_err(stale)?;
    let last = known.last().unwrap_or(leaf);
    let leaf = match provider.is_on_path(leaf, None) {
        Ok(true) => None,
        Ok(false) => Some(leaf),
        Err(Error::UnknownMessage { .. }) if provider.is_on_path(last, None)? => None,
        Err(Error::UnknownMessage { .. }) => Some(last),
        Err(error) => return Err(error),
    };
    let view = provider.history(leaf)?;
    let now = stretch(provider, &view, seen, &known)?;
    if let Some(by) = now.iter().find_map(|item| unseen_summary(item, seen)) {
        return Err(stale(Stale::Compacted { by }));
    }
    let checked = seen.check(now);
    if let Err(Stale::CompactionRemoved { id }) = &checked
        && let Some(summary) = provider.compaction(id)?
    {
        // The summary ends at a deleted message, so it is on no path that an id can name.
        return Err(stale(Stale::Deleted { id: summary.last }));
    }
    checked.map_err(stale)?;
    Ok(provider.add_compaction(compaction)? == CompactionStatus::Shown)
}

/// Returns the messages that were seen, those inside seen summaries included, oldest first; the reason if something
/// is missing.
fn known<P: SessionProvider + ?Sized>(
    provider: &P,
    seen: &Seen,
) -> Result<Result<Vec<MessageId>, Stale>> {
    let mut known = Vec::new();
    for id in seen.ids() {
        match CompactionId::from_message(id) {
            Some(summary) if provider.compaction(&summary)?.is_none() => {
                return Ok(Err(Stale::CompactionRemoved { id: summary }));
            }
            Some(summary) => {
                known.extend(provider.expand_raw(&summary)?.into_iter().map(|message| message.id));
            }
            None if provider.message(id)?.is_none() => {
                return Ok(Err(Stale::Deleted { id: id.clone() }));
            }
            None => known.push(id.clone()),
        }
    }
    Ok(Ok(known))
}

/// Returns the summary's id if the item is a summary that was not seen.
fn unseen_summary(item: &Message, seen: &Seen) -> Option<CompactionId> {
    let summary = CompactionId::from_message(&item.id)?;
    seen.ids().all(|id| *id != item.id).then_some(summary)
}

/// Returns the part of a view from the first item that was seen to the last, with any summary that now covers one.
fn stretch<'v, P: SessionProvider + ?Sized>(
    provider: &P,
    view: &'v [Message],
    seen: &Seen,
    known: &[MessageId],
) -> Result<&'v [Message]> {
    let known: HashSet<&MessageId> = known.iter().chain(seen.ids()).collect();
    let (mut first, mut end) = (view.len(), 0);
    for (at, item) in view.iter().enumerate() {
        let is_part = match CompactionId::from_message(&item.id) {
            _ if known.contains(&item.id) => true,
            Some(other) => provider.expand_raw(&other)?.iter().any(|it| known.contains(&it.id)),
            None => false,
        };
        if is_part {
            (first, end) = (first.min(at), at + 1);
        }
    }
    Ok(view.get(first..end).unwrap_or_default())
}
