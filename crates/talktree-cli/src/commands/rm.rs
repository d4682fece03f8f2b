//! `talktree rm`: deletes messages, branches and sessions.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use talktree::{CompactionId, Deleted, MessageId, SessionId};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::text::plural;
use crate::{lookup, style};

/// Delete messages, a branch, or a whole session
///
/// A deleted message that others follow leaves a tombstone, so that their paths stay intact. Before
/// it deletes a session or a branch, the command asks for confirmation; without a terminal it
/// requires --yes.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree rm [OPTIONS] <SESSION> [MESSAGES]...")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// The messages to delete; without any, the whole session is deleted.
    messages: Vec<String>,

    /// Delete the messages and all messages below them.
    #[arg(long, requires = "messages")]
    branch: bool,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    /// Whether the session itself was deleted.
    removed: bool,
    messages: Vec<MessageId>,
    covered_by: Vec<CompactionId>,
    compactions_gone: Vec<CompactionId>,
    compactions_back: Vec<CompactionId>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = lookup::session(&store, &args.session)?;
    let ids: Vec<MessageId> = args
        .messages
        .iter()
        .map(|given| lookup::message(&session, given))
        .collect::<Result<_>>()?;
    let title = lookup::title(&session)?;
    let mut deleted = Deleted::default();
    if ids.is_empty() {
        confirm(&args, &format!("session {title} with all its messages"))?;
        store.remove(session.id())?;
    } else if args.branch {
        confirm(
            &args,
            &format!("{} and all messages below, in session {title}", args.messages.join(", ")),
        )?;
        for id in &ids {
            // It may have been deleted with another of the branches.
            if session.message(id)?.is_some() {
                extend(&mut deleted, session.delete_branch(id)?);
            }
        }
    } else {
        deleted = session.delete(&ids)?;
    }
    if context.is_json {
        return Ok(context.out.json(&Answer {
            session: session.id(),
            removed: ids.is_empty(),
            messages: deleted.messages,
            covered_by: deleted.covered_by,
            compactions_gone: deleted.compactions_gone,
            compactions_back: deleted.compactions_back,
        })?);
    }
    let out = &mut context.out;
    match ids.is_empty() {
        true => out.line(&[
            (style::PLAIN, "session "),
            (style::ID, &title),
            (style::PLAIN, " deleted"),
        ])?,
        false => out.line(&[
            (style::PLAIN, &title),
            (
                style::PLAIN,
                &format!(": {} deleted", plural(deleted.messages.len() as u64, "message")),
            ),
        ])?,
    }
    for (ids, what) in [
        (&deleted.covered_by, "compaction whose summary may still contain deleted text: "),
        (&deleted.compactions_gone, "compaction removed with its messages: "),
        (&deleted.compactions_back, "compaction visible again: "),
    ] {
        for id in ids {
            out.line(&[(style::PLAIN, what), (style::COMPACTION, id.as_str())])?;
        }
    }
    Ok(())
}

fn extend(all: &mut Deleted, more: Deleted) {
    all.messages.extend(more.messages);
    all.covered_by.extend(more.covered_by);
    all.compactions_gone.extend(more.compactions_gone);
    all.compactions_back.extend(more.compactions_back);
}

/// Asks for confirmation; without a terminal it fails.
fn confirm(args: &Args, what: &str) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("nothing was deleted: pass --yes to delete {what}")));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "Delete {}? [y/N] ", crate::text::escape(what))?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Usage("nothing was deleted".to_owned())),
    }
}
