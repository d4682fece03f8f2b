//! The import formats, one file each, and how they are detected.

mod chatgpt;
mod claude_code;
mod detect;
mod linear;
mod open_assistant;
mod openai;
mod own;
mod pi;
mod ui_message;
mod unsupported;

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use talktree::records::blocks;
use talktree::{Error, Result};

use crate::draft::Reader;

pub(crate) use detect::{HEADLESS, Sign, sign_of};
pub(crate) use unsupported::unsupported_bytes;

/// The format of an imported file.
///
/// ```
/// use talktree_import::Format;
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

    /// Returns a reader of the format.
    ///
    /// `file` is the name of the file, and `now` the time of messages that have none.
    pub(crate) fn reader(
        self,
        file: String,
        keeps_source: bool,
        now: DateTime<Utc>,
    ) -> Box<dyn Reader> {
        match self {
            Self::Own => Box::new(own::Own::new()),
            Self::ClaudeCode => Box::new(claude_code::ClaudeCode::new(file, now)),
            Self::Pi => Box::new(pi::Pi::new(file, now)),
            Self::ChatGpt => Box::new(chatgpt::ChatGpt::new(keeps_source, now)),
            Self::OpenAssistant => Box::new(open_assistant::OpenAssistant::new(keeps_source, now)),
            Self::OpenAi => Box::new(openai::reader(file, keeps_source, now)),
            Self::UiMessage => Box::new(ui_message::reader(file, keeps_source, now)),
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
        found.ok_or_else(|| Error::InvalidValue {
            what: "format",
            given: text.chars().take(80).collect(),
            why: format!("there are {}", Self::ALL.map(Self::as_str).join(", ")),
        })
    }
}
