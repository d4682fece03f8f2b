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

/// Declares the formats: the variant, the name and the reader of each.
macro_rules! formats {
    ($from:ident: $($(#[$doc:meta])* $variant:ident, $name:literal, $reader:expr;)*) => {
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
            $($(#[$doc])* $variant,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: [Self; 19] = [$(Self::$variant),*];

            /// Returns the name of the format.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns a reader of the format.
            pub(crate) fn reader(self, $from: Origin) -> Box<dyn Reader> {
                match self {
                    $(Self::$variant => Box::new($reader),)*
                }
            }
        }
    };
}

/// Returns a reader that has read nothing.
macro_rules! started {
    ($reader:ty, $from:expr) => {{
        let mut reader = <$reader>::default();
        reader.from = $from;
        reader
    }};
}

formats! {
    from:
    /// `talktree`: talktree's own JSON lines, as [`export`](crate::export) writes them.
    Own, "talktree", own::Own::default();
    /// `claude-code`: a transcript of Claude Code.
    ClaudeCode, "claude-code", started!(claude_code::ClaudeCode, from);
    /// `pi`: a session of the Pi coding agent, versions 1 to 3.
    Pi, "pi", started!(pi::Pi, from);
    /// `chatgpt`: `conversations.json` of a ChatGPT export.
    ChatGpt, "chatgpt", chatgpt::ChatGpt { from };
    /// `open-assistant`: message trees of OpenAssistant, nested or flat.
    OpenAssistant, "open-assistant", started!(open_assistant::OpenAssistant, from);
    /// `openai`: messages of the OpenAI chat API, as JSON or JSON lines.
    OpenAi, "openai", started!(linear::Linear::<openai::OpenAi>, from);
    /// `ui-message`: `UIMessage`s of the Vercel AI SDK.
    UiMessage, "ui-message", started!(linear::Linear::<ui_message::UiMessage>, from);
    /// `codex`: a rollout of Codex, of any generation, or items of the Responses API.
    Codex, "codex", started!(codex::Codex, from);
    /// `claude-ai`: `conversations.json` of a claude.ai export.
    ClaudeAi, "claude-ai", claude_ai::ClaudeAi { from };
    /// `gemini-cli`: a session of Gemini CLI.
    Gemini, "gemini-cli", started!(gemini::Gemini, from);
    /// `qwen-code`: a session of Qwen Code.
    Qwen, "qwen-code", started!(qwen::Qwen, from);
    /// `copilot-chat`: a chat of Copilot in VS Code.
    CopilotChat, "copilot-chat", started!(copilot_chat::CopilotChat, from);
    /// `copilot-cli`: the events of a session of Copilot CLI.
    CopilotCli, "copilot-cli", started!(copilot_cli::CopilotCli, from);
    /// `cline`: a task of Cline or Roo Code, as its model sees it.
    Cline, "cline", started!(cline::Cline, from);
    /// `opencode`: a database of opencode, its folders of JSON, or the output of `opencode export`.
    OpenCode, "opencode", started!(opencode::OpenCode, from);
    /// `cursor`: a database of Cursor or of its command, or a transcript of its agents.
    Cursor, "cursor", started!(cursor::Cursor, from);
    /// `open-webui`: a database or an export of Open WebUI.
    OpenWebUi, "open-webui", open_webui::OpenWebUi { from };
    /// `librechat`: an export of LibreChat.
    LibreChat, "librechat", librechat::LibreChat { from };
    /// `goose`: a database of goose, or its JSON lines.
    Goose, "goose", started!(goose::Goose, from);
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
