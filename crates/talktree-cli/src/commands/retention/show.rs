//! `talktree retention show`: the rules of a file in words.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use talktree::RetentionAction;

use super::file;
use crate::context::Context;
use crate::failure::Result;
use crate::style;

/// Print the rules of a file in words, in the order in which they are tried
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree retention show [OPTIONS] <FILE>")]
pub(super) struct Args {
    /// The TOML file with the rules; `-` is standard input.
    file: PathBuf,
}

#[derive(Serialize)]
struct Row<'a> {
    rule: &'a str,
    action: RetentionAction,
    text: String,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let retention = file::read(&args.file)?;
    let rules = retention.rules().iter().map(|rule| Row {
        rule: rule.name(),
        action: rule.action(),
        text: rule.to_string(),
    });
    let term = retention.trash_term().map(|term| Row {
        rule: "trash",
        action: RetentionAction::Remove,
        text: format!("in the trash for {}: removed", hours(term)),
    });
    for row in rules.chain(term) {
        if context.is_json {
            context.out.json(&row)?;
            continue;
        }
        context.out.line(&[
            (style::STRONG, row.rule),
            (style::PLAIN, "  "),
            (style::PLAIN, &row.text),
        ])?;
    }
    Ok(())
}

/// Returns a span in days if it is whole ones, else in hours.
fn hours(term: Duration) -> String {
    match term.as_secs() {
        seconds if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        seconds if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        seconds => format!("{}min", seconds / 60),
    }
}
