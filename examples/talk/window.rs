//! One line that describes a history: what a model sees, in messages and tokens.

use std::fmt;

use talktree::{Change, Compaction, CompactionId, Message, Result, Session, Subscription};

/// What a model sees of a conversation, by part.
pub struct Window {
    /// Before the first summary.
    head: Part,
    summaries: Part,
    /// After the last summary, or after the first three messages if there is none.
    tail: Part,
}

/// The number of items in a part, and their tokens.
#[derive(Clone, Copy, Default)]
struct Part {
    items: usize,
    tokens: u64,
}

impl Window {
    /// Measures the current history.
    pub fn of(chat: &Session) -> Result<Self> {
        let view = chat.history()?;
        let is_summary = |message: &Message| message.id.as_str().starts_with(CompactionId::PREFIX);
        let head = view.iter().position(is_summary).unwrap_or(view.len().min(3));
        let tail = view.iter().rposition(is_summary).map_or(head, |last| last + 1);
        Ok(Self {
            head: Part::of(&view[..head]),
            summaries: Part::of(&view[head..tail]),
            tail: Part::of(&view[tail..]),
        })
    }

    /// Returns how many tokens a model sees.
    pub fn total(&self) -> u64 {
        self.head.tokens + self.summaries.tokens + self.tail.tokens
    }
}

impl Part {
    fn of(items: &[Message]) -> Self {
        Self { items: items.len(), tokens: items.iter().map(Message::tokens).sum() }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { head, summaries, tail } = self;
        write!(f, "head {head}  summary {summaries}  tail {tail}  total {}", spaced(self.total()))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, tokens } = *self;
        write!(f, "{items} {} {}", if items == 1 { "msg" } else { "msgs" }, spaced(tokens))
    }
}

/// Prints a line for each compaction when it is committed.
pub fn print_compactions(chat: &Session) -> Subscription {
    let reader = chat.clone();
    chat.subscribe(move |event| {
        if let Change::Compact { id, .. } = &event.change
            && let Ok(compaction) = reader.compaction(id)
        {
            println!("{}", describe(&compaction));
        }
    })
}

/// Describes on one line what a compaction replaces.
fn describe(compaction: &Compaction) -> String {
    let Compaction { tokens_before, tokens_after, nested, count, .. } = compaction;
    let nested = if nested.is_empty() { "" } else { ", including the previous summary" };
    format!(
        "compacted: {} tokens into {}{nested}; it now covers {} messages",
        spaced(*tokens_before),
        spaced(*tokens_after),
        spaced(*count)
    )
}

/// Returns 1830 as `1 830`.
pub fn spaced(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{} {:03}", spaced(number / 1_000), number % 1_000),
    }
}
