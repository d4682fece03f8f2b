//! `talktree rename`: the name people know a session by.

use serde::Serialize;
use talktree::SessionId;

use crate::context::Context;
use crate::failure::Result;
use crate::{find, paint};

/// Give a session a name
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree rename [OPTIONS] <SESSION> <NAME>")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// Its new name.
    name: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    name: &'a str,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = find::session(&store, &args.session)?;
    store.rename(session.id(), &args.name)?;
    if context.is_json {
        return Ok(context.out.json(&Answer { session: session.id(), name: &args.name })?);
    }
    Ok(context.out.line(&[
        (paint::ID, session.id().as_str()),
        (paint::PLAIN, "  "),
        (paint::STRONG, &args.name),
    ])?)
}
