//! Faults of requests to the model.

use std::time::Duration;

use fastrand::Rng;

use crate::chance::drawn;

/// One thing that goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Error 429, with `retry-after`.
    TooMany,
    /// Error 500.
    ServerError,
    /// Error 529, which Anthropic sends when it is overloaded.
    Overloaded,
    /// The end of the connection in the middle of the answer.
    Cut,
    /// An error in the middle of a streamed answer. A whole answer is cut.
    Broken,
    /// An answer that is later by this time.
    Slow(Duration),
}

/// How often requests go wrong. The shares are from 0 to 1; by default nothing goes wrong.
#[derive(Debug, Clone)]
pub struct Faults {
    /// The seed of the choices.
    pub seed: u64,
    /// The share of requests with error 429.
    pub too_many: f64,
    /// The share of requests with error 500.
    pub server_error: f64,
    /// The share of requests with error 529.
    pub overloaded: f64,
    /// The share of answers that are cut.
    pub cut: f64,
    /// The share of answers with an error in the middle.
    pub broken: f64,
    /// The share of slow answers.
    pub slow: f64,
    /// How much later these are.
    pub slow_for: Duration,
    /// How many requests for one mark go wrong one after the other, at most.
    pub in_a_row: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 0,
            too_many: 0.0,
            server_error: 0.0,
            overloaded: 0.0,
            cut: 0.0,
            broken: 0.0,
            slow: 0.0,
            slow_for: Duration::from_secs(2),
            in_a_row: 1,
        }
    }
}

impl Faults {
    pub(super) fn drawn(&self, rng: &mut Rng) -> Option<Fault> {
        let shares = [
            (self.too_many, Fault::TooMany),
            (self.server_error, Fault::ServerError),
            (self.overloaded, Fault::Overloaded),
            (self.cut, Fault::Cut),
            (self.broken, Fault::Broken),
            (self.slow, Fault::Slow(self.slow_for)),
        ];
        drawn(shares, rng)
    }
}
