//! The operations of a worker, and the log of them.
//!
//! A worker writes one line before each verb and one after it returned. So the log of a killed worker ends in at most
//! one operation that may or may not be committed: the check finds out from the store and completes the log. Each line
//! is one write to a file opened for appending, so a killed process leaves whole lines.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::transcripts::EntriesSpec;
use crate::Result;
use crate::text::MessageSpec;

/// One verb with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    /// Opens the store, or creates it.
    Open,
    /// Appends a chain of messages to the head or to a message.
    Append {
        to: Option<String>,
        messages: Vec<MessageSpec>,
    },
    Update {
        message: MessageSpec,
    },
    Delete {
        id: String,
    },
    ImportCompaction {
        id: String,
        first: String,
        last: String,
    },
    /// Plans a compaction and commits it; the plan chooses the range.
    CommitPlan {
        id: String,
        first: String,
        last: String,
    },
    /// Updates a message that a plan covers, and commits the plan, which must be refused.
    CommitStalePlan {
        message: MessageSpec,
    },
    /// Appends to a session that compacts automatically; each compaction that follows is an operation too.
    AppendAndCompact {
        message: MessageSpec,
    },
    RemoveCompaction {
        id: String,
    },
    /// Ends the session and continues in a new one.
    Split {
        session: String,
    },
    /// Checks out a message and appends there a summary of the abandoned branch.
    BranchSummary {
        to: String,
        message: MessageSpec,
    },
    /// Counts the visible tokens by talktree's estimate or by words; both may store their counts.
    VisibleTokens {
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
    /// Appends to the session that all workers share.
    AppendShared {
        message: MessageSpec,
    },
    /// Searches for a word of this message, after the index has caught up.
    Search {
        id: String,
        word: String,
    },
    /// Imports a file with this many messages into a new session.
    Import {
        session: String,
        count: u32,
    },
    /// Appends this many entries to a transcript, in one call.
    AppendEntries {
        transcript: String,
        entries: EntriesSpec,
    },
    /// Erases the owner of a transcript.
    EraseOwner {
        transcript: String,
    },
    /// Backs up the store to a file.
    Backup {
        file: String,
    },
    /// Creates an additional store with one message.
    Create {
        file: String,
        message: MessageSpec,
    },
}

impl Operation {
    /// Returns the name of the verb.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Append { messages, .. } if messages.len() > 1 => "append_all",
            Self::Append { .. } => "append",
            Self::Update { .. } => "update",
            Self::Delete { .. } => "delete",
            Self::ImportCompaction { .. } => "import_compaction",
            Self::CommitPlan { .. } => "commit",
            Self::CommitStalePlan { .. } => "commit of a stale plan",
            Self::AppendAndCompact { .. } => "append with automatic compaction",
            Self::RemoveCompaction { .. } => "remove_compaction",
            Self::Split { .. } => "compact_and_split",
            Self::BranchSummary { .. } => "checkout_with_summary",
            Self::VisibleTokens { .. } => "visible_tokens",
            Self::Label { .. } => "label",
            Self::Checkout { .. } => "checkout",
            Self::Fork { .. } => "fork",
            Self::AppendShared { .. } => "append to a shared session",
            Self::Search { .. } => "search",
            Self::Import { .. } => "import",
            Self::AppendEntries { .. } => "append to a transcript",
            Self::EraseOwner { .. } => "erase",
            Self::Backup { .. } => "backup",
            Self::Create { .. } => "create",
        }
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The verb is about to be called.
    Begin(Operation),
    /// The verb has returned, or was found committed.
    Done,
    /// The verb was found not committed.
    Undone,
    /// The verb returned something wrong.
    Wrong(String),
}

/// A log that is being written.
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

/// Returns the lines of a log; none if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    std::fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
