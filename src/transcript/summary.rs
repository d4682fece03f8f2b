//! The summary of a session, from which lists are made without reading its transcript.
//!
//! Each of its values comes either from the first entry that has one, or from the last. So an append needs only the old
//! summary and its own entries.

use chrono::DateTime;

use super::facts::{Facts, LAST_WINS};
use super::first_prompt;
use super::info::TranscriptInfo;
use super::object::Object;
use super::text;
use crate::error::Result;
use crate::message::Json;

/// The summary of one session.
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts();
/// let entry = Json::parse(r#"{"type": "custom-title", "customTitle": "Login"}"#)?;
/// transcripts.append(&TranscriptKey::new("project", "session"), &[entry])?;
/// let summary = transcripts.list_session_summaries("project")?.remove(0);
/// assert_eq!(summary.data.value()["custom_title"], "Login");
/// assert_eq!(summary.info(None).map(|info| info.summary).as_deref(), Some("Login"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TranscriptSummary {
    /// The id of the session.
    pub session: String,
    /// When an entry was last appended to its main transcript, in milliseconds since 1970.
    pub mtime: i64,
    /// An object, as the agent SDK's `fold_session_summary` makes it.
    pub data: Json,
}

impl TranscriptSummary {
    /// Returns what a list shows of the session; `None` for a session of a subagent, or one without title and prompt.
    ///
    /// `directory` is used as the folder of the session if no entry names one.
    #[must_use]
    pub fn info(&self, directory: Option<&str>) -> Option<TranscriptInfo> {
        TranscriptInfo::of(self, directory)
    }
}

/// Returns the data of a summary with more entries added: what the agent SDK's `fold_session_summary` returns. `data` is
/// `None` for the first entries of a session.
///
/// Unknown members of `data` are kept.
///
/// ```
/// use talktree::{Json, fold_transcript_summary};
///
/// let entries = [Json::parse(r#"{"type": "tag", "tag": "ci", "isSidechain": false}"#)?];
/// let data = fold_transcript_summary(None, &entries)?;
/// assert_eq!(data.as_str(), r#"{"is_sidechain":false,"tag":"ci"}"#);
/// assert_eq!(fold_transcript_summary(Some(&data), &[])?, data);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidValue`](crate::Error::InvalidValue) if an entry is not an object.
pub fn fold_transcript_summary(data: Option<&Json>, entries: &[Json]) -> Result<Json> {
    let facts: Vec<Facts<'_>> = entries.iter().map(Facts::of).collect::<Result<_>>()?;
    fold(data, facts.iter())
}

/// Returns the data of a summary with the entries added.
pub(crate) fn fold<'a>(
    data: Option<&Json>,
    entries: impl Iterator<Item = &'a Facts<'a>>,
) -> Result<Json> {
    let mut data = Object::of(data.map_or("{}", Json::as_str));
    for entry in entries {
        add(&mut data, entry);
    }
    Json::parse(&data.to_text())
}

/// Returns the milliseconds since 1970 of a timestamp, as the SDK computes them; `None` if it is no time.
fn millis(token: &str) -> Option<i64> {
    let text = String::from_utf8(text::decode(token)?.into_owned()).ok()?;
    let time = DateTime::parse_from_rfc3339(&text).ok()?;
    Some((time.timestamp_micros() as f64 / 1e6 * 1000.0) as i64)
}

fn add<'a>(data: &mut Object<'a>, entry: &Facts<'a>) {
    if !data.has("is_sidechain") {
        let is_sidechain = entry.is_sidechain == Some("true");
        data.set("is_sidechain", if is_sidechain { "true" } else { "false" });
    }
    if !data.has("created_at")
        && let Some(millis) = entry.timestamp.and_then(millis)
    {
        data.set("created_at", millis.to_string());
    }
    if !data.has("cwd")
        && let Some(cwd) = entry.cwd.filter(|token| token.starts_with('"') && token.len() > 2)
    {
        data.set("cwd", cwd);
    }
    add_prompt(data, entry);
    for ((_, name), value) in LAST_WINS.iter().zip(entry.last) {
        if let Some(value) = value.filter(|token| token.starts_with('"')) {
            data.set(name, value);
        }
    }
    if entry.is_of("tag") {
        match entry.tag.filter(|token| token.starts_with('"') && token.len() > 2) {
            Some(tag) => data.set("tag", tag),
            None => data.remove("tag"),
        }
    }
}

fn add_prompt<'a>(data: &mut Object<'a>, entry: &Facts<'a>) {
    let is_made = entry.is_meta == Some("true") || entry.is_compact_summary == Some("true");
    if is_made || !entry.is_of("user") || text::is_truthy(data.get("first_prompt_locked")) {
        return;
    }
    let found = first_prompt::find(entry.message);
    for command in found.commands {
        // The first one that has a name stays.
        if !text::is_truthy(data.get("command_fallback")) {
            data.set("command_fallback", text::encode(&command));
        }
    }
    if let Some(prompt) = found.prompt {
        data.set("first_prompt", text::encode(&prompt));
        data.set("first_prompt_locked", "true");
    }
}
