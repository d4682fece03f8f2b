//! `talktree checkout`: moving the head.

use serde::Serialize;
use talktree::{MessageId, SessionId};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{find, paint};

/// Move the head: the next message is attached there
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree checkout [OPTIONS] <SESSION> <MESSAGE|--undo|--redo|--start>")]
#[command(group(clap::ArgGroup::new("where").required(true)))]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The message to move to.
    #[arg(group = "where")]
    message: Option<String>,

    /// Go back to where the head stood before its last move.
    #[arg(long, group = "where")]
    undo: bool,

    /// Take back an undo.
    #[arg(long, group = "where")]
    redo: bool,

    /// Go before the first message, to begin another tree.
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
    let session = find::session(&store, &args.session)?;
    if args.undo && !session.undo_head()? {
        return Err(Failure::NotFound(
            "there is nothing to undo: the head has not stood anywhere else".to_owned(),
        ));
    }
    if args.redo && !session.redo_head()? {
        return Err(Failure::NotFound("there is nothing to redo: no undo came last".to_owned()));
    }
    if args.start {
        session.checkout_start()?;
    }
    if let Some(message) = &args.message {
        session.checkout(&find::message(&session, message)?)?;
    }
    let head = session.head()?;
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), head })?);
    }
    let title = find::title(&session)?;
    let (place, id) = match &head {
        Some(id) => (": the head stands at ", id.as_str()),
        None => (": the head stands before the first message", ""),
    };
    context.out.line(&[(paint::PLAIN, &title), (paint::PLAIN, place), (paint::ID, id)])?;
    Ok(())
}
