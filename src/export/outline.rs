//! What of a session is written beside its messages.

use std::cmp::Reverse;

use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::MessageId;
use crate::session::Session;

/// Returns the compactions of a session, in order, each with living messages for its ends.
///
/// Where ends were deleted, others take their place, and stretches that were apart may overlap or
/// end together. Then those that begin later come first: one that begins inside another could not
/// be laid after it. One under which nothing is left that a model would see is left out: no store
/// would take it.
pub(super) fn living_compactions(session: &Session) -> Result<Vec<Compaction>> {
    let mut living = Vec::new();
    let mut is_moved = false;
    for compaction in session.compactions()? {
        let stands = |id: &MessageId| session.message(id).map(|message| message.is_some());
        if stands(&compaction.first)? && stands(&compaction.last)? {
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

/// Returns whether a model would see a message of the stretch, were it not compacted.
fn covers_something(session: &Session, compaction: &Compaction) -> Result<bool> {
    // From its end: what is found first is mostly what is looked for.
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
