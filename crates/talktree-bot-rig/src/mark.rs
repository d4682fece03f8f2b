//! Marks: each text of a person names its chat and its turn.

use std::fmt;

/// The origin of a text: `chat17-turn42`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mark {
    /// The number of the chat.
    pub chat: u32,
    /// The number of the turn in its chat.
    pub turn: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chat{}-turn{}", self.chat, self.turn)
    }
}

/// Returns the marks in a text, in order.
///
/// ```
/// use talktree_bot_rig::{Mark, marks_in};
///
/// let found: Vec<Mark> = marks_in("chat, chat17-turn4, chat17-turn.").collect();
/// assert_eq!(found, [Mark { chat: 17, turn: 4 }]);
/// ```
pub fn marks_in(text: &str) -> impl Iterator<Item = Mark> + '_ {
    text.split("chat").skip(1).filter_map(|rest| {
        let (chat, rest) = number(rest)?;
        let (turn, _) = number(rest.strip_prefix("-turn")?)?;
        Some(Mark { chat, turn })
    })
}

/// Reads a number that a text begins with.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}
