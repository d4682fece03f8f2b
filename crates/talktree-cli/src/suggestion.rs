//! Commands that a message tells the user to run, ready to be copied.
//!
//! A copied command must ask the same store. So it names the store if the command line did.

use std::path::Path;
use std::sync::OnceLock;

use crate::shell::quote;

/// The option that names the store, with a blank after it.
static STORE: OnceLock<String> = OnceLock::new();

/// Notes the store of this command line. One that the environment names is found by a copied command, too.
pub(crate) fn set_store(store: Option<&Path>) {
    if let Some(path) = store {
        // It is set once, at the start.
        let _ = STORE.set(format!("--store {} ", quote(&path.to_string_lossy())));
    }
}

/// Returns a whole command line: `sessions` becomes `talktree sessions`, or `talktree --store FILE sessions`.
pub(crate) fn command(rest: &str) -> String {
    format!("talktree {}{rest}", STORE.get().map_or("", String::as_str))
}
