//! The import formats, one file each, and how they are detected.

mod chain;
mod chatgpt;
mod claude_ai;
mod claude_code;
mod cline;
pub(crate) mod codex;
mod copilot_chat;
mod copilot_cli;
mod cursor;
pub(crate) mod database;
mod detect;
mod gemini;
mod goose;
mod librechat;
mod linear;
mod open_assistant;
mod open_webui;
mod openai;
pub(crate) mod opencode;
mod own;
mod parts;
mod pi;
mod qwen;
mod ui_message;

use std::fmt;
use std::str::FromStr;

use talktree::records::blocks;
use talktree::{Error, Result};

use crate::draft::{Origin, Reader};

#[cfg(feature = "zstd")]
pub(crate) use detect::ZSTD;
pub(crate) use detect::{DATABASE, HEADLESS, Sign, sign_of, unsupported_bytes};

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
    /// `codex`: a rollout of Codex, of any generation, or items of the Responses API.
    Codex,
    /// `claude-ai`: `conversations.json` of a claude.ai export.
    ClaudeAi,
    /// `gemini-cli`: a session of Gemini CLI.
    Gemini,
    /// `qwen-code`: a session of Qwen Code.
    Qwen,
    /// `copilot-chat`: a chat of Copilot in VS Code.
    CopilotChat,
    /// `copilot-cli`: the events of a session of Copilot CLI.
    CopilotCli,
    /// `cline`: a task of Cline or Roo Code, as its model sees it.
    Cline,
    /// `opencode`: a database of opencode, its folders of JSON, or the output of `opencode export`.
    OpenCode,
    /// `cursor`: a database of Cursor or of its command, or a transcript of its agents.
    Cursor,
    /// `open-webui`: a database or an export of Open WebUI.
    OpenWebUi,
    /// `librechat`: an export of LibreChat.
    LibreChat,
    /// `goose`: a database of goose, or its JSON lines.
    Goose,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 19] = [
        Self::Own,
        Self::ClaudeCode,
        Self::Pi,
        Self::ChatGpt,
        Self::OpenAssistant,
        Self::OpenAi,
        Self::UiMessage,
        Self::Codex,
        Self::ClaudeAi,
        Self::Gemini,
        Self::Qwen,
        Self::CopilotChat,
        Self::CopilotCli,
        Self::Cline,
        Self::OpenCode,
        Self::Cursor,
        Self::OpenWebUi,
        Self::LibreChat,
        Self::Goose,
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
            Self::Codex => "codex",
            Self::ClaudeAi => "claude-ai",
            Self::Gemini => "gemini-cli",
            Self::Qwen => "qwen-code",
            Self::CopilotChat => "copilot-chat",
            Self::CopilotCli => "copilot-cli",
            Self::Cline => "cline",
            Self::OpenCode => "opencode",
            Self::Cursor => "cursor",
            Self::OpenWebUi => "open-webui",
            Self::LibreChat => "librechat",
            Self::Goose => "goose",
        }
    }

    /// Returns a reader of the format.
    pub(crate) fn reader(self, from: Origin) -> Box<dyn Reader> {
        match self {
            Self::Own => Box::new(own::Own::new()),
            Self::ClaudeCode => Box::new(claude_code::ClaudeCode::new(from)),
            Self::Pi => Box::new(pi::Pi::new(from)),
            Self::ChatGpt => Box::new(chatgpt::ChatGpt::new(from)),
            Self::OpenAssistant => Box::new(open_assistant::OpenAssistant::new(from)),
            Self::OpenAi => Box::new(linear::Linear::<openai::OpenAi>::new(from)),
            Self::UiMessage => Box::new(linear::Linear::<ui_message::UiMessage>::new(from)),
            Self::Codex => Box::new(codex::Codex::new(from)),
            Self::ClaudeAi => Box::new(claude_ai::ClaudeAi::new(from)),
            Self::Gemini => Box::new(gemini::Gemini::new(from)),
            Self::Qwen => Box::new(qwen::Qwen::new(from)),
            Self::CopilotChat => Box::new(copilot_chat::CopilotChat::new(from)),
            Self::CopilotCli => Box::new(copilot_cli::CopilotCli::new(from)),
            Self::Cline => Box::new(cline::Cline::new(from)),
            Self::OpenCode => Box::new(opencode::OpenCode::new(from)),
            Self::Cursor => Box::new(cursor::Cursor::new(from)),
            Self::OpenWebUi => Box::new(open_webui::OpenWebUi::new(from)),
            Self::LibreChat => Box::new(librechat::LibreChat::new(from)),
            Self::Goose => Box::new(goose::Goose::new(&from)),
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
