//! What a worker does, and the log of it.
//!
//! A worker writes a line before each verb and one after it returned. So the log of a killed worker ends in at most
//! one deed of which nobody knows whether it was committed: the reader finds out from the store, and settles the log
//! with a line of its own. Each line is one write to a file opened for appending, which a killed process leaves whole.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::text::Said;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deed {
    /// Opens the store, which is made if it is not there.
    Open,
    /// Appends a chain, at the head or to a message.
    Append {
        to: Option<String>,
        messages: Vec<Said>,
    },
    Update {
        message: Said,
    },
    Delete {
        id: String,
    },
    Compact {
        id: String,
        first: String,
        last: String,
    },
    /// Commits a compaction plan; the plan chose the range.
    CommitPlan {
        id: String,
        first: String,
        last: String,
    },
    /// Updates a message under a plan, whose commit is refused then.
    StaleCompaction {
        message: Said,
    },
    /// Appends to a session that compacts by itself; each compaction that follows is a deed of its own.
    AppendAndCompact {
        message: Said,
    },
    RemoveCompaction {
        id: String,
    },
    /// Ends the session and makes the one it goes on in.
    Split {
        session: String,
    },
    /// Goes to a message, and appends there what was left behind.
    Leave {
        to: String,
        message: Said,
    },
    /// Asks how many tokens are seen, by talktree's estimate or by words: both may store what they count.
    Tokens {
        are_words: bool,
    },
    Label {
        name: String,
        id: String,
    },
    Checkout {
        id: String,
    },
    Fork {
        session: String,
        at: String,
    },
    /// Appends to the session that all workers write to.
    Share {
        message: Said,
    },
    /// Searches for a word that stands in this message; the index catches up first.
    Search {
        id: String,
        word: String,
    },
    /// Imports a file of so many messages, which makes this session.
    Import {
        session: String,
        count: u32,
    },
    /// Copies the store to a file.
    Backup {
        file: String,
    },
    /// Makes a further store, with one message.
    Create {
        file: String,
        message: Said,
    },
}

impl Deed {
    /// Returns the verb.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Append { messages, .. } if messages.len() > 1 => "append_all",
            Self::Append { .. } => "append",
            Self::Update { .. } => "update",
            Self::Delete { .. } => "delete",
            Self::Compact { .. } => "import of a compaction",
            Self::CommitPlan { .. } => "commit",
            Self::StaleCompaction { .. } => "commit of a stale plan",
            Self::AppendAndCompact { .. } => "append that compactions",
            Self::RemoveCompaction { .. } => "remove_compaction",
            Self::Split { .. } => "compact_and_split",
            Self::Leave { .. } => "checkout_with_summary",
            Self::Tokens { .. } => "visible_tokens",
            Self::Label { .. } => "label",
            Self::Checkout { .. } => "checkout",
            Self::Fork { .. } => "fork",
            Self::Share { .. } => "append to a shared session",
            Self::Search { .. } => "search",
            Self::Import { .. } => "import",
            Self::Backup { .. } => "backup",
            Self::Create { .. } => "create",
        }
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The verb is called.
    Begin(Deed),
    /// It has returned, or was found committed.
    Done,
    /// It was found not committed.
    Undone,
    /// It returned what it should not.
    Wrong(String),
}

/// A log that is written.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self(OpenOptions::new().create(true).append(true).open(path)?))
    }

    pub(crate) fn write(&mut self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        Ok(self.0.write_all(text.as_bytes())?)
    }
}

/// Returns the lines of a log; none where there is no log.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    std::fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
