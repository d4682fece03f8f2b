//! `talktree rm`: deleting messages, branches and sessions.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use talktree::{CompactionId, Deleted, MessageId, SessionId};

use crate::clean::plural;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::{find, paint};

/// Delete messages, a branch, or a whole session
///
/// A message with others below it leaves its place, so that their history stays whole. Before a
/// session or a branch is deleted you are asked; where nobody can be asked, --yes has to be there.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree rm [OPTIONS] <SESSION> [MESSAGES]...")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The messages to delete; none for the session.
    messages: Vec<String>,

    /// Delete what is below the messages, too.
    #[arg(long, requires = "messages")]
    branch: bool,

    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    session: &'a SessionId,
    /// Whether the session itself is gone.
    removed: bool,
    messages: Vec<MessageId>,
    covered_by: Vec<CompactionId>,
    compactions_gone: Vec<CompactionId>,
    compactions_back: Vec<CompactionId>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let session = find::session(&store, &args.session)?;
    let ids: Vec<MessageId> =
        args.messages.iter().map(|given| find::message(&session, given)).collect::<Result<_>>()?;
    let title = find::title(&session)?;
    let mut deleted = Deleted::default();
    if ids.is_empty() {
        confirm(&args, &format!("the session {title} with all its messages"))?;
        store.remove(session.id())?;
    } else if args.branch {
        confirm(&args, &format!("everything from {} on in {title}", args.messages.join(", ")))?;
        for id in &ids {
            // One branch may lie in another.
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
            (paint::PLAIN, "session "),
            (paint::ID, &title),
            (paint::PLAIN, " deleted"),
        ])?,
        false => out.line(&[
            (paint::PLAIN, &title),
            (
                paint::PLAIN,
                &format!(": {} deleted", plural(deleted.messages.len() as u64, "message")),
            ),
        ])?,
    }
    for (ids, what) in [
        (&deleted.covered_by, "its summary may still tell what was deleted: "),
        (&deleted.compactions_gone, "this summary went with what it covered: "),
        (&deleted.compactions_back, "this summary shows again: "),
    ] {
        for id in ids {
            out.line(&[(paint::PLAIN, what), (paint::COMPACTION, id.as_str())])?;
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

/// Asks on a terminal; refuses where there is none.
fn confirm(args: &Args, what: &str) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("nothing deleted: say --yes to delete {what}")));
    }
    let mut stderr = std::io::stderr();
    write!(stderr, "Delete {}? [y/N] ", crate::clean::clean(what))?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Usage("nothing deleted".to_owned())),
    }
}
