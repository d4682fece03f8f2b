//! `talktree log`: a conversation, message by message.

use talktree::Message;

use super::message::{self, Extent};
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::find;

/// Read a conversation as a model should see it, oldest first
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree log [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// Read what is stored: no summaries, and hidden, too.
    #[arg(long)]
    raw: bool,

    /// Read the branch that leads to this message, instead of the one to the head.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,

    /// Read the newest N messages only.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Show all of what tools took and gave.
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = find::session(&store, &args.session)?;
    let leaf = args.at.as_deref().map(|at| find::message(&session, at)).transpose()?;
    let mut path = leaf.as_ref().map_or_else(|| session.path(), |leaf| session.at(leaf));
    if args.raw {
        path = path.raw();
    }
    let notes = message::notes(&session)?;
    let mut count = 0_u64;
    let mut write = |message: &Message| -> Result<()> {
        count += 1;
        if context.is_json {
            return Ok(context.out.json(message)?);
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
    if count == 0 && !context.is_json {
        tell("there are no messages here");
    }
    Ok(())
}
