//! The compactions of a session, as an export writes them.

use std::cmp::Reverse;

use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::MessageId;
use crate::session::Session;

/// Returns the compactions of a session in order, each with living messages as its ends.
///
/// If an end was deleted, the nearest covered message replaces it. Ranges that were separate may then overlap or end
/// together. So the compactions are sorted by start, the last one first: an import could not add one that starts inside
/// an earlier one. A compaction without a visible message is omitted, because no store would accept it.
pub(super) fn living_compactions(session: &Session) -> Result<Vec<Compaction>> {
    let mut living = Vec::new();
    let mut is_moved = false;
    for compaction in session.compactions()? {
        let exists = |id: &MessageId| session.message(id).map(|message| message.is_some());
        if exists(&compaction.first)? && exists(&compaction.last)? {
            if covers_something(session, &compaction)? {
                living.push(compaction);
            }
            continue;
        }
        let covered = session.expand_raw(&compaction.id)?;
        let (Some(first), Some(last)) = (covered.first(), covered.last()) else { continue };
        if covered.iter().any(|message| !message.is_hidden) {
            let (first, last) = (first.id.clone(), last.id.clone());
            living.push(Compaction { first, last, ..compaction });
            is_moved = true;
        }
    }
    if is_moved {
        let begin = |compaction: &Compaction| session.at(&compaction.first).path_length();
        let begins: Vec<u64> = living.iter().map(begin).collect::<Result<_>>()?;
        let mut sorted: Vec<(u64, Compaction)> = begins.into_iter().zip(living).collect();
        sorted.sort_by_key(|(begin, _)| Reverse(*begin));
        living = sorted.into_iter().map(|(_, compaction)| compaction).collect();
    }
    Ok(living)
}

/// Returns whether the range has a message that is not hidden.
fn covers_something(session: &Session, compaction: &Compaction) -> Result<bool> {
    // Newest first: the last message is rarely hidden.
    for message in session.at(&compaction.last).raw().iter_rev() {
        let message = message?;
        if !message.is_hidden {
            return Ok(true);
        }
        if message.id == compaction.first {
            break;
        }
    }
    Ok(false)
}
