//! `talktree fork`: copies a path into a new session.

use serde::Serialize;
use talktree::{MessageId, SessionId};

use crate::context::Context;
use crate::failure::Result;
use crate::{lookup, style};

/// Create a session that starts with a copy of the path to a message
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree fork [OPTIONS] <SESSION> <AT> <NAME>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The last message to copy.
    at: String,

    /// The name of the new session.
    name: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    name: &'a str,
    parent_session: &'a SessionId,
    fork_point: &'a MessageId,
    path_length: u64,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    let at = lookup::message(&session, &args.at)?;
    let fork = session.fork(&at, &args.name)?;
    let path_length = fork.path_length()?;
    if context.is_json {
        let (session, parent_session) = (fork.id(), session.id());
        let answer =
            Answer { session, name: &args.name, parent_session, fork_point: &at, path_length };
        return Ok(context.out.json(&answer)?);
    }
    Ok(context.out.line(&[
        (style::ID, fork.id().as_str()),
        (style::PLAIN, "  "),
        (style::STRONG, &args.name),
        (style::FAINT, &format!("  {path_length} messages")),
    ])?)
}
