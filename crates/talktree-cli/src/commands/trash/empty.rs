//! `talktree trash empty`: removes the sessions in the trash.

use std::time::Duration;

use serde::Serialize;
use talktree::{Error, Retention, SessionFilter, SessionState};

use crate::confirm::confirm;
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::progress::Bar;
use crate::signals::Signals;
use crate::span::Span;
use crate::text::plural;
use crate::{lookup, style};

/// Remove the sessions in the trash for good; pinned ones stay
///
/// The command asks for confirmation; without a terminal it requires --yes.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree trash empty [OPTIONS]")]
pub(super) struct Args {
    /// Remove those that have been there for this long, such as 30d or 12h [default: all].
    #[arg(long, value_name = "SPAN")]
    older_than: Option<Span>,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    sessions: u64,
    messages: u64,
    bytes: u64,
    left: u64,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let signals = Signals::catch()?;
    let store = context.writer()?;
    let term = args.older_than.map_or(Duration::ZERO, Span::length);
    let retention = Retention::new().empty_trash_after(term);
    let due = store.retention(retention.clone()).dry_run()?;
    let count = due.sessions.len() as u64;
    if count > 0 {
        let what = format!("{} in the trash", plural(count, "session"));
        confirm(args.yes, &format!("remove {what} for good"), "nothing was removed")?;
    }
    signals.interrupt(&store);
    let bar = Bar::of_steps("removing");
    let report = store.retention(retention).progress(|at| bar.show(at)).run();
    let report = report.map_err(|error| match error {
        Error::Interrupted => signals.check().err().unwrap_or_else(|| error.into()),
        error => error.into(),
    })?;
    drop(bar);
    let in_trash = SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
    let left = lookup::listed(&store, &in_trash, usize::MAX)?.len() as u64;
    let sessions = report.sessions.len() as u64;
    if context.is_json {
        let answer = Answer { sessions, messages: report.messages(), bytes: report.bytes(), left };
        return Ok(context.out.json(&answer)?);
    }
    let removed = format!(
        "{} removed: {}, {}",
        plural(sessions, "session"),
        plural(report.messages(), "message"),
        plural(report.bytes(), "byte")
    );
    context.out.line(&[(style::PLAIN, &removed)])?;
    if left > 0 {
        let why = match left {
            1 => "is pinned or has not been there for long enough",
            _ => "are pinned or have not been there for long enough",
        };
        tell(&format!("left in the trash: {}, which {why}", plural(left, "session")));
    }
    Ok(())
}
