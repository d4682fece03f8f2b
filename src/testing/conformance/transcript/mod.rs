//! The conformance suite of [`TranscriptStore`]. Each rule runs on an empty storage.
//!
//! The rules of `contract` are those of the agent SDK's own suites; the others add to them.

mod contract;
mod entries;
mod owners;
mod summaries;
mod times;

use std::sync::Arc;

use crate::error::Result;
use crate::message::Json;
use crate::storage::transcript::TranscriptStore;
use crate::transcript::{AppendedEntries, TranscriptKey};

/// Tests the storages that `make` returns against the contract of [`TranscriptStore`].
///
/// `make` is called for each rule and returns an empty storage.
///
/// ```
/// use std::sync::Arc;
/// use talktree::testing::{MemoryTranscripts, conformance_of_transcripts};
///
/// conformance_of_transcripts(|| Arc::new(MemoryTranscripts::new())); // replace with your own
/// ```
///
/// # Panics
/// If a rule is broken. The message names the rule.
pub fn conformance_of_transcripts(mut make: impl FnMut() -> Arc<dyn TranscriptStore>) {
    for (rule, check) in RULES {
        if let Err(error) = check(&Probe { storage: make() }) {
            panic!("{rule}: {error}");
        }
    }
}

/// A storage under test.
struct Probe {
    storage: Arc<dyn TranscriptStore>,
}

/// Returns the key of a project and a session, and perhaps a subpath: `p/s`, `p/s/subagents/agent-1`.
fn key(path: &str) -> TranscriptKey {
    let mut parts = path.splitn(3, '/');
    let mut next = || parts.next().unwrap_or_default().to_owned();
    TranscriptKey::new(next(), next()).subpath(next())
}

fn entry(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns entries that differ: a word is the `uuid` of one; `.` is one without.
fn entries(uuids: &str) -> Vec<Json> {
    let one = |(n, uuid): (usize, &str)| match uuid {
        "." => entry(&format!(r#"{{"type":"x","n":{n}}}"#)),
        uuid => entry(&format!(r#"{{"type":"x","uuid":"{uuid}","n":{n}}}"#)),
    };
    uuids.split_whitespace().enumerate().map(one).collect()
}

impl Probe {
    fn append(&self, path: &str, entries: &[Json]) -> Result<AppendedEntries> {
        self.storage.append(&key(path), entries, None)
    }

    /// Appends entries that are drawn as by [`entries()`].
    fn say(&self, path: &str, uuids: &str) -> Result<AppendedEntries> {
        self.append(path, &entries(uuids))
    }

    fn load(&self, path: &str) -> Result<Option<Vec<Json>>> {
        self.storage.load(&key(path))
    }

    /// Returns the texts of a transcript's entries.
    fn texts(&self, path: &str) -> Result<Vec<String>> {
        let entries = self.load(path)?.unwrap_or_default();
        Ok(entries.iter().map(|entry| entry.as_str().to_owned()).collect())
    }

    fn sessions(&self, project: &str) -> Result<Vec<String>> {
        let listed = self.storage.list_sessions(project)?;
        let mut ids: Vec<String> = listed.into_iter().map(|listed| listed.session).collect();
        ids.sort();
        Ok(ids)
    }

    fn subpaths(&self, path: &str) -> Result<Vec<String>> {
        let key = key(path);
        let mut subpaths = self.storage.list_subkeys(&key.project, &key.session)?;
        subpaths.sort();
        Ok(subpaths)
    }

    fn mtime(&self, path: &str) -> Result<Option<i64>> {
        let key = key(path);
        let listed = self.storage.list_sessions(&key.project)?;
        Ok(listed.into_iter().find(|listed| listed.session == key.session).map(|l| l.mtime))
    }

    /// Returns the summary's data of a session.
    fn data(&self, path: &str) -> Result<Option<Json>> {
        let key = key(path);
        let one = self.storage.session_summary(&key.project, &key.session)?;
        let listed = self.storage.list_session_summaries(&key.project)?;
        let listed = listed.into_iter().find(|summary| summary.session == key.session);
        assert_eq!(one, listed, "a summary is the same alone and in the list");
        Ok(one.map(|summary| summary.data))
    }

    fn delete(&self, path: &str) -> Result<u64> {
        self.storage.delete(&key(path))
    }
}

/// Panics or returns an error if a rule is broken.
type Check = fn(&Probe) -> Result<()>;

const RULES: &[(&str, Check)] = &[
    ("entries come back in their order", contract::round_trip),
    ("an unknown transcript is none", contract::unknown),
    ("appends keep their order", contract::order),
    ("an append of nothing does nothing", contract::nothing),
    ("a subpath is a transcript of its own", contract::subpaths),
    ("a session of another project is another one", contract::projects),
    ("a list has the sessions of a project with the time of their last append", contract::lists),
    ("a session is listed once, and only if it has a main transcript", contract::listed_once),
    ("a deleted transcript is none", contract::deletes),
    ("deleting a session deletes its other transcripts", contract::cascade),
    ("deleting a subpath deletes nothing else", contract::deletes_one),
    ("the subpaths are those of the session", contract::subkeys),
    ("a summary is that of the main transcript", contract::summaries),
    ("entries come back with their text", entries::texts),
    ("parts of keys are any text", entries::keys),
    ("an entry is added once for its uuid", entries::once),
    ("a uuid counts within its transcript", entries::scope),
    ("an entry that is deleted can be added again", entries::again),
    ("an entry that is no object is refused with its batch", entries::objects),
    ("a transcript can have many entries", entries::many),
    ("threads can append at the same time", entries::threads),
    ("a time is greater than every one before", times::increase),
    ("a time changes when an entry is added, and only then", times::of_appends),
    ("summaries equal one fold of all entries", summaries::refold),
    ("a known entry does not change a summary", summaries::known),
    ("the data of a summary is read by its rules", summaries::rules),
    ("a transcript has the owner of its first append with one", owners::first),
    ("lists show what their filter says", owners::lists),
    ("deleting an owner's transcripts deletes no others", owners::deletes),
];
