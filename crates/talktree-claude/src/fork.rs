//! A copy of a conversation as a session of its own, with new ids.

use std::collections::HashMap;

use talktree::{Error, Json, Result};

use crate::link::{Kind, Link};
use crate::store::TranscriptFork;
use crate::summary::{fold_summary, title};
use crate::text::{self, Members, Object};

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
    let mut links: Vec<Link<'_>> =
        entries.iter().filter_map(Link::of).filter(|link| !link.is_sidechain).collect();
    if let Some(last) = &options.last {
        let place = links.iter().position(|link| *link.uuid == *last.as_bytes());
        let place = place.ok_or_else(|| Error::UnknownMessage {
            session: source.into(),
            id: last.as_str().into(),
        })?;
        links.truncate(place + 1);
    }
    let now = text::encode(crate::now().as_bytes());
    let places: HashMap<&[u8], usize> =
        links.iter().enumerate().map(|(place, link)| (&*link.uuid, place)).collect();
    let names: Vec<String> = links.iter().map(|_| new_uuid()).collect();
    let name_of = |uuid: &[u8]| places.get(uuid).map(|place| names[*place].as_str());
    let parent_of = |link: &Link<'_>| places.get(link.parent.as_deref()?).copied();
    let mut parents: Vec<Option<usize>> = links.iter().map(parent_of).collect();
    pass_progress(&links, &mut parents);

    let written: Vec<usize> =
        (0..links.len()).filter(|place| links[*place].kind != Kind::Progress).collect();
    let Some(&last) = written.last() else {
        return Err(Error::InvalidValue {
            what: "transcript",
            given: source.chars().take(80).collect(),
            why: "it has no messages to copy".to_owned(),
        });
    };
    let quoted = text::encode(source.as_bytes());
    let session = text::encode(id.as_bytes());
    let mut copies = Vec::with_capacity(written.len() + 2);
    for place in written {
        let link = &links[place];
        let mut entry = Object::of(link.token);
        let timestamp = entry.get("timestamp").filter(|_| place != last).unwrap_or(&now);
        let timestamp = timestamp.to_owned();
        let logical = match entry.get("logicalParentUuid") {
            token if !text::is_truthy(token) => token.unwrap_or("null").to_owned(),
            token => {
                let uuid = token.and_then(text::decode);
                uuid.and_then(|uuid| name_of(&uuid)).unwrap_or("null").to_owned()
            }
        };
        let uuid = text::encode(&link.uuid);
        // Of several entries with one uuid, the last one is its entry.
        entry.set("uuid", name_of(&link.uuid).unwrap_or_default().to_owned());
        let parent = parents[place].and_then(|parent| name_of(&links[parent].uuid));
        entry.set("parentUuid", parent.unwrap_or("null").to_owned());
        entry.set("logicalParentUuid", logical);
        entry.set("sessionId", session.clone());
        entry.set("timestamp", timestamp);
        entry.set("isSidechain", "false");
        entry.set("forkedFrom", format!(r#"{{"sessionId":{quoted},"messageUuid":{uuid}}}"#));
        for name in OF_THE_SOURCE {
            entry.remove(name);
        }
        copies.push(Json::parse(&entry.to_text())?);
    }
    copies.extend(replacements(entries, source, &session, &now)?);
    copies.push(title_entry(&title_of(options, entries)?, &session, &now)?);
    Ok(copies)
}

fn title_of(options: &TranscriptFork, entries: &[Json]) -> Result<String> {
    if let Some(Ok(title)) = options.title.as_deref().map(title) {
        return Ok(text::encode(title.as_bytes()));
    }
    let mut found: [Option<&str>; 2] = [None, None];
    for entry in entries {
        let entry = Members::of(entry.as_str());
        for (found, name) in found.iter_mut().zip(["customTitle", "aiTitle"]) {
            *found = entry.get(name).filter(text::is_text).or(*found);
        }
    }
    let title = match found[0].or(found[1]).and_then(text::decode) {
        Some(title) => title.into_owned(),
        None => first_prompt(entries)?,
    };
    Ok(text::encode(&[&title, &b" (fork)"[..]].concat()))
}

/// Returns the first prompt or command, decoded.
fn first_prompt(entries: &[Json]) -> Result<Vec<u8>> {
    let data = fold_summary(None, entries)?;
    let data = Members::of(data.as_str());
    let title = data.text("first_prompt").or_else(|| data.text("command_fallback"));
    let title = title.filter(|title| !title.is_empty());
    Ok(title.map_or_else(|| b"Forked session".to_vec(), |title| title.into_owned()))
}

/// Replaces parents that are progress by their nearest ancestor that is none.
fn pass_progress(links: &[Link<'_>], parents: &mut [Option<usize>]) {
    for place in 0..links.len() {
        let (mut at, mut passed) = (parents[place], Vec::new());
        while let Some(parent) = at.filter(|parent| links[*parent].kind == Kind::Progress) {
            // Taken while it is followed, so that a cycle ends.
            at = parents[parent].take();
            passed.push(parent);
        }
        for place in passed.into_iter().chain([place]) {
            parents[place] = at;
        }
    }
}

/// Returns the entry with the session's replacements of contents, if it has any.
fn replacements(entries: &[Json], source: &str, session: &str, now: &str) -> Result<Option<Json>> {
    let mut all = Vec::new();
    for entry in entries {
        let entry = Members::of(entry.as_str());
        if entry.is("type", "content-replacement") && entry.is("sessionId", source) {
            all.extend(text::items(entry.get("replacements").unwrap_or_default()));
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    let (all, uuid) = (all.join(","), new_uuid());
    Json::parse(&format!(
        r#"{{"type":"content-replacement","sessionId":{session},"replacements":[{all}],"uuid":{uuid},"timestamp":{now}}}"#
    ))
    .map(Some)
}

fn title_entry(title: &str, session: &str, now: &str) -> Result<Json> {
    let uuid = new_uuid();
    Json::parse(&format!(
        r#"{{"type":"custom-title","sessionId":{session},"customTitle":{title},"uuid":{uuid},"timestamp":{now}}}"#
    ))
}

/// Returns the token of a new uuid.
fn new_uuid() -> String {
    text::encode(crate::uuid().as_bytes())
}
