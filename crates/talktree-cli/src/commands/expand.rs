//! `talktree expand`: what a summary stands for.

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::Result;
use crate::find;

/// Read what a summary stands for, oldest first; it stays where it is
///
/// That is messages, and the summaries it took in: these can be expanded in turn.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree expand [OPTIONS] <SESSION> <SUMMARY>")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The summary: its id, or the beginning or the end of it.
    summary: String,

    /// Read the messages themselves, however often they were compacted.
    #[arg(long)]
    raw: bool,

    /// Show all of what tools took and gave.
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = find::session(&store, &args.session)?;
    let id = find::compaction(&session, &args.summary)?;
    let messages = if args.raw { session.expand_raw(&id)? } else { session.expand(&id)? };
    let notes = message::notes(&session)?;
    let extent = if args.full { Extent::Full } else { Extent::Brief };
    for message in &messages {
        if context.is_json {
            context.out.json(message)?;
            continue;
        }
        let note = notes.get(&message.id).map_or("", String::as_str);
        message::write(&mut context.out, message, note, extent)?;
    }
    Ok(())
}
