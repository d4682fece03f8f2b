//! The recorded changes of the disk, and what a power cut leaves of them.
//!
//! A file is its *durable* content (as of its last sync) and the changes since. A power cut keeps each of these changes
//! completely, in single sectors, or not at all, in any combination. The creation or removal of a file is durable once
//! its folder was synced.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// The smallest unit that a disk writes atomically.
const SECTOR: usize = 512;
/// The length of what precedes each page in a write-ahead log.
const FRAME_HEADER: usize = 24;

/// The files of a store, by name.
pub type Files = Vec<(PathBuf, Vec<u8>)>;

/// Writes files into a folder; returns the path of the store, which is `talk.db`.
///
/// # Errors
/// As writing.
pub fn write_files(files: &Files, folder: &Path) -> std::io::Result<PathBuf> {
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(folder.join("talk.db"))
}

/// One change of the disk; `file` is the number of a path in the record.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum Event {
    /// A file was opened, and created if it did not exist.
    Open { file: usize },
    /// Bytes were written.
    Write { file: usize, at: usize, bytes: Box<[u8]> },
    /// The length was set.
    Truncate { file: usize, size: usize },
    /// The file was synced, and maybe its folder.
    Sync { file: usize, with_folder: bool },
    /// The file was removed.
    Delete { file: usize, with_folder: bool },
}

/// All changes of the disk, in order; it is one folder.
#[derive(Debug, Default)]
pub struct Record {
    paths: Vec<PathBuf>,
    numbers: HashMap<PathBuf, usize>,
    events: Vec<Event>,
}

impl Record {
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns whether no event was recorded.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the number of syncs.
    pub fn syncs(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Sync { .. })).count()
    }

    /// Returns the positions after each commit to a write-ahead log from this position on.
    pub fn commits(&self, from: usize) -> Vec<usize> {
        let is_commit = |event: &Event| match event {
            // The header of the last page of a commit holds the size of the database.
            Event::Write { bytes, .. } => {
                bytes.len() == FRAME_HEADER && bytes[4..8].iter().any(|byte| *byte != 0)
            }
            _ => false,
        };
        let headers = (from..self.len()).filter(|at| is_commit(&self.events[*at]));
        // The page follows.
        headers.map(|at| self.len().min(at + 2)).collect()
    }

    pub(super) fn push(&mut self, path: &Path, event: impl FnOnce(usize) -> Event) {
        let next = self.paths.len();
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        let file = *self.numbers.entry(name.clone()).or_insert(next);
        if file == next {
            self.paths.push(name);
        }
        self.events.push(event(file));
    }
}

/// A file on the disk.
#[derive(Debug, Default, Clone)]
struct DiskFile {
    is_there: bool,
    /// Whether it is in the durable content of its folder.
    is_there_for_sure: bool,
    durable: Vec<u8>,
    /// The numbers of the events since the last sync.
    pending: Vec<usize>,
}

/// How many writes a power cut destroyed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Cut {
    /// Writes that were lost.
    pub dropped: u64,
    /// Writes of which some sectors were lost.
    pub torn: u64,
}

/// The disk at a moment of a record.
#[derive(Debug)]
pub struct Disk<'r> {
    record: &'r Record,
    position: usize,
    files: Vec<DiskFile>,
    /// Whether syncs are ignored, as by a lying disk.
    is_lying: bool,
}

impl<'r> Disk<'r> {
    /// Returns the empty disk on which the record began.
    pub fn new(record: &'r Record, is_lying: bool) -> Self {
        let files = vec![DiskFile::default(); record.paths.len()];
        Self { record, position: 0, files, is_lying }
    }

    /// Returns the disk on which the record began, with these files.
    pub fn with_files(record: &'r Record, files: &Files) -> Self {
        let mut disk = Self::new(record, false);
        for (file, path) in disk.files.iter_mut().zip(&record.paths) {
            if let Some((_, content)) = files.iter().find(|(name, _)| name == path) {
                let durable = content.clone();
                *file = DiskFile {
                    is_there: true,
                    is_there_for_sure: true,
                    durable,
                    pending: Vec::new(),
                };
            }
        }
        disk
    }

    /// Applies the events before this position.
    pub fn advance(&mut self, position: usize) {
        while self.position < position.min(self.record.len()) {
            let number = self.position;
            self.position += 1;
            match &self.record.events[number] {
                Event::Open { file } => {
                    let file = &mut self.files[*file];
                    if !file.is_there {
                        *file = DiskFile { is_there: true, ..DiskFile::default() };
                    }
                }
                Event::Write { file, .. } | Event::Truncate { file, .. } => {
                    self.files[*file].pending.push(number);
                }
                Event::Sync { .. } if self.is_lying => {}
                Event::Sync { file, with_folder } => {
                    let file = &mut self.files[*file];
                    for change in std::mem::take(&mut file.pending) {
                        apply(&self.record.events[change], &mut file.durable, |_| true);
                    }
                    if *with_folder {
                        self.sync_folder();
                    }
                }
                Event::Delete { file, with_folder } => {
                    self.files[*file].is_there = false;
                    if *with_folder {
                        self.sync_folder();
                    }
                }
            }
        }
    }

