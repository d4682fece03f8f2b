//! `talktree rm`: deletes messages, and sessions.

use talktree::Deleted;

use crate::prelude::*;
use crate::whole::{self, Line};

/// Delete messages or a branch, or put a whole session into the trash
///
/// A deleted message that others follow leaves a tombstone, so that their paths stay intact. Before it deletes a branch,
/// or a session for good, the command asks for confirmation; without a terminal it requires --yes. Ids are whole here,
/// so that the same command, given again, deletes nothing else.
#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
    /// The session: its whole id, or with --name its name.
    session: String,

    /// The whole ids of the messages to delete; without any, the session is put into the trash.
    messages: Vec<String>,

    /// SESSION is the name of a session.
    #[arg(long)]
    name: bool,

    /// Delete the messages and all messages below them.
    #[arg(long, requires = "messages")]
    branch: bool,

    /// Remove the session for good, also if it is in the trash already.
    #[arg(long, conflicts_with = "messages")]
    forever: bool,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn run(args: RmArgs, context: &mut Context) -> Result<()> {
    let store = context.writer()?;
    let mut line = Line {
        verb: "rm",
        arguments: [&args.session].into_iter().chain(&args.messages).map(String::as_str).collect(),
        options: given(&[(args.branch, "--branch"), (args.forever, "--forever")]),
    };
    let session = whole::session(&store, &line, args.name)?;
    line.arguments[0] = session.id().as_str();
    let mut ids = Vec::new();
    for (at, given) in args.messages.iter().enumerate() {
        ids.push(whole::message(&session, given, |id| line.with(at + 1, id))?);
    }
    let title = lookup::title(&store, &session)?;
    let mut deleted = Deleted::default();
    let ask = |what: String| confirm(args.yes, &format!("delete {what}"), "nothing was deleted");
    if args.forever {
        ask(format!("session {title} for good, with all its messages"))?;
        whole::remove(&store, &session)?;
    } else if ids.is_empty() {
        if session.info()?.is_some_and(|info| info.deleted_at.is_some()) {
            return Err(Failure::NotFound(format!("session {title} is in the trash already")));
        }
        whole::put_into_trash(&store, &session)?;
    } else if args.branch {
        ask(format!("{} and all messages below, in session {title}", args.messages.join(", ")))?;
        for id in &ids {
            // It may have been deleted with another of the branches.
            if session.message(id)?.is_some() {
                extend(&mut deleted, whole::delete_branch(&session, id)?);
            }
        }
    } else {
        deleted = whole::delete(&session, &ids)?;
    }
    if context.is_json {
        return Ok(context.out.json(&json!({
            "session": session.id(),
            "removed": args.forever,
            "in_trash": ids.is_empty() && !args.forever,
            "messages": deleted.messages,
            "covered_by": deleted.covered_by,
            "compactions_gone": deleted.compactions_gone,
            "compactions_back": deleted.compactions_back,
        }))?);
    }
    let out = &mut context.out;
    let what = match (ids.is_empty(), args.forever) {
        (true, true) => format!("session {title} removed for good"),
        (true, false) => format!("session {title} put into the trash"),
        (false, _) => {
            format!("{title}: {} deleted", plural(deleted.messages.len() as u64, "message"))
        }
    };
    put!(out; PLAIN &what)?;
    for (ids, what) in [
        (&deleted.covered_by, "compaction whose summary may still contain deleted text: "),
        (&deleted.compactions_gone, "compaction removed with its messages: "),
        (&deleted.compactions_back, "compaction visible again: "),
    ] {
        for id in ids {
            put!(out; PLAIN what, COMPACTION id.as_str())?;
        }
    }
    if ids.is_empty() && !args.forever {
        let restore = command(&verb("restore", &[session.id().as_str()], ""));
        context.advise(&format!("`{restore}` takes it out of the trash"))?;
    }
    Ok(())
}

fn extend(all: &mut Deleted, more: Deleted) {
    all.messages.extend(more.messages);
    all.covered_by.extend(more.covered_by);
    all.compactions_gone.extend(more.compactions_gone);
    all.compactions_back.extend(more.compactions_back);
}
