//! `talktree log`: prints a history.

use talktree::Message;

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::lookup;

/// Print the history of a session as a model should see it, oldest first
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree log [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Print the stored messages: without summaries, with hidden messages.
    #[arg(long)]
    raw: bool,

    /// Print the path to this message instead of the path to the head.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,

    /// Print only the newest N messages [default: all].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print tool inputs and outputs in full [default: 6 lines of each].
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let leaf = args.at.as_deref().map(|at| lookup::message(&session, at)).transpose()?;
    let mut path = leaf.as_ref().map_or_else(|| session.path(), |leaf| session.at(leaf));
    if args.raw {
        path = path.raw();
    }
    let notes = message::notes(&session)?;
    let tags = message::tags(&session)?;
    let mut count = 0_u64;
    let mut write = |message: &Message| -> Result<()> {
        count += 1;
        if context.is_json {
            return Ok(message::write_json(&mut context.out, message, &tags)?);
        }
        let extent = if args.full { Extent::Full } else { Extent::Brief };
        let note = notes.get(&message.id).map_or("", String::as_str);
        Ok(message::write(&mut context.out, message, note, extent)?)
    };
    match args.limit {
        None => {
            for message in path.iter() {
                write(&message?)?;
            }
        }
        Some(limit) => {
            let newest = path.iter_rev().take(limit);
            let newest: Vec<Message> = newest.collect::<talktree::Result<_>>()?;
            newest.iter().rev().try_for_each(write)?;
        }
    }
    if count == 0 && !context.is_json && args.limit != Some(0) {
        tell("the history is empty");
    }
    Ok(())
}
