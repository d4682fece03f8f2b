//! `talktree context rm`: removes a text or a document.

use super::scope::{self, Kind, WiderArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::whole::{self, Line};

/// Remove a text, or a document of a label
///
/// Its versions stay, so that `talktree context restore` can restore it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context rm [OPTIONS] <SESSION> <LABEL> [KEY]")]
pub(super) struct Args {
    /// The session: its whole id, or with --name its name.
    session: String,

    /// The label of the text.
    label: String,

    /// The key of the document; needed if the label holds documents.
    #[arg(value_parser = scope::key())]
    key: Option<String>,

    /// SESSION is the name of a session.
    #[arg(long, conflicts_with_all = ["shared", "owner"])]
    name: bool,

    #[command(flatten)]
    wider: WiderArgs,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let label_and_key = [&args.label].into_iter().chain(&args.key);
    let line = Line {
        verb: "context rm",
        arguments: [&args.session].into_iter().chain(label_and_key).map(String::as_str).collect(),
        options: String::new(),
    };
    let scope =
        args.wider.scope(&store, || Ok(whole::session(&store, &line, args.name)?.clone()))?;
    let held = scope.find(&args.label)?.ok_or_else(|| scope.unknown(&args.label))?;
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
