//! Failing system calls: every n-th one, under every verb.
//!
//! The store of the fixture is copied into a fresh file, a fault is armed, and a verb runs. If the verb succeeds, its
//! whole effect must be there; if it fails, nothing may have changed. A write that fails after its commit (the log was
//! written, its sync failed) may be there as a whole. Then the fault is disarmed: the same handle must keep working,
//! and the reopened file must hold the same and be sound.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::builder::PossibleValuesParser;

use crate::fixture::{Figures, Fixture, OPENINGS, Trouble, Try};
use crate::verbs;
use crate::vfs::{self, Call, Fault};
use crate::{Report, Result};

/// The kinds of failure: name, system call, and whether it reports a full disk.
const KINDS: &[(&str, Call, bool)] = &[
    ("write EIO", Call::Write, false),
    ("write ENOSPC", Call::Write, true),
    ("sync", Call::Sync, false),
    ("read", Call::Read, false),
    ("open", Call::Open, false),
    ("delete", Call::Delete, false),
    ("lock", Call::Lock, false),
    ("shared memory", Call::ShmMap, false),
    ("lock of shared memory", Call::ShmLock, false),
];

/// Which calls fail under which verbs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run only this verb.
    #[arg(long, value_parser = PossibleValuesParser::new(names()))]
    pub verb: Option<String>,
    /// Make only this kind of call fail.
    #[arg(long, value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.0)))]
    pub kind: Option<String>,
    /// Make only the call after this many successful ones fail.
    #[arg(long)]
    pub after: Option<u64>,
    /// Make every n-th call fail instead of each.
    #[arg(long, default_value_t = 1)]
    pub step: u64,
}

/// Returns the names of all verbs.
fn names() -> Vec<&'static str> {
    verbs::all().chain(&OPENINGS).map(|verb| verb.name).collect()
}

/// Makes every system call fail once under every verb, and once with all calls after it.
///
/// # Errors
/// If the fixture cannot be made or a verb fails without a fault.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let _use = vfs::exclusive();
    let fixture = Fixture::new()?;
    let mut all: BTreeMap<&str, Figures> = BTreeMap::new();
    let mut count_of_verbs = 0;
    for verb in verbs::all().chain(&OPENINGS) {
        if args.verb.as_deref().is_some_and(|only| only != verb.name) {
            continue;
        }
        count_of_verbs += 1;
        eprintln!("faults: {}", verb.name);
        let expected = fixture.expected(verb)?;
        for &(name, call, is_full) in KINDS {
            if args.kind.as_deref().is_some_and(|only| only != name) {
                continue;
            }
            let figures = all.entry(name).or_default();
            for is_sticky in [false, true] {
                let mut count = args.after.unwrap_or(0);
                loop {
                    let fault = Fault { call, after: count, is_sticky, is_full };
                    let one = Try { verb, trouble: &fault, expected: &expected };
                    let tried = catch_unwind(AssertUnwindSafe(|| fixture.attempt(one, figures)));
                    let replay = format!(
                        "just torture faults --verb '{}' --kind '{name}' --after {count}",
                        verb.name
                    );
                    let how = if is_sticky { "from then on" } else { "once" };
                    match tried {
                        Ok(Ok(true)) => figures.injected += 1,
                        // The verb makes no more calls of this kind.
                        Ok(Ok(false)) => break,
                        Ok(Err(what)) => report
                            .failure(format!("{}, call fails {how}: {what}", verb.name), replay),
                        Err(_) => report
                            .failure(format!("{}, call fails {how}: a panic", verb.name), replay),
                    }
                    if args.after.is_some() {
                        break;
                    }
                    count += args.step;
                }
            }
        }
    }
    report.fact("verbs", count_of_verbs);
    for (name, figures) in all {
        let Figures { injected, failed, succeeded, committed, without_compaction, errors } =
            figures;
        report.fact(
                    format!("{name}: calls failed"),
                    format!(
                        "{injected} (verb failed {failed}, committed all the same {committed}; verb succeeded {succeeded}, \
                         without its automatic compaction {without_compaction})"
                    ),
                );
        for (error, count) in errors {
            report.fact(format!("{name}: {count} x"), error);
        }
    }
    Ok(())
}

impl Trouble for Fault {
    fn begin(&self) {
        vfs::arm(*self);
    }

    fn end(&self) -> u64 {
        vfs::disarm()
    }

    fn is_full_disk(&self) -> bool {
        self.is_full
    }
}
