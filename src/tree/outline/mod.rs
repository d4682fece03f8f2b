//! The outline of a whole tree, for people.
//!
//! A tree may be a million messages deep or wide, so an outline consists of *segments*: maximal chains in which each
//! message has one child. A segment has a count of its messages, and *landmarks*: the messages at its ends, and those
//! between them that are the head, have a label, or start or end a summary. [`SegmentMap`] splits the runs of a session
//! into segments without reading a message; the storage reads the landmarks; [`Tree::lines`] draws them.
//!
//! Invariant: nothing here recurses, so a tree may be of any depth.

mod draw;
mod segments;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use talktree_text::foreign::{name, short_line};

use crate::id::{CompactionId, MessageId, shorten};
use crate::message::{Part, Role};

pub use draw::DrawOptions;
use draw::Lines;
pub(crate) use segments::{BoundedRun, SegmentMap};

/// The maximum length of a preview.
const PREVIEW_CHARS: usize = 60;

/// The shape of a session's tree.
///
/// `Display` draws it:
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let question = chat.append(Message::user("Name three colours").with_id("q"))?.id;
/// chat.append(Message::assistant("red, green, blue").with_id("a1"))?;
/// let other = chat.append_to(&question, Message::assistant("cyan, magenta, yellow").with_id("a2"))?.id;
/// chat.label("palette", &other)?;
///
/// assert_eq!(
///     chat.tree()?.to_string(),
///     "o user q  Name three colours\n\
///      ├─o assistant a1  red, green, blue\n\
///      * assistant a2 (head, palette)  cyan, magenta, yellow\n"
/// );
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Tree {
    /// The message that is the head.
    pub head: Option<MessageId>,
    /// The number of messages of the tree, including hidden ones.
    pub messages: u64,
    /// The indexes of the root segments in [`segments`](Self::segments), in order of creation.
    pub roots: Vec<usize>,
    /// All segments, in the order in which their first messages were created: parents before their children.
    pub segments: Vec<Segment>,
}

/// A maximal chain of messages in which each has one child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Segment {
    /// The first message.
    pub first: MessageId,
    /// The last message; it has no child or several.
    pub last: MessageId,
    /// The number of messages, including hidden ones.
    pub count: u64,
    /// The number of hidden messages.
    pub hidden: u64,
    /// The messages to show: the first and last ones, and those between that are the head, have a label, or start or
    /// end a summary.
    pub landmarks: Vec<Landmark>,
    /// The compactions that end in this segment, in order of creation.
    pub(crate) compactions: Vec<CompactionMark>,
    /// The index of the parent segment.
    pub parent: Option<usize>,
    /// The indexes of the child segments, in order of creation.
    pub children: Vec<usize>,
}

/// A message that the outline shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Landmark {
    /// Its position in the segment, from 0.
    pub at: u64,
    /// Its id.
    pub id: MessageId,
    /// Its role.
    pub role: Role,
    /// The start of its text, on one line of at most 60 characters, without control characters.
    pub preview: String,
    /// Its time.
    pub created_at: DateTime<Utc>,
    /// Whether it is not shown to a model.
    #[serde(rename = "hidden")]
    pub is_hidden: bool,
    /// Whether it is the head.
    #[serde(rename = "head")]
    pub is_head: bool,
    /// The labels that point to it, by name.
    pub labels: Vec<String>,
}

/// A compaction in the outline: it belongs to the segment of its last message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub(crate) struct CompactionMark {
    /// Its id.
    pub(crate) id: CompactionId,
    /// The first message of its range.
    pub(crate) first: MessageId,
    /// The last message of its range.
    pub(crate) last: MessageId,
    /// The number of messages of its range when it was added.
    pub(crate) count: u64,
    /// The position of the first message in this segment; `None` if it is in an earlier segment.
    pub(crate) starts_at: Option<u64>,
    /// The position of the last message in this segment.
    pub(crate) ends_at: u64,
    /// The start of the summary, as in [`Landmark::preview`].
    pub(crate) preview: String,
}

