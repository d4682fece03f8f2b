//! `talktree restore`: takes a session out of the trash.

use serde::Serialize;
use talktree::{Error, SessionChange, SessionId};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::suggestion::command;
use crate::text::quoted;
use crate::{lookup, style};

/// Take a session out of the trash
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree restore [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The session in the trash: its id, the start or the end of its id, or its name.
    session: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    name: Option<&'a str>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::in_trash(&store, &args.session)?;
    store.change_session(session.id(), &SessionChange::Restore).map_err(|error| match error {
        Error::InvalidValue { given, .. } => Failure::Usage(format!(
            "session {} is being erased; if that was interrupted, `{}` finishes it",
            quoted(&given),
            command("erase --finish")
        )),
        error => error.into(),
    })?;
    if context.is_json {
        let info = session.info()?;
        let name = info.as_ref().and_then(|info| info.name.as_deref());
        return Ok(context.out.json(&Answer { session: session.id(), name })?);
    }
    let title = lookup::title(&session)?;
    Ok(context.out.line(&[
        (style::PLAIN, "session "),
        (style::ID, &title),
        (style::PLAIN, " restored"),
    ])?)
}
