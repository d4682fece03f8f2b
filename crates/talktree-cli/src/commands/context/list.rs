//! `talktree context list`: the labels and what is stored under each.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::scope::{Kind, OnlyScopeArgs, Scope, StoredLabel};
use crate::context::Context;
use crate::failure::Result;
use crate::style;
use crate::table::{Table, minute};

/// List what is stored: texts, skills, knowledge
///
/// `tokens` is the size in a prompt, `versions` counts the versions of the texts.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context list [OPTIONS] [SESSION]")]
pub(super) struct Args {
    #[command(flatten)]
    scope: OnlyScopeArgs,
}

#[derive(Serialize)]
struct Row<'a> {
    label: &'a str,
    owner: Option<&'a str>,
    shared: bool,
    kind: Kind,
    documents: u64,
    tokens: u64,
    versions: u64,
    changed_at: Option<DateTime<Utc>>,
}

impl<'a> Row<'a> {
    fn of(held: &'a StoredLabel<'_>) -> Result<Self> {
        let documents = held.documents()?;
        let (versions, changed_at) = match held.kind {
            Kind::Text => {
                let versions = held.versions(None)?;
                let last = versions.last();
                (last.map_or(0, |last| last.version), last.map(|last| last.changed_at))
            }
            _ => (
                documents.iter().map(|document| document.version).sum(),
                documents.iter().map(|document| document.changed_at).max(),
            ),
        };
        Ok(Self {
            label: &held.label,
            owner: held.scope.owner.as_deref(),
            shared: held.scope.is_shared(),
            kind: held.kind,
            documents: documents.len() as u64,
            tokens: held.tokens,
            versions,
            changed_at,
        })
    }
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let seen = Scope::of_only(&store, &args.scope)?.seen()?;
    let mut table = Table::new([
        ("label", style::LABEL),
        ("kind", style::PLAIN),
        ("documents", style::PLAIN),
        ("tokens", style::PLAIN),
        ("versions", style::PLAIN),
        ("changed", style::FAINT),
        ("of", style::FAINT),
    ]);
    for held in &seen {
        let row = Row::of(held)?;
        if context.is_json {
            context.out.json(&row)?;
            continue;
        }
        table.push([
            row.label.to_owned(),
            row.kind.as_str().to_owned(),
            if row.kind == Kind::Text { String::new() } else { row.documents.to_string() },
            row.tokens.to_string(),
            row.versions.to_string(),
            row.changed_at.map(minute).unwrap_or_default(),
            match (row.owner, row.shared) {
                (Some(owner), _) => format!("owner {owner}"),
                (None, true) => "all sessions".to_owned(),
                (None, false) => "this session".to_owned(),
            },
        ]);
    }
    context.write_list(&table, None, || Ok("nothing is stored here".to_owned()))
}
