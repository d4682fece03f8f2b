//! What every command works with: the store, the output, and how to answer.

use std::path::{Path, PathBuf};

use talktree::{Error, Store};

use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// What every command works with.
pub(crate) struct Context {
    /// Where the store is, if that was said.
    pub(crate) stated: Option<PathBuf>,
    pub(crate) out: Output,
    pub(crate) is_json: bool,
    /// Whether a new store is no news.
    pub(crate) is_tour: bool,
}

impl Context {
    pub(crate) fn new(cli: &Cli) -> Self {
        Self {
            stated: cli.store.clone(),
            out: Output::stdout(cli.color.into()),
            is_json: cli.json,
            is_tour: false,
        }
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
            // SQLite says of a medium where its lock files cannot be made that the file cannot be
            // opened: what is wrong with it beyond that is found again.
            Err(
                Error::ReadOnly | Error::Io { .. } | Error::Busy { .. } | Error::Storage { .. },
            ) => Ok(Store::open_read_only(path)?),
            opened => Ok(opened?),
        }
    }

    /// Opens the store for writing; if it is not there it is made, in a folder that is there.
    ///
    /// Only the folder of the default store is made: one that was named may be mistyped.
    pub(crate) fn maker(&self) -> Result<Store> {
        let path = self.store_path()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            if self.stated.is_some() {
                return Err(Failure::Store(format!(
                    "there is no folder {} to make a store in",
                    folder.display()
                )));
            }
            std::fs::create_dir_all(folder).map_err(|error| no_folder(folder, &error))?;
        }
        Ok(Store::open(&path)?)
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
