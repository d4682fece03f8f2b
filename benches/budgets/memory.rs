//! How much memory do an idle session and a working chat take?
//!
//! Each figure is the growth of a child process, which includes the heaps of Rust and SQLite: of `RssAnon` where memory is kept,
//! of `VmHWM`, the most that it had, where it is given back.

use std::path::Path;
use std::process::Command;

use talktree::{Message, Store};

use crate::table::{Row, Unit};
use crate::{Bench, Result, search, short};

const IDLE: usize = 10_000;

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    if !Path::new("/proc/self/status").exists() {
        eprintln!("memory: skipped, because there is no /proc");
        return Ok(());
    }
    let path = bench.stores.sized(bench.million)?.path.clone();
    let idle = ask("idle", &path)? / IDLE as f64;
    bench.table.add(Row::new("memory of an idle open session", Unit::Bytes, idle).at_most(2048.0));
    let chat = ask("chat", &path)?;
    let work = format!("working set of a chat at {}", short(bench.million));
    bench.table.add(Row::new(work, Unit::Bytes, chat).at_most(1048576.0));
    let long = ask("many", &path)?;
    let row = Row::new("working set after 1 000 turns in 200 sessions", Unit::Bytes, long);
    bench.table.add(row);
    Ok(())
}

/// Asks a child process for a figure.
pub(crate) fn ask(work: &str, path: &Path) -> Result<f64> {
    let child =
        Command::new(std::env::current_exe()?).args(["--child", work]).arg(path).output()?;
    let output = String::from_utf8(child.stdout)?;
    output.trim().parse().map_err(|_| format!("the child process printed {output:?}").into())
}

/// Runs in the child process that is measured.
pub(crate) fn child(work: &str, args: &[String]) -> Result<()> {
    let path = args.last().ok_or("no file given")?;
    let grown = match work {
        "idle" => idle(path)?,
        "chat" => chat(path, 1, 1)?,
        "search" => searches(path)?,
        _ => chat(path, 200, 1_000)?,
    };
    println!("{grown}");
    Ok(())
}

fn idle(path: &str) -> Result<f64> {
    let store = Store::open(path)?;
    store.session("long")?.head()?;
    let before = resident()?;
    let mut sessions = Vec::new();
    for n in 0..IDLE {
        let session = store.session(format!("idle-{n}"))?;
        session.head()?;
        sessions.push(session);
    }
    let grown = resident()? - before;
    drop(sessions);
    Ok(grown)
}

/// Returns the growth from before the store is opened until after the last turn: read the last 50, append.
fn chat(path: &str, sessions: usize, turns: usize) -> Result<f64> {
    let before = resident()?;
    let store = Store::open(path)?;
    for turn in 0..turns {
        let name = match sessions {
            1 => "long".to_owned(),
            _ => format!("turns-{}", turn % sessions),
        };
        let chat = store.session(name)?;
        let shown = chat.page().limit(50).run()?;
        assert!(sessions > 1 || shown.messages.len() == 50);
        chat.append(Message::user("One more question."))?;
    }
    Ok(resident()? - before)
}

/// Returns the growth from after the store is opened to the most that the searches took.
fn searches(path: &str) -> Result<f64> {
    let store = Store::open(path)?;
    store.session("long")?.head()?;
    // The most is then counted from here.
    std::fs::write("/proc/self/clear_refs", "5")?;
    let before = status("VmRSS:")?;
    search::each_kind(&store)?;
    Ok(status("VmHWM:")? - before)
}

/// Returns the anonymous memory of the process in bytes, without file pages.
fn resident() -> Result<f64> {
    status("RssAnon:")
}

/// Returns a figure of `/proc/self/status` in bytes.
fn status(name: &str) -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no such figure")?;
    Ok(kib.parse::<f64>()? * 1024.0)
}