    fn sync_folder(&mut self) {
        for file in &mut self.files {
            file.is_there_for_sure = file.is_there;
        }
    }

    /// Returns the files, by name, as a process leaves them that is killed at this moment: the system has every change.
    pub fn kill(&self) -> Files {
        let mut left = Vec::new();
        for (file, path) in self.files.iter().zip(&self.record.paths) {
            if file.is_there {
                let mut content = file.durable.clone();
                for change in &file.pending {
                    apply(&self.record.events[*change], &mut content, |_| true);
                }
                left.push((path.clone(), content));
            }
        }
        left
    }

    /// Returns the files as a power cut at this moment may leave them.
    pub fn power_cut(&self, dice: &mut Rng, cut: &mut Cut) -> Files {
        let mut left = Vec::new();
        // Some cuts keep every change, some none.
        let keep = [0.0, 0.3, 0.7, 0.95, 1.0][dice.usize(..5)];
        for (file, path) in self.files.iter().zip(&self.record.paths) {
            let is_sure = file.is_there == file.is_there_for_sure;
            let is_there = if is_sure { file.is_there } else { dice.bool() };
            if !is_there {
                continue;
            }
            let mut content = file.durable.clone();
            for change in &file.pending {
                let event = &self.record.events[*change];
                if dice.f64() < keep {
                    apply(event, &mut content, |_| true);
                } else if dice.f64() < 0.3 {
                    apply(event, &mut content, |_| dice.bool());
                    cut.torn += 1;
                } else {
                    cut.dropped += 1;
                }
            }
            left.push((path.clone(), content));
        }
        left
    }
}

/// Applies a write to the content of a file, in the sectors for which `keeps` returns true.
fn apply(event: &Event, content: &mut Vec<u8>, mut keeps: impl FnMut(usize) -> bool) {
    match event {
        Event::Truncate { size, .. } => content.resize(*size, 0),
        Event::Write { at, bytes, .. } => {
            let mut from = 0;
            while from < bytes.len() {
                // Up to the next sector boundary.
                let sector = (at + from) / SECTOR;
                let to = bytes.len().min((sector + 1) * SECTOR - at);
                if keeps(sector) {
                    let end = at + to;
                    if content.len() < end {
                        content.resize(end, 0);
                    }
                    content[at + from..end].copy_from_slice(&bytes[from..to]);
                }
                from = to;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(events: &[Event]) -> Record {
        let mut record = Record::default();
        for event in events {
            record.push(Path::new("f"), |_| event.clone());
        }
        record
    }

    fn write(at: usize, byte: u8, count: usize) -> Event {
        Event::Write { file: 0, at, bytes: vec![byte; count].into() }
    }

    #[test]
    fn synced_bytes_are_kept_and_others_may_be_lost_or_torn() {
        let sync = Event::Sync { file: 0, with_folder: true };
        let record =
            record(&[Event::Open { file: 0 }, write(0, 1, 600), sync, write(100, 2, 1_000)]);
        let mut disk = Disk::new(&record, false);
        disk.advance(4);
        let (mut kept, mut torn, mut gone) = (0, 0, 0);
        let mut dice = Rng::with_seed(1);
        for _ in 0..200 {
            let mut cut = Cut::default();
            let left = disk.power_cut(&mut dice, &mut cut);
            let content = &left[0].1;
            assert_eq!(content[..100], [1; 100]);
            match (content.len(), content[100], content[512]) {
                (600, 1, 1) => gone += 1,
                (1_100, 2, 2) => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(kept > 10 && torn > 10 && gone > 10, "{kept} {torn} {gone}");
    }

    #[test]
    fn a_file_whose_folder_was_not_synced_may_be_missing() {
        let sync = Event::Sync { file: 0, with_folder: false };
        let record = record(&[Event::Open { file: 0 }, write(0, 1, 10), sync]);
        let mut disk = Disk::new(&record, false);
        disk.advance(3);
        let mut dice = Rng::with_seed(1);
        let there =
            (0..100).filter(|_| !disk.power_cut(&mut dice, &mut Cut::default()).is_empty()).count();
        assert!((20..80).contains(&there), "{there}");
    }
}
