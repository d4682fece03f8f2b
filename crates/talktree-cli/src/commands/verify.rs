//! `talktree verify`: checks the store for damage.

use std::io::{self, Read};
use std::path::Path;

use talktree::{Error, Store, Verified};

use crate::context::Context;
use crate::failure::{Damage, Failure, Result};
use crate::input::open_input;
use crate::progress::Bar;
use crate::signals::Signals;
use crate::style;
use crate::text::plural;

/// Check every invariant of the store, and list each damage with its remedy
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree verify [OPTIONS]")]
pub(crate) struct Args {
    /// Rebuild the search index before the check.
    #[arg(long)]
    rebuild_index: bool,
    /// Correct wrong token counts before the check.
    #[arg(long)]
    recount_tokens: bool,
    /// Add the usage of messages that an older talktree stored, before the check.
    #[arg(long)]
    recount_usage: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    // A check of a large store makes a copy, which a signal must not leave behind.
    let signals = Signals::catch()?;
    let verified = context
        .searcher()
        .and_then(|store| {
            signals.interrupt(&store);
            check(&args, &store).map_err(|error| match error {
                Error::Interrupted => signals.check().err().unwrap_or_else(|| error.into()),
                error => error.into(),
            })
        })
        .map_err(|failure| of_verify(failure, context))?;
    if context.is_json {
        context.out.json(&verified)?;
    } else {
        let checked = format!("{} checked: ", plural(verified.messages, "message"));
        match verified.damages.len() {
            0 => context
                .out
                .line(&[(style::PLAIN, &checked), (style::GOOD, "the store is sound")])?,
            count => context
                .out
                .line(&[(style::PLAIN, &checked), (style::BAD, &plural(count as u64, "damage"))])?,
        }
        for damage in &verified.damages {
            context.out.line(&[
                (style::BAD, damage.kind),
                (style::PLAIN, "  "),
                (style::PLAIN, &damage.what),
            ])?;
            context.out.line(&[(style::FAINT, "  remedy: "), (style::FAINT, damage.remedy)])?;
        }
    }
    if verified.damages.is_empty() { Ok(()) } else { Err(Failure::Damaged(Damage::Printed)) }
}

/// Returns the failure of a check that could not be made; damage by a cut is named as such.
fn of_verify(failure: Failure, context: &Context) -> Failure {
    match failure {
        Failure::Damaged(Damage::Met(what)) => {
            let cut = context.store_path().ok().and_then(|path| cut_off(&path).ok().flatten());
            Failure::Damaged(Damage::StopsVerify(cut.unwrap_or(what)))
        }
        failure => failure,
    }
}

/// Returns what is missing if the file is shorter than its header says.
///
/// Called when the store is closed.
fn cut_off(path: &Path) -> io::Result<Option<String>> {
    /// The header of an SQLite file: the page size is at byte 16, the number of pages at byte 28.
    const HEADER: usize = 100;
    let mut file = open_input(path)?;
    let length = file.metadata()?.len();
    let mut header = [0; HEADER];
    if length < HEADER as u64 {
        return Ok(Some(format!("the file is cut off: it has {length} bytes, less than a header")));
    }
    file.read_exact(&mut header)?;
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u32::from_be_bytes([header[28], header[29], header[30], header[31]]);
    let whole = page * u64::from(pages);
    Ok((length < whole)
        .then(|| format!("the file is cut off: it has {length} bytes, and {whole} by its header")))
}

fn check(args: &Args, store: &Store) -> Result<Verified, Error> {
    if args.rebuild_index {
        store.rebuild_search()?;
    }
    if args.recount_tokens {
        store.recount_tokens()?;
    }
    if args.recount_usage {
        store.recount_usage()?;
    }
    let bar = Bar::of_steps("checking");
    store.verify(|progress| bar.show(progress))
}
