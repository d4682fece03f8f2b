//! `talktree rename`: names a session.

use serde::Serialize;
use talktree::SessionId;

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::suggestion::{command, verb};
use crate::{lookup, style};

/// Give a session a name
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree rename [OPTIONS] <SESSION> <NAME>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The new name.
    name: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    name: &'a str,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    let before = session.info()?.and_then(|info| info.name);
    store.rename(session.id(), &args.name)?;
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), name: &args.name })?);
    }
    context.out.line(&[
        (style::ID, session.id().as_str()),
        (style::PLAIN, "  "),
        (style::STRONG, &args.name),
    ])?;
    if let Some(before) = before.filter(|before| *before != args.name) {
        let undo = command(&verb("rename", &[session.id().as_str(), &before], ""));
        tell(&format!("`{undo}` names it as before"));
    }
    Ok(())
}
