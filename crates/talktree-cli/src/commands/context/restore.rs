//! `talktree context restore`: an old version becomes the newest one.

use super::scope::{self, Kind, Scope, ScopeArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Restore a version of a text or a document, as a new version
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context restore [OPTIONS] <SESSION> <LABEL> <VERSION>")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The number of the version, as `talktree context history` lists it.
    version: u64,

    /// Restore this document.
    #[arg(long, value_parser = scope::key())]
    key: Option<String>,

    /// The kind of the documents; needed if all of them were removed.
    #[arg(long, requires = "key")]
    kind: Option<Kind>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let (label, key) = (&*args.label, args.key.as_deref());
    let found = scope.find(label)?;
    let is_there = found.is_some();
    let held = match found {
        Some(held) => held,
        None => {
            let kind = if key.is_some() { Kind::Skills } else { Kind::Text };
            scope.empty(label, args.kind.unwrap_or(kind))?
        }
    };
    if is_there {
        held.check(key, args.kind)?;
    }
    if held.versions(key)?.is_empty() {
        // Another scope may have it.
        scope.write(label)?;
        return Err(match key {
            Some(key) if is_there => held.unknown_document(key),
            _ => scope.unknown(label),
        });
    }
    // The store does not record the kind of removed documents. It matters, because only knowledge
    // is indexed.
    if let (false, Some(_), None) = (is_there, key, args.kind) {
        return Err(Failure::Usage(format!(
            "all documents under {label:?} were removed: say with --kind whether they are skills or knowledge"
        )));
    }
    held.context.restore(label, key, args.version)?;
    tell_written(context, &held, key)
}
