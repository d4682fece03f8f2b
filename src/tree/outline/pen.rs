//! Writing one line of a drawing.
//!
//! A [`Line`] is pieces of text, each with the [`Ink`] that says what it is. It begins with the
//! rails that lead past it or up to it; then comes a message (its dot, who speaks, a short id, what
//! points at it, the beginning of what it says), the summary of a compaction, or a count of what is not
//! drawn. A [`Pen`] knows the characters to write them with.
//!
//! Invariant: no piece holds a control character, whatever a name or an id holds.

use std::fmt;

use super::draw::DrawOptions;
use super::{CompactionMark, Landmark, printable};

/// What a piece of a line is, so that it can be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ink {
    /// The lines and dots of the tree.
    Graph,
    /// The dot of the message the head stands on, and the word `head`.
    Head,
    /// Who speaks.
    Role,
    /// The short id of a message.
    Id,
    /// A label.
    Label,
    /// A summary that is laid over what stands above.
    Compaction,
    /// What a message says.
    Text,
    /// What an hidden says, or a message under a summary.
    Faded,
    /// A count of what is not drawn.
    More,
}

/// One line of a drawing; `Display` writes its pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Line {
    /// The pieces, from left to right; none holds a control character.
    pub pieces: Vec<(Ink, String)>,
}

impl Line {
    fn of(graph: impl Into<String>) -> Self {
        Self::default().with(Ink::Graph, graph)
    }

    fn with(mut self, ink: Ink, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push((ink, text));
        }
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

/// What lines are written with.
#[derive(Debug)]
pub(super) struct Pen {
    is_ascii: bool,
}

impl Pen {
    /// Returns the pen that the options ask for.
    pub(super) fn of(options: &DrawOptions) -> Self {
        Self { is_ascii: options.is_ascii }
    }

    /// Returns the rails to the left of a branch's first line, and of its others.
    pub(super) fn rails(&self) -> (&'static str, &'static str) {
        if self.is_ascii { ("|-", "| ") } else { ("├─", "│ ") }
    }

    /// Returns the line of a message.
    pub(super) fn message(&self, landmark: &Landmark, graph: &str, is_compacted: bool) -> Line {
        let (ink, dot) = match (landmark.is_head, landmark.is_hidden, is_compacted) {
            (true, ..) => (Ink::Head, "*"),
            (_, true, _) => (Ink::Graph, "-"),
            (.., true) if self.is_ascii => (Ink::Graph, "."),
            (.., true) => (Ink::Graph, "·"),
            _ => (Ink::Graph, "o"),
        };
        let mut line = Line::of(graph)
            .with(ink, dot)
            .with(Ink::Role, format!(" {}", printable(landmark.role.as_str())))
            .with(Ink::Id, format!(" {}", short(landmark.id.as_str())));
        if landmark.is_head || !landmark.labels.is_empty() {
            line = line.with(Ink::Graph, " (");
            if landmark.is_head {
                line = line.with(Ink::Head, "head");
            }
            for (index, label) in landmark.labels.iter().enumerate() {
                let is_first = index == 0 && !landmark.is_head;
                line = line
                    .with(Ink::Graph, if is_first { "" } else { ", " })
                    .with(Ink::Label, printable(label));
            }
            line = line.with(Ink::Graph, ")");
        }
        if landmark.is_hidden {
            line = line.with(Ink::Faded, " [hidden]");
        }
        if landmark.preview.is_empty() {
            return line;
        }
        let ink = if landmark.is_hidden || is_compacted { Ink::Faded } else { Ink::Text };
        line.with(ink, format!("  {}", landmark.preview))
    }

    /// Returns the line of a summary, below the last message under it.
    pub(super) fn summary(&self, compaction: &CompactionMark, graph: &str) -> Line {
        let text = format!(
            "[compaction {}: {}]",
            short(compaction.id.as_str()),
            counted(compaction.count, "message", "messages")
        );
        Line::of(format!("{graph}  "))
            .with(Ink::Compaction, text)
            .with(Ink::Text, format!(" {}", compaction.preview))
    }

    /// Returns the line that stands for branches of one message.
    pub(super) fn branches(&self, graph: &str, count: u64, messages: u64) -> Line {
        let branches = counted(count, "branch", "branches");
        let messages = counted(messages, "message", "messages");
        Line::of(graph).with(Ink::More, format!("{} {branches}, {messages}", self.dots()))
    }

    /// Returns the line that stands for the middle of a long row of branchings.
    pub(super) fn branchings(&self, graph: &str, count: u64, messages: u64) -> Line {
        let branchings = counted(count, "branching", "branchings");
        let messages = counted(messages, "message", "messages");
        let text = format!("{0} {branchings}, {messages} {0}", self.dots());
        Line::of(format!("{graph}  ")).with(Ink::More, text)
    }

    /// Returns the line that stands for messages between two landmarks.
    pub(super) fn gap(&self, graph: &str, count: u64) -> Line {
        let text = format!("{0} {1} more {0}", self.dots(), grouped(count));
        Line::of(format!("{graph}  ")).with(Ink::More, text)
    }

    fn dots(&self) -> &'static str {
        if self.is_ascii { "..." } else { "…" }
    }
}

/// Returns a short form of an id that still tells it from its neighbours.
fn short(id: &str) -> String {
    let hyphens = id.match_indices('-').map(|(at, _)| at);
    let is_uuid = id.len() == 36 && hyphens.eq([8, 13, 18, 23]);
    match id.get(..12) {
        // The beginning of a UUIDv7 is its time: what was made together begins alike.
        _ if is_uuid && id.as_bytes()[14] == b'7' => format!("…{}", &id[28..]),
        _ if is_uuid => id[..8].to_owned(),
        _ if id.chars().count() <= 16 => printable(id).into_owned(),
        Some(start) => format!("{}…", printable(start)),
        None => printable(id).into_owned(),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Returns a number with its thousands apart.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_so_that_they_still_differ() {
        for (id, shown) in [
            ("m1", "m1"),
            ("exactly-16-chars", "exactly-16-chars"),
            ("toolu_01A09q90qw90lq917835lq9", "toolu_01A09q…"),
            ("7f3a0c12-1111-4222-8333-444455556666", "7f3a0c12"),
            ("0193a5c2-1f3b-7000-8000-0123456789ab", "…456789ab"),
            ("bell\u{7}", "bell\\u{7}"),
        ] {
            assert_eq!(short(id), shown);
        }
    }
}
