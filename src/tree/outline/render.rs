//! Renders one line of a drawing.
//!
//! A [`Line`] is a list of texts, each with a [`PieceKind`] so that it can be coloured. A line starts with the graph:
//! the lines and branches of the tree. Then follows a message (dot, role, short id, head and labels, preview), the
//! summary of a compaction, or a count of omitted messages. [`Renderer`] chooses between Unicode and ASCII.
//!
//! Invariant: each line of a tree is one line of text. Names and ids that could be read as another part of it are quoted.

use std::fmt;

use talktree_text::foreign::name;

use super::draw::DrawOptions;
use super::{CompactionMark, Landmark};
use crate::id::shorten;

/// The kind of a piece of a line, for colouring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PieceKind {
    /// The lines and dots of the tree.
    Graph,
    /// The dot of the head, and the word `head`.
    Head,
    /// The role of a message.
    Role,
    /// The short id of a message.
    Id,
    /// A label.
    Label,
    /// The summary of a compaction.
    Compaction,
    /// The preview of a message.
    Text,
    /// The preview of a hidden or compacted message.
    Faded,
    /// A count of omitted messages.
    More,
}

/// One line of a drawing; `Display` writes it without colours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Line {
    /// The pieces, from left to right; none has a control character.
    pub pieces: Vec<(PieceKind, String)>,
}

impl Line {
    fn of(graph: impl Into<String>) -> Self {
        Self::default().with(PieceKind::Graph, graph)
    }

    fn with(mut self, kind: PieceKind, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push((kind, text));
        }
        self
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

/// Renders lines with Unicode or ASCII characters.
#[derive(Debug)]
pub(super) struct Renderer {
    is_ascii: bool,
}

impl Renderer {
    pub(super) fn of(options: &DrawOptions) -> Self {
        Self { is_ascii: options.is_ascii }
    }

    /// Returns the graph of the first line of an indented branch, and of its other lines.
    pub(super) fn branch_graphs(&self) -> (&'static str, &'static str) {
        if self.is_ascii { ("|-", "| ") } else { ("├─", "│ ") }
    }

    /// Renders a message.
    pub(super) fn message(&self, landmark: &Landmark, graph: &str, is_compacted: bool) -> Line {
        let (kind, dot) = match (landmark.is_head, landmark.is_hidden, is_compacted) {
            (true, ..) => (PieceKind::Head, "*"),
            (_, true, _) => (PieceKind::Graph, "-"),
            (.., true) if self.is_ascii => (PieceKind::Graph, "."),
            (.., true) => (PieceKind::Graph, "·"),
            _ => (PieceKind::Graph, "o"),
        };
        let mut line = Line::of(graph)
            .with(kind, dot)
            .with(PieceKind::Role, format!(" {}", name(&shorten(landmark.role.as_str()))))
            .with(PieceKind::Id, format!(" {}", short(landmark.id.as_str())));
        if landmark.is_head || !landmark.labels.is_empty() {
            line = line.with(PieceKind::Graph, " (");
            if landmark.is_head {
                line = line.with(PieceKind::Head, "head");
            }
            for (index, label) in landmark.labels.iter().enumerate() {
                let is_first = index == 0 && !landmark.is_head;
                line = line
                    .with(PieceKind::Graph, if is_first { "" } else { ", " })
                    .with(PieceKind::Label, name(label));
            }
            line = line.with(PieceKind::Graph, ")");
        }
        if landmark.is_hidden {
            line = line.with(PieceKind::Faded, " [hidden]");
        }
        if landmark.preview.is_empty() {
            return line;
        }
        let kind =
            if landmark.is_hidden || is_compacted { PieceKind::Faded } else { PieceKind::Text };
        line.with(kind, format!("  {}", landmark.preview))
    }

    /// Renders a summary; its line follows the last message of its range.
    pub(super) fn summary(&self, compaction: &CompactionMark, graph: &str) -> Line {
        let text = format!(
            "[compaction {}: {}]",
            short(compaction.id.as_str()),
            counted(compaction.count, "message", "messages")
        );
        Line::of(format!("{graph}  "))
            .with(PieceKind::Compaction, text)
            .with(PieceKind::Text, format!(" {}", compaction.preview))
    }

    /// Renders a count of omitted branches.
    pub(super) fn branches(&self, graph: &str, count: u64, messages: u64) -> Line {
        let branches = counted(count, "branch", "branches");
        let messages = counted(messages, "message", "messages");
        Line::of(graph).with(PieceKind::More, format!("{} {branches}, {messages}", self.dots()))
    }

    /// Renders a count of omitted segments.
    pub(super) fn branchings(&self, graph: &str, count: u64, messages: u64) -> Line {
        let branchings = counted(count, "branching", "branchings");
        let messages = counted(messages, "message", "messages");
        let text = format!("{0} {branchings}, {messages} {0}", self.dots());
        Line::of(format!("{graph}  ")).with(PieceKind::More, text)
    }

    /// Renders a count of omitted messages.
    pub(super) fn gap(&self, graph: &str, count: u64) -> Line {
        let text = format!("{0} {1} more {0}", self.dots(), with_thousands(count));
        Line::of(format!("{graph}  ")).with(PieceKind::More, text)
    }

    fn dots(&self) -> &'static str {
        if self.is_ascii { "..." } else { "…" }
    }
}

/// Shortens an id to a form that still differs from those of its neighbours.
fn short(id: &str) -> String {
    let hyphens = id.match_indices('-').map(|(at, _)| at);
    let is_uuid = id.len() == 36 && hyphens.eq([8, 13, 18, 23]);
    match id.get(..12) {
        // A UUIDv7 starts with its time: ids of the same minute share a prefix.
        _ if is_uuid && id.as_bytes()[14] == b'7' => format!("…{}", &id[28..]),
        _ if is_uuid => id[..8].to_owned(),
        _ if id.chars().count() <= 16 => name(id).into_owned(),
        Some(start) => name(&format!("{start}…")).into_owned(),
        None => name(id).into_owned(),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", with_thousands(count), if count == 1 { one } else { many })
}

/// Returns a number with a blank between thousands.
fn with_thousands(count: u64) -> String {
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
    fn shortened_ids_still_differ() {
        for (id, shown) in [
            ("m1", "m1"),
            ("exactly-16-chars", "exactly-16-chars"),
            ("toolu_01A09q90qw90lq917835lq9", "toolu_01A09q…"),
            ("7f3a0c12-1111-4222-8333-444455556666", "7f3a0c12"),
            ("0193a5c2-1f3b-7000-8000-0123456789ab", "…456789ab"),
            ("bell\u{7}", "\"bell\\u0007\""),
            ("m1 (head)", "\"m1 (head)\""),
        ] {
            assert_eq!(short(id), shown);
        }
    }
}
