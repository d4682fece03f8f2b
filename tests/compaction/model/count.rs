//! Three token counters that never agree.

use talktree::{Message, TokenCounter, estimate_tokens};

/// How a session counts tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Heuristic,
    Bytes,
    /// A fraction, the same for every message.
    Flat,
}

impl TokenCounter for Count {
    fn name(&self) -> &str {
        match self {
            Self::Heuristic => "heuristic",
            Self::Bytes => "bytes",
            Self::Flat => "flat",
        }
    }

    fn count_text(&self, text: &str) -> f64 {
        match self {
            Self::Heuristic => estimate_tokens(text) as f64,
            Self::Bytes | Self::Flat => text.len() as f64 / 3.0,
        }
    }

    fn count(&self, message: &Message) -> f64 {
        match self {
            Self::Heuristic => message.tokens() as f64,
            Self::Bytes => 2.5 + self.count_text(&message.text()) + message.parts.len() as f64,
            Self::Flat => 10.5,
        }
    }
}

impl Count {
    pub(super) fn of(self, message: &Message) -> u64 {
        self.count(message).ceil() as u64
    }

    pub(super) fn all<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> u64 {
        messages.into_iter().map(|message| self.of(message)).sum()
    }
}
