//! What a worker does: the same verbs in the store that is killed and in one in memory.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use talktree::{Message, Store};

use crate::Result;
use crate::fixture::expect;
use crate::process::SHARED;
use crate::snapshot::snapshot_of;
use crate::workload::{Place, Workload};

/// A workload, with an append to the session that all share now and then, and a backup of the store.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) workload: Workload,
    /// How many verbs it has run.
    count: u64,
    /// Where its backups are written; none in memory.
    folder: Option<PathBuf>,
}

impl Actor {
    /// Returns an actor that has done nothing, with a store in memory.
    pub(super) fn begin(name: &str, seed: u64) -> Result<Self> {
        let workload = Workload::resume(Store::open_in_memory()?, Place::new(name, seed));
        Ok(Self { workload, count: 0, folder: None })
    }

    /// Goes on where [`Actor::place`] was asked.
    pub(super) fn resume(store: Store, place: &str, folder: &Path) -> Result<Self> {
        let parts: Vec<&str> = place.split(':').collect();
        let [name, dice, made, count] = parts[..] else { return Err("not a place".into()) };
        let (name, dice) = (name.to_owned(), Rng::with_seed(dice.parse()?));
        let workload = Workload::resume(store, Place { name, dice, made: made.parse()? });
        Ok(Self { workload, count: count.parse()?, folder: Some(folder.to_owned()) })
    }

    /// Returns what [`Actor::resume`] needs to go on.
    pub(super) fn place(&self) -> String {
        let Place { name, dice, made } = self.workload.place();
        format!("{name}:{}:{made}:{}", dice.get_seed(), self.count)
    }

    pub(super) fn name(&self) -> &str {
        &self.workload.place().name
    }

    /// Runs the next verb; returns its name, and whether it succeeded.
    pub(super) fn step(&mut self) -> Result<(&'static str, bool)> {
        let number = self.count;
        self.count += 1;
        match number % 40 {
            9 | 19 | 29 => {
                let message = Message::user(format!("shared {number}"));
                let chat = self.workload.store()?.session(SHARED)?;
                chat.append(message.with_id(format!("{}{number}", self.name())))?;
                Ok(("append to a shared session", true))
            }
            39 => {
                if let Some(folder) = &self.folder {
                    self.back_up(&folder.join(format!("{}{number}.copy", self.name())))?;
                }
                Ok(("backup", true))
            }
            _ => {
                let (verb, answer) = self.workload.step();
                Ok((verb, answer.is_ok()))
            }
        }
    }

    /// Makes a backup, which must hold all that this worker has written, and what others had before it began.
    fn back_up(&self, copy: &Path) -> Result<()> {
        let store = self.workload.store()?;
        let shared =
            |store: &Store| -> Result<Vec<Message>> { Ok(store.session(SHARED)?.raw_history()?) };
        let before = shared(store)?;
        store.backup(copy, |_| {})?;
        let copy = Store::open(copy)?;
        if !shared(&copy)?.starts_with(&before) {
            return Err("the backup lacks messages of other workers".into());
        }
        expect(&state(store, self.name())?, &state(&copy, self.name())?, "the backup")
    }
}

/// Returns all that a store holds of a worker.
pub(super) fn state(store: &Store, name: &str) -> Result<String> {
    let mut state = snapshot_of(store, name)?;
    for message in store.session(SHARED)?.raw_history()? {
        if message.id.as_str().starts_with(name) {
            state.push_str(&format!("{} {}\n", message.id, message.text()));
        }
    }
    Ok(state)
}
