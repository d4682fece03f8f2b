//! `talktree context set`, `rm`, `restore` and `import`: change stored texts.

use std::path::PathBuf;

use talktree::{Block, Document, Error, Store};

use super::scope::{self, Kind, Scope, ScopeArgs, WiderArgs, tell_written};
use crate::input::{read_stdin, read_text};
use crate::prelude::*;
use crate::whole::{self, Line};

/// Write a text under a label, or a document of it
///
/// Older versions stay: `talktree context history` lists them. Put a text that begins with a minus
/// after `--`: `talktree context set 7f3a memory -- "- Likes coffee."`. The limits of a program are
/// not stored, so they are not checked here.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree context set [OPTIONS] <SESSION> <LABEL> [TEXT]\n       talktree context set [OPTIONS] <SESSION> <LABEL> --key <KEY> [TEXT]"
)]
pub(crate) struct SetArgs {
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

pub(super) fn set(args: SetArgs, context: &mut Context) -> Result<()> {
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

/// Remove a text, or a document of a label
///
/// Its versions stay, so that `talktree context restore` can restore it.
#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
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

pub(super) fn rm(args: RmArgs, context: &mut Context) -> Result<()> {
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

/// Restore a version of a text or a document, as a new version
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
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

pub(super) fn restore(args: RestoreArgs, context: &mut Context) -> Result<()> {
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

/// Store the texts of a page or a prompt, each under its label
///
/// A page has a heading for each label; text above the first heading goes under `system`. The whole
/// page is checked before anything is written. Descriptions and limits are not stored.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The page; `-` reads stdin.
    file: PathBuf,
}

pub(super) fn import(args: ImportArgs, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let name = shown(&args.file);
    let page = read_text(&args.file, "the page")?;
    // A prompt shows labels in upper case; the stored labels have the original spelling.
    let stored = scope.readable()?;
    let labels = labels(&page, &stored).map_err(|error| of_file(&name, error))?;
    if labels.is_empty() {
        return Err(Failure::Input(format!("{name}: there is no text in it")));
    }
    for label in &labels {
        if scope.write(label)?.is_some_and(|held| held.kind != Kind::Text) {
            return Err(Failure::Input(format!("{name}: {label:?} holds documents, not a text")));
        }
    }
    let blocks =
        scope.context(labels.iter().map(|label| (label.clone(), scope.block(Kind::Text))))?;
    blocks.import(&page).map_err(|error| of_file(&name, error))?;
    for label in &labels {
        tell_written(context, &scope.empty(label, Kind::Text)?, None)?;
    }
    Ok(())
}

/// Returns the labels that a page writes to.
fn labels(page: &str, stored: &[(String, Block)]) -> talktree::Result<Vec<String>> {
    let scratch = Store::open_in_memory()?.session_builder("scratch");
    let blocks = stored.iter().map(|(label, _)| label);
    let scratch = blocks.fold(scratch, |builder, label| builder.block(label, Block::stored()));
    scratch.open()?.context().import(page)
}

fn of_file(name: &str, error: Error) -> Failure {
    match Failure::from(error) {
        Failure::Usage(why) => Failure::Input(format!("{name}: {why}")),
        failure => failure,
    }
}
