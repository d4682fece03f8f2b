//! Transcripts that are appended to and erased.
//!
//! Each worker appends to one transcript, which has an owner of its own. After the owner was erased it begins another. Every
//! second one is projected: its session has a message for each entry, also after a kill.
//! An erasure is many transactions: a killed one leaves the first entries or none, and the same call finishes it.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};
use talktree::{Erased, Erasure, Json, Store, TranscriptKey};
use talktree_claude::SessionStore;

use super::check::Check;
use super::worker::{self, expect};
use crate::Result;
use crate::text::TextSpec;

/// The entries of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntriesSpec {
    /// The beginning of the first word of each; no other text contains it.
    pub(crate) stem: String,
    pub(crate) count: u32,
}

impl EntriesSpec {
    fn entries(&self) -> Vec<Json> {
        let entry = |number| {
            let text = TextSpec { word: format!("{}n{number}", self.stem), length: number % 40 };
            let message = serde_json::json!({"role": "user", "content": text.render()});
            serde_json::json!({"type": "user", "uuid": text.word, "message": message}).into()
        };
        (0..self.count).map(entry).collect()
    }
}

/// The transcripts of one worker.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcripts {
    /// What was appended to the present one.
    pub(crate) entries: Vec<EntriesSpec>,
    /// How many were erased.
    generation: u32,
    /// The name and the entries of the one that was erased last.
    erased: Option<(String, Vec<EntriesSpec>)>,
    /// Whether the process that erased it was killed.
    pub(crate) is_erasure_unfinished: bool,
}

impl Transcripts {
    /// Returns the name of the present one.
    pub(crate) fn current(&self, worker: &str) -> String {
        format!("{worker}t{}", self.generation)
    }

    /// Returns the name of the one to erase next.
    pub(crate) fn next_to_erase(&self, worker: &str) -> Option<String> {
        match self.unfinished() {
            Some(name) => Some(name.to_owned()),
            None => (!self.entries.is_empty()).then(|| self.current(worker)),
        }
    }

    /// Returns the name of the one of which a killed erasure may have left something.
    pub(crate) fn unfinished(&self) -> Option<&str> {
        self.erased.as_ref().filter(|_| self.is_erasure_unfinished).map(|(name, _)| name.as_str())
    }

    /// Applies an erasure.
    pub(crate) fn erase(&mut self, transcript: &str) {
        self.is_erasure_unfinished = false;
        if self.erased.as_ref().is_none_or(|(name, _)| name != transcript) {
            self.erased = Some((transcript.to_owned(), std::mem::take(&mut self.entries)));
            self.generation += 1;
        }
    }
}

fn key(transcript: &str) -> TranscriptKey {
    TranscriptKey::new("project", transcript)
}

fn entries_of(specs: &[EntriesSpec]) -> Vec<Json> {
    specs.iter().flat_map(EntriesSpec::entries).collect()
}

fn load(store: &Store, transcript: &str) -> Result<Vec<Json>> {
    Ok(store.transcripts().load(&key(transcript))?.unwrap_or_default())
}

/// Returns whether a transcript is projected.
fn is_projected(transcript: &str) -> bool {
    transcript.bytes().last().is_some_and(|digit| digit % 2 == 0)
}

pub(super) fn append(store: &Store, transcript: &str, entries: &EntriesSpec) -> Result<()> {
    let transcripts = SessionStore::new(store).owned_by(transcript);
    let transcripts = if is_projected(transcript) { transcripts.projecting() } else { transcripts };
    let added = transcripts.append(&key(transcript), &entries.entries())?.added;
    expect(added == u64::from(entries.count), "a new entry is reported as known")
}

/// Erases the owner of a transcript, and so the transcript.
pub(super) fn erase(store: &Store, transcript: &str) -> Result<Erased> {
    Ok(store.erase(&Erasure::owner(transcript))?)
}

