//! Random verbs with unusual names: a store must agree with a plain list of parents.
//!
//! A *script* is a sequence of bytes that is read as verbs: which verb, in which session, with which names. There are
//! few names, so that verbs meet the same messages, and some of them have broken programs. Each verb runs on a store
//! and on a `Model`, which has no addresses, runs or indexes; results and reads must be equal. Here the bytes are
//! random; in `talktree-fuzz` they come from a fuzzer.

mod model;
mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

pub use script::{Counts, play};

use crate::{Report, Result};

/// The maximum length of a script in bytes; a verb takes about three.
const MAX_BYTES: usize = 600;

/// How many scripts are played.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many scripts are played.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Play only this script.
    #[arg(long)]
    pub case: Option<u64>,
}

/// Plays random scripts.
///
/// # Errors
/// None: each difference is a failure in the report.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let cases = args.case.map_or(0..args.cases, |case| case..case.saturating_add(1));
    let mut counts = Counts::default();
    for case in cases.clone() {
        let mut dice = Rng::with_seed(report.seed().wrapping_add(case));
        let script: Vec<u8> = (0..dice.usize(..MAX_BYTES)).map(|_| dice.u8(..)).collect();
        let what = match catch_unwind(AssertUnwindSafe(|| play(&script))) {
            Ok(Ok(of_this)) => {
                counts += of_this;
                continue;
            }
            Ok(Err(what)) => what,
            Err(_) => "a panic".to_owned(),
        };
        let replay = format!("just torture --seed {} addresses --case {case}", report.seed());
        report.failure(what, replay);
    }
    report.fact("scripts", cases.end - cases.start);
    report.fact("verbs done", counts.done);
    report.fact("verbs refused", counts.refused);
    report.fact("reads compared", counts.compared);
    Ok(())
}
