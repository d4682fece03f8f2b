//! A write-ahead log that is damaged, truncated, or from another store.
//!
//! SQLite's log has checksums: everything from the first damaged frame on counts as never written, so what is read is a
//! prefix of what was appended. The log of another store passes the checksums, because a log does not name its file:
//! then the result must be a clear error, a damage that `verify` finds, or one of the two stores as it was.

use std::path::{Path, PathBuf};
use std::time::Duration;

use talktree::{Durability, Message, Store};

use super::{Args, threads};
use crate::{Report, Result};

/// How many messages are in the file, and how many more in its log.
const IN_FILE: usize = 120;
const IN_LOG: usize = 120;

/// A store with a log, as a crash leaves it.
struct Crashed {
    file: Vec<u8>,
    log: Vec<u8>,
    /// The texts of all messages, in order.
    texts: Vec<String>,
}

/// What was read from a store with a damaged log.
enum Seen {
    /// This many messages from the beginning.
    Beginning(usize),
    /// An error or damages.
    Reported(String),
    /// Something else, without an error.
    Wrong(String),
}

/// Damages logs and opens their stores.
pub(super) fn run(args: &Args, folder: &Path, report: &mut Report) -> Result<()> {
    let seed = report.seed();
    let folder = folder.join("log");
    std::fs::create_dir(&folder)?;
    let crashed = Crashed::make(&folder.join("a.db"), "a")?;
    let other = Crashed::make(&folder.join("b.db"), "b")?;
    report.fact("bytes of the log", crashed.log.len());
    let (mut whole, mut shortened, mut reported, mut longest) = (0, 0, 0, Duration::ZERO);
    let case = |worker, round| {
        let mut dice = fastrand::Rng::with_seed(seed ^ round);
        let mut log = crashed.log.clone();
        let place = dice.usize(..log.len());
        match round % 5 {
            0 => log.truncate(place),
            _ => log[place] ^= dice.u8(1..),
        }
        look(&folder.join(format!("case-{worker}.db")), &crashed.file, &log, &crashed.texts)
    };
    let mut failures = Vec::new();
    threads::run_cases(
        args.threads,
        args.log_places,
        Duration::from_secs(args.limit),
        case,
        |round, ended| {
            longest = longest.max(ended.took);
            match ended.answer {
                Some(Ok(Seen::Beginning(count))) if count == IN_FILE + IN_LOG => whole += 1,
                Some(Ok(Seen::Beginning(count))) if count >= IN_FILE => shortened += 1,
                Some(Ok(Seen::Beginning(count))) => {
                    failures.push(format!("round {round}: only {count} messages are left"))
                }
                Some(Ok(Seen::Reported(_))) => reported += 1,
                Some(Ok(Seen::Wrong(what))) => failures.push(format!("round {round}: {what}")),
                Some(Err(error)) => failures.push(format!("round {round}: {error}")),
                None => failures.push(format!("round {round}: a panic")),
            }
        },
    )?;
    for failure in failures {
        let replay = format!("just torture --seed {seed} damage --log-places {}", args.log_places);
        report.failure(format!("a damaged log, {failure}"), replay);
    }
    report.fact("damaged logs: everything was read", whole);
    report.fact("damaged logs: a beginning was read", shortened);
    report.fact("damaged logs: reported as damage", reported);
    report.fact("damaged logs: longest case", format!("{longest:.1?}"));

    let seen = look(&folder.join("mixed.db"), &crashed.file, &other.log, &crashed.texts)?;
    let what = match seen {
        Seen::Beginning(count) => format!("{count} messages of the file itself are read"),
        Seen::Reported(what) => format!("reported: {what}"),
        Seen::Wrong(what) => format!("not reported: {what}"),
    };
    report.fact("another store's log", what);
    Ok(())
}

impl Crashed {
    fn make(path: &Path, name: &str) -> Result<Self> {
        let texts: Vec<String> = (0..IN_FILE + IN_LOG)
            .map(|n| format!("{name} {n} {}", "words and more ".repeat(n % 40)))
            .collect();
        let say = |texts: &[String]| -> Result<Store> {
            let store = Store::options().durability(Durability::Normal).open(path)?;
            let chat = store.session("s")?;
            for text in texts {
                chat.append(Message::user(text.as_str()))?;
            }
            Ok(store)
        };
        // Closing the store removes its log.
        drop(say(&texts[..IN_FILE])?);
        let store = say(&texts[IN_FILE..])?;
        let (file, log) = (std::fs::read(path)?, std::fs::read(beside(path))?);
        drop(store);
        Ok(Self { file, log, texts })
    }
}

/// Returns the path of a store's log.
fn beside(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Opens a file with a log and compares what is read with what was appended.
fn look(path: &Path, file: &[u8], log: &[u8], texts: &[String]) -> Result<Seen> {
    std::fs::write(path, file)?;
    std::fs::write(beside(path), log)?;
    let read = || -> talktree::Result<(Vec<String>, Vec<talktree::Damage>)> {
        let store = Store::open(path)?;
        let damages = store.verify(|_| {})?.damages;
        let read = store.session("s")?.raw_history()?.iter().map(Message::text).collect();
        Ok((read, damages))
    };
    Ok(match read() {
        Err(error) => Seen::Reported(error.to_string()),
        Ok((_, damages)) if !damages.is_empty() => {
            Seen::Reported(format!("{} damages, {}", damages.len(), damages[0].what))
        }
        Ok((read, _)) if texts.starts_with(&read) => Seen::Beginning(read.len()),
        Ok((read, _)) => {
            Seen::Wrong(format!("{} messages, the last {:?}", read.len(), read.last()))
        }
    })
}
