//! What has to hold after a kill, and finding out how the last deed ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use talktree::{Message, Session, Store};

use super::deed::{Deed, Line, Log};
use super::model::{Copy, Model, Replay, summary_of};
use super::state::{State, name_of};
use super::worker::{self, SHARED};
use crate::Result;

/// How many words are searched for, of each worker.
const SEARCHES: usize = 3;
/// How many of the further stores are opened, of each worker.
const NEWEST: usize = 4;

/// What a check of one store found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<String>,
    /// Deeds that were committed and not acknowledged, by verb.
    pub(crate) tails: Vec<&'static str>,
}

/// A check of a store that nobody writes to.
pub(crate) struct Check<'a> {
    pub(crate) store: &'a Store,
    pub(crate) folder: &'a Path,
    /// Whether the store is open for reading only: imports are not completed then.
    pub(crate) is_read_only: bool,
    pub(crate) rng: &'a mut fastrand::Rng,
    pub(crate) findings: Findings,
}

impl Check<'_> {
    /// Checks all that the workers wrote, and settles their logs.
    pub(crate) fn run(&mut self, replays: &mut BTreeMap<String, Replay>) -> Result<()> {
        for (name, replay) in &mut *replays {
            for what in &replay.wrong {
                self.findings.faults.push(format!("{name}: {what}"));
            }
            if let Some(deed) = replay.pending.take() {
                let is_done = self.settle(name, &replay.model, &deed)?;
                let line = if is_done { Line::Done } else { Line::Undone };
                Log::open(&worker::log_in(self.folder, name))?.write(&line)?;
                replay.settle(&deed, is_done);
            }
            self.check_worker(name, &replay.model)?;
        }
        self.check_shared(replays)?;
        self.check_sessions(replays)?;
        let damages = self.store.verify(|_| {})?.damages;
        self.findings.faults.extend(damages.iter().map(|damage| format!("verify: {damage:?}")));
        self.check_integrity()
    }

    /// Returns whether the last deed of a killed worker was committed; half of it is a fault.
    fn settle(&mut self, name: &str, model: &Model, deed: &Deed) -> Result<bool> {
        let is_done = match deed {
            Deed::Open | Deed::Search { .. } | Deed::Tokens { .. } => return Ok(false),
            Deed::Share { message } => {
                self.store.session(SHARED)?.message(&message.id.as_str().into())?.is_some()
            }
            Deed::Fork { session, .. } | Deed::Split { session } => {
                self.store.session(session.as_str())?.info()?.is_some()
            }
            Deed::Import { session, count } => {
                let found = self.store.session(session.as_str())?.path_length()?;
                // An import is many transactions: what is there has to be its beginning.
                self.check_import(session, found as u32)?;
                if found > 0 && found < u64::from(*count) {
                    self.findings.tails.push("part of an import");
                }
                return Ok(false);
            }
            Deed::Backup { file } | Deed::Create { file, .. } => {
                let path = self.folder.join(file);
                match (path.exists(), deed) {
                    (false, _) => false,
                    (true, Deed::Create { message, .. }) => {
                        // Making a store is many steps: it may be there, and what was said in it not yet.
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
                after.apply(deed);
                if is != after.state() {
                    let verb = deed.verb();
                    self.findings
                        .faults
                        .push(format!("{name}: neither before nor after the last {verb}"));
                }
                true
            }
        };
        if is_done {
            self.findings.tails.push(deed.verb());
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
            self.findings.faults.push(format!("{name}: {kept} tokens are seen, not {tokens}"));
        }
        for (session, count) in &model.imports {
            self.complete_import(session, *count)?;
        }
        self.check_search(&chat, model)?;
        self.check_files(name, model)
    }

    /// Checks that a session has ended just if it goes on in others, which open with the summary.
    fn check_splits(&mut self, name: &str, model: &Model) -> Result<()> {
        let reason = self.store.session(name)?.info()?.and_then(|info| info.end_reason);
        let should = (!model.splits.is_empty()).then_some("compaction");
        if reason.as_deref() != should {
            self.findings.faults.push(format!("{name} ended with {reason:?}, not {should:?}"));
        }
        for session in &model.splits {
            let child = self.store.session(session.as_str())?;
            let said: Vec<String> = child.raw_history()?.iter().map(Message::text).collect();
            let parent = child.info()?.and_then(|info| info.parent_session);
            if said != [summary_of(session)] || parent.is_none_or(|parent| parent != *name) {
                self.findings.faults.push(format!("split {session} opens with {said:?}"));
            }
        }
        Ok(())
    }

    /// Imports a file again: that completes it, and once more doubles nothing.
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

    fn same(&mut self, what: &str, found: &[Message], should: &[Message]) {
        let key = |message: &Message| (message.id.clone(), message.text());
        if !found.iter().map(key).eq(should.iter().map(key)) {
            let (found, should) = (found.len(), should.len());
            self.findings
                .faults
                .push(format!("{what} holds other messages: {found} instead of {should}"));
        }
    }

    /// Searches for words that were said, and for words that are gone.
    fn check_search(&mut self, chat: &Session, model: &Model) -> Result<()> {
        let ids = model.ids();
        let newest = ids.last().copied();
        let others = (0..SEARCHES.min(ids.len())).map(|_| ids[self.rng.usize(..ids.len())]);
        for id in newest.into_iter().chain(others) {
            let word = model.word(id).unwrap_or_default();
            let hits = chat.search(word).run()?.hits;
            if hits.len() != 1 || hits[0].id != id.as_str() {
                self.findings.faults.push(format!("{word:?} of {id:?} finds {hits:?}"));
            }
        }
        let dead = model.dead_words();
        for _ in 0..SEARCHES.min(dead.len()) {
            let word = dead[self.rng.usize(..dead.len())];
            let hits = chat.search(word).run()?.hits;
            if !hits.is_empty() {
                self.findings.faults.push(format!("{word:?} was deleted and finds {hits:?}"));
            }
        }
        Ok(())
    }

    /// Checks the last copy and the newest of the further stores.
    fn check_files(&mut self, name: &str, model: &Model) -> Result<()> {
        if let Some((file, state)) = &model.backup {
            let copy = self.open(file)?;
            if let Some(difference) = State::of(&copy.session(name)?)?.difference(state) {
                self.findings.faults.push(format!("copy {file}: {difference}"));
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

    /// Opens a file that was acknowledged: opening must not be what makes it.
    fn open(&mut self, file: &str) -> Result<Store> {
        let path = self.folder.join(file);
        if !path.exists() {
            self.findings.faults.push(format!("{file} was acknowledged and is not there"));
        }
        Ok(Store::open(path)?)
    }

    fn sound(&mut self, store: &Store, what: &str) -> Result<()> {
        let damages = store.verify(|_| {})?.damages;
        self.findings
            .faults
            .extend(damages.iter().map(|damage| format!("verify {what}: {damage:?}")));
        Ok(())
    }

    /// Checks the session that all workers append to: one chain that holds what each acknowledged, in its order.
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
                .push(format!("shared: {held} on a path of {length}, not {should}"));
        }
        for (name, replay) in replays {
            let own = chain.iter().filter(|(id, _)| id.starts_with(&format!("{name}o")));
            let shared = replay.model.shared.iter();
            if !own.cloned().eq(shared.map(|said| (said.id.clone(), said.text.tell()))) {
                self.findings
                    .faults
                    .push(format!("shared: not what {name} said, or not in its order"));
            }
        }
        Ok(())
    }

    /// Checks that every session is one that a worker made.
    fn check_sessions(&mut self, replays: &BTreeMap<String, Replay>) -> Result<()> {
        let mut known: BTreeSet<&str> = BTreeSet::from([SHARED]);
        for (name, replay) in replays {
            known.insert(name);
            known.extend(replay.model.forks.keys().map(String::as_str));
            known.extend(replay.model.splits.iter().map(String::as_str));
            known.extend(replay.model.imports.keys().map(String::as_str));
        }
        for session in self.store.sessions()? {
            if !known.contains(session.id.as_str()) {
                self.findings.faults.push(format!("nobody made session {:?}", session.id));
            }
        }
        Ok(())
    }

    /// Asks SQLite itself, through a connection that knows nothing of talktree.
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
    use super::super::deed::read;
    use super::*;
    use crate::text::Said;

    /// Writes and acknowledges two messages, lets SQLite do something behind talktree's back, and checks.
    fn faults_after(sql: &str) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let path = worker::store_in(folder.path());
        let log = worker::log_in(folder.path(), "w0");
        let said = ["w0o0m1", "w0o0m2"].map(|word| Said::new(word.to_owned(), 3));
        Store::open(&path)?.session("w0")?.append_all(said.iter().map(Said::message))?;
        for line in [Line::Begin(Deed::Append { to: None, messages: said.to_vec() }), Line::Done] {
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
    fn nothing_is_found_in_a_store_as_the_log_says() -> Result<()> {
        assert_eq!(faults_after("")?, [""; 0]);
        Ok(())
    }

    #[test]
    fn what_was_acknowledged_and_is_lost_is_found() -> Result<()> {
        for lost in [
            "DELETE FROM message WHERE id = 'w0o0m2'; UPDATE session SET head = head - 1",
            "UPDATE message SET parts = '[]' WHERE id = 'w0o0m2'",
            "UPDATE session SET head = head - 1",
            "DELETE FROM search_pending",
            "UPDATE session SET visible_tokens = visible_tokens + 1",
            "UPDATE session SET end_reason = 'compaction'",
        ] {
            assert_ne!(faults_after(lost)?, [""; 0], "{lost}");
        }
        Ok(())
    }
}
