//! Unsupported formats, by what makes the records of each unique.
//!
//! Many of them resemble a format that is read: they have `sessionId` and `type`, or `messages` and `role`. Without this
//! list their texts would end up in metadata, under ids that a later import could no longer use.

use talktree::Json;

use crate::fields::{self, Fields};

/// Returns the format of a file that begins with these bytes, if it does not hold records.
pub(crate) fn unsupported_bytes(start: &[u8]) -> Option<&'static str> {
    const STARTS: &[(&[u8], &str)] = &[
        (b"SQLite format 3\0", "an SQLite database"),
        (b"# aider chat started at", "a chat history of Aider"),
        (b"\x1f\x8b", "a file compressed by gzip"),
        (b"\x28\xb5\x2f\xfd", "a file compressed by zstd"),
        (b"PK\x03\x04", "a ZIP archive"),
    ];
    let start = start.trim_ascii_start();
    STARTS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name)
}

/// Returns the format of a record, if it is unsupported.
pub(crate) fn unsupported(record: &Fields) -> Option<&'static str> {
    of_event(record).or_else(|| of_conversation(record)).or_else(|| of_message(record))
}

/// A line of a log.
fn of_event(record: &Fields) -> Option<&'static str> {
    let kind = record.text("type");
    let kind = kind.as_deref();
    let message = record.object("message");
    let is_rollout =
        kind.is_some() && record.has("timestamp") && record.object("payload").is_some();
    let is_item = matches!(
        kind,
        Some("function_call" | "function_call_output" | "local_shell_call" | "custom_tool_call")
    );
    if is_rollout || is_item || record.has("record_type") {
        return Some("a log of Codex");
    }
    let is_gemini_prompt =
        record.has("messageId") && record.has("sessionId") && record.text("message").is_some();
    if record.has("projectHash") && record.has("sessionId")
        || kind == Some("gemini")
        || is_gemini_prompt
    {
        return Some("a log of Gemini CLI");
    }
    let is_content = message.as_ref().is_some_and(|message| {
        message.has("parts") && !message.has("content")
            || message.text("role").as_deref() == Some("model")
    });
    let has_payload =
        ["systemPayload", "usageMetadata", "toolCallResult"].iter().any(|name| record.has(name));
    if (record.has("sessionId") || record.has("uuid")) && (is_content || has_payload) {
        return Some("a log of Qwen Code");
    }
    if record.object("data").is_some() && kind.is_some_and(|kind| kind.contains('.')) {
        return Some("a log of Copilot CLI");
    }
    let is_stream = matches!(kind, Some("system" | "assistant" | "user" | "result"));
    if is_stream && record.has("session_id") && !record.has("sessionId") {
        return Some("the output of Claude Code with `--output-format stream-json`");
    }
    if record.has("ts") && (record.has("say") || record.has("ask")) {
        return Some("a log of Cline");
    }
    let is_opencode = record.has("sessionID") && (record.has("role") || record.has("messageID"))
        || record.object("info").is_some() && (record.has("messages") || record.has("parts"));
    if is_opencode {
        return Some("a conversation of OpenCode");
    }
    if record.has("composerId") || record.has("bubbleId") {
        return Some("a conversation of Cursor");
    }
    None
}

/// A record that is a whole conversation, or all of them.
fn of_conversation(record: &Fields) -> Option<&'static str> {
    let first = |name: &str| record.list(name)?.first().and_then(Fields::of);
    let message = first("messages").unwrap_or_default();
    let chat = record.object("chat");
    let history = chat.as_ref().unwrap_or(record).object("history");
    let is_keyed = history.is_some_and(|history| history.object("messages").is_some());
    if is_keyed || message.has("childrenIds") {
        return Some("a chat of Open WebUI");
    }
    if message.has("versions") {
        return Some("a conversation of LM Studio");
    }
    let is_libre = message.has("messageId") || message.has("parentMessageId");
    if is_libre || record.has("conversationId") && record.has("messages") {
        return Some("a conversation of LibreChat");
    }
    if record.has("history") && record.has("folders") && record.has("prompts") {
        return Some("an export of Chatbot UI");
    }
    if record.has("history") && record.has("sessionId") {
        return Some("a conversation of Continue");
    }
    if record.has("chat_messages") {
        return Some("an export of claude.ai");
    }
    if record.has("requests")
        && (record.has("requesterUsername") || record.has("responderUsername"))
    {
        return Some("an export of Copilot Chat");
    }
    let turn = first("conversations").unwrap_or_default();
    (turn.has("from") && turn.has("value")).then_some("a conversation of ShareGPT")
}

/// A message that is a record of its own, or the first of a list.
fn of_message(record: &Fields) -> Option<&'static str> {
    let first = || record.list("messages")?.first().and_then(Fields::of);
    let inner = first();
    let message = inner.as_ref().unwrap_or(record);
    if message.has("childrenIds") {
        return Some("a chat of Open WebUI");
    }
    let parts = message.list("parts")?;
    let role = message.text("role")?;
    let is_typed = |part: &Json| {
        Fields::of(part).is_some_and(|part| part.get("type").and_then(fields::text).is_some())
    };
    let is_untyped = !parts.is_empty() && !parts.iter().any(is_typed);
    (role == "model" || is_untyped).then_some("contents of the Gemini API")
}
