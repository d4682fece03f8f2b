//! What every command works with: the store, the output, and how to answer.

use std::path::{Path, PathBuf};

use talktree::{Error, Store};

use crate::cli::Cli;
use crate::failure::{Failure, Result, tell};
use crate::output::Output;

/// What every command works with.
pub(crate) struct Context {
    /// Where the store is, if that was said.
    pub(crate) stated: Option<PathBuf>,
    pub(crate) out: Output,
    pub(crate) is_json: bool,
}

impl Context {
    pub(crate) fn new(cli: &Cli) -> Self {
        Self { stated: cli.store.clone(), out: Output::stdout(cli.color.into()), is_json: cli.json }
    }

    /// Returns where the store is: as it was said, or in the user's data folder.
    pub(crate) fn store_path(&self) -> Result<PathBuf> {
        use etcetera::BaseStrategy;
        match &self.stated {
            Some(path) => Ok(path.clone()),
            None => etcetera::choose_base_strategy()
                .map(|folders| folders.data_dir().join("talktree").join("talktree.db"))
                .map_err(|error| {
                    Failure::Usage(format!(
                        "there is no data folder ({error}); name a store with --store"
                    ))
                }),
        }
    }

    /// Opens the store for reading; it must be there.
    pub(crate) fn reader(&self) -> Result<Store> {
        let path = self.existing()?;
        Ok(Store::open_read_only(path)?)
    }

    /// Opens the store for writing; it must be there.
    pub(crate) fn writer(&self) -> Result<Store> {
        let path = self.existing()?;
        Ok(Store::open(path)?)
    }

    /// Opens the store for reading, in a way that lets it keep its index up to date if it may.
    pub(crate) fn searcher(&self) -> Result<Store> {
        let path = self.existing()?;
        match Store::open(&path) {
            Err(Error::ReadOnly | Error::Io { .. } | Error::Busy { .. }) => {
                Ok(Store::open_read_only(path)?)
            }
            opened => Ok(opened?),
        }
    }

    /// Opens the store for writing; if it is not there it is made, and that is told.
    pub(crate) fn maker(&self) -> Result<Store> {
        let path = self.store_path()?;
        let is_new = !path.exists();
        if let Some(folder) =
            path.parent().filter(|folder| is_new && !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(|error| no_folder(folder, &error))?;
        }
        let store = Store::open(&path)?;
        if is_new {
            tell(&format!("made a new store: {}", path.display()));
        }
        Ok(store)
    }

    fn existing(&self) -> Result<PathBuf> {
        let path = self.store_path()?;
        // An empty file would become a store by being opened.
        let is_there = std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() > 0);
        match is_there {
            true => Ok(path),
            false if path.is_dir() => {
                Err(Failure::Store(format!("{} is a folder, not a store", path.display())))
            }
            false => Err(Failure::Store(format!(
                "there is no store at {}; `talktree import FILE` makes one, --store names another",
                path.display()
            ))),
        }
    }
}

fn no_folder(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::Store(format!("the folder {} cannot be made: {error}", folder.display()))
}
