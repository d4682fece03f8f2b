//! Blocks of server tools, which the provider runs itself: searches, code, tools of MCP servers.
//!
//! Such a call and its result are in the same turn of the model, which may pause between them: the conversation then ends
//! with the call, and the provider goes on where it stopped. Code that runs there may call tools of the program; then their
//! results are between the two. A call whose result is missing is refused once a user has spoken, and a result without
//! its call always is.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::request::Blocks;

/// The names of the server tools.
const TOOLS: [&str; 8] = [
    "advisor",
    "bash_code_execution",
    "code_execution",
    "text_editor_code_execution",
    "tool_search_tool_bm25",
    "tool_search_tool_regex",
    "web_fetch",
    "web_search",
];

/// The types of their results; `tool_search` has two tools.
const RESULTS: [&str; 8] = [
    "advisor_tool_result",
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "mcp_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
];

/// The types of blocks that name who called.
const CALLED: [&str; 3] = ["server_tool_use", "web_fetch_tool_result", "web_search_tool_result"];

/// Returns the block as the provider accepts it again; `None` if it does not. `seen` holds the ids of the calls so far: none may
/// occur twice.
pub(super) fn block(mut block: Value, seen: &mut HashSet<String>) -> Option<Value> {
    let kind = block["type"].as_str()?.to_owned();
    let is_sound = match kind.as_str() {
        "server_tool_use" | "mcp_tool_use" => {
            let id = block["id"].as_str()?;
            let fits = is_id(id) && block["input"].is_object();
            let is_known = match kind.as_str() {
                "server_tool_use" => {
                    id.starts_with("srvtoolu_")
                        && block["name"].as_str().is_some_and(|name| TOOLS.contains(&name))
                }
                _ => block["name"].is_string() && block["server_name"].is_string(),
            };
            fits && is_known && seen.insert(id.to_owned())
        }
        "mcp_tool_result" => block["tool_use_id"].is_string() && is_text_or_list(&block["content"]),
        "container_upload" => block["file_id"].is_string(),
        // A block without a content says that compacting failed.
        "compaction" => block["content"].as_str().is_some_and(|text| !text.trim().is_empty()),
        kind if RESULTS.contains(&kind) => {
            block["tool_use_id"].is_string()
                && (block["content"].is_object() || block["content"].is_array())
        }
        _ => false,
    };
    if !is_sound {
        return None;
    }
    let caller = caller(&block["caller"]);
    if let Some(fields) = block.as_object_mut() {
        fields.retain(|field, value| {
            !value.is_null() && field != "caller" && field != "cache_control"
        });
        if let Some(caller) = caller.filter(|_| CALLED.contains(&kind.as_str())) {
            fields.insert("caller".to_owned(), caller);
        }
    }
    Some(block)
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_text_or_list(content: &Value) -> bool {
    content.is_string() || content.is_array()
}

/// Returns who made a call, in the provider's spelling; `None` if none is named.
pub(super) fn caller(caller: &Value) -> Option<Value> {
    let kind = caller["type"].as_str()?;
    if kind == "direct" {
        return Some(json!({"type": "direct"}));
    }
    let id = caller["tool_id"].as_str().or(caller["toolId"].as_str())?;
    kind.starts_with("code_execution_").then(|| json!({"type": kind, "tool_id": id}))
}

/// Removes calls without a result, results without a call, and callers that are missing.
pub(super) fn pair(messages: &mut [(&'static str, Blocks)]) {
    let count = messages.len();
    let mut start = 0;
    while start < count {
        // Results of tools do not end a turn of the model; what a user says does.
        let turn = messages[start..].iter().position(|(role, blocks)| {
            *role == "user" && blocks.iter().any(|block| block["type"] != "tool_result")
        });
        let end = turn.map_or(count, |turn| start + turn);
        pair_turn(&mut messages[start..end], end == count);
        start = end + 1;
    }
}

/// Does this for one turn. In the last turn of the conversation a call may wait for its result.
fn pair_turn(turn: &mut [(&'static str, Blocks)], is_last: bool) {
    let mut called = HashSet::new();
    let mut answered = HashSet::new();
    // The calls that the last message of the model makes, or that its code waits for.
    let mut paused = HashSet::new();
    let newest = turn.iter().rposition(|(role, _)| *role == "assistant");
    for (at, (_, blocks)) in turn.iter().enumerate() {
        let is_newest = is_last && Some(at) == newest;
        for (place, block) in blocks.iter().enumerate() {
            if let Some(id) = call_id(block) {
                called.insert(id.to_owned());
                if is_newest && blocks[place..].iter().all(is_call) {
                    paused.insert(id.to_owned());
                }
            } else if let Some(id) = result_id(block)
                && called.contains(id)
            {
                answered.insert(id.to_owned());
            }
            // A call cannot come from code that is called after it.
            if is_newest
                && let Some(id) = block["caller"]["tool_id"].as_str()
                && called.contains(id)
            {
                paused.insert(id.to_owned());
            }
        }
    }
    let mut kept = HashSet::new();
    let mut answers = HashSet::new();
    for (_, blocks) in turn {
        blocks.retain_mut(|block| {
            if let Some(id) = call_id(block) {
                let stays = answered.contains(id) || paused.contains(id);
                if stays {
                    kept.insert(id.to_owned());
                }
                return stays;
            }
            if let Some(id) = result_id(block) {
                // A second result is refused, too.
                return kept.contains(id) && answers.insert(id.to_owned());
            }
            if block["caller"]["tool_id"].as_str().is_some_and(|id| !kept.contains(id))
                && let Some(fields) = block.as_object_mut()
            {
                fields.remove("caller");
            }
            true
        });
    }
}

fn is_call(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("server_tool_use" | "mcp_tool_use" | "tool_use"))
}

fn call_id(block: &Value) -> Option<&str> {
    let is_call = matches!(block["type"].as_str(), Some("server_tool_use" | "mcp_tool_use"));
    block["id"].as_str().filter(|_| is_call)
}

fn result_id(block: &Value) -> Option<&str> {
    let is_result = block["type"].as_str().is_some_and(|kind| RESULTS.contains(&kind));
    block["tool_use_id"].as_str().filter(|_| is_result)
}
