//! The command, given again after it was killed, beside neighbours.
//!
//! Session `x1`, or its message `m1`, is erased. Beside it are sessions whose ids begin or end with `x1`, and one of that name;
//! beside the message are others whose ids begin or end with `m1`. At each moment at which the command may have been killed, the
//! same command is given twice. The first one finishes the erasure, unless it was complete; the second one finds nothing.
//! All else is there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use talktree::{Erasure, Message, MessageId, Store};

use super::{Args, Figures, Files, moments, record, write};
use crate::scratch::scratch;
use crate::{Report, Result};

const SESSION: &str = "x1";
const MESSAGE: &str = "m1";
const NEIGHBOURS: [&str; 3] = ["x10", "0x1", "other"];

/// Gives the commands again at each moment.
pub(super) fn run(args: &Args, report: &mut Report, figures: &mut Figures) -> Result<()> {
    let program = args.program.clone().map_or_else(std::env::current_exe, Ok)?;
    let message = MessageId::from(MESSAGE);
    for (arguments, erasure) in [
        (&["erase", SESSION, "--yes"][..], Erasure::session(SESSION)),
        (&["erase", SESSION, MESSAGE, "--yes"], Erasure::messages(&SESSION.into(), [&message])),
    ] {
        let mut hashes = (String::new(), String::new());
        let erased = record(Vec::new(), |path| {
            let store = Store::open(path)?;
            fill(&store)?;
            hashes.0 = store.content_hash()?;
            let began = crate::vfs::recorded();
            let erased = store.erase(&erasure)?;
            if !erased.is_complete() {
                return Err("the erasure is not complete".into());
            }
            hashes.1 = store.content_hash()?;
            Ok(began)
        })?;
        let commits = erased.record.commits(erased.began);
        for moment in moments(&erased, &commits, args.every) {
            figures.again += 1;
            let files = erased.killed_at(moment);
            if let Err(why) = twice(&program, arguments, &files, &hashes) {
                let place = moment - erased.began;
                report.failure(
                    format!("{}, killed at change {place}: {why}", arguments.join(" ")),
                    format!("just torture erasures --every {}", args.every),
                );
            }
        }
    }
    Ok(())
}

/// Fills a store: the session that is erased, and its neighbours.
fn fill(store: &Store) -> Result<()> {
    for id in [&[SESSION][..], &NEIGHBOURS].concat() {
        let chat = store.session(id)?;
        let others = (0..40).map(|number| format!("{number}"));
        let ids = ["m10".to_owned(), "0m1".to_owned(), MESSAGE.to_owned()].into_iter();
        let said = ids.chain(others).map(|id| Message::user(format!("This is {id}")).with_id(id));
        chat.append_all(said.collect::<Vec<_>>())?;
    }
    store.rename(&"other".into(), SESSION)?;
    Ok(())
}

/// Gives a command twice, and checks what it leaves. `hashes` are those before and after its erasure.
fn twice(
    program: &Path,
    arguments: &[&str],
    files: &Files,
    hashes: &(String, String),
) -> Result<()> {
    let folder = scratch()?;
    let path: PathBuf = write(files, folder.path())?;
    let is_complete = {
        let store = Store::open(&path)?;
        store.content_hash()? == hashes.1 && !store.has_unfinished_erasure()?
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
    match store.content_hash()? == hashes.1 {
        true => Ok(()),
        false => Err("something else is missing, or not all is erased".into()),
    }
}
