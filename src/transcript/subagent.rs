//! Subagents: their subpaths, and the entries with their metadata.

use super::text;
use crate::message::Json;

/// Returns the id of the subagent that has this subpath.
pub(super) fn id_of(subpath: &str) -> Option<&str> {
    let last = subpath.strip_prefix("subagents/")?.rsplit('/').next()?;
    last.strip_prefix("agent-")
}

/// Returns whether an entry is the content of a subagent's `.meta.json`, not a line of its transcript.
pub(super) fn is_metadata(entry: &Json) -> bool {
    let [kind] = text::fields(entry.as_str(), ["type"]);
    kind.is_some_and(|token| text::is_string(token, "agent_metadata"))
}

/// Who started a subagent.
#[derive(Debug, Clone, Default)]
pub(super) struct Starter {
    pub(super) call: Option<String>,
    pub(super) agent: Option<String>,
}

impl Starter {
    /// Reads the last entry with the subagent's metadata.
    pub(super) fn of(entries: &[Json]) -> Self {
        let last = entries.iter().rev().find(|entry| is_metadata(entry));
        let token = last.map_or("", Json::as_str);
        let [call, agent] = text::fields(token, ["toolUseId", "parentAgentId"]);
        let text = |token: Option<&str>| token.and_then(text::decode_lossy);
        Self { call: text(call), agent: text(agent) }
    }
}
