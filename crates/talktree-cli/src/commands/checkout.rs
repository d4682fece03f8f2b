//! `talktree checkout`: moves the head.

use serde::Serialize;
use talktree::{MessageId, SessionId};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{lookup, style};

/// Move the head, the message to which the next one is appended
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree checkout [OPTIONS] <SESSION> <MESSAGE|--undo|--redo|--start>")]
#[command(group(clap::ArgGroup::new("where").required(true)))]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The message to move to.
    #[arg(group = "where")]
    message: Option<String>,

    /// Undo the last move of the head.
    #[arg(long, group = "where")]
    undo: bool,

    /// Redo the last undone move.
    #[arg(long, group = "where")]
    redo: bool,

    /// Move the head before the first message; the next message starts a new tree.
    #[arg(long, group = "where")]
    start: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    head: Option<MessageId>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    if args.undo && !session.undo_head()? {
        return Err(Failure::NotFound(
            "nothing to undo: the head has no earlier position".to_owned(),
        ));
    }
    if args.redo && !session.redo_head()? {
        return Err(Failure::NotFound(
            "nothing to redo: the last move of the head was not an undo".to_owned(),
        ));
    }
    if args.start {
        session.checkout_start()?;
    }
    if let Some(message) = &args.message {
        session.checkout(&lookup::message(&session, message)?)?;
    }
    let head = session.head()?;
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), head })?);
    }
    let title = lookup::title(&session)?;
    let (text, id) = match &head {
        Some(id) => (": head is at ", id.as_str()),
        None => (": head is before the first message", ""),
    };
    context.out.line(&[(style::PLAIN, &title), (style::PLAIN, text), (style::ID, id)])?;
    Ok(())
}
