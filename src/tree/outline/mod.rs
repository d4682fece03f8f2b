//! The outline of a whole tree: what a person looks at.
//!
//! A tree may be a million messages deep or wide, so an outline is made of *segments*: maximal
//! chains in which each message has one child. A segment knows how many messages it has, and holds
//! its *landmarks*: the messages at its ends, and those in between where the head stands, a label
//! points or a summary begins or ends. [`Skeleton`] cuts a session's runs into segments without
//! reading a message; the storage reads the landmarks; [`Tree::lines`] draws them.
//!
//! Invariant: nothing here recurses, whatever shape the tree has.

mod draw;
mod pen;
mod skeleton;
mod trunk;

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::id::{CompactionId, MessageId};
use crate::message::{Part, Role};

pub use draw::{DrawOptions, Lines};
pub use pen::{Ink, Line};
pub(crate) use skeleton::{Skeleton, Stem};

/// The most characters a preview has.
const PREVIEW_CHARS: usize = 60;

/// The shape of a session's tree, with what a person needs to find their way in it.
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
    /// The message the head stands on.
    pub head: Option<MessageId>,
    /// How many messages the tree holds, hidden included.
    pub messages: u64,
    /// The segments that begin a tree, by their place in [`segments`](Self::segments), in order of
    /// creation.
    pub roots: Vec<usize>,
    /// All segments, in order of the creation of their first messages: a parent comes before its
    /// children.
    pub segments: Vec<Segment>,
}

/// A maximal chain of messages without a branching inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Segment {
    /// The first message.
    pub first: MessageId,
    /// The last message; it has no children, or several.
    pub last: MessageId,
    /// How many messages it has, hidden included.
    pub count: u64,
    /// How many of them are hidden.
    pub hidden: u64,
    /// The messages to show: those at both ends, and those in between that a person looks for.
    pub landmarks: Vec<Landmark>,
    /// The compactions that end here, in the order they were made.
    pub compactions: Vec<CompactionMark>,
    /// The segment it hangs from.
    pub parent: Option<usize>,
    /// The segments that hang from its last message, in order of creation.
    pub children: Vec<usize>,
}

/// A message of a segment that is worth showing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Landmark {
    /// Its place in the segment, from 0.
    pub at: u64,
    /// The message.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The beginning of what is said, in one line of at most 60 characters, none of them control
    /// characters.
    pub preview: String,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Whether it is not shown to a model.
    #[serde(rename = "hidden")]
    pub is_hidden: bool,
    /// Whether the head stands here.
    #[serde(rename = "head")]
    pub is_head: bool,
    /// The labels that point here, by name.
    pub labels: Vec<String>,
}

/// A compaction, as the outline shows it: with the segment its last message lies in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompactionMark {
    /// The compaction.
    pub id: CompactionId,
    /// The first message under it.
    pub first: MessageId,
    /// The last message under it.
    pub last: MessageId,
    /// How many messages it stood for when it was made.
    pub count: u64,
    /// The place of the first message in this segment; `None` if it lies further up.
    pub starts_at: Option<u64>,
    /// The place of the last message in this segment.
    pub ends_at: u64,
    /// The beginning of the summary, as in [`Landmark::preview`].
    pub preview: String,
}

impl Tree {
    /// Returns the lines of a drawing, the root's first.
    ///
    /// A chain is not indented, a branch is; the branch that leads to the head goes straight on,
    /// elsewhere the one with the most messages, so that a tree of a million messages is indented
    /// twenty times at the most. Each line is made when it is asked for.
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

/// Returns the compactions of a segment that no other compact of it covers.
pub(crate) fn outermost(compactions: &[CompactionMark]) -> Vec<&CompactionMark> {
    let mut latest_first: Vec<&CompactionMark> = compactions.iter().collect();
    // Stable, and of two with the same ends the newer shows.
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

/// Returns the beginning of what a message says, or a word for what it holds instead.
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

/// Returns the beginning of a text as one line that is safe to print.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    let (mut count, mut is_gap) = (0, false);
    for c in text.chars() {
        if c.is_whitespace() || is_unprintable(c) {
            is_gap = count > 0;
            continue;
        }
        if count + usize::from(is_gap) >= PREVIEW_CHARS {
            line.pop();
            line.push('…');
            break;
        }
        if is_gap {
            line.push(' ');
            count += 1;
            is_gap = false;
        }
        line.push(c);
        count += 1;
    }
    line
}

/// Returns a name with what a terminal would act on written as an escape.
fn printable(name: &str) -> Cow<'_, str> {
    if !name.chars().any(is_unprintable) {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match is_unprintable(c) {
            true => text.extend(c.escape_unicode()),
            false => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// Returns whether a terminal acts on the character, or it changes the direction of what follows.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200B}' | '\u{FEFF}')
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
    fn a_compaction_inside_another_is_not_shown() {
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
