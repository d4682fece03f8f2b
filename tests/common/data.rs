//! The folder of real conversations, which is not part of the repository.
#![allow(dead_code, unreachable_pub, reason = "each program uses a part of it")]
#![allow(clippy::print_stdout, reason = "a skipped test says why")]

use std::path::{Path, PathBuf};

/// Returns the folder: `TALKTREE_DATA`, else `shared/data` beside the repository or beside the folder of its worktrees.
/// If there is none, prints that the test is skipped.
pub fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = std::env::var_os("TALKTREE_DATA").map(PathBuf::from);
    let beside = ["../shared/data", "../../shared/data"].map(|folder| here.join(folder));
    let found = given.map_or(beside.to_vec(), |folder| vec![folder]);
    let found = found.into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: no real conversations in $TALKTREE_DATA or ../shared/data");
    }
    found
}

/// Returns a file of the folder. If it does not exist, prints that the test is skipped.
pub fn data(file: &str) -> Option<PathBuf> {
    let path = folder()?.join(file);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {file} in the folder of real conversations");
    None
}
