//! Where real conversations for tests lie.

use std::path::{Path, PathBuf};

/// Returns the folder of test data: `TALKTREE_DATA`, else `shared/data` beside the repository (or
/// beside the folder of its worktrees); `None`, and a word about it, if there is none.
pub fn folder() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let given = std::env::var_os("TALKTREE_DATA").map(PathBuf::from);
    let beside = ["../shared/data", "../../shared/data"].map(|folder| here.join(folder));
    let found = given.map_or(beside.to_vec(), |folder| vec![folder]);
    let found = found.into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        println!("no test data: set TALKTREE_DATA to its folder");
    }
    found
}
