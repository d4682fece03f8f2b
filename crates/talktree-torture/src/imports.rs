//! Imports that are killed half way, and that run beside other writers.
//!
//! Short conversations share commits. So after a kill each of them is in the store as a whole or not at all, and a second
//! import completes what is missing: the store equals one that was filled without an accident.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use talktree::Store;
use talktree_import::export::{content_hash, session_hash};
use talktree_import::{ImportOptions, Importer};

use crate::contend::writer::Plan;
use crate::contend::{check, start, tallies};
use crate::process::{Worker, store_in};
use crate::{Report, Result};

/// How often an import is killed, and what it imports.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many imports are killed.
    #[arg(long, default_value_t = 100)]
    pub rounds: u64,
    /// How many short conversations the first file holds.
    #[arg(long, default_value_t = 3_000)]
    pub conversations: u64,
    /// How many messages the one conversation of the second file has.
    #[arg(long, default_value_t = 5_000)]
    pub messages: u64,
    /// How many processes write while another imports.
    #[arg(long, default_value_t = 3)]
    pub writers: usize,
    /// The program to start as a worker, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

/// What a worker imports, and into which store.
#[derive(Debug, Clone, clap::Args)]
pub struct WorkerArgs {
    /// The store.
    pub store: PathBuf,
    /// The files.
    pub files: Vec<PathBuf>,
}

/// Imports files into a store: the process that is killed.
///
/// # Errors
/// If the import fails.
pub fn work(args: &WorkerArgs) -> Result<()> {
    let store = Store::open(&args.store)?;
    import(&store, &args.files)
}

fn import(store: &Store, files: &[PathBuf]) -> Result<()> {
    let mut importer = Importer::new(store, ImportOptions::default());
    for file in files {
        importer.add(file, std::fs::File::open(file)?, |_| {})?;
    }
    importer.finish()?;
    Ok(())
}

/// Kills imports, and imports beside writers.
///
/// # Errors
/// If a worker cannot be started or a store cannot be opened.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = write_files(folder.path(), args)?;
    let clean = Store::open(folder.path().join("clean.db"))?;
    let began = Instant::now();
    import(&clean, &files)?;
    let time = began.elapsed();
    let hash = content_hash(&clean)?;
    report.fact("time of one import", format!("{time:?}"));
    let replay = format!("just torture imports --seed {}", report.seed());
    kill(args, &files, time, &hash, &replay, report)?;
    beside_writers(args, &files, &clean, time, &replay, report)
}

/// Returns how many messages a conversation has.
fn length(conversation: u64) -> u64 {
    1 + conversation % 6
}

fn write_files(folder: &Path, args: &Args) -> Result<Vec<PathBuf>> {
    let mut short = String::new();
    for n in 0..args.conversations {
        let said = |at| format!(r#"{{"role":"user","content":"{n} says {at}"}}"#);
        let messages: Vec<String> = (0..length(n)).map(said).collect();
        // A time that is the same in every import.
        let messages = messages.join(",").replace('}', r#","created_at":1767323045}"#);
        writeln!(short, r#"{{"id":"c{n}","messages":[{messages}]}}"#)?;
    }
    let mut long = String::from(
        r#"{"type":"session","version":3,"id":"long","timestamp":"2026-01-02T03:04:05Z"}"#,
    );
    for n in 0..args.messages {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"m{}\"", n - 1) };
        write!(
            long,
            "\n{{\"type\":\"message\",\"id\":\"m{n}\",\"parentId\":{parent},\"timestamp\":\"2026-01-02T03:04:05Z\",\"message\":{{\"role\":\"user\",\"content\":\"says {n}\"}}}}"
        )?;
    }
    let files = vec![folder.join("short.jsonl"), folder.join("long.jsonl")];
    for (path, text) in files.iter().zip([short, long]) {
        std::fs::write(path, text)?;
    }
    Ok(files)
}

fn kill(
    args: &Args,
    files: &[PathBuf],
    time: Duration,
    hash: &str,
    replay: &str,
    report: &mut Report,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(report.seed());
    let (mut cut, mut sessions) = (0, 0);
    for _ in 0..args.rounds {
        let folder = tempfile::tempdir()?;
        let path = store_in(folder.path());
        let mut worker = start_import(args, &path, files)?;
        std::thread::sleep(time.mul_f64(random.f64() * 1.2));
        worker.kill()?;
        if !path.exists() {
            continue;
        }
        let store = Store::open(&path)?;
        for damage in store.verify(|_| {})?.damages {
            report.failure(format!("after a kill: {damage:?}"), replay);
        }
        let found = store.sessions()?;
        sessions += found.len();
        cut += u64::from((found.len() as u64) < args.conversations + 1);
        for info in found {
            let Some(n) = info.id.as_str().strip_prefix('c').and_then(|n| n.parse().ok()) else {
                continue;
            };
            let (is, expected) = (store.session(&info.id)?.path_length()?, length(n));
            if is != expected {
                let what = format!("session {:?} has {is} messages of {expected}", info.id);
                report.failure(what, replay);
            }
        }
        import(&store, files)?;
        if content_hash(&store)? != hash {
            report.failure("a second import did not complete the first", replay);
        }
    }
    report.fact("imports killed", args.rounds);
    report.fact("imports that were cut", cut);
    report.fact("whole sessions found after a kill", sessions);
    Ok(())
}

fn start_import(args: &Args, path: &Path, files: &[PathBuf]) -> Result<Worker> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let files: Vec<String> = files.iter().map(|file| text(file)).collect();
    let store = text(path);
    let args_of = ["import-worker", store.as_str()];
    let all = args_of.into_iter().chain(files.iter().map(String::as_str));
    Worker::start(args.program.as_deref(), all)
}

/// Imports in one process while others write to the same store.
fn beside_writers(
    args: &Args,
    files: &[PathBuf],
    clean: &Store,
    time: Duration,
    replay: &str,
    report: &mut Report,
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = store_in(folder.path());
    drop(Store::open(&path)?);
    let seconds = 1.0 + 3.0 * time.as_secs_f64();
    let plan = |number| Plan { name: format!("w{number}x"), seconds };
    let plans: Vec<Plan> = (0..args.writers).map(plan).collect();
    let start = |plan| start(args.program.as_deref(), &path, plan, "normal", report.seed());
    let writers = plans.iter().map(start).collect::<Result<Vec<Worker>>>()?;
    let began = Instant::now();
    start_import(args, &path, files)?.wait()?;
    report.fact("time of an import beside writers", format!("{:?}", began.elapsed()));
    let tallies = tallies(writers)?;
    let acknowledged: usize =
        tallies.iter().map(|tally| tally.own.len() + tally.shared.len()).sum();
    report.fact("messages acknowledged beside an import", acknowledged);

    let store = Store::open(&path)?;
    for info in clean.sessions()? {
        let [is, should] = [&store, clean].map(|store| session_hash(&store.session(&info.id)?));
        if is? != should? {
            report
                .failure(format!("{:?} was imported beside writers and differs", info.id), replay);
        }
        store.remove(&info.id)?;
    }
    drop(store);
    for fault in check(&path, &plans, &tallies)? {
        report.failure(format!("beside an import: {fault}"), replay);
    }
    Ok(())
}
