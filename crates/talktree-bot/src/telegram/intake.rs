//! Intake: from the long poll into the inbox.
//!
//! Invariant: an update and the offset after it are stored in one transaction, and only then is that offset polled, which
//! makes Telegram forget the update. After a kill before the transaction it is delivered again; after a kill behind it, it
//! is in the inbox. So none is lost, and the inbox ignores those that are delivered again.
//! Invariant: no update is dropped here. One that the bot does not understand is stored, too, and done without an answer.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::value::RawValue;
use talktree::InboxItem;
use talktree_telegram::{Me, Workers, number, poll_again_after};

use super::turn::{Failure, Front};
use super::update::item;
use crate::health::Health;

/// How long an offset is used. After a week without updates Telegram may number from another start, and an old offset could
/// confirm updates that were never received. So the next poll has none, and the inbox ignores what it has seen.
const OFFSET_IS_GOOD: TimeDelta = TimeDelta::days(6);

/// The pause after an empty answer that came at once: from a server that does not wait for updates.
const PAUSE: Duration = Duration::from_millis(200);

/// Polls until the program ends.
pub(crate) fn run(front: &Front, workers: &Workers, health: &Health) {
    let mut failures = 0;
    while !front.stop.is_ending() {
        let began = Instant::now();
        match poll(front) {
            Ok(keys) => {
                failures = 0;
                health.polled(Instant::now());
                if keys.is_empty() && began.elapsed() < PAUSE {
                    front.stop.wait_idle(PAUSE);
                }
                workers.wake(keys);
            }
            Err(error) => {
                let wait = error.retry_after().unwrap_or_else(|| poll_again_after(failures));
                tracing::warn!(failures, ?wait, %error, "a poll fails");
                failures += 1;
                front.metrics.retries.inc();
                front.stop.wait_idle(wait);
            }
        }
    }
}

/// Polls once and stores the updates; returns the keys of the new ones.
fn poll(front: &Front) -> Result<Vec<String>, Failure> {
    let offset = front.inbox.offset()?.and_then(usable);
    let seconds = front.config.telegram.poll_seconds.max(1); // 0 would ask without a pause
    let updates = front.client.updates(offset, seconds)?;
    let items = sorted(&updates, &front.me);
    let newest = match items.last() {
        // Not stored, so not confirmed: Telegram delivers it again.
        _ if front.stop.is_ending() => return Ok(Vec::new()),
        Some((number, _)) => *number,
        None if updates.is_empty() => return Ok(Vec::new()),
        // An error, so that there is a pause: without an offset after them the next poll gets them again at once.
        None => return Err(Failure::Failed("getUpdates: no update has a number".to_owned())),
    };
    let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
    let are_new = front.inbox.receive(&items, Some(newest.saturating_add(1)))?;
    let all = items.len();
    let new = items.into_iter().zip(are_new).filter(|(_, is_new)| *is_new);
    let keys: Vec<_> = new.map(|(item, _)| item.key).collect();
    front.metrics.received.inc_by(all as u64);
    front.metrics.duplicate.inc_by((all - keys.len()) as u64);
    Ok(keys)
}

/// Returns the items of a batch, in the order of their numbers.
fn sorted(updates: &[Box<RawValue>], me: &Me) -> Vec<(i64, InboxItem)> {
    let mut items: Vec<_> = updates
        .iter()
        .filter_map(|update| {
            let number = number(update);
            if number.is_none() {
                tracing::warn!(bytes = update.get().len(), "an update has no number");
            }
            number.map(|number| (number, item(number, update, me)))
        })
        .collect();
    items.sort_by_key(|(number, _)| *number);
    items
}

/// Returns the offset to poll from; `None` if it is too old, or if its time is in the future.
fn usable((offset, stored_at): (i64, DateTime<Utc>)) -> Option<i64> {
    // If the clock was set back, the age is unknown.
    let age = Utc::now() - stored_at;
    (TimeDelta::zero()..OFFSET_IS_GOOD).contains(&age).then_some(offset)
}

#[cfg(test)]
mod tests {
    use talktree::{InboxItem, Store};

    use super::*;

    #[test]
    fn a_batch_is_sorted_and_what_has_no_number_left_out() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let texts =
            [r#"{"update_id":9}"#, r#"{"poll":1}"#, r#"{"update_id":7,"new_kind":[]}"#, "3"];
        let updates: Vec<_> = texts.into_iter().map(raw).collect();
        let me = Me { id: 1, name: "bot".to_owned() };
        let items = sorted(&updates, &me);
        assert_eq!(items.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [7, 9]);
        assert_eq!(items[0].1.body, texts[2]);
    }

    #[test]
    fn an_offset_is_good_for_six_days() {
        let inbox = Store::open_in_memory().unwrap().inbox("telegram");
        inbox.receive(&[InboxItem::new("7", "k", "{}")], Some(8)).unwrap();
        let mut offset = inbox.offset().unwrap().unwrap();
        assert_eq!(usable(offset), Some(8));
        offset.1 = Utc::now() - chrono::TimeDelta::days(6);
        assert_eq!(usable(offset), None);
        offset.1 += chrono::TimeDelta::minutes(1);
        assert_eq!(usable(offset), Some(8));
        // The clock was a year ahead, and is right again.
        offset.1 = Utc::now() + chrono::TimeDelta::days(365);
        assert_eq!(usable(offset), None);
    }
}
