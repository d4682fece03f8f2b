//! `talktree stats`: the figures of the store.

use crate::context::Context;
use crate::failure::Result;
use crate::paint;

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
        ("hidden", stats.hidden),
        ("branching messages", stats.branching_messages),
        ("most children of one", stats.max_children),
        ("longest path", stats.max_depth),
        ("summaries", stats.compactions),
        ("context texts", stats.context_entries),
        ("former versions", stats.context_versions),
        ("elisions", stats.elisions),
        ("bytes", stats.bytes),
    ] {
        context.out.line(&[
            (paint::FAINT, &format!("{what:<22}")),
            (paint::STRONG, &format!("{count:>14}")),
        ])?;
    }
    Ok(())
}
