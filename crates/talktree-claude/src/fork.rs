//! A copy of a conversation as a session of its own, with new ids.

use std::collections::HashMap;

use serde_json::Value;
use talktree::records::fields::Fields;
use talktree::records::ids::message_id;
use talktree::{Error, Json, MessageId, Result};

use crate::entries::{Progress, is_link, kind_of, named, uuid_of};
use crate::store::TranscriptFork;
use crate::summary::{fold_summary, not_blank};
use crate::{invalid, is_truthy};

/// The members of an entry that a copy does not get: they belong to the session in which it was written.
const OF_THE_SOURCE: [&str; 4] = ["teamName", "agentName", "slug", "sourceToolAssistantUUID"];

/// Returns the entries of a copy of a session; the copy has this id.
///
/// # Errors
/// [`Error::UnknownMessage`] if there is no such last entry, [`Error::InvalidValue`] if nothing is left to copy.
pub(crate) fn copy(
    source: &str,
    id: &str,
    options: &TranscriptFork,
    entries: &[Json],
) -> Result<Vec<Json>> {
    let mut wanted = options.last.clone().map(message_id);
    let (mut progress, mut copied) = (Progress::default(), Vec::new());
    for entry in entries.iter().filter_map(Fields::of) {
        let is_link = progress.read(&entry).is_none() && is_link(&kind_of(&entry));
        let Some(uuid) = uuid_of(&entry).filter(|_| !is_truthy(entry.get("isSidechain"))) else {
            continue;
        };
        let is_last = wanted.as_ref() == Some(&uuid);
        copied.extend(is_link.then_some((uuid, entry)));
        if is_last {
            wanted = None;
            break;
        }
    }
    if let Some(last) = wanted {
        return Err(Error::UnknownMessage { session: source.into(), id: last });
    }
    if copied.is_empty() {
        return Err(invalid("transcript", source, "it has no messages to copy"));
    }
    let names: HashMap<MessageId, String> =
        copied.iter().map(|(uuid, _)| (uuid.clone(), crate::uuid())).collect();
    let name_of =
        |uuid: Option<MessageId>| Value::from(uuid.and_then(|uuid| names.get(&uuid).cloned()));
    let last = copied.len() - 1;
    let mut copies = Vec::with_capacity(copied.len() + 2);
    for (place, (uuid, entry)) in copied.into_iter().enumerate() {
        let parent = progress.pass(named(&entry, "parentUuid"));
        let logical = named(&entry, "logicalParentUuid");
        // If the source is a copy itself, its session has the message under the id of the origin.
        let origin = entry.object("forkedFrom").and_then(|from| from.id("messageUuid"));
        let origin = origin.map(|id| Json::from(Value::from(id)));
        let from = Fields::default()
            .with("sessionId", Some(Value::from(source)))
            .with("messageUuid", origin.or(entry.get("uuid").cloned()));
        let timestamp = entry.get("timestamp").filter(|_| place != last).cloned();
        let entry = entry
            .without(&OF_THE_SOURCE)
            .with("uuid", Some(name_of(Some(uuid))))
            .with("parentUuid", Some(name_of(parent)))
            .with("logicalParentUuid", Some(name_of(logical)))
            .with("sessionId", Some(Value::from(id)))
            .with("timestamp", Some(timestamp.unwrap_or_else(crate::now)))
            .with("isSidechain", Some(Value::from(false)))
            .with("forkedFrom", from.into_json());
        copies.extend(entry.into_json());
    }
    let replacements = replacements(entries, source);
    if !replacements.is_empty() {
        let all = Json::parse(&format!("[{}]", replacements.join(",")))?;
        copies.push(crate::about(id, "content-replacement", "replacements", all));
    }
    let title = options.title.as_deref().and_then(|title| not_blank("title", title).ok());
    let title = title.unwrap_or_else(|| format!("{} (fork)", title_of(entries)));
    copies.push(crate::about(id, "custom-title", "customTitle", Value::from(title)));
    Ok(copies)
}

fn title_of(entries: &[Json]) -> String {
    let data = Fields::of(&fold_summary(None, entries)).unwrap_or_default();
    let mut names = ["custom_title", "ai_title", "first_prompt", "command_fallback"].into_iter();
    let title = names.find_map(|name| data.text(name).filter(|title| !title.is_empty()));
    title.unwrap_or_else(|| "Forked session".to_owned())
}

/// Returns the session's replacements of contents.
fn replacements(entries: &[Json], source: &str) -> Vec<String> {
    let entries = entries.iter().filter_map(Fields::of);
    let of_source = entries.filter(|entry| {
        kind_of(entry) == "content-replacement" && entry.id("sessionId").as_deref() == Some(source)
    });
    let all = of_source.flat_map(|entry| entry.list("replacements").unwrap_or_default());
    all.map(|replacement| replacement.as_str().to_owned()).collect()
}
