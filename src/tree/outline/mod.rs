//! The outline of a whole tree, for people.
//!
//! A tree may be a million messages deep or wide, so an outline consists of *segments*: maximal chains in which each
//! message has one child. A segment has a count of its messages, and *landmarks*: the messages at its ends, and those
//! between them that are the head, have a label, or start or end a summary. [`SegmentMap`] splits the runs of a session
//! into segments without reading a message; the storage reads the landmarks; [`Tree::lines`] draws them: `layout`
//! chooses the branches, `draw` the order of the lines, `render` their text.
//!
//! Invariant: nothing here recurses, so a tree may be of any depth.

mod draw;
mod layout;
mod render;
mod segments;

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;
use talktree_text::foreign::short_line;

use crate::id::{CompactionId, MessageId};
use crate::message::{Part, Role};

pub use draw::{DrawOptions, Lines};
pub use render::{Line, PieceKind};
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
    pub compactions: Vec<CompactionMark>,
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
pub struct CompactionMark {
    /// Its id.
    pub id: CompactionId,
    /// The first message of its range.
    pub first: MessageId,
    /// The last message of its range.
    pub last: MessageId,
    /// The number of messages of its range when it was added.
    pub count: u64,
    /// The position of the first message in this segment; `None` if it is in an earlier segment.
    pub starts_at: Option<u64>,
    /// The position of the last message in this segment.
    pub ends_at: u64,
    /// The start of the summary, as in [`Landmark::preview`].
    pub preview: String,
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
    #[must_use]
    pub fn lines(&self, options: &DrawOptions) -> Lines<'_> {
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
