//! Where programs keep conversations, on this machine.
//!
//! One table names each place: a folder, by its system and by the variable that moves it, and the files below it. A pattern is a
//! relative path; in it `*` matches any part of a name, and a component `**` any folders. The table also names
//! programs whose files are not read: then an import says so by file.

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A folder in which a program keeps conversations, and which of its files they are.
///
/// ```
/// use talktree_import::Place;
///
/// for place in Place::all() {
///     println!("{}: {} files below {}", place.tool, place.files().len(), place.folder.display());
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The program: `claude-code`, `codex`, ..
    pub tool: &'static str,
    /// The folder, which may be missing.
    pub folder: PathBuf,
    /// The pattern of the files below it.
    pub pattern: &'static str,
}

/// The systems that have places of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Linux,
    MacOs,
    Windows,
}

const THIS_SYSTEM: System = match () {
    () if cfg!(windows) => System::Windows,
    () if cfg!(target_os = "macos") => System::MacOs,
    () => System::Linux,
};

/// Paths, of which the first counts whose variable is set: a first component `~` is the home folder, and `$NAME` the folder that
/// the variable names.
type Paths = &'static [&'static str];

/// A folder as the table names it.
#[derive(Debug, Clone, Copy)]
enum Base {
    /// On every system.
    At(Paths),
    /// By system.
    Of([Paths; 3]),
    /// The settings of the user in each editor that is made from VS Code.
    Editors,
    /// Those of one such editor.
    Editor(&'static str),
}

const EDITORS: [&str; 5] = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];

use Base::{At, Editor, Editors, Of};

const CLAUDE: Base = At(&["$CLAUDE_CONFIG_DIR", "~/.claude"]);
const CODEX: Base = At(&["$CODEX_HOME", "~/.codex"]);
const GEMINI: Base = At(&["$GEMINI_CLI_HOME/.gemini", "~/.gemini"]);
const OPENCODE: Base = At(&["$XDG_DATA_HOME/opencode", "~/.local/share/opencode"]);
const CURSOR: Base = At(&["$CURSOR_CONFIG_DIR", "~/.cursor"]);
const GOOSE: Base = Of([
    &["$XDG_DATA_HOME/goose/sessions", "~/.local/share/goose/sessions"],
    &["$XDG_DATA_HOME/goose/sessions", "~/.local/share/goose/sessions"],
    &["$APPDATA/Block/goose/data/sessions", "~/AppData/Roaming/Block/goose/data/sessions"],
]);
const ZED: Base = Of([
    &["$XDG_DATA_HOME/zed", "~/.local/share/zed"],
    &["~/Library/Application Support/Zed"],
    &["$LOCALAPPDATA/Zed", "~/AppData/Local/Zed"],
]);

