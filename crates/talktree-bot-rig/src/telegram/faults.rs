//! Faults of calls and updates: by chance, or those that a test orders.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use fastrand::Rng;

use crate::chance;

/// One thing that goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Error 429, with these seconds in `retry_after`. The call has no effect.
    TooMany(u16),
    /// An error of this status, such as 500 or 502. The call has no effect.
    Status(u16),
    /// No answer for this time, then the end of the connection. The call has no effect.
    Hang(Duration),
    /// The end of the connection instead of an answer. The call has no effect.
    CutBefore,
    /// The end of the connection in the middle of the answer. The call has its effect.
    CutAfter,
}

/// How often calls and updates go wrong. The shares are from 0 to 1; by default nothing goes wrong.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The seed of the choices.
    pub seed: u64,
    /// The share of calls with error 429.
    pub too_many: f64,
    /// The seconds that such an error asks to wait.
    pub retry_after: u16,
    /// The share of calls with error 500 or 502.
    pub server_error: f64,
    /// The share of calls without an answer.
    pub hang: f64,
    /// How long these hang.
    pub hang_for: Duration,
    /// The share of calls whose connection ends before they have an effect.
    pub cut_before: f64,
    /// The share of calls whose connection ends after they had an effect.
    pub cut_after: f64,
    /// The share of updates that are handed out twice, and of batches with an update that was confirmed before.
    pub duplicates: f64,
    /// The share of batches out of order.
    pub shuffled: f64,
    /// How many calls for one chat go wrong one after the other, at most.
    pub in_a_row: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 0,
            too_many: 0.0,
            retry_after: 1,
            server_error: 0.0,
            hang: 0.0,
            hang_for: Duration::from_secs(2),
            cut_before: 0.0,
            cut_after: 0.0,
            duplicates: 0.0,
            shuffled: 0.0,
            in_a_row: 1,
        }
    }
}

/// Chooses what goes wrong.
#[derive(Debug)]
pub(super) struct Chance {
    faults: Faults,
    pub(super) rng: Rng,
    scripted: VecDeque<(String, Fault)>,
    /// How many calls for each chat went wrong one after the other.
    in_a_row: HashMap<i64, u32>,
}

impl Chance {
    pub(super) fn new(faults: Faults) -> Self {
        let rng = Rng::with_seed(faults.seed);
        Self { faults, rng, scripted: VecDeque::new(), in_a_row: HashMap::new() }
    }

    pub(super) fn script(&mut self, method: &str, fault: Fault) {
        self.scripted.push_back((method.to_owned(), fault));
    }

    pub(super) fn clear(&mut self) {
        self.faults = Faults::default();
        self.scripted.clear();
    }

    /// Returns what goes wrong with a call for a chat; the chat 0 is that of a call without a chat.
    pub(super) fn of_call(&mut self, method: &str, chat: i64) -> Option<Fault> {
        if let Some(at) = self.scripted.iter().position(|(name, _)| name == method) {
            return self.scripted.remove(at).map(|(_, fault)| fault);
        }
        let in_a_row = self.in_a_row.entry(chat).or_default();
        let fault = match *in_a_row < self.faults.in_a_row {
            true => drawn(&self.faults, &mut self.rng),
            false => None,
        };
        *in_a_row = if fault.is_some() { *in_a_row + 1 } else { 0 };
        fault
    }

    pub(super) fn is_duplicate(&mut self) -> bool {
        self.faults.duplicates > 0.0 && self.rng.f64() < self.faults.duplicates
    }

    pub(super) fn is_shuffled(&mut self) -> bool {
        self.faults.shuffled > 0.0 && self.rng.f64() < self.faults.shuffled
    }
}

fn drawn(faults: &Faults, rng: &mut Rng) -> Option<Fault> {
    let status = if rng.bool() { 500 } else { 502 };
    let shares = [
        (faults.too_many, Fault::TooMany(faults.retry_after)),
        (faults.server_error, Fault::Status(status)),
        (faults.hang, Fault::Hang(faults.hang_for)),
        (faults.cut_before, Fault::CutBefore),
        (faults.cut_after, Fault::CutAfter),
    ];
    chance::drawn(shares, rng)
}
