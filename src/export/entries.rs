//! Writes entries of transcripts for people.
//!
//! What was said comes first, as text. The rest of the entry follows as JSON, without the ids of entries.

use std::io::Write;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::markdown::{one_line, write_fence};
use super::output_error;
use super::owner::{fence_json, heading};
use crate::error::Result;
use crate::message::Json;
use crate::transcript::StoredTranscript;

/// Returns when an entry was last appended to a transcript.
pub(super) fn written_at(transcript: &StoredTranscript) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(transcript.mtime).unwrap_or_default()
}

/// Writes an entry.
pub(super) fn write(
    transcript: &StoredTranscript,
    entry: &Json,
    output: &mut impl Write,
) -> Result<()> {
    let mut value = entry.value();
    let time = value["timestamp"].as_str().and_then(|time| time.parse().ok());
    let time = time.unwrap_or_else(|| written_at(transcript));
    let kind = value["type"].as_str().map(one_line).unwrap_or_default();
    heading("##", format_args!("Entry {kind}"), time, output)?;
    let texts = value.get_mut("message").map(take_texts).unwrap_or_default();
    for text in &texts {
        write_fence("", text, output).map_err(output_error)?;
    }
    if let Value::Object(members) = &mut value {
        members.retain(|name, _| name != "uuid" && name != "parentUuid");
    }
    fence_json(&value, output)
}

/// Takes the texts out of a message.
fn take_texts(message: &mut Value) -> Vec<String> {
    match message.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(blocks)) => {
            let (mut texts, mut others) = (Vec::new(), Vec::new());
            for block in blocks {
                let is_text =
                    block["type"] == "text" && block.as_object().is_some_and(|of| of.len() == 2);
                match block["text"].as_str().filter(|_| is_text) {
                    Some(text) => texts.push(text.to_owned()),
                    None => others.push(block),
                }
            }
            message["content"] = others.into();
            texts
        }
        Some(other) => {
            message["content"] = other;
            Vec::new()
        }
        None => Vec::new(),
    }
}
