//! What grows: the write-ahead log while a reader stays open, and memory during long imports and reads.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use talktree::{Durability, Message, Store};
use talktree_import::ImportOptions;

use crate::memory;
use crate::process::store_in;
use crate::text::message;
use crate::{Report, Result};

/// A log up to this size counts as short, once its last reader is gone.
const SHORT: u64 = 20 << 20;
/// How many messages are written after a reader has gone, so that a checkpoint can restart the log.
const AFTER: u64 = 200;
/// How many words each message has.
const WORDS: u32 = 200;
/// How many messages are appended at a time to make a long path.
const BATCH: u64 = 10_000;

/// How much is written, imported and read.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many messages are written while each kind of reader is open.
    #[arg(long, default_value_t = 50_000)]
    pub messages: u64,
    /// How many megabytes are imported.
    #[arg(long, default_value_t = 300)]
    pub megabytes: u64,
    /// How many messages the path has that is read.
    #[arg(long, default_value_t = 1_000_000)]
    pub path: u64,
    /// How many megabytes an import or a read may add to the memory of the process.
    #[arg(long, default_value_t = 128)]
    pub max_memory: u64,
}

/// What reads while messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Nobody,
    /// A talktree stream that was started and is not read on.
    Stream,
    /// A SQLite read transaction, which keeps the log from being restarted.
    Transaction,
}

impl Reader {
    fn name(self) -> &'static str {
        match self {
            Self::Nobody => "without a reader",
            Self::Stream => "with a stream held open",
            Self::Transaction => "with a read transaction held open",
        }
    }
}

/// Measures the write-ahead log and memory.
///
/// # Errors
/// If a store cannot be written.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let replay = format!(
        "just torture grow --seed {} --messages {} --megabytes {} --path {} --max-memory {}",
        report.seed(),
        args.messages,
        args.megabytes,
        args.path,
        args.max_memory
    );
    for reader in [Reader::Nobody, Reader::Stream, Reader::Transaction] {
        eprintln!("grow: {} messages {}", args.messages, reader.name());
        log_under(reader, args, report, &replay)?;
    }
    import(args, report, &replay)?;
    read_path(args, report, &replay)
}

/// Writes while a reader is open and checks the size of the log.
fn log_under(reader: Reader, args: &Args, report: &mut Report, replay: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = store_in(folder.path());
    let store = Store::options().durability(Durability::Normal).open(&path)?;
    let chat = store.session("s")?;
    let mut count = 0;
    let mut write = |messages: u64| -> Result<u64> {
        let mut largest = 0;
        for _ in 0..messages {
            count += 1;
            chat.append(message(&format!("m{count}"), WORDS))?;
            largest = largest.max(log_size(&path));
        }
        Ok(largest)
    };
    write(100)?;
    let mut stream = (reader == Reader::Stream).then(|| chat.iter());
    if let Some(stream) = &mut stream {
        stream.next().ok_or("an empty stream")??;
    }
    let sqlite = (reader == Reader::Transaction).then(|| Connection::open(&path)).transpose()?;
    if let Some(sqlite) = &sqlite {
        sqlite.execute_batch("BEGIN; SELECT count(*) FROM session")?;
        sqlite.query_row("SELECT count(*) FROM session", [], |_| Ok(()))?;
    }
    let began = Instant::now();
    let largest = write(args.messages)?;
    let rate = args.messages as f64 / began.elapsed().as_secs_f64();
    if let Some(stream) = stream {
        // The stream ends at the head it was opened with, however much was written since.
        let rest = stream.collect::<talktree::Result<Vec<Message>>>()?;
        if rest.len() != 99 {
            report
                .failure(format!("an open stream continued with {} messages", rest.len()), replay);
        }
    }
    drop(sqlite);
    write(AFTER)?;
    let after = log_size(&path);
    let bytes = std::fs::metadata(&path)?.len();
    drop((chat, store));
    let closed = log_size(&path);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    report.fact(
        format!("log {}", reader.name()),
        format!(
                        "at most {:.1} MiB, {:.1} MiB after the reader closed, {closed} bytes after the store closed (file: {:.0} MiB, {rate:.0} appends/s)",
            mib(largest),
            mib(after),
            mib(bytes),
        ),
    );
    if reader != Reader::Transaction && largest > SHORT {
        report.failure(format!("the log {} grew to {largest} bytes", reader.name()), replay);
    }
    if after > SHORT || closed > 0 {
        let name = reader.name();
        report.failure(
            format!("the log {name} still has {after} bytes, {closed} after closing"),
            replay,
        );
    }
    Ok(())
}