impl Tree {
    /// Returns the lines of the drawing, the root first.
    ///
    /// One branch continues without indentation: the one that leads to the head, or else the one with the most
    /// messages. The others are indented. So the drawing of a tree of a million messages is indented at most twenty
    /// times. Lines are produced lazily.
    ///
    /// ```
    /// use talktree::{DrawOptions, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=1000).map(|n| Message::user(format!("{n}")).with_id(format!("m{n}"))))?;
    ///
    /// let tree = chat.tree()?;
    /// let lines: Vec<String> = tree.lines(&DrawOptions::default()).map(|line| line.to_string()).collect();
    /// assert_eq!(lines[3..6], ["o user m4  4", "  … 992 more …", "o user m997  997"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn lines(&self, options: &DrawOptions) -> impl Iterator<Item = TreeLine> {
        Lines::new(self, options)
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines(&DrawOptions::default()).try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns the compactions of a segment that are not inside another one.
pub(crate) fn outermost(compactions: &[CompactionMark]) -> Vec<&CompactionMark> {
    let mut latest_first: Vec<&CompactionMark> = compactions.iter().collect();
    // The sort is stable, so of two with the same range the newer one is shown.
    latest_first.reverse();
    latest_first
        .sort_by_key(|compaction| (std::cmp::Reverse(compaction.ends_at), compaction.starts_at));
    let mut covered_from = None;
    latest_first.retain(|compaction| {
        let is_covered = covered_from.is_some_and(|from| compaction.starts_at >= from);
        if !is_covered {
            covered_from = Some(compaction.starts_at);
        }
        !is_covered
    });
    latest_first.reverse();
    latest_first
}

/// Returns the start of a message's text, or a description if it has none.
pub(crate) fn preview(parts: &[Part]) -> String {
    let typed = || parts.iter().map(Part::typed);
    let said = typed().find_map(|part| match part.as_ref() {
        Part::Text(text) => Some(line(&text.text)).filter(|text| !text.is_empty()),
        _ => None,
    });
    said.or_else(|| typed().find_map(|part| describe(&part))).unwrap_or_default()
}

fn describe(part: &Part) -> Option<String> {
    match part {
        Part::Tool(tool) if tool.input.is_some() => Some(line(&format!("[calls {}]", tool.name))),
        Part::Tool(tool) => Some(line(&format!("[result of {}]", tool.name))),
        Part::Reasoning(reasoning) => Some(line(&format!("[thinks] {}", reasoning.text))),
        Part::File(file) => {
            let name = file.filename.as_ref().unwrap_or(&file.media_type);
            Some(line(&format!("[file {name}]")))
        }
        Part::Text(_) => None,
        Part::Other(_) => Some(line(&format!("[{}]", part.kind()))),
    }
}

/// Returns the start of a text on one line, safe for a terminal.
pub(crate) fn line(text: &str) -> String {
    short_line(text, PREVIEW_CHARS)
}

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

/// A line of the drawing. `Display` writes its pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TreeLine {
    /// The message of the line, or the message id of its summary; `None` if the line counts what is left out.
    pub message: Option<MessageId>,
    /// Its pieces, from left to right.
    pub pieces: Vec<(PieceKind, String)>,
}

impl fmt::Display for TreeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|(_, text)| f.write_str(text))
    }
}

impl TreeLine {
    fn of(graph: impl Into<String>) -> Self {
        Self::default().with(PieceKind::Graph, graph)
    }

    fn about(mut self, message: &MessageId) -> Self {
        self.message = Some(message.clone());
        self
    }

