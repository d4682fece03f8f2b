//! `talktree context set`: writes a text or a document, as a new version.

use talktree::Document;

use super::scope::{self, Kind, Scope, ScopeArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::input::read_stdin;

/// Write a text under a label, or a document of it
///
/// Older versions stay: `talktree context history` lists them. Put a text that begins with a minus
/// after `--`: `talktree context set 7f3a memory -- "- Likes coffee."`. The limits of a program are
/// not stored, so they are not checked here.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree context set [OPTIONS] <SESSION> <LABEL> [TEXT]\n       talktree context set [OPTIONS] <SESSION> <LABEL> --key <KEY> [TEXT]"
)]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label to write under.
    label: String,

    /// The text; `-` or no text reads stdin, without the last line break.
    text: Option<String>,

    /// Append to the stored text, on a new line.
    #[arg(long)]
    append: bool,

    /// Write the document of this key.
    #[arg(long, value_parser = scope::key())]
    key: Option<String>,

    /// The title of the document; unchanged if it is not given.
    #[arg(long, requires = "key")]
    title: Option<String>,

    /// What the document is about, in one line; unchanged if it is not given.
    #[arg(long, requires = "key")]
    description: Option<String>,

    /// The kind of the documents; needed if none are stored under the label.
    #[arg(long, requires = "key")]
    kind: Option<Kind>,
}

pub(super) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let label = &*args.label;
    let held = match (scope.write(label)?, &args.key, args.kind) {
        (Some(held), key, kind) => {
            held.check(key.as_deref(), kind)?;
            held
        }
        (None, None, _) => scope.empty(label, Kind::Text)?,
        (None, Some(_), Some(kind)) => scope.empty(label, kind)?,
        (None, Some(_), None) => {
            return Err(Failure::Usage(format!(
                "nothing is stored under {label:?}: say with --kind whether the documents are skills or knowledge"
            )));
        }
    };
    let text = match args.text {
        Some(text) if text != "-" => text,
        _ => from_stdin()?,
    };
    match &args.key {
        None if args.append => drop(held.context.append(label, &text)?),
        None => drop(held.context.set(label, &text)?),
        Some(key) => {
            let mut document = Document::new(key, text);
            (document.title, document.description) = (args.title, args.description);
            if args.append {
                held.context.append_document(label, &document)?;
            } else {
                if let Some((known, _)) = held.document(key)? {
                    document.title = document.title.or(known.title);
                    document.description = document.description.or(known.description);
                }
                held.context.set_document(label, &document)?;
            }
        }
    }
    tell_written(context, &held, args.key.as_deref())
}

fn from_stdin() -> Result<String> {
    let mut text = read_stdin("the text")?;
    // An empty stdin is more likely a mistake than a wish to empty the text.
    if text.is_empty() {
        let why = "nothing came by stdin; a text of \"\" empties what is there";
        return Err(Failure::Usage(why.to_owned()));
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}
