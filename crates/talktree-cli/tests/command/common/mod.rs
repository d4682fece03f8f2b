//! A test rig: the real binary with a temporary store.

pub(crate) mod context;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A temporary folder for a store, which does not exist at first.
pub(crate) struct Rig {
    folder: tempfile::TempDir,
}

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Rig {
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Returns a rig whose store holds the tour's sample: session `tour` with two branches.
    pub(crate) fn toured() -> Self {
        let rig = Self::empty();
        let sample =
            rig.file("sample.jsonl", include_str!("../../../src/commands/tour/sample.jsonl"));
        rig.ok(["import", sample.to_str().unwrap()]);
        rig
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("talk.db")
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_talktree"));
        command.args(args).env("TALKTREE_STORE", self.store()).stdin(Stdio::null());
        // So that the tour's folder is deleted with the rig.
        command.env("TMPDIR", self.folder.path());
        command.env("XDG_CACHE_HOME", self.folder.path());
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "PAGER", "LESS"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn run(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Answer {
        Answer::of(self.command(args).output().unwrap())
    }

    /// Runs a command line without quotes on a terminal of 80 columns and 24 rows, three hours east of Greenwich, and returns what
    /// it shows; `None` if there are no terminals here.
    #[cfg(target_os = "linux")]
    pub(crate) fn on_terminal(&self, pager: &str, line: &str) -> Option<String> {
        let program = env!("CARGO_BIN_EXE_talktree");
        let line = format!("stty cols 80 rows 24; '{program}' --color never {line}");
        let mut command = Command::new("script");
        command.args(["--quiet", "--command", &line, "/dev/null"]).stdin(Stdio::null());
        command.env("TALKTREE_STORE", self.store()).env("XDG_CACHE_HOME", self.folder.path());
        command.env("PAGER", pager).env("TZ", "UTC-3").env_remove("COLUMNS");
        let output = command.output().ok()?;
        let has_terminals = !String::from_utf8_lossy(&output.stderr).contains("script:");
        has_terminals.then(|| String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"))
    }

    /// Runs a command that must succeed, and returns its stdout.
    #[track_caller]
    pub(crate) fn ok(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> String {
        let answer = self.run(args);
        assert_eq!(answer.code, 0, "{answer:?}");
        answer.stdout
    }

    /// Runs a command that must exit with this code, and returns its stderr.
    #[track_caller]
    pub(crate) fn fails(
        &self,
        code: i32,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> String {
        let answer = self.run(args);
        assert_eq!(answer.code, code, "{answer:?}");
        assert!(!answer.stderr.is_empty(), "a failure must say why");
        answer.stderr
    }

    /// Runs a command with `--json` that must succeed, and returns its lines as values.
    #[track_caller]
    pub(crate) fn json(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vec<Value> {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let stdout = self.ok(args.chain([OsStr::new("--json").to_owned()]));
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Answer {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the names of an object's fields, sorted.
#[track_caller]
pub(crate) fn fields(value: &Value) -> Vec<&str> {
    let mut fields: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
