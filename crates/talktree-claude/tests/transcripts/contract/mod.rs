//! The contract of the agent SDK's `SessionStore`, and what the transcripts of a store add to it. Each rule runs on an empty store.
//!
//! The rules of `sdk` are those of the agent SDK's own suites.

mod entries;
mod owners;
mod sdk;
mod summaries;
mod times;

use talktree::{AppendedEntries, Json, Result, StoredTranscript, TranscriptKey};
use talktree_claude::{SessionStore, TranscriptInfo};

use crate::common::Scratch;

struct Probe {
    storage: SessionStore,
    scratch: Scratch,
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
    fn new() -> Result<Self> {
        let scratch = Scratch::new()?;
        Ok(Self { storage: SessionStore::new(&scratch.store), scratch })
    }

    fn is_sound(&self) -> Result<()> {
        assert_eq!(self.scratch.store.verify(|_| {})?.damages, []);
        Ok(())
    }

    fn append(&self, path: &str, entries: &[Json]) -> Result<AppendedEntries> {
        self.storage.append(&key(path), entries)
    }

    /// Appends entries that are drawn as by [`entries()`].
    fn say(&self, path: &str, uuids: &str) -> Result<AppendedEntries> {
        self.append(path, &entries(uuids))
    }

    fn load(&self, path: &str) -> Result<Option<Vec<Json>>> {
        self.storage.log().load(&key(path))
    }

    /// Returns the texts of a transcript's entries.
    fn texts(&self, path: &str) -> Result<Vec<String>> {
        let entries = self.load(path)?.unwrap_or_default();
        Ok(entries.iter().map(|entry| entry.as_str().to_owned()).collect())
    }

    fn sessions(&self, project: &str) -> Result<Vec<String>> {
        let listed = self.storage.log().of_project(project)?;
        let mut ids: Vec<String> = listed.into_iter().map(|listed| listed.key.session).collect();
        ids.sort();
        Ok(ids)
    }

    fn subpaths(&self, path: &str) -> Result<Vec<String>> {
        let key = key(path);
        let mut subpaths = self.storage.log().subpaths(&key.project, &key.session)?;
        subpaths.sort();
        Ok(subpaths)
    }

    fn listed(&self, path: &str) -> Result<Option<StoredTranscript>> {
        let key = key(path);
        let listed = self.storage.log().of_project(&key.project)?;
        Ok(listed.into_iter().find(|listed| listed.key.session == key.session))
    }

    fn mtime(&self, path: &str) -> Result<Option<i64>> {
        Ok(self.listed(path)?.map(|listed| listed.mtime))
    }

    /// Returns the summary's data of a session.
    fn data(&self, path: &str) -> Result<Option<Json>> {
        let key = key(path);
        let listed = self.listed(path)?;
        let info = listed.as_ref().and_then(TranscriptInfo::of);
        assert_eq!(self.storage.info(&key.project, &key.session)?, info);
        Ok(listed.and_then(|listed| listed.summary))
    }

    fn delete(&self, path: &str) -> Result<u64> {
        self.storage.log().delete(&key(path))
    }
}
