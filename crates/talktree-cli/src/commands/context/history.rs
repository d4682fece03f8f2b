//! `talktree context history`: the versions of a text or a document.

use anstyle::Style;
use serde::Serialize;
use talktree::EntryVersion;

use super::diff;
use super::scope::{self, Kind, Scope, ScopeArgs};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::style;
use crate::table::{Table, minute};
use crate::text::{one_line, plural};

/// List the versions of a text or a document, oldest first
///
/// The newest 1 000 are kept, also those of a removed document.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context history [OPTIONS] <SESSION> <LABEL> [KEY]")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of a document.
    #[arg(value_parser = scope::key())]
    key: Option<String>,

    /// Show what each version changed.
    #[arg(long)]
    diff: bool,

    /// List only the newest N.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    version: &'a EntryVersion,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<&'a str>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::of(&store, &args.scope)?;
    let versions = find(&scope, &args.label, args.key.as_deref())?;
    let left_out = versions.len().saturating_sub(args.limit.unwrap_or(usize::MAX));
    let mut table = Table::new([
        ("version", style::ID),
        ("changed", style::FAINT),
        ("tokens", style::PLAIN),
        ("text", style::PLAIN),
    ]);
    for (at, version) in versions.iter().enumerate().skip(left_out) {
        let content = version.content.as_deref().unwrap_or_default();
        let tokens = talktree::estimate_tokens(content);
        let before = at.checked_sub(1).and_then(|before| versions.get(before));
        let diff = args.diff.then(|| difference(before, version));
        if context.is_json {
            context.out.json(&Row { version, tokens, diff: diff.as_deref() })?;
            continue;
        }
        let Some(diff) = diff else {
            let first = content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            table.push([
                version.version.to_string(),
                minute(version.changed_at),
                tokens.to_string(),
                if version.content.is_some() { one_line(first) } else { REMOVED.to_owned() },
            ]);
            continue;
        };
        let (style, size) = match version.content {
            Some(_) => (Style::new(), plural(tokens, "token")),
            None => (style::BAD, REMOVED.to_owned()),
        };
        context.out.line(&[
            (style::STRONG, "version "),
            (style::ID, &version.version.to_string()),
            (style::FAINT, &format!("  {}  ", minute(version.changed_at))),
            (style, &size),
        ])?;
        diff::write(&mut context.out, &diff)?;
        context.out.line(&[])?;
    }
    if !context.is_json && !args.diff {
        table.write(&mut context.out)?;
    }
    Ok(())
}

const REMOVED: &str = "(removed)";

/// Returns what a version changed, in unified form.
fn difference(before: Option<&EntryVersion>, version: &EntryVersion) -> String {
    // The version before the oldest kept one is not known.
    if before.is_none() && version.version > 1 {
        return String::new();
    }
    let text = |version: &EntryVersion| version.content.clone().unwrap_or_default();
    diff::unified(&before.map(text).unwrap_or_default(), &text(version))
}

/// Returns the versions of a text or a document, also of one that was removed.
fn find(scope: &Scope<'_>, label: &str, key: Option<&str>) -> Result<Vec<EntryVersion>> {
    let held = match scope.read(label) {
        Ok(held) => held,
        Err(Failure::NotFound(_)) => return removed(scope, label, key),
        Err(failure) => return Err(failure),
    };
    if held.kind != Kind::Text && key.is_none() {
        return Err(Failure::Usage(format!(
            "{label:?} holds documents, each with a history of its own: name a KEY"
        )));
    }
    let versions = held.versions(key)?;
    match (versions.is_empty(), key) {
        (false, _) => Ok(versions),
        (true, Some(key)) => Err(held.unknown_document(key)),
        (true, None) => Err(scope.unknown(label)),
    }
}

/// Returns the versions under a label whose documents were all removed.
fn removed(scope: &Scope<'_>, label: &str, key: Option<&str>) -> Result<Vec<EntryVersion>> {
    for scope in [scope.clone()].into_iter().chain(scope.beside()?) {
        let versions = scope.empty(label, Kind::Skills)?.versions(key)?;
        if !versions.is_empty() {
            return Ok(versions);
        }
    }
    Err(scope.unknown(label))
}
