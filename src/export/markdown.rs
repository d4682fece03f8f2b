//! Markdown: a conversation as people read it.

use std::io::Write;

use super::output_error;
use crate::error::Result;
use crate::id::CompactionId;
use crate::message::{Json, Message, Part, Role, Tool};
use crate::session::{Path, Session};

impl Path {
    /// Writes this path as Markdown: a heading for each message, its text as it is, tools in fences.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// chat.append(Message::assistant("4"))?;
    /// let mut page = Vec::new();
    /// chat.path().export_markdown(&mut page)?;
    /// assert!(String::from_utf8_lossy(&page).starts_with("# s\n\n## User"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the leaf is not in its
    /// session; [`Error::Io`](crate::Error::Io) if `output` fails; as every read.
    pub fn export_markdown(&self, output: &mut impl Write) -> Result<()> {
        let name = self.session().info()?.and_then(|info| info.name);
        let title = one_line(name.as_deref().unwrap_or(self.session().id().as_str()));
        writeln!(output, "# {title}").map_err(output_error)?;
        for message in self.iter() {
            write_message(&message?, output).map_err(output_error)?;
        }
        output.flush().map_err(output_error)
    }
}

impl Session {
    /// Writes the history as Markdown, as [`Path::export_markdown`] does.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let mut page = Vec::new();
    /// chat.export_markdown(&mut page)?;
    /// assert!(String::from_utf8_lossy(&page).ends_with("2 + 2?\n"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Path::export_markdown`].
    pub fn export_markdown(&self, output: &mut impl Write) -> Result<()> {
        self.path().export_markdown(output)
    }
}

fn write_message(message: &Message, output: &mut impl Write) -> std::io::Result<()> {
    let time = message.created_at.format("%Y-%m-%d %H:%M:%S UTC");
    writeln!(output, "\n## {}, {time}", speaker(message))?;
    for part in &message.parts {
        match part.typed().as_ref() {
            Part::Text(text) => writeln!(output, "\n{}", text.text.trim_end())?,
            Part::Reasoning(reasoning) => {
                writeln!(output)?;
                for line in reasoning.text.trim_end().lines() {
                    writeln!(output, "> {line}")?;
                }
            }
            Part::Tool(tool) => write_tool(tool, output)?,
            Part::File(file) => {
                let name = file.filename.as_deref().unwrap_or(&file.media_type);
                // What is in the URL itself is too long to read.
                let url = if file.url.starts_with("data:") { "" } else { &file.url };
                writeln!(output, "\n[{}](<{}>)", one_line(name), one_line(url))?;
            }
            Part::Other(json) => write_fence("json", json.as_str(), output)?,
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
        Role::Other(role) => role,
    };
    match message.is_hidden {
        true => format!("{} (hidden)", one_line(role)),
        false => one_line(role),
    }
}

fn write_tool(tool: &Tool, output: &mut impl Write) -> std::io::Result<()> {
    let name = one_line(&tool.name);
    if let Some(input) = &tool.input {
        writeln!(output, "\nCall of `{name}`:")?;
        write_fence("json", input.as_str(), output)?;
    }
    if let Some(result) = &tool.output {
        writeln!(output, "\nResult of `{name}`:")?;
        write_fence("", &readable(result), output)?;
    }
    if let Some(error) = &tool.error_text {
        writeln!(output, "\nError of `{name}`:")?;
        write_fence("", error, output)?;
    }
    Ok(())
}

fn readable(json: &Json) -> String {
    let text = json.as_str().starts_with('"').then(|| json.value());
    text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(|| json.to_string())
}

/// Writes text between fences that are longer than any in it.
fn write_fence(language: &str, text: &str, output: &mut impl Write) -> std::io::Result<()> {
    let ticks = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(ticks + 1));
    writeln!(output, "\n{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Returns text that cannot end a heading or a link.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['<', '>', '[', ']'], " ")
}
