//! The command, given again after it was killed, beside neighbours.
//!
//! Session `x1`, or its message `m1`, is erased. Beside the session is one whose id begins or ends with `x1`, or whose name is
//! `x1`: only one, because several would be ambiguous. Beside the message are others whose ids begin or end with `m1`. At each
//! moment at which the command may have been killed, the same command is given twice. The first one finishes the erasure,
//! unless it was complete; the second one finds nothing. All else is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use talktree::{Erasure, Message, MessageId, Store};
use talktree_import::export::content_hash;

use super::{Args, Figures, moments, record};
use crate::scratch::scratch;
use crate::vfs::{Files, recorded, write_files};
use crate::{Report, Result};

const SESSION: &str = "x1";
const MESSAGE: &str = "m1";
/// The ids of the neighbours, and their names.
const NEIGHBOURS: [(&str, &str); 4] =
    [("x10", "a"), ("x1x", "b"), ("0x1", "c"), ("other", SESSION)];

/// Gives the commands again at each moment.
pub(super) fn run(args: &Args, report: &mut Report, figures: &mut Figures) -> Result<()> {
    let program = args.program.clone().map_or_else(std::env::current_exe, Ok)?;
    let message = MessageId::from(MESSAGE);
    for neighbour in NEIGHBOURS {
        for (arguments, erasure) in [
            (&["erase", SESSION, "--yes"][..], Erasure::session(SESSION)),
            (&["erase", SESSION, MESSAGE, "--yes"], Erasure::messages(&SESSION.into(), [&message])),
        ] {
            let mut hash = String::new();
            let erased = record(Vec::new(), |path| {
                let store = Store::open(path)?;
                fill(&store, neighbour)?;
                let began = recorded();
                let erased = store.erase(&erasure)?;
                hash = content_hash(&store)?;
                if erased.is_complete() { Ok(began) } else { Err("it is not complete".into()) }
            })?;
            let commits = erased.record.commits(erased.began);
            for moment in moments(&erased, &commits, args.every) {
                figures.again += 1;
                let files = erased.killed_at(moment);
                if let Err(why) = twice(&program, arguments, &files, &hash) {
                    let place = moment - erased.began;
                    let command = arguments.join(" ");
                    report.failure(
                        format!("{command}, beside {neighbour:?}, killed at change {place}: {why}"),
                        format!("just torture erasures --every {}", args.every),
                    );
                }
            }
        }
    }
    Ok(())
}

/// Fills a store: the session that is erased, and its neighbour.
fn fill(store: &Store, (neighbour, name): (&str, &str)) -> Result<()> {
    for id in [SESSION, neighbour] {
        let chat = store.session(id)?;
        let ids = ["m10", "0m1", MESSAGE, "a", "b"];
        chat.append_all(ids.map(|id| Message::user(format!("This is {id}")).with_id(id)))?;
    }
    Ok(store.rename(&neighbour.into(), name)?)
}

/// Gives a command twice, and checks what it leaves. `hash` is that of the store after its erasure.
fn twice(program: &Path, arguments: &[&str], files: &Files, hash: &str) -> Result<()> {
    let folder = scratch()?;
    let path: PathBuf = write_files(files, folder.path())?;
    let is_complete = {
        let store = Store::open(&path)?;
        content_hash(&store)? == hash && !store.has_unfinished_erasure()?
    };
    for expected in [if is_complete { 1 } else { 0 }, 1] {
        let output = Command::new(program)
            .args(["talktree", "--"])
            .args(arguments)
            .env("TALKTREE_STORE", &path)
            .stdin(Stdio::null())
            .output()?;
        if output.status.code() != Some(expected) {
            return Err(
                format!("it ended with {}, not {expected}: {output:?}", output.status).into()
            );
        }
    }
    let store = Store::open(&path)?;
    if store.has_unfinished_erasure()? {
        return Err("there is still something to finish".into());
    }
    match content_hash(&store)? == hash {
        true => Ok(()),
        false => Err("something else is missing, or not all is erased".into()),
    }
}