/// Every place: the program, a folder, and the files below it.
#[rustfmt::skip]
const PLACES: &[(&str, Base, &str)] = &[
    ("claude-code", CLAUDE, "projects/*/*.jsonl"),
    ("claude-code", CLAUDE, "projects/*/*/subagents/**/agent-*.jsonl"),
    ("codex", CODEX, "sessions/**/rollout-*.jsonl"),
    ("codex", CODEX, "sessions/**/rollout-*.jsonl.zst"),
    ("codex", CODEX, "sessions/**/rollout-*.json"),
    ("codex", CODEX, "archived_sessions/rollout-*.jsonl"),
    ("codex", CODEX, "archived_sessions/rollout-*.jsonl.zst"),
    ("gemini-cli", GEMINI, "tmp/*/chats/**/*.jsonl"),
    ("gemini-cli", GEMINI, "tmp/*/chats/**/*.json"),
    ("qwen-code", At(&["~/.qwen"]), "projects/*/chats/*.jsonl"),
    ("pi", At(&["$PI_CODING_AGENT_DIR", "~/.pi/agent"]), "sessions/**/*.jsonl"),
    ("copilot-cli", At(&["~/.copilot"]), "session-state/*/events.jsonl"),
    ("copilot-cli", At(&["~/.copilot"]), "session-state/*.jsonl"),
    ("copilot-chat", Editors, "workspaceStorage/*/chatSessions/*.jsonl"),
    ("copilot-chat", Editors, "workspaceStorage/*/chatSessions/*.json"),
    ("copilot-chat", Editors, "globalStorage/emptyWindowChatSessions/*.jsonl"),
    ("copilot-chat", Editors, "globalStorage/emptyWindowChatSessions/*.json"),
    ("cline", Editors, "globalStorage/saoudrizwan.claude-dev/tasks/*/api_conversation_history.json"),
    ("cline", At(&["$CLINE_DIR", "~/.cline"]), "data/sessions/*/*.messages.json"),
    ("roo-code", Editors, "globalStorage/rooveterinaryinc.roo-cline/tasks/*/api_conversation_history.json"),
    ("opencode", OPENCODE, "opencode.db"),
    ("opencode", OPENCODE, "storage/session/*/*.json"),
    ("cursor", Editor("Cursor"), "globalStorage/state.vscdb"),
    ("cursor", CURSOR, "projects/*/agent-transcripts/**/*.jsonl"),
    ("cursor", CURSOR, "projects/*/agent-transcripts/**/*.txt"),
    ("cursor", CURSOR, "chats/*/*/store.db"),
    ("open-webui", At(&["$DATA_DIR"]), "webui.db"),
    ("goose", At(&["$GOOSE_PATH_ROOT"]), "data/sessions/sessions.db"),
    ("goose", At(&["$GOOSE_PATH_ROOT"]), "data/sessions/*.jsonl"),
    ("goose", GOOSE, "sessions.db"),
    ("goose", GOOSE, "*.jsonl"),
    ("amp", At(&["$XDG_DATA_HOME/amp", "~/.local/share/amp"]), "threads/T-*.json"),
    ("droid", At(&["~/.factory"]), "sessions/**/*.jsonl"),
    ("kimi", At(&["~/.kimi"]), "sessions/*/*/wire.jsonl"),
    ("kimi", At(&["$KIMI_CODE_HOME", "~/.kimi-code"]), "sessions/*/*/agents/*/wire.jsonl"),
    ("zed", ZED, "threads/threads.db"),
    ("antigravity", At(&["~/.gemini"]), "antigravity*/brain/*/.system_generated/logs/transcript_full.jsonl"),
    ("kiro", At(&["~/.kiro"]), "sessions/cli/*.jsonl"),
    ("openhands", At(&["~/.openhands"]), "conversations/*/base_state.json"),
];

impl Place {
    /// Returns every known place of this system, also those that are missing.
    #[must_use]
    pub fn all() -> Vec<Self> {
        on(THIS_SYSTEM, &|name| env::var_os(name), env::home_dir())
    }

    /// Returns a folder whose `*.jsonl` and `*.json`, at any depth, are conversations of any program.
    #[must_use]
    pub fn of_folder(folder: impl Into<PathBuf>) -> Vec<Self> {
        let folder = folder.into();
        let place = |pattern| Self { tool: "files", folder: folder.clone(), pattern };
        ["**/*.jsonl", "**/*.json"].map(place).to_vec()
    }

    /// Returns the files that are there, in order of their names. What cannot be read counts as missing.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let (mut found, mut visited) = (Vec::new(), HashSet::new());
        let pattern: Vec<&str> = self.pattern.split('/').collect();
        expand(&self.folder, &pattern, &mut visited, &mut found);
        found.sort_unstable();
        found
    }

    /// Returns whether a file of this path is one of the place.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.folder) else { return false };
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
        let pattern: Vec<&str> = self.pattern.split('/').collect();
        names.is_some_and(|names| fits_path(&names, &pattern))
    }

    /// Returns whether files may be in folders below the root.
    pub(crate) fn is_deep(&self) -> bool {
        self.pattern.rsplit_once('/').is_some_and(|(folders, _)| folders.contains('*'))
    }

    /// Returns the folder below which all files of the place are: as deep as the pattern has no `*`.
    pub(crate) fn root(&self) -> PathBuf {
        let folders = self.pattern.rsplit_once('/').map_or("", |(folders, _)| folders);
        let fixed = folders.split('/').take_while(|name| !name.contains('*') && !name.is_empty());
        fixed.fold(self.folder.clone(), |folder, name| folder.join(name))
    }
}

