//! `talktree verify`: whether the store is sound.

use talktree::{Error, Store, Verified};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::paint;
use crate::progress::Bar;

/// Check every invariant of the store and name each damage
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Build the search index anew before checking.
    #[arg(long)]
    rebuild_index: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.searcher()?;
    let verified = match check(&args, &store) {
        // So damaged that the check cannot go on.
        Err(error @ Error::Corrupt { .. }) => {
            tell(&error.to_string());
            return Err(Failure::Damaged);
        }
        verified => verified?,
    };
    if context.is_json {
        context.out.json(&verified)?;
    } else {
        let sound = format!("{} messages checked: ", verified.messages);
        match verified.damages.len() {
            0 => {
                context.out.line(&[(paint::PLAIN, &sound), (paint::GOOD, "the store is sound")])?
            }
            count => context
                .out
                .line(&[(paint::PLAIN, &sound), (paint::BAD, &format!("{count} damages"))])?,
        }
        for damage in &verified.damages {
            context.out.line(&[
                (paint::BAD, damage.kind),
                (paint::PLAIN, "  "),
                (paint::PLAIN, &damage.what),
            ])?;
            context.out.line(&[(paint::FAINT, "  "), (paint::FAINT, damage.remedy)])?;
        }
    }
    if verified.damages.is_empty() { Ok(()) } else { Err(Failure::Damaged) }
}

fn check(args: &Args, store: &Store) -> Result<Verified, Error> {
    if args.rebuild_index {
        store.rebuild_search()?;
    }
    let bar = Bar::of_steps("checking");
    store.verify(|progress| bar.show(progress))
}
