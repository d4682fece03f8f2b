//! `talktree context rm`: removes a document.

use super::scope::{self, Scope, ScopeArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Remove a document
///
/// Its versions stay, so that `talktree context restore` can restore it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context rm [OPTIONS] <SESSION> <LABEL> <KEY>")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of the document.
    #[arg(value_parser = scope::key())]
    key: String,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let held = scope.write(&args.label)?.ok_or_else(|| scope.unknown(&args.label))?;
    if held.check_keyed().is_err() {
        return Err(Failure::Usage(format!(
            "{:?} is one text; `talktree context set` with a text of \"\" empties it",
            args.label
        )));
    }
    if !held.context.remove_document(&args.label, &args.key)? {
        return Err(held.unknown_document(&args.key));
    }
    tell_written(context, &held, Some(&args.key))
}