/// Returns the places of a system.
fn on(
    system: System,
    variable: &dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Vec<Place> {
    let at = |path: &str| {
        let (first, below) = path.split_once('/').unwrap_or((path, ""));
        let folder = match first.strip_prefix('$') {
            Some(name) => variable(name).filter(|path| !path.is_empty()).map(PathBuf::from),
            None => home.clone(),
        };
        folder.map(|folder| join(&folder, below))
    };
    let first = |paths: Paths| paths.iter().find_map(|path| at(path));
    let editor = |name: &str| match system {
        System::Linux => at(&format!("~/.config/{name}/User")),
        System::MacOs => at(&format!("~/Library/Application Support/{name}/User")),
        System::Windows => at(&format!("$APPDATA/{name}/User"))
            .or_else(|| at(&format!("~/AppData/Roaming/{name}/User"))),
    };
    let folders = |base: Base| -> Vec<PathBuf> {
        match base {
            At(paths) => first(paths).into_iter().collect(),
            Of(paths) => first(paths[system as usize]).into_iter().collect(),
            Editor(name) => editor(name).into_iter().collect(),
            Editors => {
                let server = at("~/.vscode-server/data/User");
                EDITORS.iter().filter_map(|name| editor(name)).chain(server).collect()
            }
        }
    };
    let place = |&(tool, base, pattern): &(&'static str, Base, &'static str)| {
        folders(base).into_iter().map(move |folder| Place { tool, folder, pattern })
    };
    PLACES.iter().flat_map(place).collect()
}

fn join(folder: &Path, below: &str) -> PathBuf {
    below
        .split('/')
        .filter(|name| !name.is_empty())
        .fold(folder.to_owned(), |at, name| at.join(name))
}

/// Adds the files that a pattern finds below a folder. A folder that links lead to again is visited once.
fn expand(
    folder: &Path,
    pattern: &[&str],
    visited: &mut HashSet<PathBuf>,
    found: &mut Vec<PathBuf>,
) {
    let [name, rest @ ..] = pattern else { return };
    if !name.contains('*') {
        let path = folder.join(name);
        return take(path, rest, visited, found);
    }
    if *name == "**" {
        let Ok(real) = std::fs::canonicalize(folder) else { return };
        if !visited.insert(real) {
            return;
        }
        expand(folder, rest, visited, found);
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match *name {
            "**" if path.is_dir() => expand(&path, pattern, visited, found),
            "**" => {}
            name if entry.file_name().to_str().is_some_and(|it| fits(it, name)) => {
                take(path, rest, visited, found);
            }
            _ => {}
        }
    }
}

fn take(path: PathBuf, rest: &[&str], visited: &mut HashSet<PathBuf>, found: &mut Vec<PathBuf>) {
    match rest.is_empty() {
        true if path.is_file() => found.push(path),
        true => {}
        false => expand(&path, rest, visited, found),
    }
}

/// Returns whether the names of a path are those of a pattern.
fn fits_path(names: &[&str], pattern: &[&str]) -> bool {
    match (names, pattern) {
        ([], []) => true,
        (_, ["**", rest @ ..]) => {
            fits_path(names, rest) || !names.is_empty() && fits_path(&names[1..], pattern)
        }
        ([name, names @ ..], [part, rest @ ..]) => fits(name, part) && fits_path(names, rest),
        _ => false,
    }
}

/// Returns whether a name is one of a pattern with `*`.
fn fits(name: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let (first, mut pieces) = (pieces.next().unwrap_or_default(), pieces.collect::<Vec<_>>());
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let Some(last) = pieces.pop() else { return left.is_empty() };
    for piece in pieces {
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    left.ends_with(last)
}

/// Returns the file that a file beside a database belongs to: a write to a database may change only its log.
pub(crate) fn without_log(path: &Path) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = ["-wal", "-shm", "-journal"].iter().find_map(|end| name.strip_suffix(end));
    name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn folders(system: System, variables: &[(&str, &str)], tool: &str) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let all = on(system, &variable, Some("/h".into()));
        let of_tool = all.iter().filter(|place| place.tool == tool);
        let paths: BTreeSet<String> =
            of_tool.map(|it| it.folder.to_string_lossy().replace('\\', "/")).collect();
        paths.into_iter().collect()
    }

    #[test]
    fn each_system_has_its_places_and_variables_move_them() {
        use System::{Linux, MacOs, Windows};
        for (system, variables, tool, expected) in [
            (Linux, &[][..], "claude-code", &["/h/.claude"][..]),
            (Linux, &[("CLAUDE_CONFIG_DIR", "/c")], "claude-code", &["/c"]),
            (Windows, &[("CODEX_HOME", "")], "codex", &["/h/.codex"]),
            (Linux, &[("GEMINI_CLI_HOME", "/g")], "gemini-cli", &["/g/.gemini"]),
            (Linux, &[("XDG_DATA_HOME", "/d")], "opencode", &["/d/opencode"]),
            (Windows, &[], "opencode", &["/h/.local/share/opencode"]),
            (Linux, &[], "goose", &["/h/.local/share/goose/sessions"]),
            (Windows, &[], "goose", &["/h/AppData/Roaming/Block/goose/data/sessions"]),
            (MacOs, &[], "zed", &["/h/Library/Application Support/Zed"]),
            (Windows, &[("LOCALAPPDATA", "/l")], "zed", &["/l/Zed"]),
            (Linux, &[], "open-webui", &[]),
            (Linux, &[("DATA_DIR", "/w")], "open-webui", &["/w"]),
            (MacOs, &[], "cursor", &["/h/.cursor", "/h/Library/Application Support/Cursor/User"]),
        ] {
            assert_eq!(folders(system, variables, tool), expected, "{system:?} {tool}");
        }
        assert_eq!(folders(Linux, &[], "cline").len(), EDITORS.len() + 2);
    }

    #[test]
    fn a_pattern_finds_the_files_that_fit_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let files = ["a/x.jsonl", "a/b/y.jsonl", "a/b/c/z.jsonl", "a/b/note.txt", "top.jsonl"];
        for file in files {
            let path = join(root, file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("a/*.jsonl", &["a/x.jsonl"][..]),
            ("*/*/*.jsonl", &["a/b/y.jsonl"]),
            ("**/*.jsonl", &["a/b/c/z.jsonl", "a/b/y.jsonl", "a/x.jsonl", "top.jsonl"]),
            ("a/**/?.jsonl", &[]),
            ("a/b/no*t*.txt", &["a/b/note.txt"]),
            ("top.jsonl", &["top.jsonl"]),
            ("none/**/*.jsonl", &[]),
        ] {
            let place = Place { tool: "t", folder: root.to_owned(), pattern };
            let mut paths: Vec<PathBuf> = expected.iter().map(|file| join(root, file)).collect();
            paths.sort_unstable();
            assert_eq!(place.files(), paths, "{pattern}");
            for file in files {
                let is_found = expected.contains(&file);
                assert_eq!(place.has(&join(root, file)), is_found, "{pattern} {file}");
            }
        }
        let deep = Place { tool: "t", folder: root.to_owned(), pattern: "a/b/*/c/*.json" };
        assert_eq!(deep.root(), root.join("a").join("b"));
        assert_eq!(without_log(&root.join("o.db-wal")), root.join("o.db"));
    }
}
