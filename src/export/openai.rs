//! Exports messages of the OpenAI chat API.
//!
//! The conversion is that of [`model`](crate::model), except that the input of a tool call is exported as the model
//! wrote it.

use std::io::Write;

use serde_json::{Value, json};

use super::{output_error, spooled};
use crate::error::{Error, Result};
use crate::model::Chat;
use crate::session::{Path, Session};

impl Path {
    /// Writes this path as messages of the OpenAI chat API: `{"id", "title", "messages": [..]}`.
    ///
    /// Reasoning is omitted. The API accepts the messages.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let mut json = Vec::new();
    /// chat.path().export_openai(&mut json)?;
    /// let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    /// assert_eq!(json["messages"][0]["content"], "2 + 2?");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; [`Error::Io`] if a write to `output` fails;
    /// [`Error::Interrupted`]; and those of every read.
    pub fn export_openai(&self, output: &mut impl Write) -> Result<()> {
        spooled(self.session().spool(), output, |mut output| {
            let path = self.snapshot()?;
            let title = path.session().info()?.and_then(|info| info.name);
            let head = json!({"id": self.session().id(), "title": title}).to_string();
            let head = head.strip_suffix('}').unwrap_or_default();
            let mut list = List { output: &mut output, is_first: true };
            list.write(&format!("{head},\"messages\":["))?;
            let mut chat = Chat::to_keep();
            for message in path.iter() {
                list.add(&chat.take(&message?))?;
            }
            list.add(&chat.finish())?;
            list.write("\n]}\n")?;
            list.output.flush().map_err(output_error)
        })
    }
}

impl Session {
    /// Writes the history as messages of the OpenAI chat API, as [`Path::export_openai`] does.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("2 + 2?"))?;
    /// let mut json = Vec::new();
    /// chat.export_openai(&mut json)?;
    /// assert!(String::from_utf8_lossy(&json).contains("2 + 2?"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Path::export_openai`].
    pub fn export_openai(&self, output: &mut impl Write) -> Result<()> {
        self.path().export_openai(output)
    }
}

/// A JSON list that is written item by item.
struct List<'a, W> {
    output: &'a mut W,
    is_first: bool,
}

impl<W: Write> List<'_, W> {
    fn add(&mut self, messages: &[Value]) -> Result<()> {
        for message in messages {
            let text = serde_json::to_string(message);
            let text = text.map_err(|source| Error::Json { what: "a message", source })?;
            let comma = if std::mem::take(&mut self.is_first) { "" } else { "," };
            self.write(&format!("{comma}\n{text}"))?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.output.write_all(text.as_bytes()).map_err(output_error)
    }
}
