//! How many messages can be recovered from a store with garbage pages, by talktree's reads and by the `sqlite3` shell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use talktree::{Message, Store};
use talktree_import::export::export_session;

use super::Args;
use super::case::{Baseline, open};
use super::corruption::PAGE;
use crate::{Report, Result};

/// How many pages are damaged at a time.
const DAMAGED: [usize; 3] = [1, 10, 100];

/// The debug text of each message, by session and id.
type Messages = BTreeMap<(String, String), String>;

/// Damages pages of copies and recovers messages.
pub(super) fn run(
    args: &Args,
    baseline: &Baseline,
    folder: &Path,
    report: &mut Report,
) -> Result<()> {
    let path = folder.join("recovery.db");
    std::fs::write(&path, &baseline.bytes)?;
    let sound = read(&open(&path)?, &baseline.sessions);
    let pages = baseline.bytes.len() / PAGE;
    // Some builds of the shell lack what `.recover` needs.
    clean(&path, &baseline.bytes)?;
    let recovered = folder.join("recovered.db");
    let found = recover(&path, &recovered, &baseline.sessions);
    let has_shell = found.is_ok_and(|found| found.len() == sound.len());
    report.fact("the sqlite3 shell can recover a sound store", has_shell);
    for damaged in DAMAGED {
        let (mut exported, mut own, mut rebuilt, mut shell) =
            (Share::default(), Share::default(), Share::default(), Share::default());
        let mut index_rebuilt = 0;
        for round in 0..args.recoveries {
            let mut dice = fastrand::Rng::with_seed(report.seed() ^ (round << 8) ^ damaged as u64);
            let mut bytes = baseline.bytes.clone();
            for _ in 0..damaged {
                let page = dice.usize(1..pages);
                bytes[page * PAGE..(page + 1) * PAGE].fill_with(|| dice.u8(..));
            }
            clean(&path, &bytes)?;
            let (whole, left, rebuilt_index) = match open(&path) {
                Ok(store) => {
                    let (whole, left) =
                        (export(&store, &baseline.sessions), read(&store, &baseline.sessions));
                    index_rebuilt += u64::from(store.rebuild_search().is_ok());
                    (whole, left, read(&store, &baseline.sessions))
                }
                Err(_) => (Messages::new(), Messages::new(), Messages::new()),
            };
            exported.add(&sound, &whole);
            own.add(&sound, &left);
            rebuilt.add(&sound, &rebuilt_index);
            if has_shell {
                clean(&path, &bytes)?;
                shell.add(&sound, &recover(&path, &recovered, &baseline.sessions)?);
            }
        }
        report.fact(format!("{damaged} damaged pages: exports"), exported);
        report.fact(format!("{damaged} damaged pages: all reads"), &own);
        report.fact(
            format!(
                "{damaged} damaged pages: after rebuilding the index ({index_rebuilt} of {})",
                args.recoveries
            ),
            &rebuilt,
        );
        if has_shell {
            report.fact(format!("{damaged} damaged pages: .recover, then all reads"), shell);
        }
    }
    Ok(())
}

/// Writes a file and removes the log of its predecessor.
fn clean(path: &Path, bytes: &[u8]) -> Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        if Path::new(&beside).exists() {
            std::fs::remove_file(&beside)?;
        }
    }
    std::fs::write(path, bytes)?;
    Ok(())
}

/// How many messages were recovered unchanged.
#[derive(Default)]
struct Share {
    all: usize,
    right: usize,
    /// Messages that were recovered with other content.
    wrong: usize,
}

impl Share {
    fn add(&mut self, sound: &Messages, found: &Messages) {
        self.all += sound.len();
        for (name, content) in found {
            match sound.get(name) {
                Some(sound) if sound == content => self.right += 1,
                _ => self.wrong += 1,
            }
        }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let share = 100.0 * self.right as f64 / self.all.max(1) as f64;
        write!(
            f,
            "{share:.1} % of the messages, {} of {} wrong",
            self.wrong,
            self.right + self.wrong
        )
    }
}

/// Returns the messages of the sessions that can be exported completely.
fn export(store: &Store, sessions: &[String]) -> Messages {
    let mut messages = Messages::new();
    for id in sessions {
        let Ok(chat) = store.session(id.as_str()) else { continue };
        if export_session(&chat, &mut std::io::sink()).is_ok() {
            keep(&mut messages, id, chat.all_messages());
        }
    }
    messages
}

/// Returns the messages that any read returns.
fn read(store: &Store, sessions: &[String]) -> Messages {
    let mut messages = Messages::new();
    let listed: BTreeSet<String> =
        store.sessions().unwrap_or_default().iter().map(|info| info.id.to_string()).collect();
    for id in listed.iter().chain(sessions).collect::<BTreeSet<_>>() {
        let Ok(chat) = store.session(id.as_str()) else { continue };
        keep(&mut messages, id, chat.all_messages());
        for leaf in chat.leaves().unwrap_or_default() {
            let path = chat.at(&leaf).raw();
            keep(&mut messages, id, path.iter());
            keep(&mut messages, id, path.iter_rev());
        }
    }
    messages
}

/// Keeps what a stream returns before it fails, without parents: they depend on which other messages are left.
fn keep(
    messages: &mut Messages,
    session: &str,
    stream: impl Iterator<Item = talktree::Result<Message>>,
) {
    for mut message in stream.map_while(talktree::Result::ok) {
        message.parent = None;
        let content = format!("{message:?}");
        messages.insert((session.to_owned(), message.id.to_string()), content);
    }
}

/// Dumps a damaged file with the shell's `.recover` into a new file, and reads that.
fn recover(damaged: &Path, recovered: &Path, sessions: &[String]) -> Result<Messages> {
    clean(recovered, b"")?;
    let mut dump = Command::new("sqlite3")
        .arg(damaged)
        .arg(".recover")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(script) = dump.stdout.take() else { return Err("the shell has no output".into()) };
    Command::new("sqlite3")
        .arg(recovered)
        .stdin(script)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    dump.wait()?;
    Ok(match open(recovered) {
        Ok(store) => read(&store, sessions),
        Err(error) => {
            eprintln!("a recovered file is refused: {error}");
            Messages::new()
        }
    })
}
