//! Importing what programs write while they write it.
//!
//! The system tells which files change, with the feature `watch`. Every file is looked at now and then, too, because some file
//! systems do not tell of all changes; where the system tells nothing, each second or so. A folder that is missing is awaited in
//! the nearest one above it. A file that changes is imported when it is quiet for a moment, and then as seldom as its size
//! demands: a long log is read from its beginning, so it waits five times as long as that took.
//!
//! Invariant: what is due stays due until it is stored, and a source that is gone, shorter or replaced takes nothing from the store.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use talktree::{Error, Result, Store};

use self::eyes::Eyes;
use crate::collect::State;
use crate::driver::is_of_file;
use crate::places::without_log;
use crate::report::ImportReport;
use crate::{Collector, ImportOptions, Place};

/// How often `should_stop` is asked.
const TICK: Duration = Duration::from_millis(500);
/// How long a file is left alone after its first change, so that one import takes several lines.
const PAUSE: Duration = Duration::from_millis(300);
/// How long all files are left alone after a look at them, at least and as a multiple of the time that it took: in case that
/// the system did not tell of a change, and where it tells of none.
const LOOK: (Duration, u32) = (Duration::from_secs(60), 10_000);
const POLL: (Duration, u32) = (Duration::from_secs(1), 50);
/// How long all files are left alone at most.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
/// How many times as long as its import took a file is left alone.
const FILE_SHARE: u32 = 5;
/// How long a store that others use is left alone.
const BUSY_PAUSE: Duration = Duration::from_secs(1);

/// What [`watch`] tells.
#[derive(Debug)]
#[non_exhaustive]
pub enum Watched {
    /// All files were looked at, and the new ones imported; so many are watched.
    Ready(usize),
    /// A file was imported.
    Imported(ImportReport),
    /// A file could not be imported; it is tried again when it changes.
    Skipped(PathBuf, Error),
    /// Why changes are found by looking at every file.
    Polls(String),
}

/// Imports the files of places, and then what programs write there, until `should_stop`.
///
/// It reads as a [`Collector`] does. An appended line can be found about half a second after it was written, in a long file later.
/// Files and folders may come, be replaced, become shorter and go: the store keeps what it has.
///
/// ```
/// use talktree::Store;
/// use talktree_import::{ImportOptions, Place, Watched, watch};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path();
/// std::fs::write(path.join("chat.json"), r#"[{"role": "user", "content": "hi"}]"#).unwrap();
/// let store = Store::open_in_memory()?;
/// let is_done = std::cell::Cell::new(false);
/// watch(&store, &Place::of_folder(path), &ImportOptions::default(), || is_done.get(), |told| {
///     if let Watched::Imported(report) = told {
///         is_done.set(report.added == 1);
///     }
/// })?;
/// assert_eq!(store.sessions()?.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As every write. What was imported until then stays.
pub fn watch(
    store: &Store,
    places: &[Place],
    options: &ImportOptions,
    should_stop: impl Fn() -> bool,
    mut tell: impl FnMut(Watched),
) -> Result<()> {
    let mut watching = Watching {
        store,
        places,
        options,
        should_stop: &should_stop,
        tell: &mut tell,
        is_ready: false,
        files: HashMap::new(),
        due: HashMap::new(),
    };
    match watching.run() {
        Err(Error::Interrupted) if should_stop() => Ok(()),
        done => done,
    }
}

/// The folders that are watched; of some all that is below them, at any depth.
type Roots = HashMap<PathBuf, bool>;

struct Watching<'a> {
    store: &'a Store,
    places: &'a [Place],
    options: &'a ImportOptions,
    should_stop: &'a dyn Fn() -> bool,
    tell: &'a mut dyn FnMut(Watched),
    /// Whether all files were looked at once.
    is_ready: bool,
    files: HashMap<PathBuf, Known>,
    /// The files to import, and not before when.
    due: HashMap<PathBuf, Instant>,
}

/// A file that was looked at.
#[derive(Debug, Clone, Copy)]
struct Known {
    state: State,
    /// When it may be imported again.
    free: Instant,
}

