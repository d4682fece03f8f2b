//! `talktree stats`: counts what the store holds.

use crate::context::Context;
use crate::failure::Result;
use crate::style;

/// Count what the store holds
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree stats [OPTIONS]")]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args, context: &mut Context) -> Result<()> {
    let stats = context.reader()?.stats()?;
    if context.is_json {
        return Ok(context.out.json(&stats)?);
    }
    for (what, count) in [
        ("sessions", stats.sessions),
        ("messages", stats.messages),
        ("hidden messages", stats.hidden),
        ("branching messages", stats.branching_messages),
        ("most children", stats.max_children),
        ("longest path", stats.max_depth),
        ("compactions", stats.compactions),
        ("context texts", stats.context_entries),
        ("older versions", stats.context_versions),
        ("elisions", stats.elisions),
        ("transcripts", stats.transcripts),
        ("transcript entries", stats.transcript_entries),
        ("pending items", stats.inbox_items),
        ("bytes", stats.bytes),
    ] {
        context.out.line(&[
            (style::FAINT, &format!("{what:<22}")),
            (style::STRONG, &format!("{count:>14}")),
        ])?;
    }
    Ok(())
}