impl Check<'_> {
    /// Returns whether a transcript has the entries of a killed append; some of them is a fault.
    pub(super) fn has_entries(
        &mut self,
        before: &Transcripts,
        transcript: &str,
        entries: &EntriesSpec,
    ) -> Result<bool> {
        let found = load(self.store, transcript)?;
        let mut should = entries_of(&before.entries);
        if found == should {
            return Ok(false);
        }
        should.extend(entries.entries());
        if found != should {
            let count = found.len();
            self.findings.faults.push(format!(
                "{transcript}: {count} entries are neither before nor after the last append"
            ));
        }
        Ok(true)
    }

    /// Erases again what a killed process erased; `false` if the store is read-only.
    pub(super) fn finish_erasure(&mut self, transcript: &str) -> Result<bool> {
        if self.is_read_only {
            return Ok(false);
        }
        let erased = erase(self.store, transcript)?;
        if !erased.is_complete() {
            self.findings.faults.push(format!("the log is in use after {transcript} was erased"));
        }
        // What the killed process has deleted is not known here; the marks of its texts are looked for later.
        let found = match erased.scan() {
            Err(talktree::Error::NotProved) => Vec::new(),
            found => found?.occurrences,
        };
        for (path, offset) in found {
            let bytes = bytes_at(&path, offset)?;
            self.findings
                .faults
                .push(format!("{transcript} was erased: {path:?} has {bytes} at {offset}"));
        }
        Ok(true)
    }

    /// Checks that the present transcript has what was appended, and that nothing is left of the erased one.
    pub(super) fn check_transcripts(&mut self, worker: &str, model: &Transcripts) -> Result<()> {
        let transcript = model.current(worker);
        let (found, should) = (load(self.store, &transcript)?, entries_of(&model.entries));
        if found != should {
            let (found, should) = (found.len(), should.len());
            self.findings
                .faults
                .push(format!("{transcript}: {found} other entries instead of {should}"));
        }
        if is_projected(&transcript) {
            self.check_projection(&transcript, &found)?;
        }
        let Some((erased, specs)) = &model.erased else { return Ok(()) };
        let mut left = load(self.store, erased)?;
        if model.is_erasure_unfinished {
            if !entries_of(specs).starts_with(&left) {
                self.findings.faults.push(format!("{erased}: its beginning is not what is left"));
            }
            if !self.finish_erasure(erased)? {
                return Ok(());
            }
            left = load(self.store, erased)?;
        }
        if self.store.session(erased.as_str())?.info()?.is_some() {
            self.findings.faults.push(format!("{erased} was erased, but its session is there"));
        }
        if !left.is_empty() {
            let left = left.len();
            self.findings.faults.push(format!("{erased} was erased, but has {left} entries"));
        }
        // Another process may have read from the log, which then has it still.
        if !self.is_read_only && self.store.finish_erasure()? {
            for spec in specs {
                let mark = format!("{}n", spec.stem);
                let count = count_in_files(&worker::store_in(self.folder), &mark)?;
                if count > 0 {
                    self.findings
                        .faults
                        .push(format!("{erased}: {count} times {mark} in the files"));
                }
            }
        }
        Ok(())
    }
}

impl Check<'_> {
    /// Checks that the session of a transcript has its entries, each after the one before.
    fn check_projection(&mut self, transcript: &str, entries: &[Json]) -> Result<()> {
        let shown = self.store.session(transcript)?.raw_history()?;
        let uuid = |entry: &Json| entry.value()["uuid"].as_str().map(str::to_owned);
        let ids = shown.iter().map(|message| Some(message.id.to_string()));
        if !ids.eq(entries.iter().map(uuid)) {
            let (shown, count) = (shown.len(), entries.len());
            self.findings
                .faults
                .push(format!("{transcript}: its session shows {shown} of {count} entries"));
        }
        Ok(())
    }
}

/// Returns the bytes at a place of a file and around it.
fn bytes_at(path: &Path, offset: u64) -> Result<String> {
    let bytes = read(path)?;
    let at = usize::try_from(offset)?.min(bytes.len());
    let (from, to) = (at.saturating_sub(40), bytes.len().min(at + 56));
    Ok(format!(
        "{:?} | {:?}",
        bytes[from..at].escape_ascii().to_string(),
        bytes[at..to].escape_ascii().to_string()
    ))
}

/// Returns the bytes of a file of a store.
///
/// Another process reads them: to close a descriptor here would drop SQLite's locks.
fn read(path: &Path) -> Result<Vec<u8>> {
    Ok(Command::new("cat").arg(path).output()?.stdout)
}

/// Returns how often a text is in the bytes of a store.
fn count_in_files(store: &Path, mark: &str) -> Result<usize> {
    let mut count = 0;
    for suffix in ["", "-wal", "-shm"] {
        let mut path = store.as_os_str().to_owned();
        path.push(suffix);
        let bytes = read(path.as_ref())?;
        count += bytes.windows(mark.len()).filter(|window| *window == mark.as_bytes()).count();
    }
    Ok(count)
}
