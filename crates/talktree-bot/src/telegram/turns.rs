//! Turns: handles the updates of a chat one after the other.
//!
//! Invariant: no update blocks its chat for ever. One that fails again and again is given up; waits for the store, the
//! network or the token do not count as failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use chrono::Utc;
use talktree_telegram::{Address, Update, backoff};

use super::delivery::Delivery;
use super::note::Note;
use super::turn::{Failure, Front};
use crate::core::APOLOGY;

/// How often an update may fail before it is given up, so that the next one of its chat is handled.
const MAX_FAILURES: u32 = 6;

impl Front {
    /// Handles the updates of a key, the oldest first, until there are none or the program ends.
    pub(crate) fn work_on(&self, key: &str) {
        let (mut free, mut failures, mut tries) = (None, 0, 0);
        while !self.stop.is_ending() {
            match self.work_on_next(key, free, failures) {
                Ok(true) => (failures, tries) = (0, 0),
                Ok(false) | Err(Failure::Stopped) => return,
                Err(error) => {
                    failures += u32::from(!matches!(error, Failure::Wait(..)));
                    tries += 1;
                    let wait = error.retry_after().unwrap_or_else(|| backoff(tries));
                    tracing::warn!(key, failures, ?wait, %error, "a turn fails");
                    self.stop.wait_idle(wait);
                }
            }
            free = Some(Instant::now());
        }
    }

    /// Handles the oldest update of a key and marks it as done, also if it is ignored or given up; `false` if there is none.
    fn work_on_next(
        &self,
        key: &str,
        free: Option<Instant>,
        failures: u32,
    ) -> Result<bool, Failure> {
        let permit = self.permits.acquire(0); // before the turns: which one is next is not known yet
        let Some(item) = self.inbox.next(key)? else { return Ok(false) };
        drop(permit);
        // The time in which the thread handled earlier updates of the chat does not count.
        let ago =
            item.received_at.and_then(|at| (Utc::now() - at).to_std().ok()).unwrap_or_default();
        let since = Instant::now().checked_sub(ago).max(free).unwrap_or_else(Instant::now);
        let handled = catch_unwind(AssertUnwindSafe(|| self.handle(&item, since)));
        let update = &item.id;
        match handled.unwrap_or_else(|_| Err(Failure::Failed("a panic".to_owned()))) {
            Ok(()) => self.metrics.turns.inc(),
            Err(Failure::Ignored(why)) => {
                self.metrics.ignored.with_label_values(&[why]).inc();
                tracing::debug!(update, key, why, "ignored");
            }
            Err(Failure::Erased) => {
                self.metrics.ignored.with_label_values(&["erased"]).inc();
                tracing::info!(update, key, "erased while it was handled");
            }
            Err(Failure::Undeliverable(why)) => {
                self.metrics.undeliverable.inc();
                tracing::warn!(update, key, why, "a reply cannot be delivered");
            }
            Err(Failure::Failed(why)) if failures + 1 >= MAX_FAILURES => {
                self.metrics.broken.inc();
                tracing::error!(update, key, why, "an update is given up");
                if let Err(error) = self.apologize(key) {
                    tracing::warn!(update, key, %error, "the apology is not shown");
                }
            }
            Err(failure) => return Err(failure),
        }
        self.inbox.done(update)?;
        Ok(true)
    }

    /// Replaces what was shown of a reply that is given up: with its answer if that is stored, else with an apology.
    fn apologize(&self, key: &str) -> Result<(), Failure> {
        let Some(item) = self.inbox.next(key)? else { return Ok(()) };
        let update = serde_json::from_str::<Update>(&item.body).ok();
        let incoming = update.and_then(|update| update.message.or(update.edited_message));
        let mut note = Note::of(&item);
        let Some(incoming) = incoming.filter(|_| !note.parts.is_empty()) else {
            return Ok(()); // nothing was shown
        };
        // One that cannot be read cannot be shown either.
        let answer = note.session.clone().zip(note.answer.clone()).and_then(|(session, id)| {
            self.bot.sessions().session(session).and_then(|chat| chat.message(&id)).ok().flatten()
        });
        let text = answer.map_or_else(|| APOLOGY.to_owned(), |answer| answer.text());
        let (chat, interval) = (incoming.chat.id, Duration::ZERO);
        let to = Address { chat, topic: incoming.topic(), reply_to: None, interval };
        let mut delivery = Delivery::new(&self.client, &self.inbox, &item.id, to);
        delivery.finish(&mut note, &text, &|_| Ok(()))
    }
}
