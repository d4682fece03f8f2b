//! Hostile input: malformed and unusual queries, files, messages and names.
//!
//! `checks` says what must hold for any bytes. Here the bytes are mutations of [`seeds()`]; in `talktree-fuzz` a fuzzer
//! makes them.

mod checks;
mod seeds;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::value_parser;
use fastrand::Rng;

pub use checks::{Check, importers, messages, names, queries};
pub use seeds::seeds;

use crate::{Report, Result};

/// The checks by name.
pub const CHECKS: [(&str, Check); 4] =
    [("queries", queries), ("importers", importers), ("messages", messages), ("names", names)];

/// How many inputs are tried.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many inputs each check gets.
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Run only this check.
    #[arg(long, value_parser = PossibleValuesParser::new(CHECKS.map(|check| check.0)))]
    pub check: Option<String>,
    /// Run only this case.
    #[arg(long)]
    pub case: Option<u64>,
    /// Write the seeds of each check into this folder, as the start corpus of a fuzzer, and exit.
    #[arg(long)]
    pub write_seeds: Option<PathBuf>,
}

/// Runs the checks on mutated seeds.
///
/// # Errors
/// If the seeds cannot be written.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    for (name, check) in CHECKS {
        if args.check.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let seeds = seeds(name);
        if let Some(folder) = &args.write_seeds {
            let folder = folder.join(name);
            std::fs::create_dir_all(&folder)?;
            for (number, seed) in seeds.iter().enumerate() {
                std::fs::write(folder.join(format!("seed-{number}")), seed)?;
            }
            continue;
        }
        let cases = args.case.map_or(0..args.cases, |case| case..case + 1);
        let mut tried = 0_u64;
        for case in cases {
            let mut dice = Rng::with_seed(report.seed().wrapping_add(case));
            let input = mutated(&seeds, &mut dice);
            let answer = catch_unwind(AssertUnwindSafe(|| check(&input)));
            tried += 1;
            if tried.is_multiple_of(1_000) {
                eprintln!("{name}: {tried} cases");
            }
            let what = match answer {
                Ok(Ok(())) => continue,
                Ok(Err(what)) => what,
                Err(_) => "a panic".to_owned(),
            };
            let input = String::from_utf8_lossy(&input).chars().take(200).collect::<String>();
            let replay = format!(
                "just torture hostile --seed {} --check {name} --case {case}",
                report.seed()
            );
            report.failure(format!("{name}: {what}, input {input:?}"), replay);
        }
        report.fact(format!("{name}: inputs"), tried);
    }
    Ok(())
}

/// Returns one of the seeds with a few mutations.
fn mutated(seeds: &[Vec<u8>], dice: &mut Rng) -> Vec<u8> {
    let mut input = seeds[dice.usize(..seeds.len())].clone();
    for _ in 0..dice.usize(..8) {
        let at = dice.usize(..=input.len());
        match dice.u32(..7) {
            0 if !input.is_empty() => input[at.saturating_sub(1)] = dice.u8(..),
            1 => drop(input.drain(at..(at + dice.usize(..12)).min(input.len()))),
            2 => input.truncate(at),
            3 => {
                // Inserts a piece of another seed.
                let other = &seeds[dice.usize(..seeds.len())];
                let from = dice.usize(..=other.len());
                let to = (from + dice.usize(..40)).min(other.len());
                drop(input.splice(at..at, other[from..to].iter().copied()));
            }
            4 => {
                // Appends another seed, as when logs are joined.
                let other = &seeds[dice.usize(..seeds.len())];
                input.push(b'\n');
                input.extend(other.get(1..).unwrap_or_default());
            }
            5 => {
                // Inserts a piece of itself.
                let to = (at + dice.usize(..60)).min(input.len());
                let piece = input[at..to].to_vec();
                let place = dice.usize(..=input.len());
                drop(input.splice(place..place, piece));
            }
            _ => {
                let word = seeds::HOSTILE[dice.usize(..seeds::HOSTILE.len())];
                drop(input.splice(at..at, word.bytes()));
            }
        }
    }
    input
}
