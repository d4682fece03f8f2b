//! The bot is an example to read, so it stays short: more belongs in the library, or in a crate of its own.

use std::fs;
use std::path::Path;

/// The most lines of code, without blank lines, comments and tests.
const MOST: usize = 2_500;

fn lines(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += lines(&path);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let code = source.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
        count += code.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    }
    count
}

#[test]
fn the_bot_is_short() {
    let count = lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!((1_000..MOST).contains(&count), "src has {count} lines of code, {MOST} is the limit");
}
