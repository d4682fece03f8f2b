//! `talktree end`: ends a session.

use chrono::{DateTime, Utc};
use serde::Serialize;
use talktree::{SessionChange, SessionId};

use crate::context::Context;
use crate::failure::Result;
use crate::{lookup, style};

/// End a session: keys do not lead to it any more. It can still be read and written
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree end [OPTIONS] <SESSION> [REASON]")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Why it is ended.
    #[arg(default_value = "ended by hand", conflicts_with = "reopen")]
    reason: String,

    /// Reopen the session.
    #[arg(long)]
    reopen: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    ended_at: Option<DateTime<Utc>>,
    end_reason: Option<&'a str>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    let change = match args.reopen {
        true => SessionChange::Reopen,
        false => SessionChange::End(args.reason),
    };
    store.change_session(session.id(), &change)?;
    let info = session.info()?;
    let ended_at = info.as_ref().and_then(|info| info.ended_at);
    let end_reason = info.as_ref().and_then(|info| info.end_reason.as_deref());
    if context.is_json {
        let answer = Answer { session: session.id(), ended_at, end_reason };
        return Ok(context.out.json(&answer)?);
    }
    let title = lookup::title(&session)?;
    let state = match end_reason {
        Some(reason) => format!(": ended: {reason}"),
        None => ": open".to_owned(),
    };
    Ok(context.out.line(&[(style::PLAIN, &title), (style::PLAIN, &state)])?)
}
