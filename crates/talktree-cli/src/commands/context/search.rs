//! `talktree context search`: finds documents of knowledge.

use serde::Serialize;

use super::scope::{Kind, Scope, ScopeArgs};
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::style;
use crate::text::one_line;

/// Find documents of knowledge, best first
///
/// The query is in the language of `talktree search`. If no document has all words, documents with
/// any of them are found.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context search [OPTIONS] <SESSION> <LABEL> <QUERY>...")]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,

    /// The label of the documents.
    label: String,

    /// What to look for.
    #[arg(required = true)]
    query: Vec<String>,

    /// Show at most this many.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    content: &'a str,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let query = args.query.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::Usage("the query is empty: there is nothing to find".to_owned()));
    }
    let store = context.searcher()?;
    let held = Scope::of(&store, &args.scope)?.read(&args.label)?;
    if held.kind != Kind::Knowledge {
        return Err(Failure::Usage(format!(
            "{:?} holds {}; only knowledge is searched",
            args.label,
            if held.kind == Kind::Text { "a text" } else { "skills" }
        )));
    }
    let found = held.context.search(&args.label, &query, args.limit)?;
    if found.is_empty() {
        let why = match args.limit {
            0 => "no documents are printed with --limit 0",
            _ => "nothing found",
        };
        return Err(Failure::NotFound(why.to_owned()));
    }
    for document in &found {
        let row = Row {
            key: &document.key,
            title: document.title.as_deref(),
            description: document.description.as_deref(),
            content: &document.content,
        };
        if context.is_json {
            context.out.json(&row)?;
            continue;
        }
        let title = one_line(row.title.unwrap_or_default());
        context.out.line_cut(&[
            (style::ID, row.key),
            (style::PLAIN, if title.is_empty() { "" } else { "  " }),
            (style::STRONG, &title),
        ])?;
        if let Some(description) = row.description {
            context
                .out
                .line_cut(&[(style::PLAIN, "  "), (style::FAINT, &one_line(description))])?;
        }
        let first = row.content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        context.out.line_cut(&[(style::PLAIN, "  "), (style::PLAIN, &one_line(first))])?;
        context.out.line(&[])?;
    }
    Ok(())
}
