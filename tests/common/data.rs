//! The folder of real conversations, which is not part of the repository.

use std::path::PathBuf;

/// Returns a file of the data folder: `$TALKTREE_DATA`, or `../shared/data` above the repository.
/// `None`, and a line that says so, where it is absent: the test is skipped.
pub fn data(file: &str) -> Option<PathBuf> {
    let root = env!("CARGO_MANIFEST_DIR");
    let given = std::env::var_os("TALKTREE_DATA").map(PathBuf::from);
    let usual = ["../shared/data", "../../shared/data"].iter().map(|path| PathBuf::from(root).join(path));
    let path = given.into_iter().chain(usual).map(|folder| folder.join(file)).find(|path| path.exists());
    if path.is_none() {
        println!("skipped: no {file} in $TALKTREE_DATA or ../shared/data");
    }
    path
}
