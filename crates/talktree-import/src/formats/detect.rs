//! What one record says about the format of its file.

use talktree::Json;

use super::Format;
use super::unsupported::unsupported;
use crate::fields::{self, Fields};

/// What a record says about the format of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It has what only this format has.
    Of(Format),
    /// It has what this format and others have.
    Perhaps(Format),
    /// It has what only this unsupported format has.
    Unsupported(&'static str),
}

/// Types of Claude Code's entries besides messages.
const CLAUDE_TYPES: &[&str] = &[
    "agent-color",
    "agent-name",
    "agent-setting",
    "agent_metadata",
    "ai-title",
    "attachment",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "tag",
    "worktree-state",
];

/// Types of Pi's entries besides messages.
pub(super) const PI_TYPES: &[&str] = &[
    "branch_summary",
    "compaction",
    "context_edit",
    "custom",
    "custom_message",
    "label",
    "model_change",
    "session_info",
    "thinking_level_change",
    "usage",
];

/// What a file is whose records are talktree's own, and whose header is missing: with one it would be no guess.
pub(crate) const HEADLESS: &str = "a talktree export whose first line is missing or damaged";

/// Returns what a record with these fields says, if anything.
pub(crate) fn sign_of(record: &Fields) -> Option<Sign> {
    if record.text("format").as_deref() == Some("talktree") {
        return Some(Sign::Of(Format::Own));
    }
    if is_own(record) {
        return Some(Sign::Unsupported(HEADLESS));
    }
    if let Some(name) = unsupported(record) {
        return Some(Sign::Unsupported(name));
    }
    if record.object("mapping").is_some() {
        return Some(Sign::Of(Format::ChatGpt));
    }
    let is_assistant_tree = record.has("prompt") && record.has("message_tree_id");
    let is_assistant_message = record.has("text")
        && record.has("role")
        && (record.has("message_id") || record.has("user_message_id"));
    if is_assistant_tree || is_assistant_message {
        return Some(Sign::Of(Format::OpenAssistant));
    }
    if let Some(messages) = record.list("messages") {
        return match messages.first().and_then(Fields::of) {
            Some(first) => format_of_message(&first).map(Sign::Of),
            None => messages.is_empty().then_some(Sign::Perhaps(Format::OpenAi)),
        };
    }
    format_of_message(record)
        .map(Sign::Of)
        .or_else(|| claude(record))
        .or_else(|| is_pi(record).then_some(Sign::Of(Format::Pi)))
}

/// Returns why a record is not read in a format, if it has what only another one has.
pub(super) fn of_another_format(record: &Fields, own: Format) -> Option<String> {
    let seems = match sign_of(record)? {
        Sign::Of(format) if format != own => format!("in the format {format}"),
        Sign::Unsupported(name) => format!("from {name}"),
        _ => return None,
    };
    Some(format!("a record of an unknown kind: it seems to be {seems}"))
}

/// Returns whether a record is one of an export of talktree, after its header.
fn is_own(record: &Fields) -> bool {
    match record.text("type").as_deref() {
        Some("session") => record.has("id") && record.has("created_at") && record.has("updated_at"),
        Some("message") => record.object("message").is_some_and(|message| {
            message.has("created_at") && message.has("role") && message.list("parts").is_some()
        }),
        Some("end") => record.has("checksum") && record.has("sessions"),
        _ => false,
    }
}

fn claude(record: &Fields) -> Option<Sign> {
    let kind = record.text("type");
    let has_place =
        ["uuid", "parentUuid", "sessionId"].into_iter().filter(|name| record.has(name)).count();
    let is_certain = match kind.as_deref() {
        // Older and trimmed logs have neither ids nor parents.
        Some("user" | "assistant") => {
            (has_place > 0 || record.has("timestamp"))
                && record.object("message").is_some_and(|said| said.has("content"))
        }
        Some("system") => record.has("uuid") && (record.has("subtype") || record.has("content")),
        Some("summary") => record.has("leafUuid"),
        Some("file-history-snapshot") => true,
        Some(kind) => has_place > 0 && CLAUDE_TYPES.contains(&kind),
        None => false,
    };
    let is_similar = record.has("parentUuid")
        || record.has("sessionId") && (record.has("uuid") || kind.is_some());
    match (is_certain, is_similar) {
        (true, _) => Some(Sign::Of(Format::ClaudeCode)),
        (false, true) => Some(Sign::Perhaps(Format::ClaudeCode)),
        (false, false) => None,
    }
}

fn is_pi(record: &Fields) -> bool {
    let is_entry = record.has("timestamp") || record.has("parentId") && record.has("id");
    match record.text("type").as_deref() {
        Some("session") => record.has("id") && (record.has("timestamp") || record.has("cwd")),
        Some("message") => record.object("message").is_some_and(|message| message.has("role")),
        Some(kind) => is_entry && PI_TYPES.contains(&kind),
        None => false,
    }
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

fn is_object(json: &Json) -> bool {
    fields::Fields::of(json).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_their_records() {
        for (record, format) in [
            (r#"{"format":"talktree","version":2}"#, Some(Format::Own)),
            (r#"{"title":"t","mapping":{}}"#, Some(Format::ChatGpt)),
            (r#"{"message_tree_id":"t","prompt":{}}"#, Some(Format::OpenAssistant)),
            (r#"{"message_id":"m","text":"t","role":"prompter"}"#, Some(Format::OpenAssistant)),
            (r#"{"user_message_id":"m","text":"t","role":"x"}"#, Some(Format::OpenAssistant)),
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, Some(Format::OpenAi)),
            (r#"{"messages":[{"role":"user","parts":[]}]}"#, Some(Format::UiMessage)),
            (r#"{"messages":[{"sender":"user","text":"x"}]}"#, None),
            (r#"{"id":"a","role":"user","parts":[{"type":"text"}]}"#, Some(Format::UiMessage)),
            (r#"{"role":"assistant","tool_calls":[]}"#, Some(Format::OpenAi)),
            (r#"{"uuid":"u","type":"user","message":{"content":"x"}}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"summary","leafUuid":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"queue-operation","sessionId":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"session","id":"x","timestamp":"t"}"#, Some(Format::Pi)),
            (r#"{"type":"message","message":{"role":"user"}}"#, Some(Format::Pi)),
            (r#"{"type":"custom","id":"x","parentId":null}"#, Some(Format::Pi)),
            (r#"{"hello":"world"}"#, None),
        ] {
            let fields = Fields::parse(record).unwrap();
            assert_eq!(sign_of(&fields), format.map(Sign::Of), "{record}");
        }
        for record in [
            r#"{"type":"session","id":"s","created_at":"t","updated_at":"t","session":1}"#,
            r#"{"type":"message","message":{"id":"m","role":"user","parts":[],"created_at":"t"}}"#,
            r#"{"type":"end","sessions":1,"checksum":"c"}"#,
        ] {
            let fields = Fields::parse(record).unwrap();
            assert_eq!(sign_of(&fields), Some(Sign::Unsupported(HEADLESS)), "{record}");
        }
        for (record, format) in [
            (r#"{"messages":[]}"#, Format::OpenAi),
            (r#"{"parentUuid":null,"type":"user"}"#, Format::ClaudeCode),
            (r#"{"type":"news","sessionId":"x"}"#, Format::ClaudeCode),
        ] {
            let fields = Fields::parse(record).unwrap();
            assert_eq!(sign_of(&fields), Some(Sign::Perhaps(format)), "{record}");
        }
    }
}
