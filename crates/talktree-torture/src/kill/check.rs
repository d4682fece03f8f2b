//! What must hold after a kill, and how the last operation of a killed worker ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use talktree::{Message, Session, Store};

use super::model::{Copy, Model, Replay, summary_of};
use super::operation::{Line, Log, Operation};
use super::state::{State, name_of};
use super::worker::{self, SHARED};
use crate::Result;

/// How many words are searched for per worker.
const SEARCHES: usize = 3;
/// How many of the additional stores are opened per worker.
const NEWEST: usize = 4;

/// What the check of one store found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<String>,
    /// The verbs of operations that were committed but not acknowledged.
    pub(crate) unacknowledged: Vec<&'static str>,
}

/// A check of a store that no process writes to.
pub(crate) struct Check<'a> {
    pub(crate) store: &'a Store,
    pub(crate) folder: &'a Path,
    /// Whether the store is open for reading only; imports are then not completed.
    pub(crate) is_read_only: bool,
    pub(crate) rng: &'a mut fastrand::Rng,
    pub(crate) findings: Findings,
}

impl Check<'_> {
    /// Checks everything that the workers wrote, and settles their logs.
    pub(crate) fn run(&mut self, replays: &mut BTreeMap<String, Replay>) -> Result<()> {
        for (name, replay) in &mut *replays {
            for what in &replay.wrong {
                self.findings.faults.push(format!("{name}: {what}"));
            }
            if let Some(operation) = replay.pending.take() {
                let is_done = self.settle(name, &replay.model, &operation)?;
                let line = if is_done { Line::Done } else { Line::Undone };
                Log::open(&worker::log_in(self.folder, name))?.write(&line)?;
                replay.settle(&operation, is_done);
            }
            self.check_worker(name, &replay.model)?;
        }
        self.check_shared(replays)?;
        self.check_sessions(replays)?;
        let damages = self.store.verify(|_| {})?.damages;
        self.findings.faults.extend(damages.iter().map(|damage| format!("verify: {damage:?}")));
        self.check_integrity()
    }

    /// Returns whether the last operation of a killed worker was committed; half of it is a fault.
    fn settle(&mut self, name: &str, model: &Model, operation: &Operation) -> Result<bool> {
        let is_done = match operation {
            Operation::Open | Operation::Search { .. } | Operation::VisibleTokens { .. } => {
                return Ok(false);
            }
            Operation::AppendShared { message } => {
                self.store.session(SHARED)?.message(&message.id.as_str().into())?.is_some()
            }
            Operation::Fork { session, .. } | Operation::Split { session } => {
                self.store.session(session.as_str())?.info()?.is_some()
            }
            Operation::Import { session, count } => {
                let found = self.store.session(session.as_str())?.path_length()?;
                // A session is imported in one transaction: it is there as a whole or not at all.
                self.check_import(session, if found == 0 { 0 } else { *count })?;
                return Ok(false);
            }
            Operation::AppendEntries { transcript, entries } => {
                self.has_entries(&model.transcripts, transcript, entries)?
            }
            Operation::EraseOwner { transcript } => self.finish_erasure(transcript)?,
            Operation::Backup { file } | Operation::Create { file, .. } => {
                let path = self.folder.join(file);
                match (path.exists(), operation) {
                    (false, _) => false,
                    (true, Operation::Create { message, .. }) => {
                        // Creating a store is many steps: the store may exist without its message.
                        let store = Store::open(&path)?;
                        let found = store.session(SHARED)?.raw_history()?;
                        self.sound(&store, file)?;
                        if !found.is_empty() {
                            self.same(file, &found, &[message.message()]);
                        }
                        !found.is_empty()
                    }
                    (true, _) => true,
                }
            }
            _ => {
                let is = State::of(&self.store.session(name)?)?;
                if is == model.state() {
                    return Ok(false);
                }
                let mut after = model.clone();
                after.apply(operation);
                if is != after.state() {
                    let verb = operation.verb();
                    self.findings.faults.push(format!(
                        "{name}: the state is neither before nor after the last {verb}"
                    ));
                }
                true
            }
        };
        if is_done {
            self.findings.unacknowledged.push(operation.verb());
        }
        Ok(is_done)
    }

    /// Checks what one worker wrote.
    fn check_worker(&mut self, name: &str, model: &Model) -> Result<()> {
        let chat = self.store.session(name)?;
        if let Some(difference) = State::of(&chat)?.difference(&model.state()) {
            self.findings.faults.push(format!("{name}: {difference}"));
        }
        for (session, Copy { raw, view }) in &model.forks {
            let fork = self.store.session(session.as_str())?;
            let is: Vec<_> = fork
                .raw_history()?
                .iter()
                .map(|message| (name_of(message), message.text()))
                .collect();
            let shown: Vec<_> = fork.history()?.iter().map(name_of).collect();
            if &is != raw || &shown != view {
                self.findings
                    .faults
                    .push(format!("fork {session} differs from the path it copied"));
            }
        }
        self.check_splits(name, model)?;
        let tokens: u64 = chat.history()?.iter().map(Message::tokens).sum();
        let kept = chat.visible_tokens()?;
        if kept != tokens {
            self.findings.faults.push(format!("{name}: {kept} visible tokens, not {tokens}"));
        }
        for (session, count) in &model.imports {
            self.complete_import(session, *count)?;
        }
        self.check_transcripts(name, &model.transcripts)?;
        self.check_search(&chat, model)?;
        self.check_files(name, model)
    }

    /// Checks that the session has ended exactly if it was split, and that each child starts with the summary.
    fn check_splits(&mut self, name: &str, model: &Model) -> Result<()> {
        let reason = self.store.session(name)?.info()?.and_then(|info| info.end_reason);
        let should = (!model.splits.is_empty()).then_some("compaction");
        if reason.as_deref() != should {
            self.findings.faults.push(format!("{name} ended with {reason:?}, not {should:?}"));
        }
        for session in &model.splits {
            let child = self.store.session(session.as_str())?;
            let texts: Vec<String> = child.raw_history()?.iter().map(Message::text).collect();
            let parent = child.info()?.and_then(|info| info.parent_session);
            if texts != [summary_of(session)] || parent.is_none_or(|parent| parent != *name) {
                self.findings.faults.push(format!("split {session} starts with {texts:?}"));
            }
        }
        Ok(())
    }

    /// Imports a file twice more: the first time completes the import, the second adds nothing.
    fn complete_import(&mut self, session: &str, count: u32) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let report = worker::import(self.store, self.folder, session, count)?;
        let again = worker::import(self.store, self.folder, session, count)?;
        let known = u64::from(count);
        if report.added + report.known != known || again.added != 0 || again.known != known {
            self.findings
                .faults
                .push(format!("import {session} of {count}: {report:?}, then {again:?}"));
        }
        self.check_import(session, count)
    }

    /// Checks that a session holds exactly the first messages of its file.
    fn check_import(&mut self, session: &str, count: u32) -> Result<()> {
        let found = self.store.session(session)?.raw_history()?;
        let should: Vec<_> =
            (0..count).map(|number| worker::imported_text(session, number)).collect();
        self.same(session, &found, &should);
        Ok(())
    }

    /// Compares ids and texts.
    fn same(&mut self, what: &str, found: &[Message], should: &[Message]) {
        let key = |message: &Message| (message.id.clone(), message.text());
        if !found.iter().map(key).eq(should.iter().map(key)) {
            let (found, should) = (found.len(), should.len());
            self.findings
                .faults
                .push(format!("{what} holds other messages: {found} instead of {should}"));
        }
    }

    /// Searches for words of living messages, and for words of deleted ones.
    fn check_search(&mut self, chat: &Session, model: &Model) -> Result<()> {
        let ids = model.ids();
        let newest = ids.last().copied();
        let others = (0..SEARCHES.min(ids.len())).map(|_| ids[self.rng.usize(..ids.len())]);
        for id in newest.into_iter().chain(others) {
            let word = model.word(id).unwrap_or_default();
            let hits = chat.search(format!("\"{word}\"")).run()?.hits;
            if hits.len() != 1 || hits[0].id != id.as_str() {
                self.findings.faults.push(format!("{word:?} of {id:?} finds {hits:?}"));
            }
        }
        let dead = model.dead_words();
        for _ in 0..SEARCHES.min(dead.len()) {
            let word = dead[self.rng.usize(..dead.len())];
            let hits = chat.search(format!("\"{word}\"")).run()?.hits;
            if !hits.is_empty() {
                self.findings.faults.push(format!("{word:?} was deleted, but finds {hits:?}"));
            }
        }
        Ok(())
    }

    /// Checks the last backup and the newest additional stores.
    fn check_files(&mut self, name: &str, model: &Model) -> Result<()> {
        if let Some((file, state)) = &model.backup {
            let copy = self.open(file)?;
            if let Some(difference) = State::of(&copy.session(name)?)?.difference(state) {
                self.findings.faults.push(format!("backup {file}: {difference}"));
            }
            self.sound(&copy, file)?;
        }
        for (file, message) in model.created.iter().rev().take(NEWEST) {
            let store = self.open(file)?;
            let found = store.session(SHARED)?.raw_history()?;
            self.same(file, &found, &[message.message()]);
            self.sound(&store, file)?;
        }
        Ok(())
    }

    /// Opens an acknowledged file, and reports it if opening would create it.
    fn open(&mut self, file: &str) -> Result<Store> {
        let path = self.folder.join(file);
        if !path.exists() {
            self.findings.faults.push(format!("{file} was acknowledged but does not exist"));
        }
        Ok(Store::open(path)?)
    }

    /// Reports the damages that `verify` finds.
    fn sound(&mut self, store: &Store, what: &str) -> Result<()> {
        let damages = store.verify(|_| {})?.damages;
        self.findings
            .faults
            .extend(damages.iter().map(|damage| format!("verify {what}: {damage:?}")));
        Ok(())
    }

    /// Checks the session that all workers append to: one path with the acknowledged messages of each worker in
    /// its order.
    fn check_shared(&mut self, replays: &BTreeMap<String, Replay>) -> Result<()> {
        let chat = self.store.session(SHARED)?;
        let chain: Vec<_> = chat
            .raw_history()?
            .iter()
            .map(|message| (message.id.to_string(), message.text()))
            .collect();
        let count = chat.all_messages().count();
        let should: usize = replays.values().map(|replay| replay.model.shared.len()).sum();
        if (chain.len(), count) != (should, should) {
            let (held, length) = (count, chain.len());
            self.findings
                .faults
                .push(format!("shared: {held} messages, {length} on the path, not {should}"));
        }
        for (name, replay) in replays {
            let own = chain.iter().filter(|(id, _)| id.starts_with(&format!("{name}o")));
            let shared = replay.model.shared.iter();
            if !own.cloned().eq(shared.map(|spec| (spec.id.clone(), spec.text.render()))) {
                self.findings.faults.push(format!(
                    "shared: the messages of {name} are not those it appended, in order"
                ));
            }
        }
        Ok(())
    }

    /// Checks that every session was created by a worker.
    fn check_sessions(&mut self, replays: &BTreeMap<String, Replay>) -> Result<()> {
        let mut known: BTreeSet<&str> = BTreeSet::from([SHARED]);
        // Sessions that show transcripts.
        let transcripts: BTreeSet<String> =
            replays.iter().map(|(name, it)| it.model.transcripts.current(name)).collect();
        known.extend(transcripts.iter().map(String::as_str));
        // A read-only store cannot finish an erasure that was killed.
        let unfinished = replays.values().filter_map(|it| it.model.transcripts.unfinished());
        known.extend(unfinished);
        for (name, replay) in replays {
            known.insert(name);
            known.extend(replay.model.forks.keys().map(String::as_str));
            known.extend(replay.model.splits.iter().map(String::as_str));
            known.extend(replay.model.imports.keys().map(String::as_str));
        }
        for session in self.store.sessions()? {
            if !known.contains(session.id.as_str()) {
                self.findings.faults.push(format!("no worker created session {:?}", session.id));
            }
        }
        Ok(())
    }

    /// Runs SQLite's own check on a connection outside talktree.
    fn check_integrity(&mut self) -> Result<()> {
        let flags = match self.is_read_only {
            true => OpenFlags::SQLITE_OPEN_READ_ONLY,
            false => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let sqlite = Connection::open_with_flags(worker::store_in(self.folder), flags)?;
        let answer: String = sqlite.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if answer != "ok" {
            self.findings.faults.push(format!("integrity_check: {answer}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::read;
    use super::*;
    use crate::text::MessageSpec;

    /// Appends two acknowledged messages, changes the file with SQL, and returns what the check finds.
    fn faults_after(sql: &str) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let path = worker::store_in(folder.path());
        let log = worker::log_in(folder.path(), "w0");
        let specs = ["w0o0m1", "w0o0m2"].map(|word| MessageSpec::new(word.to_owned(), 3));
        let store = Store::open(&path)?;
        store.session("w0")?.append_all(specs.iter().map(MessageSpec::message))?;
        // Indexes both messages: the append may have indexed them, or not.
        store.search("w0o0m1").run()?;
        drop(store);
        for line in
            [Line::Begin(Operation::Append { to: None, messages: specs.to_vec() }), Line::Done]
        {
            Log::open(&log)?.write(&line)?;
        }
        Connection::open(&path)?.execute_batch(sql)?;

        let store = Store::open(&path)?;
        let mut replays = BTreeMap::from([("w0".to_owned(), Replay::of(&read(&log)?)?)]);
        let mut check = Check {
            store: &store,
            folder: folder.path(),
            is_read_only: false,
            rng: &mut fastrand::Rng::with_seed(1),
            findings: Findings::default(),
        };
        check.run(&mut replays)?;
        Ok(check.findings.faults)
    }

    #[test]
    fn a_store_that_agrees_with_the_log_has_no_faults() -> Result<()> {
        assert_eq!(faults_after("")?, [""; 0]);
        Ok(())
    }

    #[test]
    fn the_loss_of_acknowledged_data_is_a_fault() -> Result<()> {
        for lost in [
            "DELETE FROM message WHERE id = 'w0o0m2'; UPDATE session SET head = head - 1",
            "UPDATE message SET parts = '[]' WHERE id = 'w0o0m2'",
            "UPDATE session SET head = head - 1",
            "UPDATE session SET visible_tokens = visible_tokens + 1",
            "UPDATE session SET end_reason = 'compaction'",
        ] {
            assert_ne!(faults_after(lost)?, [""; 0], "{lost}");
        }
        Ok(())
    }
}