impl Watching<'_> {
    fn run(&mut self) -> Result<()> {
        // It listens before it reads the files for the first time, so that no change between the two is missed.
        let mut eyes = Eyes::open(&self.roots());
        let (mut polls, mut next_look) = (false, Instant::now());
        while !(self.should_stop)() {
            if Instant::now() >= next_look {
                if let Some(why) = eyes.watch(&self.roots()).filter(|_| !polls) {
                    polls = true;
                    (self.tell)(Watched::Polls(why));
                }
                let begin = Instant::now();
                self.look();
                let (pause, share) = if polls { POLL } else { LOOK };
                next_look = Instant::now() + (begin.elapsed() * share).clamp(pause, LOOK_AGAIN);
            }
            self.import_due()?;
            if !std::mem::replace(&mut self.is_ready, true) {
                (self.tell)(Watched::Ready(self.files.len()));
            }
            let now = Instant::now();
            let next = self.due.values().copied().fold(next_look.min(now + TICK), Instant::min);
            let changes = eyes.wait(next.saturating_duration_since(now));
            let is_near = |folder: &PathBuf| {
                let mut roots = self.places.iter().map(Place::root);
                roots.any(|root| root.starts_with(folder) || folder.starts_with(root))
            };
            if changes.are_unknown || changes.folders.iter().any(is_near) {
                next_look = next_look.min(Instant::now() + PAUSE);
            }
            for path in changes.paths {
                let path = without_log(&path);
                if self.places.iter().any(|place| place.has(&path)) {
                    self.changed(path);
                }
            }
        }
        Ok(())
    }

    fn roots(&self) -> Roots {
        let mut roots = Roots::new();
        for place in self.places {
            let root = place.root();
            if let Some(there) = root.ancestors().find(|folder| folder.is_dir()) {
                *roots.entry(there.to_owned()).or_default() |= there == root && place.is_deep();
            }
        }
        let is_covered =
            |root: &Path| root.ancestors().skip(1).any(|above| roots.get(above) == Some(&true));
        let shown = roots.iter().filter(|(root, _)| !is_covered(root));
        shown.map(|(root, is_deep)| (root.clone(), *is_deep)).collect()
    }

    /// Looks at every file.
    fn look(&mut self) {
        let found: HashSet<PathBuf> = self.places.iter().flat_map(Place::files).collect();
        self.files.retain(|path, _| found.contains(path));
        found.into_iter().for_each(|path| self.changed(path));
    }

    /// Makes a file due unless it is as it was.
    fn changed(&mut self, path: PathBuf) {
        // It may be gone by now.
        let Ok(state) = State::of(&path) else { return };
        let now = Instant::now();
        let free = match self.files.get(&path) {
            Some(known) if known.state == state => return,
            Some(known) => known.free.max(now + PAUSE),
            None if self.is_ready => now + PAUSE,
            None => now,
        };
        self.due.entry(path).or_insert(free);
    }

    /// Imports the files that are due now.
    fn import_due(&mut self) -> Result<()> {
        let now = Instant::now();
        let is_due = |(_, free): &(&PathBuf, &Instant)| **free <= now;
        let mut due: Vec<PathBuf> =
            self.due.iter().filter(is_due).map(|(path, _)| path.clone()).collect();
        if due.is_empty() {
            return Ok(());
        }
        due.sort_unstable();
        match self.import(&due) {
            Ok(()) => {
                self.due.retain(|path, _| due.binary_search(path).is_err());
                Ok(())
            }
            Err(Error::Busy { .. }) => {
                for path in due {
                    self.due.insert(path, Instant::now() + BUSY_PAUSE);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn import(&mut self, due: &[PathBuf]) -> Result<()> {
        let mut collector = Collector::new(self.store, self.options.clone());
        let mut read = Vec::new();
        for path in due {
            let Ok(state) = State::of(path) else { continue };
            let begin = Instant::now();
            let added = self.add(&mut collector, path);
            let free = Instant::now() + begin.elapsed() * FILE_SHARE;
            match added {
                Ok(_) => {}
                Err(error) if is_of_file(&error) => {
                    (self.tell)(Watched::Skipped(path.clone(), error));
                }
                Err(error) => return Err(error),
            }
            read.push((path.clone(), Known { state, free }));
            for report in collector.take_reports()? {
                (self.tell)(Watched::Imported(report));
            }
        }
        for report in collector.finish()? {
            (self.tell)(Watched::Imported(report));
        }
        // Not before all of it is stored.
        self.files.extend(read);
        Ok(())
    }

    fn add(&self, collector: &mut Collector<'_>, path: &Path) -> Result<bool> {
        if (self.should_stop)() {
            return Err(Error::Interrupted);
        }
        let handle = self.store.interrupt_handle();
        collector.add(path, |_| {
            if (self.should_stop)() {
                handle.interrupt();
            }
        })
    }
}

/// What happened while the system was asked.
#[derive(Debug, Default)]
struct Changes {
    /// Files that may have changed.
    paths: Vec<PathBuf>,
    /// New folders, which may have files that were there before the folders were watched.
    folders: Vec<PathBuf>,
    /// Whether there may be others.
    are_unknown: bool,
}

/// Changes as the system tells of them.
#[cfg(feature = "watch")]
mod eyes {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
    use std::time::Duration;

    use notify::event::{AccessKind, AccessMode, ModifyKind};
    use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

    use super::{Changes, Roots};

    pub(super) struct Eyes {
        watcher: notify::Result<RecommendedWatcher>,
        events: Receiver<notify::Result<Event>>,
        watched: Roots,
    }

    impl Eyes {
        pub(super) fn open(roots: &Roots) -> Self {
            let (sender, events) = channel();
            let watcher = notify::recommended_watcher(sender);
            let mut eyes = Self { watcher, events, watched: Roots::new() };
            // What fails is tried again at the first look, which says why.
            eyes.watch(roots);
            eyes
        }

        /// Watches these folders and all below them; returns why one cannot be.
        pub(super) fn watch(&mut self, roots: &Roots) -> Option<String> {
            let watcher = match &mut self.watcher {
                Ok(watcher) => watcher,
                Err(error) => return Some(error.to_string()),
            };
            self.watched.retain(|root, is_deep| {
                let is_wanted = roots.get(root) == Some(is_deep);
                if !is_wanted {
                    // One that is gone is watched no more.
                    let _ = watcher.unwatch(root);
                }
                is_wanted
            });
            let mut failed = None;
            for (root, is_deep) in roots {
                if self.watched.contains_key(root) {
                    continue;
                }
                let mode =
                    if *is_deep { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
                match watcher.watch(root, mode) {
                    Ok(()) => {
                        self.watched.insert(root.clone(), *is_deep);
                    }
                    Err(error) => failed = Some(error.to_string()),
                }
            }
            failed
        }

        /// Waits for changes, or for so long.
        pub(super) fn wait(&mut self, time: Duration) -> Changes {
            let mut changes = Changes::default();
            let first = match self.events.recv_timeout(time) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return changes,
                // There is no watcher.
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(time);
                    return changes;
                }
            };
            for event in std::iter::once(first).chain(self.events.try_iter()) {
                let Ok(event) = event else {
                    changes.are_unknown = true;
                    continue;
                };
                changes.are_unknown |= event.need_rescan();
                match event.kind {
                    EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
                    EventKind::Access(_) => continue,
                    EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)) => {
                        let folders = event.paths.iter().filter(|path| path.is_dir());
                        changes.folders.extend(folders.cloned());
                    }
                    // A folder that is gone is watched no more, and again when it comes back.
                    EventKind::Remove(_) => {
                        for path in &event.paths {
                            changes.are_unknown |= self.watched.remove(path).is_some();
                        }
                    }
                    _ => {}
                }
                changes.paths.extend(event.paths);
            }
            changes
        }
    }
}

/// Without the feature every file is looked at.
#[cfg(not(feature = "watch"))]
mod eyes {
    use std::time::Duration;

    use super::{Changes, Roots};

    pub(super) struct Eyes;

    impl Eyes {
        pub(super) fn open(_: &Roots) -> Self {
            Self
        }

        pub(super) fn watch(&mut self, _: &Roots) -> Option<String> {
            Some("it was built without the feature `watch`".to_owned())
        }

        pub(super) fn wait(&mut self, time: Duration) -> Changes {
            std::thread::sleep(time);
            Changes::default()
        }
    }
}
