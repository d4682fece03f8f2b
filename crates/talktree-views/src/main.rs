//! Checks the requests that talktree makes with the providers' own packages.
//!
//! Random and real histories become requests for each provider. The types of the provider's package, and the rules about
//! order that are in no type, are checked by programs in `checkers/`, written without talktree. `validate_for` has to agree:
//! then the requests are broken in one place each, and it has to find what the checkers find.
//!
//! The packages are installed in pinned versions into the cache folder.

mod breaks;
mod checker;
mod environment;
#[path = "../../talktree-model/tests/model/histories.rs"]
mod histories;
mod real;
mod requests;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Checks the requests that talktree makes with the providers' own packages.
#[derive(Debug, Clone, Parser)]
struct Options {
    /// How many random histories to check.
    #[arg(long, default_value_t = 12_000)]
    cases: usize,

    /// How many requests of each provider to break in one place.
    #[arg(long, default_value_t = 30_000)]
    breaks: usize,

    /// The seed of what is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The short form, for continuous integration: within a minute, without real histories.
    #[arg(long)]
    short: bool,

    /// Succeed, with a warning, where the packages cannot be installed.
    #[arg(long)]
    may_skip: bool,

    /// The folder for the packages; by default below the target folder.
    #[arg(long)]
    cache: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut options = Options::parse();
    if options.short {
        options.cases = options.cases.min(1_200);
        options.breaks = options.breaks.min(3_000);
    }
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "talktree-views: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    let cache = options.cache.clone().unwrap_or_else(environment::folder);
    if let Err(error) = environment::install(&cache) {
        if !options.may_skip {
            return Err(error);
        }
        let mut err = std::io::stderr();
        writeln!(
            err,
            "WARNING: check-views was SKIPPED: the providers' packages cannot be installed here"
        )?;
        writeln!(err, "WARNING: {error}")?;
        return Ok(true);
    }
    let histories = requests::histories(options)?;
    let found: Vec<Result<checker::Found>> = std::thread::scope(|scope| {
        let (histories, cache) = (&histories, &cache);
        let run = |maker| scope.spawn(move || checker::check(maker, histories, options, cache));
        let threads: Vec<_> = requests::MAKERS.iter().map(run).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a checker panicked".into()))
        };
        threads.into_iter().map(join).collect()
    });
    let mut is_good = true;
    let mut out = std::io::stdout().lock();
    for found in found {
        let found = found?;
        is_good &= found.is_good();
        write!(out, "{found}")?;
    }
    Ok(is_good)
}
