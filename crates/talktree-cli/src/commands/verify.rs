//! `talktree verify`: whether the store is sound.

use talktree::{Error, Store, Verified};

use crate::clean::plural;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::paint;
use crate::progress::Bar;

/// Check every invariant of the store and name each damage
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree verify [OPTIONS]")]
pub(crate) struct Args {
    /// Build the search index anew before checking.
    #[arg(long)]
    rebuild_index: bool,
    /// Count tokens anew where figures do not add up, before checking.
    #[arg(long)]
    recount_tokens: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.searcher().map_err(Failure::of_verify)?;
    let verified = check(&args, &store).map_err(|error| Failure::from(error).of_verify())?;
    if context.is_json {
        context.out.json(&verified)?;
    } else {
        let sound = format!("{} checked: ", plural(verified.messages, "message"));
        match verified.damages.len() {
            0 => {
                context.out.line(&[(paint::PLAIN, &sound), (paint::GOOD, "the store is sound")])?
            }
            count => context
                .out
                .line(&[(paint::PLAIN, &sound), (paint::BAD, &plural(count as u64, "damage"))])?,
        }
        for damage in &verified.damages {
            context.out.line(&[
                (paint::BAD, damage.kind),
                (paint::PLAIN, "  "),
                (paint::PLAIN, &damage.what.replace("; `verify` tells more", "")),
            ])?;
            context.out.line(&[(paint::FAINT, "  "), (paint::FAINT, damage.remedy)])?;
        }
    }
    if verified.damages.is_empty() { Ok(()) } else { Err(Failure::Damaged(None)) }
}

fn check(args: &Args, store: &Store) -> Result<Verified, Error> {
    if args.rebuild_index {
        store.rebuild_search()?;
    }
    if args.recount_tokens {
        store.recount_tokens()?;
    }
    let bar = Bar::of_steps("checking");
    store.verify(|progress| bar.show(progress))
}
