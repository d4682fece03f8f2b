//! Exports messages of the OpenAI chat API.

use std::io::Write;

use serde_json::json;
use talktree::{Error, Path, Result};

use crate::openai_chat::as_written;

/// Writes a path as messages of the OpenAI chat API: `{"id", "title", "messages": [..]}`.
///
/// As [`to_openai_chat`](crate::to_openai_chat), but the input of a tool call is exported as the model wrote it, reasoning is
/// left out, and a summary is an answer of the model. The API accepts the messages.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_model::export_openai;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// let mut json = Vec::new();
/// export_openai(&chat.path(), &mut json)?;
/// let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
/// assert_eq!(json["messages"][0]["content"], "2 + 2?");
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::UnknownMessage`] if the leaf is not in this session; [`Error::Io`] if a write to `output` fails; and those of every
/// read.
pub fn export_openai(path: &Path, output: &mut impl Write) -> Result<()> {
    let session = path.session();
    let head = json!({"id": session.id(), "title": session.info()?.and_then(|info| info.name)});
    let head = head.to_string();
    let mut text = format!("{},\"messages\":[", head.strip_suffix('}').unwrap_or_default());
    for (at, message) in as_written(&path.history()?).iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&message.to_string());
    }
    text.push_str("\n]}\n");
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|source| Error::Io { path: "the output".into(), source })
}
