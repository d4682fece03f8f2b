//! What happens to the path of a store while it is open: a change of the current folder, links pointed elsewhere, a
//! rename, a rotation, a removal, further names, mounts, odd names, imports of its own files.
//!
//! After each attack the handle writes and reads. What it acknowledges must be in the file that the path leads to, at
//! once and for another connection. Once the file is elsewhere, every verb must say so and write nothing. In the end the
//! store is opened under the name it has then: it holds exactly what was acknowledged, and is sound.

mod attack;

use std::path::{Path, PathBuf};

use fastrand::Rng;
use rusqlite::{Connection, OpenFlags};
use talktree::{Durability, Error, Message, Store};

use crate::process::Worker;
use crate::{Report, Result};
use attack::Attack;

/// How many stores are attacked.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// How many stores are attacked.
    #[arg(long, default_value_t = 1_500)]
    pub rounds: u64,
    /// Repeat only this round.
    #[arg(long)]
    pub round: Option<u64>,
    /// The program to start as another process, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
}

/// The most attacks on one store.
const MAX_ATTACKS: usize = 8;

const NAMES: &[&str] = &[
    "bot.db",
    "file:bot.db",
    "file:bot.db?mode=memory",
    "a?b#c%20.db",
    "-wal.db",
    "x.db-wal2",
    "x-journal.db",
    " ",
    "好.db",
    "a'b\"c.db",
    "%2e%2e",
    "new\nline.db",
    ":memory:x",
];

/// Attacks the paths of stores.
///
/// # Errors
/// If a folder or a process cannot be made.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let home = std::env::current_dir()?;
    let mut figures = Figures::default();
    let can_mount = start_with_mount(&home, &home, ["true"]).and_then(Worker::wait).is_ok();
    let rounds = args.round.map_or(0..args.rounds, |round| round..round + 1);
    for number in rounds {
        let mut dice = Rng::with_seed(report.seed() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let played = Round::begin(args, can_mount, &mut dice)
            .and_then(|round| round.play(&mut dice, &mut figures));
        // The folder of the round is removed now.
        std::env::set_current_dir(&home)?;
        if let Err(what) = played {
            report.failure(
                what,
                format!("just torture paths --seed {} --round {number}", report.seed()),
            );
        }
    }
    report.fact("attacks", figures.attacks);
    report.fact("files and folders can be mounted", if can_mount { "yes" } else { "no" });
    report.fact("stores that were moved", figures.moved);
    report.fact("writes acknowledged", figures.acknowledged);
    report.fact("calls refused after a move", figures.refused);
    Ok(())
}

#[derive(Default)]
struct Figures {
    attacks: u64,
    moved: u64,
    acknowledged: u64,
    refused: u64,
}

/// One store and what was acknowledged.
struct Round {
    folder: tempfile::TempDir,
    program: Option<PathBuf>,
    can_mount: bool,
    store: Store,
    /// The file that the store was opened as.
    path: PathBuf,
    /// The name that the store was opened with.
    given: PathBuf,
    acknowledged: Vec<String>,
    /// Where the file is, once it was moved; `None` inside if it has no name any more.
    moved: Option<Option<PathBuf>>,
    /// Hard links of the file.
    further: Vec<PathBuf>,
}

