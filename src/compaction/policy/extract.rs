//! A summarizer without a model.

use super::{Summarized, Summarizer, summary_prompt};
use crate::compaction::Summary;
use crate::error::BoxError;

/// The maximum length of a line of the summary, in characters.
const LINE: usize = 160;

/// The room for all lines is a tenth of the replaced text, within these bounds, in characters.
const SHARE: usize = 10;
const LEAST: usize = 200;
const MOST: usize = 4_000;

/// A [`Summarizer`] that asks no model: it keeps the first line of each message of a person, the newest that fit.
///
/// For programs without a network, and for tests. It does not know what matters, so its summary says how many lines it leaves
/// out; a search finds them.
///
/// ```
/// use talktree::{Extract, Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").summarizer(Extract).compact_after(1_000).open()?;
/// for day in 0..50 {
///     chat.append(Message::user(format!("Day {day}: {}", "rain ".repeat(40))))?;
/// }
/// assert!(chat.visible_tokens()? <= 1_000);
/// assert!(chat.compactions()?[0].summary.contains("\n- Day "));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Extract;

impl Extract {
    /// Returns the summary of the messages that a summarizer's prompt quotes.
    #[must_use]
    pub fn summary(&self, prompt: &str) -> String {
        let quotes = summary_prompt::quotes(prompt);
        let size: usize = quotes.iter().map(|(_, words)| words.chars().count()).sum();
        let mut lines = Vec::new();
        for (title, words) in quotes {
            if title.starts_with("summary") {
                lines.extend(words.lines().filter_map(|line| line.strip_prefix("- ")));
            } else if title.ends_with(r#"role "user""#) {
                lines.extend(words.lines().find(|line| !line.trim().is_empty()));
            }
        }
        let mut room = (size / SHARE).clamp(LEAST, MOST);
        let mut kept = Vec::new();
        for line in lines.iter().rev() {
            let line: String = line.chars().take(LINE).collect();
            let Some(left) = room.checked_sub(line.chars().count()) else { break };
            room = left;
            kept.push(format!("\n- {line}"));
        }
        kept.reverse();
        let left_out = match lines.len() - kept.len() {
            0 => String::new(),
            count => format!("; {count} more are left out"),
        };
        format!("What was written, one line a message{left_out}:{}", kept.concat())
    }
}

impl Summarizer for Extract {
    fn summarize(&self, prompt: &str) -> Result<Summarized, BoxError> {
        Ok(Summary::new(self.summary(prompt)).by("extract").into())
    }
}
