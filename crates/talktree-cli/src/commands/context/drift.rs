//! `talktree context drift`: stored texts that differ from the frozen prompt.

use serde::Serialize;
use talktree::{Drift, DriftKind};

use super::scope::Scope;
use super::{diff, prompt};
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::{lookup, style};

/// Show the stored texts that differ from the frozen prompt
///
/// Texts from outside the store are left out, and so are shared texts that are not in the prompt.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree context drift [OPTIONS] <SESSION>")]
pub(super) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

#[derive(Serialize)]
struct Row<'a> {
    label: &'a str,
    kind: &'static str,
    frozen: &'a str,
    current: &'a str,
    diff: &'a str,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let scope = Scope::session(&store, &lookup::session(&store, &args.session)?)?;
    let own: Vec<String> = scope.stored()?.into_iter().map(|(label, _)| label).collect();
    let stored = scope.context([])?.stored()?;
    let blocks = scope.context(stored)?;
    if blocks.frozen_prompt()?.is_none() {
        return Err(prompt::not_frozen(&scope));
    }
    let mut count = 0_u64;
    for drift in blocks.drift()? {
        let kind = match drift.kind {
            DriftKind::Changed => "changed",
            // The command does not know which shared labels a program shows to its model.
            DriftKind::Added if own.contains(&drift.label) => "added",
            _ => continue,
        };
        count += 1;
        let Drift { label, frozen, current, .. } = &drift;
        let diff = diff::unified(frozen, current);
        if context.is_json {
            context.out.json(&Row { label, kind, frozen, current, diff: &diff })?;
            continue;
        }
        let old = if kind == "added" { "(not frozen)" } else { &format!("{label} (frozen)") };
        context.out.block(style::STRONG, "", &format!("--- {old}\n+++ {label} (now)\n"))?;
        diff::write(&mut context.out, &diff)?;
    }
    if count == 0 && !context.is_json {
        tell("nothing that is stored differs from the frozen prompt");
    }
    Ok(())
}
