//! Messages for people to read, as `log`, `show` and `expand` print them.

use std::collections::HashMap;
use std::io;

use serde::Serialize;
use talktree::{CompactionId, Message, MessageId, Part, Session};

use crate::output::Output;
use crate::style;

/// How much of a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Tool inputs and outputs are cut after some lines.
    Brief,
    /// Everything.
    Full,
}

/// The maximum number of lines of a tool's input or output in brief.
const BRIEF_LINES: usize = 6;
/// The maximum number of characters in each of these lines.
const BRIEF_CHARS: usize = 400;

/// Returns the labels of each message as one text.
pub(crate) fn notes(session: &Session) -> talktree::Result<HashMap<MessageId, String>> {
    let mut notes: HashMap<MessageId, String> = HashMap::new();
    for label in session.labels()? {
        let note = notes.entry(label.id).or_default();
        note.push_str(if note.is_empty() { "" } else { ", " });
        note.push_str(&label.name);
    }
    Ok(notes)
}

/// A message as JSON, with its tags.
#[derive(Serialize)]
struct Tagged<'a> {
    #[serde(flatten)]
    message: &'a Message,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
}

/// Returns the tags of each message that has any.
pub(crate) fn tags(session: &Session) -> talktree::Result<HashMap<MessageId, Vec<String>>> {
    let mut tags: HashMap<MessageId, Vec<String>> = HashMap::new();
    for found in session.all_tags()? {
        tags.entry(found.message).or_default().push(found.tag);
    }
    Ok(tags)
}

/// Writes a message with its tags as JSON.
pub(crate) fn write_json(
    out: &mut Output,
    message: &Message,
    tags: &HashMap<MessageId, Vec<String>>,
) -> io::Result<()> {
    let tags = tags.get(&message.id).map_or(&[][..], Vec::as_slice);
    out.json(&Tagged { message, tags })
}

/// Writes a message: a heading, and its parts below.
pub(crate) fn write(
    out: &mut Output,
    message: &Message,
    note: &str,
    extent: Extent,
) -> io::Result<()> {
    let is_summary = CompactionId::from_message(&message.id).is_some();
    let time = message.created_at.format("%Y-%m-%d %H:%M:%S").to_string();
    let mut heading = vec![
        (style::role(&message.role), message.role.as_str()),
        (style::PLAIN, "  "),
        (style::FAINT, &time),
        (style::PLAIN, "  "),
        (style::ID, message.id.as_str()),
    ];
    if !note.is_empty() {
        heading.extend([(style::PLAIN, "  "), (style::LABEL, note)]);
    }
    if is_summary {
        heading.push((style::COMPACTION, "  [summary]"));
    }
    if message.is_hidden {
        heading.push((style::FAINT, "  [hidden]"));
    }
    out.line(&heading)?;
    for part in &message.parts {
        write_part(out, &part.typed(), extent, is_summary || message.is_hidden)?;
    }
    out.line(&[])
}

fn write_part(out: &mut Output, part: &Part, extent: Extent, is_faint: bool) -> io::Result<()> {
    let style = if is_faint { style::FAINT } else { style::PLAIN };
    match part {
        Part::Text(text) => out.block(style, "  ", &text.text),
        Part::Reasoning(reasoning) => {
            out.line(&[(style::FAINT, "  [reasoning]")])?;
            write_some(out, &reasoning.text, extent)
        }
        Part::Tool(tool) => {
            for (word, json) in [("calls", &tool.input), ("result of", &tool.output)] {
                let Some(json) = json else { continue };
                out.line(&[
                    (style::COMPACTION, "  ["),
                    (style::COMPACTION, word),
                    (style::COMPACTION, " "),
                    (style::COMPACTION, &tool.name),
                    (style::COMPACTION, "]"),
                ])?;
                // A JSON string reads better without its quotes and escapes.
                let value = json.value();
                match value.as_str() {
                    Some(text) => write_some(out, text, extent)?,
                    None => write_some(out, json.as_str(), extent)?,
                }
            }
            if let Some(error) = &tool.error_text {
                out.line(&[
                    (style::BAD, "  [failed: "),
                    (style::BAD, &tool.name),
                    (style::BAD, "]"),
                ])?;
                write_some(out, error, extent)?;
            }
            Ok(())
        }
        Part::File(file) => {
            let name = file.filename.as_deref().unwrap_or_default();
            let url = if file.url.starts_with("data:") { "" } else { &file.url };
            out.line(&[
                (style::COMPACTION, "  [file] "),
                (style, name),
                (style, if name.is_empty() { "" } else { "  " }),
                (style, &file.media_type),
                (style, "  "),
                (style, url),
            ])
        }
        Part::Other(json) => {
            out.line(&[
                (style::COMPACTION, "  ["),
                (style::COMPACTION, &part.kind()),
                (style::COMPACTION, "]"),
            ])?;
            write_some(out, json.as_str(), extent)
        }
        _ => Ok(()),
    }
}

fn write_some(out: &mut Output, text: &str, extent: Extent) -> io::Result<()> {
    if extent == Extent::Full {
        return out.block(style::FAINT, "  ", text);
    }
    let mut lines = text.lines();
    for line in lines.by_ref().take(BRIEF_LINES) {
        match line.char_indices().nth(BRIEF_CHARS) {
            None => out.block(style::FAINT, "  ", line)?,
            Some((end, _)) => {
                out.line(&[
                    (style::FAINT, "  "),
                    (style::FAINT, &line[..end]),
                    (style::FAINT, " …"),
                ])?;
            }
        }
    }
    match lines.count() {
        0 => Ok(()),
        more => out.line(&[(style::FAINT, &format!("  … {more} more lines"))]),
    }
}
