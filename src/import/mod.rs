//! Reading conversations from the files of other programs, and from talktree's own.
//!
//! A file is read as what it is, whatever its name: [`Format`] is told from its content. Each of
//! its *records* (a line, a message, a node of a tree) becomes a message, or something else that a
//! session holds, or nothing; the [`ImportReport`] counts all three and says why. Ids that a source
//! gives are kept to the letter, and others are derived from the content, so importing a file again
//! adds nothing and importing one that has grown adds what is new. Trees stay trees; a summary that
//! a program made becomes a compaction over the messages it stands for, which stay too.
//!
//! Invariant: parents are stored before their children, in the order of the file otherwise.
//!
//! Invariant: what a file cannot tell is never guessed in silence: a line that is damaged, a parent
//! that is missing, a circle, a session id that another conversation has are all in the report.
//!
//! Invariant: no more than one record of a file is in memory, and an index of ids and places.

mod blocks;
mod chatgpt;
mod claude_code;
mod compactions;
mod conflict;
mod detect;
mod draft;
mod driver;
mod fields;
mod linear;
mod noted;
mod open_assistant;
mod openai;
mod order;
mod own;
mod pi;
mod pointer;
mod records;
mod report;
mod ui_message;
mod work;
mod write;

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::report::Progress;
use crate::store::Store;

pub use report::{ImportReport, MAX_NOTES, Note};

/// A format that conversations are read from.
///
/// ```
/// use talktree::import::Format;
///
/// assert_eq!("claude-code".parse::<Format>()?, Format::ClaudeCode);
/// assert_eq!(Format::OpenAi.to_string(), "openai");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `talktree`: talktree's own JSON lines, as [`export`](crate::export) writes them.
    Own,
    /// `claude-code`: a transcript of Claude Code.
    ClaudeCode,
    /// `pi`: a session of the Pi coding agent, versions 1 to 3.
    Pi,
    /// `chatgpt`: `conversations.json` of a ChatGPT export.
    ChatGpt,
    /// `open-assistant`: message trees of OpenAssistant, nested or flat.
    OpenAssistant,
    /// `openai`: messages of the OpenAI chat API, as JSON or JSON lines.
    OpenAi,
    /// `ui-message`: `UIMessage`s of the Vercel AI SDK.
    UiMessage,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] = [
        Self::Own,
        Self::ClaudeCode,
        Self::Pi,
        Self::ChatGpt,
        Self::OpenAssistant,
        Self::OpenAi,
        Self::UiMessage,
    ];

    /// Returns the name of the format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "talktree",
            Self::ClaudeCode => "claude-code",
            Self::Pi => "pi",
            Self::ChatGpt => "chatgpt",
            Self::OpenAssistant => "open-assistant",
            Self::OpenAi => "openai",
            Self::UiMessage => "ui-message",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| Error::InvalidName {
            what: "format",
            given: text.chars().take(80).collect(),
            why: format!("there are {}", Self::ALL.map(Self::as_str).join(", ")),
        })
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// How a file is imported.
///
/// ```
/// use talktree::import::{Format, ImportOptions};
///
/// let format = Some(Format::Pi);
/// let options = ImportOptions { format, is_dry_run: true, ..ImportOptions::default() };
/// assert!(!options.is_strict);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// The format of the file; `None` to tell it from the content.
    pub format: Option<Format>,
    /// The session to import into, for a file that holds one conversation; `None` for the id that
    /// the file gives, or one derived from its name and first words.
    pub session: Option<SessionId>,
    /// Whether the first fault of the source (a damaged line, a missing parent, ..) is an error;
    /// then nothing of the file is written.
    pub is_strict: bool,
    /// Whether to write nothing, and to report what would be done.
    pub is_dry_run: bool,
    /// Whether to keep each message's record as it came, under the metadata key `source`.
    pub keeps_source: bool,
}

impl Store {
    /// Imports the conversations of a file and returns what became of its records.
    ///
    /// A second import of the same file adds nothing, and one of a file that has grown adds its
    /// tail; the head stays where it is unless something was added, and messages, labels and
    /// compactions that were taken off since they were imported stay off. Messages are written about
    /// a thousand at a time: what was written before an error stays, and importing again completes
    /// it, the head included. `progress` hears bytes.
    ///
    /// ```
    /// use talktree::{Store, import::ImportOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("chat.json");
    /// let chat = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]"#;
    /// std::fs::write(&path, chat).unwrap();
    /// let store = Store::open_in_memory()?;
    /// let report = store.import(&path, &ImportOptions::default(), |_| {})?;
    /// assert_eq!((report.kept, report.added), (2, 2));
    /// assert_eq!(store.session(&report.sessions[0])?.history()?[1].text(), "ho");
    ///
    /// let again = store.import(&path, &ImportOptions::default(), |_| {})?;
    /// assert_eq!((again.added, again.known), (0, 2));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read; [`Error::Import`] if it is in no format that
    /// talktree reads, if [`ImportOptions::is_strict`] is set and something is wrong with it, or if
    /// [`ImportOptions::session`] is set and it holds several conversations;
    /// [`Error::Interrupted`]; as every write.
    pub fn import(
        &self,
        path: impl AsRef<Path>,
        options: &ImportOptions,
        progress: impl FnMut(Progress),
    ) -> Result<ImportReport> {
        let path = path.as_ref();
        let file =
            File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        self.import_reader(path, file, options, progress)
    }

    /// Imports the conversations of anything that can be read and sought in: an entry of an
    /// archive, bytes in memory.
    ///
    /// The name stands in the report, and its last component in ids that are derived.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use talktree::{Store, import::{Format, ImportOptions}};
    ///
    /// let store = Store::open_in_memory()?;
    /// let file = Cursor::new(r#"{"id": "c1", "messages": [{"role": "user", "content": "hi"}]}"#);
    /// let options = ImportOptions::default();
    /// let report = store.import_reader("export.zip/c1.json", file, &options, |_| {})?;
    /// assert_eq!((report.format, report.sessions[0].as_str()), (Format::OpenAi, "c1"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn import_reader(
        &self,
        name: impl AsRef<Path>,
        mut reader: impl Read + Seek,
        options: &ImportOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<ImportReport> {
        driver::import(self, name.as_ref(), &mut reader, options, &mut progress)
    }
}
