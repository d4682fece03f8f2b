//! `talktree watch`: keeps importing what programs write.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf, absolute};

use talktree::Store;
use talktree::records::ids::derive;
use talktree_import::{ImportOptions, Place, Watched, watch};

use super::import::Printer;
use crate::prelude::*;

/// Keep importing conversations while programs write them
///
/// Imports as `import --all` does, and then what is written, a moment later, until Ctrl-C. Sources may grow, be replaced,
/// become shorter and go: the store keeps what it has, and what was removed or erased stays out. One `talktree watch` at a
/// time may run for a store, which is created if it is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Watch the *.jsonl and *.json below these folders instead of the places of known programs.
    folders: Vec<PathBuf>,

    /// Replace what looks like a key or a token before it is stored.
    #[arg(long)]
    redact: bool,
}

pub(crate) fn run(args: WatchArgs, context: &mut Context) -> Result<()> {
    let places = places(&args.folders)?;
    let is_new = context.is_missing()?;
    let store = context.maker()?;
    let _lock = lock(&context.store_path()?, context)?;
    if is_new {
        tell(&format!("created a new store: {}", shown(&context.store_path()?)));
    }
    let signals = Signals::catch()?;
    let options = ImportOptions { is_redacted: args.redact, ..ImportOptions::default() };
    let (failed, has_failed) = (Cell::new(None), Cell::new(false));
    let (mut noted, mut printer) = (HashSet::new(), Printer::new(&store));
    let should_stop = || has_failed.get() || signals.check().is_err();
    let watched = watch(&store, &places, &options, should_stop, |told| {
        if let Err(failure) = print(told, &mut noted, &mut printer, context) {
            failed.set(Some(failure));
            has_failed.set(true);
        }
    });
    watched?;
    failed.take().map_or(Ok(()), Err)
}

fn print(
    told: Watched,
    noted: &mut HashSet<(PathBuf, String)>,
    printer: &mut Printer<'_>,
    context: &mut Context,
) -> Result<()> {
    match told {
        Watched::Ready(files) => {
            tell(&format!("watching {}; stop with Ctrl-C", plural(files as u64, "file")));
        }
        Watched::Polls(why) => tell(&format!("files are looked at one by one: {why}")),
        Watched::Skipped(path, error) => {
            let why = error.to_string();
            if noted.insert((path, why.clone())) {
                tell(&why);
            }
        }
        Watched::Imported(mut report) => {
            // A growing file is read again and again, with the same notes.
            if !noted.insert((report.path.clone(), String::new())) {
                report.notes.clear();
                report.notes_left_out = 0;
            }
            if context.is_json || report.added > 0 || !report.notes.is_empty() {
                printer.write(context, &report)?;
            }
        }
        _ => {}
    }
    Ok(context.out.flush()?)
}

fn places(folders: &[PathBuf]) -> Result<Vec<Place>> {
    if folders.is_empty() {
        return Ok(Place::all());
    }
    let mut places = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            return Err(Failure::Input(format!("{} is no folder", shown(folder))));
        }
        let named = |error| Failure::Input(format!("{}: {error}", shown(folder)));
        places.extend(Place::of_folder(absolute(folder).map_err(named)?));
    }
    Ok(places)
}

/// Locks the store against another `watch`, until the file is closed.
fn lock(store: &Path, context: &Context) -> Result<File> {
    let name = match Store::is_url(store) {
        // For this machine.
        true => {
            let name = derive(&["watch", &store.to_string_lossy()]);
            context.data_folder()?.join(format!("{name}.watch"))
        }
        false => {
            let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
            let mut name = real.into_os_string();
            name.push(".watch");
            name.into()
        }
    };
    let cannot = |error: std::io::Error| Failure::Store(format!("{}: {error}", shown(&name)));
    if let Some(folder) = name.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    let file =
        File::options().create(true).truncate(false).write(true).open(&name).map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::Store("another `talktree watch` runs for this store".to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}
