//! Modules import only from lower layers; the table is the one in `ARCHITECTURE.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

type Outcome = Result<(), std::io::Error>;

/// The modules of each layer, from the bottom up.
const LAYERS: &[&[&str]] = &[
    &[
        "callback",
        "catalog",
        "clock",
        "embedding",
        "erasure",
        "error",
        "id",
        "inbox",
        "message",
        "compaction",
        "search",
        "tokens",
        "outcome",
        "usage",
        "view",
        "event",
        "records",
        "report",
        "retention",
        "transcript",
    ],
    &["tree"],
    &["compaction::policy"],
    &["sql"],
    &["storage"],
    &["storage::sqlite"],
    &["context"],
    &["tools"],
    &["session"],
    &["store", "manager"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the module of the table that contains a file.
fn module_of(file: &Path) -> String {
    let inside = file.strip_prefix(source()).unwrap_or(file).with_extension("");
    let names: Vec<_> = inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [first, second, ..] if layer(&format!("{first}::{second}")).is_some() => {
            format!("{first}::{second}")
        }
        [first, ..] => first.to_owned(),
        [] => String::new(),
    }
}

/// Returns a file's code without comments.
fn code(file: &Path) -> Result<String, std::io::Error> {
    let text = fs::read_to_string(file)?;
    let lines = text.lines().map(|line| match line.find("//") {
        // The `//` of a URL is no comment.
        Some(at) if !line[..at].ends_with(':') => &line[..at],
        _ => line,
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the first two names of every path that begins at the crate root.
fn crate_paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => paths.push(two_names(rest)),
            Some(group) => paths.extend(group_members(group).into_iter().map(two_names)),
        }
    }
    paths
}

fn two_names(path: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = path.find(|c| !is_name(c)).unwrap_or(path.len());
    let (first, rest) = path.split_at(end);
    let second = rest.strip_prefix("::").unwrap_or_default();
    let second = &second[..second.find(|c| !is_name(c)).unwrap_or(second.len())];
    if second.is_empty() { first.to_owned() } else { format!("{first}::{second}") }
}

/// Returns the members of a `{..}` group, without members of nested groups.
fn group_members(group: &str) -> Vec<&str> {
    let (mut members, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                members.push(group[start..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    members.retain(|member| !member.is_empty());
    members
}

/// Returns the module of each name at the crate root.
fn root_names() -> Result<BTreeMap<String, String>, std::io::Error> {
    let code = code(&source().join("lib.rs"))?;
    let mut names = BTreeMap::new();
    for (at, _) in code.match_indices("pub use ") {
        let path = &code[at + "pub use ".len()..];
        let path = &path[..path.find(';').unwrap_or(path.len())];
        let Some((module, rest)) = path.split_once("::") else { continue };
        let (module, rest) = match rest.split_once("::{") {
            Some((inner, group)) if !inner.contains('{') => (format!("{module}::{inner}"), group),
            _ => (module.to_owned(), rest),
        };
        let members: Vec<&str> =
            match rest.trim().strip_prefix('{').or_else(|| rest.contains(',').then_some(rest)) {
                Some(group) => group.trim_end_matches('}').split(',').map(str::trim).collect(),
                None => vec![rest.trim()],
            };
        names.extend(members.into_iter().map(|name| (name.to_owned(), module.clone())));
    }
    Ok(names)
}

/// Returns the module of the table that a path names.
fn target(path: &str, roots: &BTreeMap<String, String>) -> String {
    let first = path.split("::").next().unwrap_or_default();
    match (layer(path), roots.get(first)) {
        (Some(_), _) => path.to_owned(),
        (None, Some(module)) => module.clone(),
        (None, None) => first.to_owned(),
    }
}

#[test]
fn imports_point_down_the_layers() -> Outcome {
    let roots = root_names()?;
    let mut broken = Vec::new();
    let mut count = 0;
    for file in files(&source())? {
        let module = module_of(&file);
        if module == "lib" {
            continue;
        }
        let Some(from) = layer(&module) else {
            broken.push(format!("{module} is not in the table of layers"));
            continue;
        };
        for path in crate_paths(&code(&file)?) {
            let target = target(&path, &roots);
            count += 1;
            match layer(&target) {
                None => {
                    broken.push(format!("{}: {path} is not in the table of layers", file.display()))
                }
                Some(to) if to > from => {
                    broken.push(format!("{}: {module} uses {target}", file.display()));
                }
                Some(_) => {}
            }
        }
    }
    assert!(count > 100, "only {count} imports were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

/// What uses the database's library itself, below `src`: the seam, connections and files, the index, and what is to come.
const OF_THE_ENGINE: &[&str] = &[
    "sql/",
    "storage/sqlite/backup.rs",
    "storage/sqlite/commit_group.rs",
    "storage/sqlite/connection.rs",
    "storage/sqlite/encryption.rs",
    "storage/sqlite/erase/",
    "storage/sqlite/index/",
    "storage/sqlite/interrupt.rs",
    "storage/sqlite/readers.rs",
    "storage/sqlite/schema.rs",
    "storage/sqlite/snapshot.rs",
    "storage/sqlite/transaction.rs",
    "storage/sqlite/verify/",
    "storage/sqlite/wal.rs",
    "storage/sqlite/write.rs",
];

#[test]
fn verbs_use_the_database_by_the_seam_alone() -> Outcome {
    let (mut broken, mut unused) = (Vec::new(), OF_THE_ENGINE.to_vec());
    for file in files(&source())? {
        let name = file.strip_prefix(source()).unwrap_or(&file).to_string_lossy().into_owned();
        let code = code(&file)?;
        // Tests may look at the database itself.
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let is_test = name.contains("tests") || name.ends_with("query_plans.rs");
        if is_test || !["rusqlite", ".prepare"].iter().any(|word| code.contains(word)) {
            continue;
        }
        unused.retain(|of| !name.starts_with(of));
        if !OF_THE_ENGINE.iter().any(|of| name.starts_with(of)) {
            broken.push(name);
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(unused.is_empty(), "{unused:?} do not use it any more");
    Ok(())
}

#[test]
fn paths_are_read_from_lines_and_groups() {
    let code = "use crate::id::{A, B};\nuse crate::{\n  error::Error,\n  tree::{X, Y}, view\n};\ncrate::Error";
    let paths = ["id", "error::Error", "tree", "view", "Error"];
    assert_eq!(crate_paths(code), paths);
}
