//! Verbs under any names: what stands afterwards is what a plain list of parents says.
//!
//! Bytes are read as a *script*: which verb, on which session, with which names. The names are few, so that verbs meet,
//! and some of them are ones that break programs. Each verb is done on a store and on a `Model`, which has no
//! addresses, runs or indexes; answers and what can be read must be equal. The bytes come from dice here, and from a
//! fuzzer in `talktree-fuzz`.

mod model;
mod script;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;

pub use script::{Tried, play};

use crate::{Report, Result};

/// The greatest number of bytes of a script, about three for each verb.
const MAX_BYTES: usize = 600;

/// How much is tried.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many scripts are played.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: u64,
    /// Only this one.
    #[arg(long)]
    pub case: Option<u64>,
}

/// Plays scripts that dice wrote.
///
/// # Errors
/// None: what goes wrong is a failure in the report.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let cases = args.case.map_or(0..args.cases, |case| case..case.saturating_add(1));
    let mut tried = Tried::default();
    for case in cases.clone() {
        let mut dice = Rng::with_seed(report.seed().wrapping_add(case));
        let script: Vec<u8> = (0..dice.usize(..MAX_BYTES)).map(|_| dice.u8(..)).collect();
        let what = match catch_unwind(AssertUnwindSafe(|| play(&script))) {
            Ok(Ok(of_this)) => {
                tried += of_this;
                continue;
            }
            Ok(Err(what)) => what,
            Err(_) => "a panic".to_owned(),
        };
        let again = format!("just torture --seed {} addresses --case {case}", report.seed());
        report.failure(what, again);
    }
    report.fact("scripts", cases.end - cases.start);
    report.fact("verbs done", tried.done);
    report.fact("verbs refused", tried.refused);
    report.fact("reads compared", tried.compared);
    Ok(())
}
