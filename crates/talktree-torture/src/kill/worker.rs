//! The process that is killed: it writes to a store until then.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use talktree::Store;

use super::actor::Actor;
use crate::Result;
use crate::process::{durability, give_sign, store_in};

/// How a worker is started.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder with the store.
    #[arg(long)]
    folder: PathBuf,
    /// `full` or `normal`.
    #[arg(long)]
    durability: String,
    /// What each actor needs to go on. Several are threads that share one store.
    #[arg(long, required = true)]
    place: Vec<String>,
}

/// Returns the path of an actor's log: `b` is a verb that began, `d` one that is done, `r` one that was refused.
pub(super) fn log_in(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// Writes until it is killed or a verb returns something wrong.
///
/// # Errors
/// If the store cannot be opened.
pub fn run(args: &Args) -> Result<()> {
    give_sign()?;
    let options = Store::options().durability(durability(&args.durability)?);
    let store = options.open(store_in(&args.folder))?;
    std::thread::scope(|scope| {
        for place in &args.place {
            let store = store.clone();
            scope.spawn(move || {
                if let Err(error) = write(store, place, &args.folder) {
                    eprintln!("{place}: {error}");
                    // The other threads would go on until they are killed.
                    std::process::exit(1);
                }
            });
        }
    });
    Ok(())
}

/// A killed process leaves whole bytes of its log, and one verb at most that may or may not be committed.
fn write(store: Store, place: &str, folder: &Path) -> Result<()> {
    let mut actor = Actor::resume(store, place, folder)?;
    let path = log_in(folder, actor.name());
    let mut log = OpenOptions::new().create(true).append(true).open(path)?;
    loop {
        log.write_all(b"b")?;
        let (_, is_done) = actor.step()?;
        log.write_all(if is_done { b"d" } else { b"r" })?;
    }
}
