//! Transcripts in memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::message::{Json, now};
use crate::storage::transcript::TranscriptStore;
use crate::transcript::{
    AppendedEntries, Facts, ListedTranscript, StoredTranscript, TranscriptFilter, TranscriptKey,
    TranscriptSummary, check_owner, fold,
};

/// The limit of one entry, as a store has it by default.
const MAX_ENTRY_BYTES: usize = 64 << 20;

/// Transcripts in memory. Each verb reads all of them.
///
/// ```
/// use talktree::testing::MemoryTranscripts;
/// use talktree::{Json, TranscriptKey, TranscriptStore};
///
/// let transcripts = MemoryTranscripts::new();
/// let key = TranscriptKey::new("project", "session");
/// transcripts.append(&key, &[Json::parse(r#"{"type": "user"}"#)?], None)?;
/// assert_eq!(transcripts.load(&key)?.map(|entries| entries.len()), Some(1));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryTranscripts {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    transcripts: Vec<Transcript>,
    /// The number of the transcript that was created last.
    last: u64,
    /// The time of the last append.
    clock: i64,
}

#[derive(Debug)]
struct Transcript {
    info: StoredTranscript,
    entries: Vec<Json>,
    summary: Option<Json>,
}

impl MemoryTranscripts {
    /// Returns a storage without transcripts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&self, key: &TranscriptKey) -> Option<&Transcript> {
        self.transcripts.iter().find(|kept| kept.info.key == *key)
    }

    fn of_project(&self, project: &str) -> impl Iterator<Item = &Transcript> {
        self.transcripts.iter().filter(move |kept| kept.info.key.project == project)
    }

    fn tick(&mut self) -> i64 {
        self.clock = now().timestamp_millis().max(self.clock + 1);
        self.clock
    }

    /// Deletes the transcripts that are meant and returns how many there were.
    fn delete(&mut self, is_meant: impl Fn(&StoredTranscript) -> bool) -> u64 {
        let before = self.transcripts.len();
        self.transcripts.retain(|kept| !is_meant(&kept.info));
        (before - self.transcripts.len()) as u64
    }
}

impl TranscriptStore for MemoryTranscripts {
    fn append(
        &self,
        key: &TranscriptKey,
        entries: &[Json],
        owner: Option<&str>,
    ) -> Result<AppendedEntries> {
        key.check()?;
        check_owner(owner, None)?;
        TranscriptKey::check_size(entries, MAX_ENTRY_BYTES)?;
        if entries.is_empty() {
            return Ok(AppendedEntries::default());
        }
        let facts: Vec<Facts<'_>> = entries.iter().map(Facts::of).collect::<Result<_>>()?;
        let mut kept = self.lock();
        let stored = kept.find(key);
        check_owner(owner, stored.and_then(|stored| stored.info.owner.as_deref()))?;

        let mut all = stored.map(|stored| stored.entries.clone()).unwrap_or_default();
        let (mut appended, mut new) = (AppendedEntries::default(), Vec::new());
        for (entry, facts) in entries.iter().zip(&facts) {
            let uuid = facts.uuid();
            let is_of = |stored: &&Json| Facts::of(stored).is_ok_and(|other| other.uuid() == uuid);
            match all.iter().find(|stored| uuid.is_some() && is_of(stored)) {
                Some(known) => {
                    appended.known += 1;
                    appended.differing += u64::from(known != entry);
                }
                None => {
                    appended.added += 1;
                    all.push(entry.clone());
                    new.push(facts);
                }
            }
        }
        if new.is_empty() {
            return Ok(appended);
        }
        let summary = match key.is_main() {
            false => None,
            true => Some(fold(stored.and_then(|stored| stored.summary.as_ref()), new.into_iter())?),
        };
        let mtime = kept.tick();
        if kept.find(key).is_none() {
            kept.last += 1;
            let info = StoredTranscript::new(kept.last, key.clone(), mtime);
            kept.transcripts.push(Transcript { info, entries: Vec::new(), summary: None });
        }
        for stored in kept.transcripts.iter_mut().filter(|stored| stored.info.key == *key) {
            stored.info.mtime = mtime;
            stored.info.entries = all.len() as u64;
            stored.info.owner = stored.info.owner.take().or(owner.map(str::to_owned));
            stored.entries.clone_from(&all);
            stored.summary.clone_from(&summary);
        }
        Ok(appended)
    }

    fn load(&self, key: &TranscriptKey) -> Result<Option<Vec<Json>>> {
        Ok(self.lock().find(key).map(|stored| stored.entries.clone()))
    }

    fn list_sessions(&self, project: &str) -> Result<Vec<ListedTranscript>> {
        let kept = self.lock();
        let main = kept.of_project(project).filter(|stored| stored.info.key.is_main());
        Ok(main
            .map(|stored| ListedTranscript::new(&stored.info.key.session, stored.info.mtime))
            .collect())
    }

    fn list_session_summaries(&self, project: &str) -> Result<Vec<TranscriptSummary>> {
        let kept = self.lock();
        let summary = |stored: &Transcript| {
            let data = stored.summary.clone()?;
            Some(TranscriptSummary::new(&stored.info.key.session, stored.info.mtime, data))
        };
        Ok(kept.of_project(project).filter_map(summary).collect())
    }

    fn delete(&self, key: &TranscriptKey) -> Result<u64> {
        let is_meant = |stored: &StoredTranscript| match key.is_main() {
            true => stored.key.project == key.project && stored.key.session == key.session,
            false => stored.key == *key,
        };
        Ok(self.lock().delete(is_meant))
    }

    fn list_subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let kept = self.lock();
        let others = kept.of_project(project).map(|stored| &stored.info.key);
        let others = others.filter(|key| key.session == session && !key.is_main());
        Ok(others.map(|key| key.subpath.clone()).collect())
    }

    fn list(
        &self,
        filter: &TranscriptFilter,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredTranscript>> {
        let is_shown = |stored: &&StoredTranscript| {
            after.is_none_or(|after| stored.number > after)
                && filter.project.as_ref().is_none_or(|project| *project == stored.key.project)
                && (filter.owner.is_none() || filter.owner == stored.owner)
                && filter.written_before.is_none_or(|before| stored.mtime < before)
        };
        let kept = self.lock();
        let shown = kept.transcripts.iter().map(|stored| &stored.info).filter(is_shown);
        Ok(shown.take(limit).cloned().collect())
    }

    fn stored(&self, key: &TranscriptKey) -> Result<Option<StoredTranscript>> {
        Ok(self.lock().find(key).map(|stored| stored.info.clone()))
    }

    fn delete_of_owner(&self, owner: &str) -> Result<u64> {
        let mut kept = self.lock();
        let is_owned = |stored: &StoredTranscript| stored.owner.as_deref() == Some(owner);
        let infos = kept.transcripts.iter().map(|stored| &stored.info);
        let sessions: Vec<(String, String)> = infos
            .filter(|stored| stored.key.is_main() && is_owned(stored))
            .map(|stored| (stored.key.project.clone(), stored.key.session.clone()))
            .collect();
        let is_below = |stored: &StoredTranscript| {
            let (project, session) = (&stored.key.project, &stored.key.session);
            sessions.iter().any(|(p, s)| p == project && s == session)
        };
        Ok(kept.delete(|stored| is_owned(stored) || is_below(stored)))
    }
}
