//! Detects the format of a file from its content.

use super::Format;
use crate::fields::{self, Fields};

/// How many records are examined before the format of a file counts as unknown.
pub(crate) const MAX_LOOKS: usize = 64;

/// Returns the format of a record with these fields, if they determine it.
pub(crate) fn format_of(record: &Fields) -> Option<Format> {
    let kind = record.text("type");
    let kind = kind.as_deref();
    if record.text("format").as_deref() == Some("talktree") {
        return Some(Format::Own);
    }
    if record.object("mapping").is_some() {
        return Some(Format::ChatGpt);
    }
    let is_assistant_tree = record.has("prompt") && record.has("message_tree_id");
    let is_assistant_message = record.has("text")
        && record.has("role")
        && (record.has("message_id") || record.has("user_message_id"));
    if is_assistant_tree || is_assistant_message {
        return Some(Format::OpenAssistant);
    }
    if let Some(messages) = record.list("messages") {
        return match messages.first().and_then(Fields::of) {
            Some(first) => format_of_message(&first),
            None => messages.is_empty().then_some(Format::OpenAi),
        };
    }
    if let Some(format) = format_of_message(record) {
        return Some(format);
    }
    let is_claude = record.has("parentUuid")
        || record.has("uuid") && record.has("sessionId")
        || kind == Some("summary") && record.has("leafUuid")
        || kind == Some("file-history-snapshot")
        || kind.is_some() && record.has("sessionId");
    if is_claude {
        return Some(Format::ClaudeCode);
    }
    let is_pi = match kind {
        Some("session") => record.has("id") && (record.has("timestamp") || record.has("cwd")),
        Some("message") => record.object("message").is_some_and(|message| message.has("role")),
        Some("model_change" | "thinking_level_change" | "compaction") => record.has("timestamp"),
        Some(_) => record.has("parentId") && record.has("id"),
        None => false,
    };
    is_pi.then_some(Format::Pi)
}

fn format_of_message(message: &Fields) -> Option<Format> {
    message.text("role")?;
    if message.list("parts").is_some_and(|parts| parts.iter().all(is_object)) {
        return Some(Format::UiMessage);
    }
    let is_openai =
        ["content", "tool_calls", "function_call", "refusal"].iter().any(|name| message.has(name));
    is_openai.then_some(Format::OpenAi)
}

fn is_object(json: &talktree::Json) -> bool {
    fields::Fields::of(json).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_their_records() {
        for (record, format) in [
            (r#"{"format":"talktree","version":1}"#, Some(Format::Own)),
            (r#"{"title":"t","mapping":{}}"#, Some(Format::ChatGpt)),
            (r#"{"message_tree_id":"t","prompt":{}}"#, Some(Format::OpenAssistant)),
            (r#"{"message_id":"m","text":"t","role":"prompter"}"#, Some(Format::OpenAssistant)),
            (r#"{"user_message_id":"m","text":"t","role":"x"}"#, Some(Format::OpenAssistant)),
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, Some(Format::OpenAi)),
            (r#"{"messages":[]}"#, Some(Format::OpenAi)),
            (r#"{"messages":[{"role":"user","parts":[]}]}"#, Some(Format::UiMessage)),
            (r#"{"messages":[{"sender":"user","text":"x"}]}"#, None),
            (r#"{"id":"a","role":"user","parts":[{"type":"text"}]}"#, Some(Format::UiMessage)),
            (r#"{"role":"assistant","tool_calls":[]}"#, Some(Format::OpenAi)),
            (r#"{"parentUuid":null,"type":"user"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"summary","leafUuid":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"queue-operation","sessionId":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"session","id":"x","timestamp":"t"}"#, Some(Format::Pi)),
            (r#"{"type":"message","message":{"role":"user"}}"#, Some(Format::Pi)),
            (r#"{"type":"custom","id":"x","parentId":null}"#, Some(Format::Pi)),
            (r#"{"hello":"world"}"#, None),
        ] {
            let fields = Fields::parse(record).unwrap();
            assert_eq!(format_of(&fields), format, "{record}");
        }
    }
}
