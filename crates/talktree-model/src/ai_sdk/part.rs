//! Parts that are not calls of tools.

use serde_json::{Map, Value, json};
use talktree::{Extra, File, Part, Reasoning, Text};

use crate::content::steering_parts;
use crate::files::as_text;

/// The fields of providers, and where the AI SDK keeps them.
const FIELDS: [(&str, &str, &str); 8] = [
    ("signature", "anthropic", "signature"),
    ("citations", "anthropic", "citations"),
    ("caller", "anthropic", "caller"),
    ("id", "openai", "itemId"),
    ("encrypted_content", "openai", "reasoningEncryptedContent"),
    ("phase", "openai", "phase"),
    ("annotations", "openai", "annotations"),
    ("thoughtSignature", "google", "thoughtSignature"),
];

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns the parts of the SDK for a part in a message of this role.
pub(super) fn parts(part: &Part, role: &str) -> Vec<Value> {
    match part {
        Part::Text(of) => vec![text_part(of)],
        Part::Reasoning(of) if role == "assistant" => vec![reasoning(of)],
        Part::File(of) if role == "system" => vec![text(&as_text(of))],
        Part::File(of) => vec![file(of)],
        Part::Other(json) => other(&json.value(), role),
        _ => Vec::new(),
    }
}

fn text_part(of: &Text) -> Value {
    let mut part = text(&of.text);
    add_state(&mut part, &of.extra);
    add_metadata(&mut part, "providerMetadata", &of.extra);
    part
}

fn reasoning(of: &Reasoning) -> Value {
    let mut part = json!({"type": "reasoning", "text": of.text});
    add_state(&mut part, &of.extra);
    add_metadata(&mut part, "providerMetadata", &of.extra);
    part
}

fn file(of: &File) -> Value {
    if !is_url(&of.url) {
        return text(&as_text(of));
    }
    let mut part = json!({"type": "file", "mediaType": of.media_type, "url": of.url});
    if let Some(name) = &of.filename {
        part["filename"] = name.as_str().into();
    }
    add_metadata(&mut part, "providerMetadata", &of.extra);
    part
}

/// Returns whether the SDK can read the URL: it refuses names of files.
fn is_url(url: &str) -> bool {
    if url.starts_with("data:") {
        return true;
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    !host.is_empty()
        && host.bytes().all(is_plain)
        && host.contains(|c: char| c.is_ascii_alphabetic())
}

fn add_state(part: &mut Value, extra: &Extra) {
    let state = extra.get("state").map(|json| json.value()).unwrap_or_default();
    if state == "streaming" || state == "done" {
        part["state"] = state;
    }
}

/// Adds what came from a provider, under its name.
pub(super) fn add_metadata(part: &mut Value, name: &str, extra: &Extra) {
    let given = extra.get(name).map(|json| json.value()).unwrap_or_default();
    let mut metadata: Map<String, Value> = match given {
        Value::Object(providers) if providers.values().all(Value::is_object) => providers,
        _ => Map::new(),
    };
    for (own, provider, field) in FIELDS {
        let Some(value) = extra.get(own).map(|json| json.value()) else { continue };
        // Ids of others say nothing to this provider.
        let is_item = |id: &str| ["rs", "msg", "fc", "ctc"].iter().any(|kind| id.starts_with(kind));
        if own == "id" && !value.as_str().is_some_and(is_item) {
            continue;
        }
        let of = metadata.entry(provider).or_insert_with(|| json!({}));
        if of[field].is_null() {
            of[field] = value;
        }
    }
    if !metadata.is_empty() {
        part[name] = metadata.into();
    }
}

fn other(part: &Value, role: &str) -> Vec<Value> {
    let kind = part["type"].as_str().unwrap_or_default();
    match kind {
        "step-start" if role == "assistant" => vec![json!({"type": "step-start"})],
        "step-start" => Vec::new(),
        "redacted_thinking" if part["data"].is_string() && role == "assistant" => {
            let metadata = json!({"anthropic": {"redactedData": part["data"]}});
            vec![json!({"type": "reasoning", "text": "", "providerMetadata": metadata})]
        }
        "steering-message" => steering(part, role),
        kind if is_known(kind, part) => vec![part.clone()],
        kind if kind.starts_with("data-") => {
            vec![json!({"type": kind, "data": part["data"]})]
        }
        kind => {
            let name = if kind.is_empty() { "part" } else { kind };
            vec![json!({"type": format!("data-{name}"), "data": part})]
        }
    }
}

fn steering(part: &Value, role: &str) -> Vec<Value> {
    let content: Vec<Value> = steering_parts(part).flat_map(|part| parts(&part, "user")).collect();
    match part["id"].as_str() {
        _ if role != "assistant" => content,
        _ if content.is_empty() => Vec::new(),
        id => {
            vec![
                json!({"type": "steering-message", "id": id.unwrap_or_default(), "parts": content}),
            ]
        }
    }
}

/// Returns whether the part is of a type of the SDK, and of the shape that it demands.
fn is_known(kind: &str, part: &Value) -> bool {
    let texts: (&[&str], &[&str]) = match kind {
        "source-url" => (&["sourceId", "url"], &["title"]),
        "source-document" => (&["sourceId", "mediaType", "title"], &["filename"]),
        "custom" => (&["kind"], &[]),
        "reasoning-file" if part["url"].as_str().is_some_and(is_url) => {
            (&["mediaType", "url"], &[])
        }
        _ => return false,
    };
    let is_missing = |field: &str| part.get(field).is_none();
    let metadata = &part["providerMetadata"];
    let has_metadata = part.get("providerMetadata").is_none()
        || metadata.as_object().is_some_and(|of| of.values().all(Value::is_object));
    has_metadata
        && texts.0.iter().all(|field| part[*field].is_string())
        && texts.1.iter().all(|field| is_missing(field) || part[*field].is_string())
}
