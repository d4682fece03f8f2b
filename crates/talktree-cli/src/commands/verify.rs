//! `talktree verify`: checks the store for damage.

use talktree::{Error, Store, Verified};

use crate::context::Context;
use crate::failure::{self, Failure, Result};
use crate::progress::Bar;
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
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.searcher().map_err(Failure::of_verify)?;
    let verified = check(&args, &store).map_err(|error| Failure::from(error).of_verify())?;
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
    if verified.damages.is_empty() {
        Ok(())
    } else {
        Err(Failure::Damaged(failure::Damage::Printed))
    }
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
