//! What every command needs: the store, the output and its format.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use talktree::{Error, Session, SessionId, Store};

use crate::cli::Cli;
use crate::failure::{Failure, Result, tell};
use crate::input::dangling;
use crate::last_list;
use crate::lookup;
use crate::output::{Output, Piece};
use crate::suggestion::command;
use crate::table::Table;
use crate::text::shown;

/// The environment variable that names the store.
const VARIABLE: &str = "TALKTREE_STORE";

/// How many items of a long list a terminal shows, unless all are asked for.
const SHOWN: usize = 20;

/// What every command needs.
pub(crate) struct Context {
    /// The value of `--store`, or of the variable.
    pub(crate) store_option: Option<PathBuf>,
    pub(crate) out: Output,
    pub(crate) is_json: bool,
    /// Whether the tour runs; it does not report its new store.
    pub(crate) is_tour: bool,
}

impl Context {
    pub(crate) fn new(cli: &Cli) -> Self {
        Self {
            store_option: cli.store.clone().or_else(from_environment),
            out: Output::stdout(cli.color),
            is_json: cli.json,
            is_tour: false,
        }
    }

    /// Returns what is needed to read a store, and to print nothing.
    pub(crate) fn to_read(store: Option<PathBuf>) -> Self {
        let store_option = store.or_else(from_environment);
        Self { store_option, out: Output::nowhere(), is_json: false, is_tour: false }
    }

    /// Prints the outcome of a verb: as JSON, or as a line for people.
    pub(crate) fn answer(&mut self, json: &impl Serialize, line: &[Piece<'_>]) -> Result<()> {
        Ok(if self.is_json { self.out.json(json) } else { self.out.line(line) }?)
    }

    /// Tells people what they may do next, after what was printed.
    pub(crate) fn advise(&mut self, text: &str) -> Result<()> {
        if !self.is_json {
            self.out.flush()?;
            tell(text);
        }
        Ok(())
    }

    /// Prints an item of a list as JSON, or adds it to the table for people.
    pub(crate) fn row<const N: usize>(
        &mut self,
        table: &mut Table,
        json: &impl Serialize,
        cells: [String; N],
    ) -> Result<()> {
        if self.is_json {
            return Ok(self.out.json(json)?);
        }
        table.push(cells);
        Ok(())
    }

    /// Writes the table of a list, or says why it is empty, unless `limit` asked for nothing. JSON was printed row by row.
    pub(crate) fn write_list(
        &mut self,
        table: &Table,
        limit: Option<usize>,
        why_empty: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        match table.is_empty() {
            _ if self.is_json || limit == Some(0) => {}
            true => tell(&why_empty()?),
            false => table.write(&mut self.out)?,
        }
        Ok(())
    }

    /// Returns how many items of a long list are printed: those that are asked for, else all, but on a terminal the first ones.
    pub(crate) fn limit(&self, limit: Option<usize>, is_all: bool) -> usize {
        let is_short = self.out.is_terminal() && !self.is_json && !is_all;
        limit.unwrap_or(if is_short { SHOWN } else { usize::MAX })
    }

    /// Keeps the sessions of a list that people see: `@1` names the first of them.
    pub(crate) fn keep_list<'a>(&self, ids: impl Iterator<Item = &'a SessionId>) {
        if self.out.is_terminal() && !self.is_json {
            last_list::keep(ids);
        }
    }

    /// Returns the path of the store: the value of `--store`, or the default in the user's data folder.
    pub(crate) fn store_path(&self) -> Result<PathBuf> {
        match &self.store_option {
            Some(path) => Ok(path.clone()),
            None => Ok(self.data_folder()?.join("talktree.db")),
        }
    }

    /// Returns talktree's folder in the user's data folder.
    pub(crate) fn data_folder(&self) -> Result<PathBuf> {
        use etcetera::BaseStrategy;
        let folders = etcetera::choose_base_strategy();
        folders.map(|folders| folders.data_dir().join("talktree")).map_err(|error| {
            Failure::Usage(format!(
                "there is no data folder for the default store ({error}); name a store with --store"
            ))
        })
    }

    /// Returns whether the store is a file that does not exist yet.
    pub(crate) fn is_missing(&self) -> Result<bool> {
        let path = self.store_path()?;
        Ok(!Store::is_url(&path) && !path.exists())
    }

    /// Opens the store for reading; it must exist. What is printed is shown in a pager if it is long.
    pub(crate) fn reader(&mut self) -> Result<Store> {
        let store = open_to_read(&self.existing()?)?;
        self.page();
        Ok(store)
    }

