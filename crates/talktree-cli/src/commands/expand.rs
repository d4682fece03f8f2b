//! `talktree expand`: prints what a compaction replaces.

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::Result;
use crate::lookup;

/// Print the messages that a compaction replaces, oldest first
///
/// The compaction is not changed. If it contains other compactions, their summaries are printed;
/// expand them in turn, or print all their messages with --raw.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree expand [OPTIONS] <SESSION> <COMPACTION>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The compaction: its id, or the start or the end of its id.
    compaction: String,

    /// Print only stored messages, including those of nested compactions.
    #[arg(long)]
    raw: bool,

    /// Print tool inputs and outputs in full [default: 6 lines of each].
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let id = lookup::compaction(&session, &args.compaction)?;
    let messages = if args.raw { session.expand_raw(&id)? } else { session.expand(&id)? };
    let notes = message::notes(&session)?;
    let tags = message::tags(&session)?;
    let extent = if args.full { Extent::Full } else { Extent::Brief };
    for message in &messages {
        if context.is_json {
            message::write_json(&mut context.out, message, &tags)?;
            continue;
        }
        let note = notes.get(&message.id).map_or("", String::as_str);
        message::write(&mut context.out, message, note, extent)?;
    }
    Ok(())
}
