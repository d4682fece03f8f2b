//! What of a session is written beside its messages.

use std::collections::HashMap;

use crate::compaction::Compaction;
use crate::error::Result;
use crate::id::MessageId;
use crate::session::Session;
use crate::view::View;

/// Returns the compactions of a session, in order, each with living messages for its ends.
///
/// Two whose ends were apart may end at one message now. Then the one with the shorter reach comes
/// first: laid in that order, the longer folds the shorter. One under which nothing is left that a
/// model would see is left out: no store would take it.
pub(super) fn living_compactions(session: &Session) -> Result<Vec<Compaction>> {
    let mut living = Vec::new();
    let mut moved: HashMap<MessageId, Vec<usize>> = HashMap::new();
    for compaction in session.compactions()? {
        let stands = |id: &MessageId| session.message(id).map(|message| message.is_some());
        if stands(&compaction.first)? && stands(&compaction.last)? {
            if covers_something(session, &compaction)? {
                living.push(compaction);
            }
            continue;
        }
        let covered = session.expand(&compaction.id)?;
        let (Some(first), Some(last)) = (covered.first(), covered.last()) else { continue };
        if covered.iter().all(|message| message.is_aside) {
            continue;
        }
        moved.entry(last.id.clone()).or_default().push(living.len());
        let (first, last) = (first.id.clone(), last.id.clone());
        living.push(Compaction { first, last, ..compaction });
    }
    for end in moved.into_keys() {
        let mut places = Vec::new();
        let mut group = Vec::new();
        for (place, compaction) in living.iter().enumerate().filter(|(_, c)| c.last == end) {
            let start = session.path_length_at(&compaction.first)?;
            places.push(place);
            group.push((std::cmp::Reverse(start), compaction.clone()));
        }
        group.sort_by_key(|(start, _)| *start);
        for (place, (_, compaction)) in places.into_iter().zip(group) {
            living[place] = compaction;
        }
    }
    Ok(living)
}

/// Returns whether a model would see a message of the stretch, were it not folded.
fn covers_something(session: &Session, compaction: &Compaction) -> Result<bool> {
    // From its end: what is found first is mostly what is looked for.
    for message in session.stream_rev(View::at(&compaction.last).raw()) {
        let message = message?;
        if !message.is_aside {
            return Ok(true);
        }
        if message.id == compaction.first {
            break;
        }
    }
    Ok(false)
}
