//! Exports a conversation as Markdown, for people.
//!
//! Invariant: no text looks like the heading of a message or like the line above a fence. Such a line begins with `> `. A fence that
//! a text leaves open is closed below it.

use std::borrow::Cow;
use std::io::Write;

use talktree::{CompactionId, Json, Message, Part, Path, Result, Role, Tool};
use talktree_text::foreign::{guarded, line, lines};

use super::output_error;
use super::steps::text_of;

/// Writes a path as Markdown: a heading for each message, its text, and tool calls in fences. Lines of a text that would read
/// as a heading of another message begin with `> `.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::export_markdown;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// chat.append(Message::assistant("4"))?;
/// let mut page = Vec::new();
/// export_markdown(&chat.path(), &mut page)?;
/// assert!(String::from_utf8_lossy(&page).starts_with("# s\n\n## User"));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownMessage`](talktree::Error::UnknownMessage) if the leaf is not in this session; as [`Path::export`].
pub fn export_markdown(path: &Path, output: &mut impl Write) -> Result<()> {
    path.export(output, |path, output| {
        let name = path.session().info()?.and_then(|info| info.name);
        let title = one_line(name.as_deref().unwrap_or(path.session().id().as_str()));
        writeln!(output, "# {title}").map_err(output_error)?;
        for message in path.iter() {
            write_message(&message?, output).map_err(output_error)?;
        }
        Ok(())
    })
}

pub(super) fn write_message(message: &Message, output: &mut dyn Write) -> std::io::Result<()> {
    let time = message.created_at.format("%Y-%m-%d %H:%M:%S UTC");
    writeln!(output, "\n## {}, {time}", speaker(message))?;
    for part in &message.parts {
        match part.typed().as_ref() {
            Part::Text(text) => {
                let text = content(text.text.trim_end());
                writeln!(output, "\n{text}")?;
                if let Some(fence) = open_fence(&text) {
                    writeln!(output, "{fence}")?;
                }
            }
            Part::Reasoning(reasoning) => {
                writeln!(output)?;
                for (line, _) in lines(&content(reasoning.text.trim_end())) {
                    writeln!(output, "> {line}")?;
                }
            }
            Part::Tool(tool) => write_tool(tool, output)?,
            Part::File(file) => {
                let name = file.filename.as_deref().unwrap_or(&file.media_type);
                // A data URL is too long to read.
                let url = if file.url.starts_with("data:") { "" } else { &file.url };
                writeln!(output, "\n[{}](<{}>)", one_line(name), one_line(url))?;
            }
            other => write_fence("json", &serde_json::to_string(other)?, output)?,
        }
    }
    Ok(())
}

fn speaker(message: &Message) -> String {
    if CompactionId::from_message(&message.id).is_some() {
        return "Summary".to_owned();
    }
    let role = match &message.role {
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::System => "System",
        Role::Tool => "Tool",
        other => other.as_str(),
    };
    match message.is_hidden {
        true => format!("{} (hidden)", one_line(role)),
        false => one_line(role),
    }
}

fn write_tool(tool: &Tool, output: &mut dyn Write) -> std::io::Result<()> {
    let name = one_line(&tool.name);
    let (input, result) = (tool.input.as_ref().map(Json::to_string), tool.output.as_ref());
    for (what, language, text) in [
        ("Call", "json", input),
        ("Result", "", result.map(text_of)),
        ("Error", "", tool.error_text.clone()),
    ] {
        if let Some(text) = text {
            writeln!(output, "\n{what} of `{name}`:")?;
            write_fence(language, &text, output)?;
        }
    }
    Ok(())
}

/// Writes text in a fence that is longer than any fence in the text.
pub(super) fn write_fence(
    language: &str,
    text: &str,
    output: &mut dyn Write,
) -> std::io::Result<()> {
    let ticks = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(ticks + 1));
    writeln!(output, "\n{fence}{language}\n{}\n{fence}", content(text.trim_end()))
}

/// Returns a content in which no line reads as one of ours.
fn content(text: &str) -> Cow<'_, str> {
    guarded(text, |line| {
        let is_about_a_tool = ["Call of `", "Result of `", "Error of `"];
        has_time(line) || is_about_a_tool.iter().any(|start| line.starts_with(start))
    })
}

/// Returns whether a line has a time as the headings of messages have it, after a comma.
fn has_time(line: &str) -> bool {
    let shape = b", dddd-dd-dd dd:dd:dd UTC";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    line.as_bytes().windows(shape.len()).any(|window| window.iter().zip(shape).all(fits))
}

/// Returns the line that closes the fence that a text leaves open.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        // With four spaces before it, it is code.
        let bare = line.trim_start_matches(' ');
        let Some(mark @ ('`' | '~')) = bare.chars().next().filter(|_| line.len() - bare.len() < 4)
        else {
            continue;
        };
        let rest = bare.trim_start_matches(mark);
        let length = bare.len() - rest.len();
        open = match open {
            // Ticks further on make it inline code.
            None if length >= 3 && (mark == '~' || !rest.contains('`')) => Some((mark, length)),
            Some((other, least)) if mark == other && length >= least && rest.trim().is_empty() => {
                None
            }
            open => open,
        };
    }
    open.map(|(mark, length)| mark.to_string().repeat(length))
}

/// Returns text that cannot end a heading, a link or inline code.
pub(super) fn one_line(text: &str) -> String {
    line(text).replace(['<', '>', '[', ']', '`'], " ")
}
