//! One round: workers write to a store and are killed one after the other; then the store is opened and checked.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rusqlite::Connection;
use talktree::Store;

use super::actor::{Actor, state};
use super::worker::log_in;
use super::{Case, Figures};
use crate::Result;
use crate::fixture::expect;
use crate::process::{SHARED, Worker, store_in};

/// The latest moment of a kill, in microseconds after the worker has started.
const LATEST: u64 = 150_000;
/// The same for kills that should hit the opening of the store.
const SOON: u64 = 6_000;

/// A store, and the actors that say what it must hold.
pub(super) struct Life {
    folder: tempfile::TempDir,
    actors: Vec<Actor>,
    /// Whether a verb was killed between two commits: the actors cannot go on from there.
    pub(super) is_over: bool,
}

impl Life {
    pub(super) fn begin(case: &Case, dice: &mut Rng) -> Result<Self> {
        let count = case.writers * case.threads;
        let actors = (0..count).map(|number| Actor::begin(&format!("w{number}-"), dice.u64(..)));
        let actors = actors.collect::<Result<_>>()?;
        Ok(Self { folder: tempfile::tempdir()?, actors, is_over: false })
    }

    /// Runs a round; returns what is wrong.
    pub(super) fn round(
        &mut self,
        case: &Case,
        program: Option<&Path>,
        dice: &mut Rng,
        figures: &mut Figures,
    ) -> Result<Vec<String>> {
        let path = store_in(self.folder.path());
        let was_there = path.exists();
        let is_aged = was_there && dice.u32(..8) == 0;
        if is_aged {
            age_index(&path)?;
        }
        let mut faults = self.kill_all(case, program, dice, figures)?;

        // A read-only store leaves the write-ahead log alone: the next round recovers from two crashes.
        let is_read_only = was_there && !is_aged && dice.u32(..3) == 0;
        let began = Instant::now();
        let store = match is_read_only {
            true => Store::open_read_only(&path)?,
            false => Store::open(&path)?,
        };
        store.session(SHARED)?.head()?;
        figures.reopening.push(began.elapsed());
        faults.extend(self.look(&store, figures)?);
        Ok(faults)
    }

    /// Compares a store that no process writes to with the actors; returns what is wrong.
    fn look(&mut self, store: &Store, figures: &mut Figures) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        for at in 0..self.actors.len() {
            if let Err(what) = self.settle(at, store, figures) {
                faults.push(format!("{}: {what}", self.actors[at].name()));
            }
        }
        self.check(store, figures, &mut faults)?;
        Ok(faults)
    }

    /// Starts the workers and kills each at a random moment; returns what they complained about.
    fn kill_all(
        &self,
        case: &Case,
        program: Option<&Path>,
        dice: &mut Rng,
        figures: &mut Figures,
    ) -> Result<Vec<String>> {
        let folder = self.folder.path().to_str().ok_or("the folder's name is not UTF-8")?;
        let mut workers = Vec::new();
        for actors in self.actors.chunks(case.threads) {
            let places: Vec<String> = actors.iter().map(Actor::place).collect();
            let mut args =
                vec!["worker", "--folder", folder, "--durability", case.durability.as_str()];
            args.extend(places.iter().flat_map(|place| ["--place", place.as_str()]));
            let worker = Worker::start(program, args)?;
            let latest = if dice.u32(..4) == 0 { SOON } else { LATEST };
            workers.push((Duration::from_micros(dice.u64(..latest)), worker));
        }
        for (_, worker) in &mut workers {
            worker.wait_for_sign()?;
        }
        workers.sort_by_key(|(moment, _)| *moment);
        let began = Instant::now();
        let mut complaints = Vec::new();
        for (moment, mut worker) in workers {
            std::thread::sleep(moment.saturating_sub(began.elapsed()));
            worker.kill()?;
            figures.kills += 1;
            complaints.push(worker.complaints());
        }
        complaints.retain(|complaint| !complaint.is_empty());
        Ok(complaints)
    }

    /// Lets an actor do what its worker has logged, and compares what both have.
    fn settle(&mut self, at: usize, store: &Store, figures: &mut Figures) -> Result<()> {
        let actor = &mut self.actors[at];
        let log = log_in(self.folder.path(), actor.name());
        let noted = std::fs::read(&log).unwrap_or_default();
        for noted in noted.iter().filter(|noted| **noted != b'b') {
            let (verb, is_done) = actor.step()?;
            if is_done != (*noted == b'd') {
                return Err(format!("{verb} returned otherwise than in memory").into());
            }
            figures.acknowledged += 1;
        }
        if log.exists() {
            std::fs::remove_file(log)?;
        }
        let is = state(store, actor.name())?;
        let should = state(actor.workload.store()?, actor.name())?;
        if is == should || noted.last() != Some(&b'b') {
            return expect(&should, &is, "what is stored");
        }
        let (half, name) = (Arc::new(Mutex::new(should)), actor.name().to_owned());
        let between = Arc::clone(&half);
        actor.workload.observe(move |store| {
            // An error leaves the state before.
            if let Ok(state) = state(store, &name) {
                *between.lock().unwrap_or_else(PoisonError::into_inner) = state;
            }
        });
        let (verb, _) = actor.step()?;
        actor.workload.observe(|_| ());
        figures.unacknowledged += 1;
        if is == *half.lock().unwrap_or_else(PoisonError::into_inner) {
            self.is_over = true;
            return Ok(());
        }
        let should = state(actor.workload.store()?, actor.name())?;
        expect(&should, &is, &format!("what is stored, before and after the last {verb},"))
    }

    /// Checks the store as a whole, and the backups.
    fn check(&self, store: &Store, figures: &mut Figures, faults: &mut Vec<String>) -> Result<()> {
        let chat = store.session(SHARED)?;
        let (all, path) = (chat.all_messages().count(), chat.raw_history()?.len());
        if all != path {
            faults.push(format!("{all} messages in the shared session, {path} on its path"));
        }
        let is_own = |name: &str| self.actors.iter().any(|actor| name.starts_with(actor.name()));
        for session in store.sessions()? {
            if session.id.as_str() != SHARED && !is_own(session.id.as_str()) {
                faults.push(format!("no worker created session {:?}", session.id));
            }
            // A text of the workload begins with a word that no other text of its session has.
            let chat = store.session(session.id)?;
            let Some(newest) = chat.raw_history()?.pop() else { continue };
            let text = newest.text();
            let word = text.split(' ').next().unwrap_or_default();
            if word.strip_prefix('w').is_some_and(|number| number.parse::<u64>().is_ok()) {
                let hits = chat.search(format!("\"{word}\"")).run()?.hits;
                if hits.len() != 1 || hits[0].id != newest.id {
                    faults.push(format!("{word:?} of {:?} finds {hits:?}", newest.id));
                }
            }
        }
        let mut verify = |store: &Store, what: &str| -> Result<()> {
            let damages = store.verify(|_| {})?.damages;
            faults.extend(damages.iter().map(|damage| format!("verify {what}: {damage:?}")));
            Ok(())
        };
        verify(store, "the store")?;
        for entry in std::fs::read_dir(self.folder.path())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "copy") {
                verify(&Store::open(&path)?, "a backup")?;
                std::fs::remove_file(path)?;
                figures.backups += 1;
            }
        }
        Ok(())
    }
}

