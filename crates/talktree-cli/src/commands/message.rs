//! One message for people to read, as `log`, `show` and `expand` write it.

use std::collections::HashMap;
use std::io;

use talktree::{CompactionId, Message, MessageId, Part, Session};

use crate::output::Output;
use crate::paint;

/// How much of a message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What tools took and gave is cut after some lines.
    Brief,
    /// All of it.
    Full,
}

/// How many lines of a tool's input or output are shown in brief.
const BRIEF_LINES: usize = 6;
/// How many characters of each of these lines.
const BRIEF_CHARS: usize = 400;

/// Returns what is noted beside messages: their labels.
pub(crate) fn notes(session: &Session) -> talktree::Result<HashMap<MessageId, String>> {
    let mut notes: HashMap<MessageId, String> = HashMap::new();
    for label in session.labels()? {
        let note = notes.entry(label.id).or_default();
        note.push_str(if note.is_empty() { "" } else { ", " });
        note.push_str(&label.name);
    }
    Ok(notes)
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
        (paint::role(&message.role), message.role.as_str()),
        (paint::PLAIN, "  "),
        (paint::FAINT, &time),
        (paint::PLAIN, "  "),
        (paint::ID, message.id.as_str()),
    ];
    if !note.is_empty() {
        heading.extend([(paint::PLAIN, "  "), (paint::LABEL, note)]);
    }
    if is_summary {
        heading.push((paint::COMPACTION, "  [summary]"));
    }
    if message.is_hidden {
        heading.push((paint::FAINT, "  [hidden]"));
    }
    out.line(&heading)?;
    for part in &message.parts {
        write_part(out, &part.typed(), extent, is_summary || message.is_hidden)?;
    }
    out.line(&[])
}

fn write_part(out: &mut Output, part: &Part, extent: Extent, is_faint: bool) -> io::Result<()> {
    let style = if is_faint { paint::FAINT } else { paint::PLAIN };
    match part {
        Part::Text(text) => out.block(style, "  ", &text.text),
        Part::Reasoning(reasoning) => {
            out.line(&[(paint::FAINT, "  [thinks]")])?;
            write_some(out, &reasoning.text, extent)
        }
        Part::Tool(tool) => {
            for (word, json) in [("calls", &tool.input), ("result of", &tool.output)] {
                let Some(json) = json else { continue };
                out.line(&[
                    (paint::COMPACTION, "  ["),
                    (paint::COMPACTION, word),
                    (paint::COMPACTION, " "),
                    (paint::COMPACTION, &tool.name),
                    (paint::COMPACTION, "]"),
                ])?;
                // A text reads better without its quotes and escapes.
                let value = json.value();
                match value.as_str() {
                    Some(text) => write_some(out, text, extent)?,
                    None => write_some(out, json.as_str(), extent)?,
                }
            }
            if let Some(error) = &tool.error_text {
                out.line(&[
                    (paint::BAD, "  [failed: "),
                    (paint::BAD, &tool.name),
                    (paint::BAD, "]"),
                ])?;
                write_some(out, error, extent)?;
            }
            Ok(())
        }
        Part::File(file) => {
            let name = file.filename.as_deref().unwrap_or_default();
            let place = if file.url.starts_with("data:") { "" } else { &file.url };
            out.line(&[
                (paint::COMPACTION, "  [file] "),
                (style, name),
                (style, if name.is_empty() { "" } else { "  " }),
                (style, &file.media_type),
                (style, "  "),
                (style, place),
            ])
        }
        Part::Other(json) => {
            out.line(&[
                (paint::COMPACTION, "  ["),
                (paint::COMPACTION, &part.kind()),
                (paint::COMPACTION, "]"),
            ])?;
            write_some(out, json.as_str(), extent)
        }
        _ => Ok(()),
    }
}

fn write_some(out: &mut Output, text: &str, extent: Extent) -> io::Result<()> {
    if extent == Extent::Full {
        return out.block(paint::FAINT, "  ", text);
    }
    let mut lines = text.lines();
    for line in lines.by_ref().take(BRIEF_LINES) {
        match line.char_indices().nth(BRIEF_CHARS) {
            None => out.block(paint::FAINT, "  ", line)?,
            Some((end, _)) => {
                out.line(&[
                    (paint::FAINT, "  "),
                    (paint::FAINT, &line[..end]),
                    (paint::FAINT, " …"),
                ])?;
            }
        }
    }
    match lines.count() {
        0 => Ok(()),
        more => out.line(&[(paint::FAINT, &format!("  … {more} more lines"))]),
    }
}
