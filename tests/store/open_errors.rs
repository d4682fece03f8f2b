//! Files that cannot be opened: each error says what is wrong with the file, so that its text alone helps.

use crate::common;
use talktree::{Error, Result, Store};

/// Bytes that look random: of no store, or of an encrypted one.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// It said only that the file looked encrypted.
#[test]
fn random_bytes_may_be_no_store() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("backup.gz");
    std::fs::write(&path, noise(8192)).unwrap();
    for answer in [Store::open(&path), Store::open_read_only(&path)] {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::WrongKey { .. }), "{error}");
        let why = "no key was given, and it looks encrypted; or it is not a store";
        assert!(error.to_string().ends_with(why), "{error}");
    }
    Ok(())
}

/// It was called a link to a file that does not exist.
#[cfg(unix)]
#[test]
fn a_loop_of_links_is_named() -> Result<()> {
    let folder = common::folder()?;
    let at = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink("two.db", at("one.db")).unwrap();
    std::os::unix::fs::symlink(at("one.db"), at("two.db")).unwrap();
    for answer in [Store::open(at("one.db")), Store::open_read_only(at("one.db"))] {
        let error = answer.unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains("loop of symbolic links"), "{error}");
    }
    Ok(())
}
