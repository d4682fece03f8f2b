//! The contract of the agent SDK's `SessionStore`, and what the transcripts of a store add to it. Each rule runs on an empty store.
//!
//! The rules of `sdk` are those of the agent SDK's own suites.

mod entries;
mod owners;
mod sdk;
mod summaries;
mod times;

use talktree::{AppendedEntries, Json, Result, TranscriptKey, Transcripts};

use crate::common::Scratch;

struct Probe {
    storage: Transcripts,
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
        Ok(Self { storage: scratch.store.transcripts(), scratch })
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
        let listed = self.storage.list_session_summaries(&key.project)?;
        let listed = listed.into_iter().find(|summary| summary.session == key.session);
        let info = listed.as_ref().and_then(|summary| summary.info(None));
        assert_eq!(self.storage.info(&key.project, &key.session)?, info);
        Ok(listed.map(|summary| summary.data))
    }

    fn delete(&self, path: &str) -> Result<u64> {
        self.storage.delete(&key(path))
    }
}
