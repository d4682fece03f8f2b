//! The result of a run.

use std::fmt;
use std::time::{Duration, Instant};

use super::Size;
use crate::spread::Spread;

/// The measured figures and the broken rules of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The seed of all random choices.
    pub seed: u64,
    /// What was measured, by name.
    pub facts: Vec<(String, String)>,
    /// The rules that were broken, and where.
    pub faults: Vec<String>,
    title: String,
    begun: Instant,
}

impl Report {
    pub(super) fn new(seed: u64, size: &Size) -> Self {
        let title = format!("{} chats x {} turns", size.chats, size.turns);
        Self { seed, facts: Vec::new(), faults: Vec::new(), title, begun: Instant::now() }
    }

    pub(super) fn fact(&mut self, name: &str, value: impl fmt::Display) {
        self.facts.push((name.to_owned(), value.to_string()));
    }

    /// Adds measured times, with their number.
    pub(super) fn times(&mut self, name: &str, times: &Spread) {
        self.fact(name, format!("{times}, of {}", times.len()));
    }

    pub(super) fn fault(&mut self, what: impl Into<String>) {
        self.faults.push(what.into());
    }

    /// Adds a fault for each of these, and their number if there are many.
    pub(super) fn faults(&mut self, all: Vec<String>) {
        /// A fault often comes in hundreds.
        const SHOWN: usize = 20;
        let more = all.len().saturating_sub(SHOWN);
        self.faults.extend(all.into_iter().take(SHOWN));
        if more > 0 {
            self.fault(format!(".. and {more} more of these"));
        }
    }

    /// Returns how long the run has taken.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.begun.elapsed().as_secs_f64();
        writeln!(f, "{} (seed {}, {seconds:.0} s)", self.title, self.seed)?;
        let width = self.facts.iter().map(|fact| fact.0.chars().count()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            writeln!(f, "  {name:<width$}  {value}")?;
        }
        for fault in &self.faults {
            writeln!(f, "  FAILED: {fault}")?;
        }
        match self.faults.is_empty() {
            true => writeln!(f, "  passed"),
            false => writeln!(f, "  FAILED: {}", self.faults.len()),
        }
    }
}
