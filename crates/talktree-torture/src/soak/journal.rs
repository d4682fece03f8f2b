//! The journal of a writing thread: the writes that it began, and those that were acknowledged. It survives a kill of the
//! process.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
pub(crate) struct Journal {
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
    pub(crate) acknowledged: u64,
    pub(crate) erasures: u64,
    /// Begun, and not acknowledged yet.
    pub(super) unfinished: Option<Erasure>,
    pub(crate) faults: Vec<String>,
    /// How long each verb took.
    pub(super) times: BTreeMap<String, Vec<Duration>>,
    /// How long the verbs of a turn took together.
    pub(super) turns: Vec<Duration>,
}

pub(crate) fn path_of(folder: &Path, slot: u32) -> PathBuf {
    folder.join(format!("slot-{slot}.log"))
}

/// Returns about how many messages were written, by the size of the journals.
pub(crate) fn written(folder: &Path, slots: u32) -> u64 {
    /// Of a message: `begin zq123e0c1234n100zq` and `done append=350`, or `done` with three times.
    const BYTES: u64 = 52;
    let size = |slot| std::fs::metadata(path_of(folder, slot)).map_or(0, |log| log.len());
    (0..slots).map(size).sum::<u64>() / BYTES
}

impl Journal {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut journal = Self::default();
        let Ok(file) = File::open(path) else { return Ok(journal) };
        let mut begun = None;
        for line in BufReader::new(file).lines() {
            journal.take(&line?, &mut begun)?;
        }
        journal.unknown.extend(begun);
        Ok(journal)
    }

    /// Returns how many messages may be there.
    #[cfg(feature = "postgres")]
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown.len() as u64
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
                let times = self.take_times(rest)?;
                if times.len() > 1 {
                    self.turns.push(times.iter().sum());
                }
            }
            "erase-owner" => self.erase(Erasure::Owner(rest.parse()?)),
            "erase-message" => self.erase(Erasure::Message(mark()?)),
            "erased" => {
                self.unfinished = None;
                self.erasures += 1;
                self.take_times(rest)?;
            }
            "fault" => self.faults.push(rest.to_owned()),
            _ => return Err(format!("unknown line {line:?}").into()),
        }
        Ok(())
    }

    /// Takes times such as `resume=210 append=350`, in microseconds.
    fn take_times(&mut self, text: &str) -> Result<Vec<Duration>> {
        let time = |time: &str| -> Result<Duration> {
            let (verb, micros) = time.split_once('=').ok_or("a time without a verb")?;
            let time = Duration::from_micros(micros.parse()?);
            self.times.entry(verb.to_owned()).or_default().push(time);
            Ok(time)
        };
        text.split_whitespace().map(time).collect()
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

/// How long verbs took.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// Runs a verb and takes its time.
    pub(super) fn of<T>(&mut self, verb: &'static str, run: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = run();
        self.0.push((verb, began.elapsed()));
        answer
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(verb, time)| write!(f, " {verb}={}", time.as_micros()))
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

    /// Notes that what was begun is done, and how long each verb took.
    pub(super) fn done(&mut self, times: &Times) -> Result<()> {
        self.write(format!("done{times}"))
    }

    pub(super) fn begin_erasure(&mut self, erasure: Erasure) -> Result<()> {
        self.write(match erasure {
            Erasure::Owner(owner) => format!("erase-owner {owner}"),
            Erasure::Message(mark) => format!("erase-message {mark}"),
        })
    }

    pub(super) fn erased(&mut self, times: &Times) -> Result<()> {
        self.write(format!("erased{times}"))
    }

    pub(super) fn fault(&mut self, what: &str) -> Result<()> {
        self.write(format!("fault {}", what.replace('\n', " ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_verbs_are_read_as_they_were_written() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = path_of(folder.path(), 0);
        let mut writer = JournalWriter::open(&path)?;
        let mark = writer.journal.next_mark(1, 2);
        writer.begin(mark)?;
        let millis = Duration::from_millis;
        writer.done(&Times(vec![("resume", millis(2)), ("append", millis(3))]))?;
        writer.begin(writer.journal.next_mark(1, 2))?;
        writer.done(&Times(vec![("append", millis(7))]))?;
        writer.begin_erasure(Erasure::Owner(1))?;
        writer.erased(&Times(vec![("erase", millis(40))]))?;
        let read = Journal::read(&path)?;
        assert_eq!((read.acknowledged, read.erasures, read.turns), (2, 1, vec![millis(5)]));
        assert_eq!(read.times["append"], [millis(3), millis(7)]);
        assert_eq!(
            (&read.times["resume"], &read.times["erase"]),
            (&vec![millis(2)], &vec![millis(40)])
        );
        Ok(())
    }
}