    /// Opens the store for reading, and a session of it.
    pub(crate) fn read(&mut self, session: &str) -> Result<(Store, Session)> {
        let store = self.reader()?;
        let session = lookup::session(&store, session)?;
        Ok((store, session))
    }

    /// Opens the store for writing, and a session of it.
    pub(crate) fn write(&self, session: &str) -> Result<(Store, Session)> {
        let store = self.writer()?;
        let session = lookup::session(&store, session)?;
        Ok((store, session))
    }

    /// Opens the store for writing; it must exist.
    pub(crate) fn writer(&self) -> Result<Store> {
        let path = self.existing()?;
        Ok(Store::options().open_at(path)?)
    }

    /// The tour shows its steps one after the other.
    fn page(&mut self) {
        if !self.is_tour {
            self.out.page();
        }
    }

    /// Opens the store for searching; what is printed is shown in a pager if it is long.
    pub(crate) fn searcher(&mut self) -> Result<Store> {
        let store = self.unpaged()?;
        self.page();
        Ok(store)
    }

    /// Opens the store for searching: for writing if possible, so that pending messages are indexed. No pager waits for the end of a
    /// command that goes on.
    pub(crate) fn unpaged(&self) -> Result<Store> {
        let path = self.existing()?;
        Ok(match Store::options().open_at(&path) {
            // On a medium where SQLite cannot create its lock files it reports that it cannot open the file. If something else
            // is wrong, opening read-only fails with it again.
            Err(
                error @ (Error::ReadOnly
                | Error::Io { .. }
                | Error::Busy { .. }
                | Error::Corrupt { .. }
                | Error::Storage { .. }),
            ) => match open_to_read(&path) {
                // That error advises opening it for writing, which has just failed.
                Err(Error::OlderStore { .. }) => return Err(error.into()),
                opened => opened?,
            },
            opened => opened?,
        })
    }

    /// Opens the store for writing and creates it if it is missing.
    ///
    /// Only the folder of the default store is created: a folder that the user named may be mistyped.
    pub(crate) fn maker(&self) -> Result<Store> {
        let path = self.store_path()?;
        if Store::is_url(&path) {
            return Ok(Store::options().open_at(&path)?);
        }
        if let Some(why) = dangling(&path) {
            return Err(Failure::Store(format!("there is no store at {}: {why}", shown(&path))));
        }
        if let Some(folder) = folder_of(&path).filter(|folder| !folder.is_dir()) {
            if self.store_option.is_some() {
                return Err(Failure::Store(format!(
                    "there is no folder {} for a new store; create it, or name another store with --store",
                    shown(folder)
                )));
            }
            std::fs::create_dir_all(folder).map_err(|error| no_folder(folder, &error))?;
        }
        Ok(Store::open(&path)?)
    }

    fn existing(&self) -> Result<PathBuf> {
        let path = self.store_path()?;
        if Store::is_url(&path) {
            return Ok(path);
        }
        let name = shown(&path);
        let why = match std::fs::metadata(&path) {
            // Opening an empty file would turn it into a store.
            Ok(file) if file.is_file() && file.len() > 0 => return Ok(path),
            Ok(file) if file.is_file() => format!("{name} is empty, not a store"),
            Ok(file) if file.is_dir() => format!("{name} is a folder, not a store"),
            Ok(_) => format!("{name} is a pipe, a device or a socket, not a store"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                format!("there is no store at {name}{}", self.missing(&path))
            }
            Err(error) => {
                format!("{name}: {}", dangling(&path).unwrap_or_else(|| error.to_string()))
            }
        };
        Err(Failure::Store(why))
    }

    /// Returns why there is no store at a path, or how to create it.
    fn missing(&self, path: &Path) -> String {
        let folder = folder_of(path).filter(|folder| !folder.is_dir());
        match (dangling(path), folder) {
            (Some(why), _) => format!(": {why}"),
            (None, Some(folder)) if self.store_option.is_some() => {
                format!(": there is no folder {}", shown(folder))
            }
            (None, _) => format!(
                "; create one with `{}`, or name another with --store",
                command("import FILE")
            ),
        }
    }
}

/// Opens a store for reading. On a server the rights of the user decide what may be written.
fn open_to_read(path: &Path) -> talktree::Result<Store> {
    match Store::is_url(path) {
        true => Store::options().open_at(path),
        false => Store::open_read_only(path),
    }
}

fn from_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the folder that a path names, if it names one.
fn folder_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

fn no_folder(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::Store(format!("the folder {} cannot be created: {error}", shown(folder)))
}
