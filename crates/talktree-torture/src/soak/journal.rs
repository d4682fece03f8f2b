//! The journal of a writing thread: the writes that it began, and those that were acknowledged. It survives a kill of the
//! process.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mark::{Kind, Mark};
use crate::Result;

/// An erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erasure {
    Owner(u32),
    Message(Mark),
}

/// The content of a journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// How often each owner was erased, erasures that were only begun included.
    pub(super) epochs: BTreeMap<u32, u32>,
    /// The next number in each chat.
    pub(super) next: HashMap<u32, u32>,
    /// The acknowledged messages that were not erased.
    pub(super) present: BTreeSet<Mark>,
    /// Messages that may be there: their process was killed before it knew.
    pub(super) unknown: HashSet<Mark>,
    /// Messages that were erased one by one.
    pub(super) erased: HashSet<Mark>,
    pub(super) acknowledged: u64,
    pub(super) erasures: u64,
    /// Begun, and not acknowledged yet.
    pub(super) unfinished: Option<Erasure>,
    pub(super) faults: Vec<String>,
    pub(super) times: Vec<Duration>,
}

pub(super) fn path_of(folder: &Path, slot: u32) -> PathBuf {
    folder.join(format!("slot-{slot}.log"))
}

impl Journal {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut journal = Self::default();
        let Ok(file) = File::open(path) else { return Ok(journal) };
        let mut begun = None;
        for line in BufReader::new(file).lines() {
            journal.take(&line?, &mut begun)?;
        }
        journal.unknown.extend(begun);
        Ok(journal)
    }

    fn take(&mut self, line: &str, begun: &mut Option<Mark>) -> Result<()> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mark = || Mark::all(rest.as_bytes()).next().ok_or("a line without a mark");
        match kind {
            "begin" => {
                // What was begun before and not acknowledged was cut off by a kill.
                self.unknown.extend(begun.take());
                let mark = mark()?;
                self.next.insert(mark.chat, mark.number + 1);
                *begun = Some(mark);
            }
            "done" => {
                self.present.extend(begun.take());
                self.acknowledged += 1;
                if let Ok(micros) = rest.parse() {
                    self.times.push(Duration::from_micros(micros));
                }
            }
            "erase-owner" => self.erase(Erasure::Owner(rest.parse()?)),
            "erase-message" => self.erase(Erasure::Message(mark()?)),
            "erased" => {
                self.unfinished = None;
                self.erasures += 1;
            }
            "fault" => self.faults.push(rest.to_owned()),
            _ => return Err(format!("unknown line {line:?}").into()),
        }
        Ok(())
    }

    fn erase(&mut self, erasure: Erasure) {
        // A repeated erasure, after a kill.
        if self.unfinished == Some(erasure) {
            return;
        }
        self.unfinished = Some(erasure);
        match erasure {
            Erasure::Owner(owner) => {
                *self.epochs.entry(owner).or_default() += 1;
                self.present.retain(|mark| mark.owner != owner);
                self.unknown.retain(|mark| mark.owner != owner);
            }
            Erasure::Message(mark) => {
                self.present.remove(&mark);
                self.erased.insert(mark);
            }
        }
    }

    /// Returns the mark of the next message of a chat.
    pub(super) fn next_mark(&self, owner: u32, chat: u32) -> Mark {
        let epoch = self.epochs.get(&owner).copied().unwrap_or_default();
        let number = self.next.get(&chat).copied().unwrap_or_default();
        Mark { owner, epoch, chat, kind: Kind::Message, number }
    }
}

/// Writes a journal, and keeps its content in memory.
pub(super) struct JournalWriter {
    pub(super) journal: Journal,
    file: File,
    begun: Option<Mark>,
}

impl JournalWriter {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let journal = Journal::read(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { journal, file, begun: None })
    }

    fn write(&mut self, line: String) -> Result<()> {
        // One system call a line: a killed process leaves whole lines.
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.journal.take(&line, &mut self.begun)
    }

    pub(super) fn begin(&mut self, mark: Mark) -> Result<()> {
        self.write(format!("begin {mark}"))
    }

    /// Notes that what was begun is done; `time` is that of the whole turn until then.
    pub(super) fn done(&mut self, time: Option<Duration>) -> Result<()> {
        let micros = time.map(|time| time.as_micros().to_string()).unwrap_or_default();
        self.write(format!("done {micros}"))
    }

    pub(super) fn begin_erasure(&mut self, erasure: Erasure) -> Result<()> {
        self.write(match erasure {
            Erasure::Owner(owner) => format!("erase-owner {owner}"),
            Erasure::Message(mark) => format!("erase-message {mark}"),
        })
    }

    pub(super) fn erased(&mut self) -> Result<()> {
        self.write("erased".to_owned())
    }

    pub(super) fn fault(&mut self, what: &str) -> Result<()> {
        self.write(format!("fault {}", what.replace('\n', " ")))
    }
}
