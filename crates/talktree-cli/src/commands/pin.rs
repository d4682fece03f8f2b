//! `talktree pin`: protects a session from retention rules.

use serde::Serialize;
use talktree::{SessionChange, SessionId};

use crate::context::Context;
use crate::failure::Result;
use crate::{lookup, style};

/// Pin a session, so that no retention rule discards it, or remove the pin
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree pin [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Remove the pin.
    #[arg(long)]
    remove: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    is_pinned: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    let is_pinned = !args.remove;
    store.change_session(session.id(), &SessionChange::Pin(is_pinned))?;
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), is_pinned })?);
    }
    let title = lookup::title(&session)?;
    let state = if is_pinned { ": pinned" } else { ": not pinned" };
    Ok(context.out.line(&[(style::PLAIN, &title), (style::PLAIN, state)])?)
}