/// Marks the search index as one of an older version: the next opening discards it.
fn age_index(path: &Path) -> Result<()> {
    let sqlite = Connection::open(path)?;
    let is_made: bool = sqlite.query_row(
        "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'setting'",
        [],
        |row| row.get(0),
    )?;
    if is_made {
        sqlite.execute("UPDATE setting SET value = '0' WHERE name = 'index_version'", [])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is found after a hundred acknowledged verbs and one that may be there or not, if the file is changed with SQL.
    fn faults_after(sql: &str, is_there: bool) -> Result<Vec<String>> {
        let case = Case { writers: 1, threads: 1, durability: "full".to_owned() };
        // A life with content of every kind.
        let mut life = Life::begin(&case, &mut Rng::with_seed(2))?;
        let (folder, place) = (life.folder.path().to_owned(), life.actors[0].place());
        let path = store_in(&folder);
        let mut worker = Actor::resume(Store::open(&path)?, &place, &folder)?;
        let mut log = Vec::new();
        for _ in 0..100 {
            let (_, is_done) = worker.step()?;
            log.extend(if is_done { b"bd" } else { b"br" });
        }
        log.push(b'b');
        if is_there {
            worker.step()?;
        }
        std::fs::write(log_in(&folder, worker.name()), log)?;
        drop(worker);
        Connection::open(&path)?.execute_batch(sql)?;
        life.look(&Store::open(&path)?, &mut Figures::default())
    }

    #[test]
    fn a_store_that_agrees_with_the_log_has_no_faults() -> Result<()> {
        for is_there in [false, true] {
            assert_eq!(faults_after("", is_there)?, [""; 0]);
        }
        Ok(())
    }

    #[test]
    fn the_loss_of_acknowledged_data_is_a_fault() -> Result<()> {
        for lost in [
            "UPDATE message SET parts = '[]' WHERE address = (SELECT head FROM session WHERE id = 'w0-ann')",
            "UPDATE session SET head = head - 1 WHERE id = 'shared'",
            "DELETE FROM usage",
            "DELETE FROM context_entry",
        ] {
            assert_ne!(faults_after(lost, false)?, [""; 0], "{lost}");
        }
        Ok(())
    }
}