impl Round {
    fn begin(args: &Args, can_mount: bool, dice: &mut Rng) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?;
        for name in ["home", "elsewhere", "target"] {
            std::fs::create_dir(root.join(name))?;
        }
        let name = NAMES[dice.usize(..NAMES.len())];
        std::env::set_current_dir(root.join("home"))?;
        let (given, path) = match dice.u8(..4) {
            0 => (PathBuf::from(name), root.join("home").join(name)),
            1 => (root.join("home").join(name), root.join("home").join(name)),
            _ => {
                let path = root.join("target").join(name);
                drop(Store::open(&path)?);
                link(&path, &root.join("home/link"))?;
                let given = if dice.bool() { "link".into() } else { root.join("home/link") };
                (given, path)
            }
        };
        let durability = if dice.bool() { Durability::Full } else { Durability::Normal };
        let options = Store::options().durability(durability).idle_readers(dice.usize(..3));
        let store = options.open(&given)?;
        let program = args.program.clone();
        let (acknowledged, further) = (Vec::new(), Vec::new());
        let moved = None;
        Ok(Self { folder, program, can_mount, store, path, given, acknowledged, moved, further })
    }

    /// Starts a process that has `from` mounted at `to`, and that alone, and appends a message to a store.
    fn visit_with_mount(&self, from: &Path, to: &Path, store: &Path, id: &str) -> Result<Worker> {
        let program = self.program.clone().map_or_else(std::env::current_exe, Ok)?;
        let [program, store] = [&*program, store].map(|path| path.to_str().unwrap_or_default());
        start_with_mount(from, to, [program, "visit", store, "--append", id])
    }

    /// Removes all names but the one that the store was opened by.
    fn remove_further(&mut self) -> Result<()> {
        self.further.drain(..).try_for_each(std::fs::remove_file).map_err(Into::into)
    }

    fn root(&self) -> Result<PathBuf> {
        Ok(self.folder.path().canonicalize()?)
    }

    fn play(mut self, dice: &mut Rng, figures: &mut Figures) -> Result<()> {
        self.write(figures)?;
        for _ in 0..dice.usize(1..=MAX_ATTACKS) {
            let attack = Attack::random(dice);
            attack.strike(&mut self, dice).map_err(|error| format!("{attack:?}: {error}"))?;
            figures.attacks += 1;
            for _ in 0..dice.usize(1..4) {
                self.write(figures).map_err(|error| format!("after {attack:?}: {error}"))?;
                self.read(figures).map_err(|error| format!("after {attack:?}: {error}"))?;
            }
            if self.moved.is_some() {
                figures.moved += 1;
                break;
            }
        }
        self.remove_further()?;
        let Self { folder, store, path, acknowledged, moved, .. } = self;
        drop(store);
        let place = match moved {
            None => path,
            Some(Some(place)) => {
                // The log and the database move together.
                for suffix in ["-wal", "-shm"] {
                    let (from, to) = (beside(&path, suffix), beside(&place, suffix));
                    if from.exists() && !to.exists() && !path.exists() {
                        std::fs::rename(from, to)?;
                    }
                }
                place
            }
            Some(None) => return Ok(()),
        };
        let store = Store::open(&place)?;
        let held: Vec<String> = store
            .session("s")?
            .raw_history()?
            .into_iter()
            .map(|message| message.id.to_string())
            .collect();
        if held != acknowledged {
            return Err(format!(
                "{} messages acknowledged, {} held",
                acknowledged.len(),
                held.len()
            )
            .into());
        }
        let damages = store.verify(|_| {})?.damages;
        drop(folder);
        if damages.is_empty() { Ok(()) } else { Err(format!("damage: {damages:?}").into()) }
    }

    /// Appends a message; if that is acknowledged, another connection to the path must find it at once.
    fn write(&mut self, figures: &mut Figures) -> Result<()> {
        let id = format!("m{}", self.acknowledged.len());
        let answer = self.store.session("s")?.append(Message::user("hello").with_id(id.as_str()));
        match answer {
            Ok(_) if self.moved.is_some() => Err(format!("{id} was acknowledged").into()),
            Ok(_) => {
                figures.acknowledged += 1;
                let other =
                    Connection::open_with_flags(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                let sql = "SELECT count(*) FROM message WHERE id = ?1";
                let count: u32 = other.query_row(sql, [&id], |row| row.get(0))?;
                self.acknowledged.push(id);
                if count == 1 { Ok(()) } else { Err("an acknowledged message is nowhere".into()) }
            }
            Err(Error::StoreMoved { .. }) if self.moved.is_some() => {
                figures.refused += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, figures: &mut Figures) -> Result<()> {
        match self.store.session("s")?.path_length() {
            Ok(length) if self.moved.is_none() && length == self.acknowledged.len() as u64 => {
                Ok(())
            }
            Ok(length) => Err(format!("a read finds {length} messages").into()),
            Err(Error::StoreMoved { .. }) if self.moved.is_some() => {
                figures.refused += 1;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Starts a program in a mount namespace of its own, in which `from` is mounted at `to`.
fn start_with_mount<'a>(
    from: &'a Path,
    to: &'a Path,
    command: impl IntoIterator<Item = &'a str>,
) -> Result<Worker> {
    let mount = "mount --bind \"$1\" \"$2\" && shift 2 && exec \"$@\"";
    let [from, to] = [from, to].map(|path| path.to_str().unwrap_or_default());
    let args = ["--map-root-user", "--mount", "sh", "-c", mount, "sh", from, to];
    Worker::start(Some(Path::new("unshare")), args.into_iter().chain(command))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
fn link(target: &Path, name: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, name)
}

#[cfg(not(unix))]
fn link(target: &Path, name: &Path) -> std::io::Result<()> {
    std::fs::hard_link(target, name)
}
