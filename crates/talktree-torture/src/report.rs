//! The report of a torture test.

use std::fmt;
use std::time::{Duration, Instant};

/// The facts and failures of one torture test.
#[derive(Debug)]
pub struct Report {
    name: String,
    seed: u64,
    begun: Instant,
    facts: Vec<(String, String)>,
    failures: Vec<String>,
}

impl Report {
    /// Starts the report of the test `name`; all its random choices come from `seed`.
    pub fn new(name: impl Into<String>, seed: u64) -> Self {
        Self {
            name: name.into(),
            seed,
            begun: Instant::now(),
            facts: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Returns the seed of the whole run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Adds a measured figure.
    pub fn fact(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.facts.push((name.into(), value.to_string()));
    }

    /// Adds a broken promise and the command that replays it, and prints both at once.
    pub fn failure(&mut self, what: impl fmt::Display, replay: impl fmt::Display) {
        eprintln!("FAILED: {what}\n  replay: {replay}");
        self.failures.push(format!("{what}\n  replay: {replay}"));
    }

    /// Returns the broken promises.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Returns the value of a fact.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.0 == name).map(|fact| fact.1.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = Duration::as_secs_f64(&self.begun.elapsed());
        writeln!(f, "{} (seed {}, {seconds:.0} s)", self.name, self.seed)?;
        let width = self.facts.iter().map(|fact| fact.0.chars().count()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            writeln!(f, "  {name:<width$}  {value}")?;
        }
        match self.failures.len() {
            0 => writeln!(f, "  passed"),
            count => writeln!(f, "  FAILED: {count}\n{}", self.failures.join("\n")),
        }
    }
}
