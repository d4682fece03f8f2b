//! The stores that several rows share; each is built once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use chrono::{TimeDelta, Utc};
use talktree::{Durability, MessageId, Session, Store};
use tempfile::TempDir;

use crate::Result;
use crate::messages::{Length, Speaker};

/// How many messages are appended in one transaction while building.
const CHUNK: usize = 10_000;
/// How many messages the small session has.
pub(crate) const SMALL: usize = 1_000;

/// A store with one long session and one small one. A minute lies between two messages of the long one; the last is of now.
pub(crate) struct Sized {
    pub(crate) path: PathBuf,
    pub(crate) store: Store,
    pub(crate) long: Session,
    /// How many messages the long session has.
    pub(crate) size: usize,
    pub(crate) first: MessageId,
    /// The last message before the 20 newest.
    pub before_last_20: MessageId,
    /// A message in the middle of the long session.
    pub(crate) middle: MessageId,
    pub(crate) last: MessageId,
}

/// All stores, in one temporary folder.
pub(crate) struct Stores {
    dir: TempDir,
    sized: RefCell<BTreeMap<usize, Rc<Sized>>>,
}

impl Stores {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { dir: TempDir::new()?, sized: RefCell::default() })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the path of a file that does not exist; removes one of this name.
    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.dir().join(name);
        for end in ["", "-wal", "-shm"] {
            let mut file = path.clone().into_os_string();
            file.push(end);
            if let Err(error) = std::fs::remove_file(file)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                return Err(error.into());
            }
        }
        Ok(path)
    }

    /// Returns the store whose long session has this many messages.
    pub(crate) fn sized(&self, size: usize) -> Result<Rc<Sized>> {
        if let Some(found) = self.sized.borrow().get(&size) {
            return Ok(Rc::clone(found));
        }
        let start = std::time::Instant::now();
        let built = Rc::new(build(&self.dir().join(format!("sized-{size}.db")), size)?);
        eprintln!("built a store of {size} messages in {:.1} s", start.elapsed().as_secs_f64());
        self.sized.borrow_mut().insert(size, Rc::clone(&built));
        Ok(built)
    }

    /// Closes the store of this size and returns the path of its file.
    pub(crate) fn close(&self, size: usize) -> Result<PathBuf> {
        let path = self.sized(size)?.path.clone();
        self.sized.borrow_mut().remove(&size);
        Ok(path)
    }
}

pub(crate) fn open(path: &Path, durability: Durability) -> Result<Store> {
    Ok(Store::options().durability(durability).open(path)?)
}

/// Fills the small session with the same messages in every store, so that stores can be compared.
pub(crate) fn fill_small(store: &Store) -> Result<Session> {
    let small = store.session("small")?;
    small.append_all(Speaker::new(7, Length::Short).messages(SMALL))?;
    Ok(small)
}

fn build(path: &Path, size: usize) -> Result<Sized> {
    let store = open(path, Durability::Normal)?;
    let long = store.session("long")?;
    let mut speaker = Speaker::new(1, Length::Short);
    let now = Utc::now();
    let mut ids = Vec::with_capacity(size);
    while ids.len() < size {
        let chunk = speaker.messages(CHUNK.min(size - ids.len())).into_iter().zip(ids.len()..);
        let chunk =
            chunk.map(|(message, n)| message.at(now - TimeDelta::minutes((size - n) as i64)));
        ids.extend(long.append_all(chunk)?.into_iter().map(|appended| appended.id));
    }
    fill_small(&store)?;
    Ok(Sized {
        path: path.to_owned(),
        long,
        size,
        first: ids[0].clone(),
        before_last_20: ids[size - 21].clone(),
        middle: ids[size / 2].clone(),
        last: ids[size - 1].clone(),
        store,
    })
}