    fn with(mut self, kind: PieceKind, text: impl Into<String>) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.pieces.push((kind, text));
        }
        self
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
    pub(super) fn message(&self, landmark: &Landmark, graph: &str, is_compacted: bool) -> TreeLine {
        let (kind, dot) = match (landmark.is_head, landmark.is_hidden, is_compacted) {
            (true, ..) => (PieceKind::Head, "*"),
            (_, true, _) => (PieceKind::Graph, "-"),
            (.., true) if self.is_ascii => (PieceKind::Graph, "."),
            (.., true) => (PieceKind::Graph, "·"),
            _ => (PieceKind::Graph, "o"),
        };
        let mut line = TreeLine::of(graph)
            .about(&landmark.id)
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
    pub(super) fn summary(&self, compaction: &CompactionMark, graph: &str) -> TreeLine {
        let text = format!(
            "[compaction {}: {}]",
            short(compaction.id.as_str()),
            counted(compaction.count, "message", "messages")
        );
        TreeLine::of(format!("{graph}  "))
            .about(&compaction.id.as_message())
            .with(PieceKind::Compaction, text)
            .with(PieceKind::Text, format!(" {}", compaction.preview))
    }

    /// Renders a count of omitted branches.
    pub(super) fn branches(&self, graph: &str, count: u64, messages: u64) -> TreeLine {
        let branches = counted(count, "branch", "branches");
        let messages = counted(messages, "message", "messages");
        TreeLine::of(graph).with(PieceKind::More, format!("{} {branches}, {messages}", self.dots()))
    }

    /// Renders a count of omitted segments.
    pub(super) fn branchings(&self, graph: &str, count: u64, messages: u64) -> TreeLine {
        let branchings = counted(count, "branching", "branchings");
        let messages = counted(messages, "message", "messages");
        let text = format!("{0} {branchings}, {messages} {0}", self.dots());
        TreeLine::of(format!("{graph}  ")).with(PieceKind::More, text)
    }

    /// Renders a count of omitted messages.
    pub(super) fn gap(&self, graph: &str, count: u64) -> TreeLine {
        let text = format!("{0} {1} more {0}", self.dots(), with_thousands(count));
        TreeLine::of(format!("{graph}  ")).with(PieceKind::More, text)
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
    fn a_preview_is_one_short_line_without_control_characters() {
        for (text, shown) in [
            ("  two\r\n\tlines  ", "two lines".to_owned()),
            ("red\u{1b}[31m alert\u{7}\u{9b}2J", "red [31m alert 2J".to_owned()),
            ("safe\u{202E}gnp.exe", "safe gnp.exe".to_owned()),
            (&"x".repeat(60), "x".repeat(60)),
            (&"x".repeat(61), format!("{}…", "x".repeat(59))),
            ("", String::new()),
        ] {
            assert_eq!(line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_message_without_text_is_described() {
        for (parts, shown) in [
            (vec![Part::reasoning("hm"), Part::text("Yes.")], "Yes."),
            (vec![Part::text(" "), Part::reasoning("hm")], "[thinks] hm"),
            (vec![Part::tool_call("bash", "c", serde_json::json!({}))], "[calls bash]"),
            (vec![Part::tool_result("bash", "c", serde_json::json!("ok"))], "[result of bash]"),
            (vec![Part::file("image/png", "data:,")], "[file image/png]"),
            (vec![], ""),
        ] {
            assert_eq!(preview(&parts), shown);
        }
    }

    #[test]
    fn a_nested_compaction_is_not_shown() {
        let compaction = |id: &str, starts_at, ends_at| CompactionMark {
            id: id.into(),
            first: "f".into(),
            last: "l".into(),
            count: 2,
            starts_at,
            ends_at,
            preview: String::new(),
        };
        let ids = |compactions: &[CompactionMark]| {
            outermost(compactions)
                .iter()
                .map(|compaction| compaction.id.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (inner, outer, later) = (
            compaction("i", Some(2), 5),
            compaction("o", Some(1), 7),
            compaction("l", Some(9), 10),
        );
        assert_eq!(ids(&[inner.clone(), outer.clone(), later.clone()]), "o l");
        assert_eq!(ids(&[inner, compaction("up", None, 5), later]), "up l");
        assert_eq!(ids(&[outer, compaction("newer", Some(1), 7)]), "newer");
    }
}

#[cfg(test)]
mod render_tests {
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
