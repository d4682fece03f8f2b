//! `talktree context export` and `import`: texts as one Markdown page.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use talktree::{Block, Error, Store};

use super::scope::{Kind, OnlyScopeArgs, Scope, ScopeArgs, tell_written};
use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::input::read_text;
use crate::output::Exact;
use crate::text::{escape, plural, shown};

/// Write the texts as one Markdown page, a heading for each label
///
/// `talktree context import` reads it. Documents of skills and knowledge are left out.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context export [OPTIONS] [SESSION]")]
pub(super) struct ExportArgs {
    #[command(flatten)]
    scope: OnlyScopeArgs,
}

/// Store the texts of a page or a prompt, each under its label
///
/// A page has a heading for each label; text above the first heading goes under `system`. The whole
/// page is checked before anything is written. Descriptions and limits are not stored.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context import [OPTIONS] <SESSION> <FILE>")]
pub(super) struct ImportArgs {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The page; `-` reads stdin.
    file: PathBuf,
}

#[derive(Serialize)]
struct Passage<'a> {
    label: &'a str,
    owner: Option<&'a str>,
    shared: bool,
    content: &'a str,
}

pub(super) fn export(args: &ExportArgs, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::of_only(&store, &args.scope)?;
    let (texts, keyed): (Vec<_>, Vec<_>) =
        scope.held()?.into_iter().partition(|held| held.kind == Kind::Text);
    for held in &keyed {
        let documents = plural(held.documents()?.len() as u64, "document");
        tell(&format!("{}: {documents} left out; a page holds texts", held.label));
    }
    if texts.is_empty() {
        return Err(Failure::NotFound(format!("{}: no text is stored", escape(&scope.name))));
    }
    if context.is_json {
        for held in &texts {
            let (label, content) = (&*held.label, &*held.content);
            let (owner, shared) = (scope.owner.as_deref(), scope.is_shared());
            context.out.json(&Passage { label, owner, shared, content })?;
        }
        return Ok(());
    }
    let blocks = texts.iter().map(|held| (held.label.clone(), scope.block(Kind::Text)));
    let page = scope.context(blocks)?.to_markdown()?;
    let mut out = Exact::new(&mut context.out, false);
    out.write_all(page.as_bytes())?;
    Ok(out.flush()?)
}

pub(super) fn import(args: &ImportArgs, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let scope = Scope::of(&store, &args.scope)?;
    let name = shown(&args.file);
    let page = read_text(&args.file, "the page")?;
    // A prompt shows labels in upper case; the stored labels have the original spelling.
    let stored = scope.context([])?.stored()?;
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
    let scratch = Store::open_in_memory()?.context("scratch");
    let blocks = stored.iter().map(|(label, _)| label);
    let scratch = blocks.fold(scratch, |builder, label| builder.block(label, Block::stored()));
    scratch.open()?.import(page)
}

fn of_file(name: &str, error: Error) -> Failure {
    match Failure::from(error) {
        Failure::Usage(why) => Failure::Input(format!("{name}: {why}")),
        failure => failure,
    }
}
