//! `talktree context rm`: removes a text or a document.

use super::scope::{self, Kind, Scope, ScopeArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Remove a text, or a document of a label
///
/// Its versions stay, so that `talktree context restore` can restore it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context rm [OPTIONS] <SESSION> <LABEL> [KEY]")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of the document; needed if the label holds documents.
    #[arg(value_parser = scope::key())]
    key: Option<String>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let held = scope.write(&args.label)?.ok_or_else(|| scope.unknown(&args.label))?;
    match &args.key {
        Some(_) => held.check_keyed()?,
        None if held.kind != Kind::Text => {
            return Err(Failure::Usage(format!(
                "{:?} holds documents under keys; name the key of one",
                args.label
            )));
        }
        None => {}
    }
    match &args.key {
        None if !held.context.remove_text(&args.label)? => return Err(scope.unknown(&args.label)),
        Some(key) if !held.context.remove_document(&args.label, key)? => {
            return Err(held.unknown_document(key));
        }
        _ => {}
    }
    tell_written(context, &held, args.key.as_deref())
}
