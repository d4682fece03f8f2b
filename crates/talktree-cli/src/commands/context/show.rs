//! `talktree context show`: a text, a document, or the list of documents.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::scope::{self, Kind, Scope, ScopeArgs, StoredLabel};
use crate::context::Context;
use crate::failure::Result;
use crate::style;
use crate::table::{Table, minute};
use crate::text::one_line;

/// Read the text under a label, or a document of it
///
/// Without a KEY, the documents of skills and knowledge are listed.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context show [OPTIONS] <SESSION> <LABEL> [KEY]")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the text.
    label: String,

    /// The key of a document.
    #[arg(value_parser = scope::key())]
    key: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    label: &'a str,
    owner: Option<&'a str>,
    shared: bool,
    kind: Kind,
    key: Option<&'a str>,
    title: Option<String>,
    description: Option<String>,
    content: &'a str,
    tokens: u64,
    version: u64,
    changed_at: Option<DateTime<Utc>>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let held = Scope::of(&store, &args.scope)?.read(&args.label)?;
    let answer = Answer {
        label: &held.label,
        owner: held.scope.owner.as_deref(),
        shared: held.scope.is_shared(),
        kind: held.kind,
        key: args.key.as_deref(),
        title: None,
        description: None,
        content: &held.content,
        tokens: held.tokens,
        version: 0,
        changed_at: None,
    };
    if let Some(key) = &args.key {
        held.check_keyed()?;
        let (known, content) = held.document(key)?.ok_or_else(|| held.unknown_document(key))?;
        let answer = Answer {
            title: known.title,
            description: known.description,
            content: &content,
            tokens: talktree::estimate_tokens(&content),
            version: known.version,
            changed_at: Some(known.changed_at),
            ..answer
        };
        return write(context, &answer);
    }
    if held.kind != Kind::Text {
        return documents(context, &held);
    }
    let versions = held.versions(None)?;
    let last = versions.last();
    let version = last.map_or(0, |last| last.version);
    write(context, &Answer { version, changed_at: last.map(|last| last.changed_at), ..answer })
}

fn write(context: &mut Context, answer: &Answer<'_>) -> Result<()> {
    match context.is_json {
        true => Ok(context.out.json(answer)?),
        false => Ok(context.out.block(style::PLAIN, "", answer.content)?),
    }
}

fn documents(context: &mut Context, held: &StoredLabel<'_>) -> Result<()> {
    let mut table = Table::new([
        ("key", style::ID),
        ("version", style::PLAIN),
        ("changed", style::FAINT),
        ("title", style::STRONG),
        ("description", style::PLAIN),
    ]);
    for document in held.documents()? {
        if context.is_json {
            context.out.json(&document)?;
            continue;
        }
        table.push([
            document.key,
            document.version.to_string(),
            minute(document.changed_at),
            one_line(document.title.as_deref().unwrap_or_default()),
            one_line(document.description.as_deref().unwrap_or_default()),
        ]);
    }
    match context.is_json {
        true => Ok(()),
        false => Ok(table.write(&mut context.out)?),
    }
}