/// Returns the size of a store's write-ahead log.
fn log_size(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// Imports one long conversation and measures memory.
fn import(args: &Args, report: &mut Report, replay: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("long.jsonl");
    let lines = write_transcript(&file, args.megabytes << 20)?;
    eprintln!("grow: importing {lines} messages");
    let store = Store::options().durability(Durability::Normal).open(store_in(folder.path()))?;
    let meter = memory::Meter::start()?;
    let began = Instant::now();
    let imported = talktree_import::import(&store, &file, &ImportOptions::default(), |_| {})?;
    let seconds = began.elapsed().as_secs_f64();
    let peak = meter.peak()?;
    report.fact("imported messages", imported.added);
    report.fact(
        "import",
        format!(
            "{} MiB in {seconds:.1} s, at most {} MiB above the baseline",
            args.megabytes,
            peak >> 20
        ),
    );
    if imported.added != lines {
        report.failure(format!("{} of {lines} messages were imported", imported.added), replay);
    }
    judge("an import", peak, args, report, replay);
    Ok(())
}

/// Writes a conversation of about this many bytes, one message per line; returns the number of lines.
fn write_transcript(path: &Path, bytes: u64) -> Result<u64> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let (mut written, mut lines) = (0, 0);
    while written < bytes {
        lines += 1;
        let message = message(&format!("m{lines}"), WORDS);
        let role = if lines % 2 == 1 { "user" } else { "assistant" };
        let (id, content) = (message.id.as_str(), message.text());
        let line = serde_json::json!({"id": id, "role": role, "content": content}).to_string();
        writeln!(file, "{line}")?;
        written += line.len() as u64 + 1;
    }
    file.flush()?;
    Ok(lines)
}

/// Reads a long path message by message in both directions and measures memory.
fn read_path(args: &Args, report: &mut Report, replay: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::options().durability(Durability::Normal).open(store_in(folder.path()))?;
    let chat = store.session("s")?;
    eprintln!("grow: reading a path of {}", args.path);
    for start in (0..args.path).step_by(BATCH as usize) {
        let end = args.path.min(start + BATCH);
        chat.append_all((start..end).map(|number| Message::user(format!("message {number}"))))?;
    }
    let mut read = 0;
    for (name, stream) in [("oldest first", chat.iter()), ("newest first", chat.iter_rev())] {
        let meter = memory::Meter::start()?;
        let began = Instant::now();
        for message in stream {
            message?;
            read += 1;
        }
        let seconds = began.elapsed().as_secs_f64();
        let peak = meter.peak()?;
        report.fact(
            format!("reading a path, {name}"),
            format!("{seconds:.1} s, at most {} KiB above the baseline", peak >> 10),
        );
        judge("reading a path", peak, args, report, replay);
    }
    report.fact("messages read", read);
    if read != 2 * args.path {
        report.failure(format!("{read} messages were read, not twice {}", args.path), replay);
    }
    Ok(())
}

/// Reports a failure if the peak exceeds the limit.
fn judge(what: &str, peak: u64, args: &Args, report: &mut Report, replay: &str) {
    if peak > args.max_memory << 20 {
        report.failure(
            format!("{what} took {} MiB; the limit is {}", peak >> 20, args.max_memory),
            replay,
        );
    }
}
