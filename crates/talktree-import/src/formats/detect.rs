//! What one record says about the format of its file.
//!
//! [`SIGNS`] lists what only one format has, most particular first; the first row that holds decides. A new format is a new row.
//! Formats that are not read have rows, too: many resemble one that is read, and their texts would end up in metadata, under
//! ids that a later import could no longer use.

use super::Format;
use crate::fields::Fields;

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

/// What a record must have.
enum Need {
    /// All of these fields.
    Has(&'static [&'static str]),
    /// One of these fields.
    Any(&'static [&'static str]),
    /// None of these fields.
    Lacks(&'static [&'static str]),
    Text(&'static str),
    Number(&'static str),
    Object(&'static str),
    List(&'static str),
    /// A text that is one of these.
    Is(&'static str, &'static [&'static str]),
    /// A text that begins with this.
    Starts(&'static str, &'static str),
    /// A text with this in it.
    Holds(&'static str, &'static str),
    /// An object with this.
    In(&'static str, &'static [Need]),
    /// A list whose first element is an object with this.
    First(&'static str, &'static [Need]),
    /// A list of nothing.
    Empty(&'static str),
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

/// Where an entry of Claude Code is.
const PLACE: Need = Any(&["uuid", "parentUuid", "sessionId"]);

use Format::{
    ChatGpt, ClaudeAi, ClaudeCode, Cline, Codex, CopilotChat, CopilotCli, Cursor, Gemini, Goose,
    LibreChat, OpenAi, OpenAssistant, OpenCode, OpenWebUi, Own, Pi, Qwen, UiMessage,
};
use Need::{Any, Empty, First, Has, Holds, In, Is, Lacks, List, Number, Object, Starts, Text};
use Sign::{Of, Perhaps, Unsupported};

/// The signs of all formats.
#[rustfmt::skip]
const SIGNS: &[(Sign, &[Need])] = &[
    // talktree
    (Of(Own), &[Is("format", &["talktree"])]),
    (Unsupported(HEADLESS), &[Is("type", &["session"]), Has(&["id", "created_at", "updated_at"])]),
    (Unsupported(HEADLESS), &[Is("type", &["message"]), In("message", &[Has(&["created_at", "role"]), List("parts")])]),
    (Unsupported(HEADLESS), &[Is("type", &["end"]), Has(&["checksum", "sessions"])]),
    // Databases and exports of chat programs
    (Unsupported("an export of DeepSeek"), &[Object("mapping"), Has(&["inserted_at"])]),
    (Of(ChatGpt), &[Object("mapping")]),
    (Of(OpenAssistant), &[Has(&["prompt", "message_tree_id"])]),
    (Of(OpenAssistant), &[Has(&["text", "role"]), Any(&["message_id", "user_message_id"])]),
    (Of(ClaudeAi), &[Has(&["chat_messages"])]),
    (Unsupported("the accounts of a claude.ai export"), &[Has(&["uuid", "full_name", "email_address"])]),
    (Unsupported("the projects of a claude.ai export"), &[Has(&["uuid", "prompt_template"])]),
    (Unsupported("the memories of a claude.ai export"), &[Has(&["conversations_memory"])]),
    (Of(OpenWebUi), &[Object("row"), List("nodes")]),
    (Of(OpenWebUi), &[In("chat", &[In("history", &[Object("messages")])])]),
    (Of(OpenWebUi), &[In("history", &[Object("messages")])]),
    (Of(OpenWebUi), &[First("messages", &[Has(&["childrenIds"])])]),
    (Unsupported("messages of Open WebUI without their chat"), &[Has(&["childrenIds"])]),
    (Unsupported("a conversation of LM Studio"), &[First("messages", &[Has(&["versions"])])]),
    (Of(LibreChat), &[Has(&["conversationId"]), Any(&["messages", "messagesTree"])]),
    (Of(LibreChat), &[First("messages", &[Any(&["messageId", "parentMessageId"]), Lacks(&["content"])])]),
    (Unsupported("an export of Chatbot UI"), &[Has(&["history", "folders", "prompts"])]),
    (Unsupported("an export of Le Chat"), &[Has(&["chatId", "contentChunks"])]),
    (Unsupported("an export of Grok"), &[First("conversations", &[Has(&["conversation", "responses"])])]),
    (Unsupported("a conversation of ShareGPT"), &[First("conversations", &[Has(&["from", "value"])])]),
    (Unsupported("a prompt of AI Studio"), &[Object("chunkedPrompt")]),
    (Unsupported("a chat of SillyTavern"), &[Has(&["user_name", "character_name"])]),
    (Unsupported("a chat of SillyTavern"), &[Has(&["chat_metadata"])]),
    (Unsupported("a chat of SillyTavern"), &[Has(&["mes", "is_user"])]),
    // Logs of Copilot and of VS Code
    (Of(CopilotChat), &[Number("kind"), In("v", &[Has(&["requests"])])]),
    (Of(CopilotChat), &[Number("kind"), List("k")]),
    (Of(CopilotChat), &[List("requests"), Any(&["sessionId", "requesterUsername", "responderUsername"])]),
    // Logs of Codex
    (Unsupported("the output of `codex exec --json`"), &[Is("type", &["thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.updated", "item.completed"]), Lacks(&["data"])]),
    (Unsupported("the prompts that Codex remembers"), &[Has(&["session_id", "ts", "text"])]),
    (Unsupported("the list of the sessions of Codex"), &[Has(&["id", "thread_name", "updated_at"])]),
    (Of(Codex), &[Text("type"), Has(&["timestamp"]), Object("payload")]),
    (Of(Codex), &[Is("type", &["function_call", "function_call_output", "local_shell_call", "custom_tool_call", "custom_tool_call_output"])]),
    (Of(Codex), &[Is("type", &["reasoning"]), List("summary")]),
    (Of(Codex), &[Has(&["record_type"])]),
    (Of(Codex), &[Has(&["id", "timestamp"]), Any(&["instructions", "git"]), Lacks(&["type", "role"])]),
    (Of(Codex), &[Object("session"), List("items")]),
    // Logs of other agents whose records resemble those below
    (Of(CopilotCli), &[Holds("type", "."), Object("data")]),
    (Unsupported("the prompts that Gemini CLI remembers"), &[Has(&["messageId", "sessionId"]), Text("message")]),
    (Unsupported("a checkpoint of Gemini CLI"), &[First("history", &[List("parts"), Text("role")])]),
    (Of(Gemini), &[Has(&["projectHash", "sessionId"])]),
    (Of(Gemini), &[Has(&["sessionId", "startTime", "lastUpdated"]), Lacks(&["uuid"])]),
    (Of(Gemini), &[Any(&["$set", "$rewindTo"])]),
    (Of(Gemini), &[Is("type", &["gemini"])]),
    (Of(Qwen), &[Any(&["uuid", "sessionId"]), Any(&["systemPayload", "usageMetadata", "toolCallResult"])]),
    (Of(Qwen), &[Any(&["uuid", "sessionId"]), In("message", &[List("parts"), Lacks(&["content"])])]),
    (Of(Qwen), &[Any(&["uuid", "sessionId"]), In("message", &[Is("role", &["model"])])]),
    (Unsupported("the output of Claude Code with `--output-format stream-json`"), &[Is("type", &["system", "assistant", "user", "result"]), Has(&["session_id"]), Lacks(&["sessionId"])]),
    (Unsupported("the display of a task of Cline or Roo Code; its messages are in `api_conversation_history.json`"), &[Has(&["ts"]), Any(&["say", "ask"])]),
    (Of(Cline), &[Is("role", &["user"]), First("content", &[Starts("text", "<task>")])]),
    (Of(Cline), &[Is("role", &["user"]), Starts("content", "<task>")]),
    (Of(Cline), &[Has(&["agent", "sessionId"]), First("messages", &[Has(&["role", "content"])])]),
    (Unsupported("the list of tasks of Cline or Roo Code"), &[Has(&["task", "tokensIn", "tokensOut"])]),
    (Unsupported("the description of a session of Cline"), &[Has(&["session_id", "messages_path"])]),
    (Unsupported("a part of a session of opencode, which is imported by its file in `session`"), &[Has(&["sessionID"]), Any(&["role", "messageID"])]),
    (Of(OpenCode), &[Object("info"), Any(&["messages", "parts"])]),
    (Of(Cursor), &[In("composer", &[Has(&["key"])])]),
    (Of(Cursor), &[In("bubble", &[Has(&["key"])])]),
    (Of(Cursor), &[In("chat", &[Has(&["agentId"])])]),
    (Of(Cursor), &[Text("blob"), In("message", &[Has(&["role"])])]),
    (Of(Cursor), &[Has(&["composerId"])]),
    (Of(Cursor), &[Text("role"), In("message", &[Has(&["content"])]), Lacks(&["uuid", "type"])]),
    (Of(Goose), &[Object("session"), List("ledger")]),
    (Of(Goose), &[In("row", &[Has(&["content_json"])])]),
    (Of(Goose), &[Has(&["working_dir"]), Any(&["description", "message_count"]), Lacks(&["role"])]),
    (Of(Goose), &[Text("role"), Number("created"), List("content")]),
    (Unsupported("a thread of Amp"), &[Starts("id", "T-"), Number("v"), List("messages")]),
    (Unsupported("a session of Factory Droid"), &[Is("type", &["session_start", "todo_state", "compaction_state"])]),
    (Unsupported("a log of Antigravity"), &[Is("source", &["USER_EXPLICIT", "MODEL", "SYSTEM"]), Any(&["content", "step_index", "tool_calls"])]),
    (Unsupported("a log of Kiro"), &[Is("kind", &["Prompt", "AssistantMessage", "ToolResults"]), Has(&["data"])]),
    (Unsupported("a conversation of Kiro"), &[Has(&["conversation_id"]), First("history", &[Any(&["user", "assistant"])])]),
    (Unsupported("a log of Kimi"), &[In("message", &[Text("type"), Object("payload")])]),
    (Unsupported("a log of Kimi"), &[Starts("type", "context.append_")]),
    (Unsupported("a log of Kimi"), &[Is("type", &["turn.prompt", "turn.steer", "config.update", "usage.record"])]),
    (Unsupported("a log of Kimi"), &[Is("type", &["metadata"]), Has(&["protocol_version"])]),
    (Unsupported("a log of Kimi"), &[Is("role", &["_checkpoint", "_usage", "_system_prompt"])]),
    (Unsupported("the description of a session of Kimi"), &[Has(&["workDir", "agents"])]),
    (Unsupported("a log of Grok"), &[In("params", &[In("update", &[Has(&["sessionUpdate"])])])]),
    (Unsupported("the description of a session of Grok"), &[Has(&["session_summary", "generated_title"])]),
    (Unsupported("the description of a session of Mistral Vibe"), &[Has(&["session_id", "total_messages", "stats"])]),
    (Unsupported("a session of DeepSeek"), &[Is("type", &["session"]), Has(&["delegationDepth"])]),
    (Unsupported("a session of DeepSeek"), &[Holds("type", "/"), Has(&["seq", "data"])]),
    (Unsupported("a session of DeepSeek"), &[Is("type", &["text-chunks"]), Has(&["seq0"])]),
    (Unsupported("a log of OpenHands"), &[Has(&["source"]), Any(&["action", "observation"]), Any(&["args", "extras", "content"])]),
    (Unsupported("a log of OpenHands"), &[Has(&["source", "id"]), Is("kind", &["SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent", "Condensation"])]),
    (Unsupported("a thread of Zed"), &[Has(&["version", "summary"]), List("messages"), Any(&["text", "updated_at"])]),
    (Unsupported("a thread of Zed"), &[Text("version"), First("messages", &[Any(&["User", "Agent"])])]),
    (Unsupported("a conversation of Kiro"), &[Has(&["workspaceDirectory", "history"])]),
    (Unsupported("a conversation of Continue"), &[Has(&["history", "sessionId"])]),
    (Unsupported("contents of the Gemini API"), &[Is("role", &["model"]), List("parts")]),
    (Unsupported("contents of the Gemini API"), &[Text("role"), First("parts", &[Lacks(&["type"])])]),
    (Unsupported("contents of the Gemini API"), &[First("messages", &[Text("role"), First("parts", &[Lacks(&["type"])])])]),
    // Claude Code
    (Of(ClaudeCode), &[Is("type", &["user", "assistant"]), PLACE, In("message", &[Has(&["content"])])]),
    // An older or a trimmed transcript has no places.
    (Of(ClaudeCode), &[Is("type", &["user", "assistant"]), Has(&["timestamp"]), In("message", &[Has(&["content"])])]),
    (Of(ClaudeCode), &[Is("type", &["system"]), Has(&["uuid"]), Any(&["subtype", "content"])]),
    (Of(ClaudeCode), &[Is("type", &["summary"]), Has(&["leafUuid"])]),
    (Of(ClaudeCode), &[Is("type", &["file-history-snapshot"])]),
    (Of(ClaudeCode), &[Is("type", CLAUDE_TYPES), PLACE]),
    // Pi
    (Of(Pi), &[Is("type", &["session"]), Has(&["id"]), Any(&["timestamp", "cwd"])]),
    (Of(Pi), &[Is("type", &["message"]), Has(&["parentId"]), In("message", &[Has(&["role"])])]),
    (Of(Pi), &[Is("type", PI_TYPES), Has(&["timestamp"])]),
    (Of(Pi), &[Is("type", PI_TYPES), Has(&["id", "parentId"])]),
    // Lists of messages, whose fields many programs have
    (Of(UiMessage), &[First("messages", &[Text("role"), First("parts", &[Text("type")])])]),
    (Of(UiMessage), &[First("messages", &[Text("role"), Empty("parts")])]),
    (Of(OpenAi), &[First("messages", &[Text("role"), Any(OPENAI_FIELDS)])]),
    (Of(UiMessage), &[Text("role"), First("parts", &[Text("type")])]),
    (Perhaps(UiMessage), &[Text("role"), Empty("parts")]),
    (Perhaps(OpenAi), &[Text("role"), Any(OPENAI_FIELDS)]),
    (Perhaps(Pi), &[Is("type", &["message"]), In("message", &[Has(&["role"])])]),
    (Perhaps(ClaudeCode), &[Has(&["parentUuid"])]),
    (Perhaps(ClaudeCode), &[Has(&["sessionId"]), Any(&["uuid", "type"])]),
    (Perhaps(OpenAi), &[Empty("messages")]),
];

/// The fields of a message of OpenAI, one of which it has.
const OPENAI_FIELDS: &[&str] = &["content", "tool_calls", "function_call", "refusal"];

impl Need {
    fn holds(&self, record: &Fields) -> bool {
        let text = |name: &str, holds: &dyn Fn(&str) -> bool| {
            record.text(name).is_some_and(|text| holds(&text))
        };
        let all = |needs: &[Self], record: &Fields| needs.iter().all(|need| need.holds(record));
        match self {
            Has(names) => names.iter().all(|name| record.has(name)),
            Any(names) => names.iter().any(|name| record.has(name)),
            Lacks(names) => !names.iter().any(|name| record.has(name)),
            Text(name) => record.text(name).is_some(),
            Number(name) => record.number(name).is_some(),
            Object(name) => record.object(name).is_some(),
            List(name) => record.list(name).is_some(),
            Is(name, values) => text(name, &|text| values.contains(&text)),
            Starts(name, start) => text(name, &|text| text.starts_with(start)),
            Holds(name, part) => text(name, &|text| text.contains(part)),
            In(name, needs) => record.object(name).is_some_and(|inner| all(needs, &inner)),
            First(name, needs) => {
                let first = record.list(name).and_then(|list| Fields::of(list.first()?));
                first.is_some_and(|first| all(needs, &first))
            }
            Empty(name) => record.list(name).is_some_and(|list| list.is_empty()),
        }
    }
}

/// Returns what a record with these fields says, if anything.
pub(crate) fn sign_of(record: &Fields) -> Option<Sign> {
    let row = SIGNS.iter().find(|(_, needs)| needs.iter().all(|need| need.holds(record)));
    row.map(|(sign, _)| *sign)
}

/// Returns why a record is not read in a format, if it has what another one has.
pub(super) fn of_another_format(record: &Fields, own: Format) -> Option<String> {
    let seems = match sign_of(record)? {
        Of(format) | Perhaps(format) if format != own => format!("in the format {format}"),
        Unsupported(name) => format!("from {name}"),
        _ => return None,
    };
    Some(format!("a record of an unknown kind: it seems to be {seems}"))
}

/// A table with some of its columns.
type Table = (&'static str, &'static [&'static str]);

/// The signs of databases: tables with columns that only one program has. The first row that holds decides.
#[rustfmt::skip]
pub(super) const DATABASES: &[(Sign, &[Table])] = &[
    (Of(OpenCode), &[("session", &[]), ("message", &["session_id", "data"]), ("part", &[])]),
    (Of(Goose), &[("sessions", &[]), ("messages", &["content_json"])]),
    (Of(OpenWebUi), &[("chat", &["user_id", "chat"])]),
    (Of(Cursor), &[("cursorDiskKV", &["key", "value"])]),
    (Of(Cursor), &[("blobs", &["id", "data"]), ("meta", &["key", "value"])]),
    (Unsupported("an SQLite database of Zed"), &[("threads", &["data_type", "data"])]),
    (Unsupported("an SQLite database of Kiro"), &[("conversations_v2", &[])]),
    (Unsupported("an SQLite database of Antigravity"), &[("steps", &[]), ("trajectory_meta", &[])]),
    (Unsupported("an SQLite database of the OpenAI Agents SDK"), &[("agent_messages", &[])]),
    (Unsupported("an SQLite database of llm"), &[("conversations", &[]), ("responses", &["conversation_id", "prompt"])]),
    (Unsupported("an SQLite database of Hermes"), &[("messages", &["session_id", "tool_calls", "finish_reason"])]),
    (Unsupported("a workspace of an editor, which holds no messages"), &[("ItemTable", &[])]),
];

/// Returns the format of a file that begins with these bytes, if it does not hold records.
pub(crate) fn unsupported_bytes(start: &[u8]) -> Option<&'static str> {
    const STARTS: &[(&[u8], &str)] = &[
        (DATABASE, "an SQLite database"),
        (b"# aider chat started at", "a chat history of Aider"),
        (b"user:\n", "a transcript of Cursor as text"),
        (b"\x1f\x8b", "a file compressed by gzip"),
        (ZSTD, "a file compressed by zstd"),
        (b"PK\x03\x04", "a ZIP archive"),
    ];
    let start = start.trim_ascii_start();
    STARTS.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name)
}

/// What an SQLite database begins with.
pub(crate) const DATABASE: &[u8] = b"SQLite format 3\0";

/// What a zstd frame begins with.
pub(crate) const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

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
            (r#"{"uuid":"u","type":"user","message":{"content":"x"}}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"summary","leafUuid":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"queue-operation","sessionId":"x"}"#, Some(Format::ClaudeCode)),
            (r#"{"type":"session","id":"x","timestamp":"t"}"#, Some(Format::Pi)),
            (r#"{"type":"message","parentId":null,"message":{"role":"user"}}"#, Some(Format::Pi)),
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
            (r#"{"role":"assistant","tool_calls":[]}"#, Format::OpenAi),
            (r#"{"type":"message","message":{"role":"user"}}"#, Format::Pi),
            (r#"{"parentUuid":null,"type":"user"}"#, Format::ClaudeCode),
            (r#"{"type":"news","sessionId":"x"}"#, Format::ClaudeCode),
        ] {
            let fields = Fields::parse(record).unwrap();
            assert_eq!(sign_of(&fields), Some(Sign::Perhaps(format)), "{record}");
        }
    }
}
