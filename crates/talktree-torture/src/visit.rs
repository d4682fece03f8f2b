//! A process that opens a store, reads it and closes it.

use std::io::Write;
use std::path::{Path, PathBuf};

use talktree::{Message, Store};

use crate::Result;

/// How the process is started.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The store.
    store: PathBuf,
    /// The id of a message to append to the session `s`.
    #[arg(long)]
    append: Option<String>,
}

/// Returns the arguments that start a process which only opens the store.
pub(crate) fn args(store: &Path) -> [&str; 2] {
    ["visit", store.to_str().unwrap_or_default()]
}

/// Gives a sign, opens the store and reads it.
///
/// # Errors
/// As opening and reading.
pub fn run(args: &Args) -> Result<()> {
    std::io::stdout().write_all(b".")?;
    std::io::stdout().flush()?;
    let chat = Store::open(&args.store)?.session("s")?;
    if let Some(id) = &args.append {
        chat.append(Message::user("from another process").with_id(id.as_str()))?;
    }
    chat.path_length()?;
    Ok(())
}
