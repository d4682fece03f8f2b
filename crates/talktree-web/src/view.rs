//! A message as the page shows it: its parts by kind, long ones cut, and all of it valid Unicode.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};
use talktree::{Author, CompactionId, Json, Message, Part, SessionInfo, Usage};

/// How many bytes of a part the page gets at once; the rest is a link. A file cuts there, too: `page/api.js`.
const MAX_TEXT: usize = 20_000;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The images that a browser shows without running anything in them.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

/// How much of a message a view holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Long texts are cut, and files are left out.
    Cut,
    /// All of it.
    Whole,
}

/// Returns a view of a session, without what a program keeps there, and without its parent, which may be another owner's.
pub(crate) fn session(info: &SessionInfo) -> Value {
    let mut view = json!(info);
    (view["metadata"], view["parent_session"]) = (Value::Null, Value::Null);
    view
}

/// Returns a view of a message.
pub(crate) fn message(message: &Message, extent: Extent) -> Value {
    let parts = message.parts.iter().map(|it| part(it.typed().as_ref(), extent));
    let mut view = json!({
        "id": message.id, "parent": message.parent, "role": message.role.as_str(),
        "at": message.created_at, "parts": parts.collect::<Vec<_>>(),
    });
    let author = Author::of(message).and_then(|author| author.name.or(author.id));
    let usage = Usage::of(message);
    let model = message.field("model").and_then(|model| Some(model.value().as_str()?.to_owned()));
    let model = usage.as_ref().and_then(|usage| usage.model.clone()).or(model);
    let summary = CompactionId::from_message(&message.id).and_then(|_| message.field("compaction"));
    let others = [
        ("author", author.map(Value::from)),
        ("model", model.map(Value::from)),
        ("usage", usage.map(|usage| json!(usage))),
        ("compaction", summary.map(|summary| summary.value())),
        ("hidden", message.is_hidden.then_some(Value::Bool(true))),
    ];
    let fields = others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let fields: Map<String, Value> = fields.collect();
    view.as_object_mut().into_iter().for_each(|view| view.extend(fields.clone()));
    view
}

fn part(part: &Part, extent: Extent) -> Value {
    let text = |text: &str| text.to_owned();
    let mut texts = Vec::new();
    let mut view = match part {
        Part::Text(it) => {
            texts.push(("text", Some(text(&it.text))));
            json!({"kind": "text"})
        }
        Part::Reasoning(it) => {
            texts.push(("text", Some(text(&it.text))));
            json!({"kind": "reasoning"})
        }
        Part::Tool(it) => {
            texts = vec![
                ("input", it.input.as_ref().map(json_text)),
                ("output", it.effective_output().map(json_text)),
                ("error", it.error_text.clone()),
            ];
            json!({"kind": "tool", "name": it.name, "call": it.call_id})
        }
        Part::File(it) => {
            let (has_bytes, name) = (it.url.starts_with("data:"), it.filename.as_deref());
            let is_image = has_bytes && IMAGES.contains(&&*it.media_type);
            let mut view = json!({
                "kind": "file", "type": it.media_type, "name": name, "image": is_image, "bytes": has_bytes,
            });
            // Of a file elsewhere the page says where, and loads nothing.
            if !has_bytes || extent == Extent::Whole {
                view["url"] = it.url.as_str().into();
            }
            view
        }
        other => {
            texts.push(("json", Some(whole(other).unwrap_or_default())));
            json!({"kind": "other", "name": other.kind()})
        }
    };
    let mut longest = 0;
    for (name, text) in texts {
        let Some(mut text) = text else { continue };
        if extent == Extent::Cut && text.len() > MAX_TEXT {
            longest = longest.max(text.len());
            let end = (0..=MAX_TEXT).rfind(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
        }
        view[name] = text.into();
    }
    if longest > 0 {
        view["cut"] = longest.into();
    }
    view
}

fn json_text(json: &Json) -> String {
    json.to_valid_unicode().into_owned()
}

/// Returns all of the text of a part.
pub(crate) fn whole(part: &Part) -> Option<String> {
    Some(match part.typed().as_ref() {
        Part::Text(it) => it.text.clone(),
        Part::Reasoning(it) => it.text.clone(),
        Part::Tool(it) => {
            let input = it.input.as_ref().map(json_text);
            let output = it.effective_output().map(json_text).or_else(|| it.error_text.clone());
            [input, output].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
        }
        Part::File(_) => return None,
        other => {
            json_text(&serde_json::to_string(other).ok().and_then(|it| Json::parse(&it).ok())?)
        }
    })
}

/// Returns the type and the bytes of a file that is stored with its message, and whether a browser may show it.
pub(crate) fn file(part: &Part) -> Option<(String, bool, Vec<u8>)> {
    let typed = part.typed();
    let Part::File(file) = typed.as_ref() else { return None };
    let (about, data) = file.url.strip_prefix("data:")?.split_once(',')?;
    let mut bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    if about.ends_with(";base64") {
        bytes.retain(|byte| !byte.is_ascii_whitespace());
        bytes = BASE64.decode(bytes).ok()?;
    }
    let is_image = IMAGES.contains(&&*file.media_type);
    let kind = if is_image { &file.media_type } else { "application/octet-stream" };
    Some((kind.to_owned(), is_image, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_ends_at_a_character_and_says_how_long_it_was() {
        let long = Message::user("ü".repeat(MAX_TEXT)).with_id("m");
        let part = &message(&long, Extent::Cut)["parts"][0];
        assert_eq!(
            (part["text"].as_str().unwrap().len(), &part["cut"]),
            (MAX_TEXT, &json!(2 * MAX_TEXT))
        );
        assert!(message(&long, Extent::Whole)["parts"][0].get("cut").is_none());
    }

    #[test]
    fn the_bytes_of_a_file_are_read_and_only_an_image_is_shown() {
        let png = Part::file("image/png", "data:image/png;base64,aGVs%0AbG8");
        assert_eq!(file(&png), Some(("image/png".to_owned(), true, b"hello".to_vec())));
        let page = Part::file("text/html", "data:text/html,%3Cb%3E");
        assert_eq!(
            file(&page),
            Some(("application/octet-stream".to_owned(), false, b"<b>".to_vec()))
        );
        assert_eq!(file(&Part::file("image/png", "https://example.org/a.png")), None);
    }

    #[test]
    fn half_a_surrogate_pair_is_shown_as_a_replacement() {
        let input = Json::parse(r#"{"a":"\ud800"}"#).unwrap();
        let call = Message::assistant("").with_part(Part::tool_call("t", "c", input));
        let view = message(&call, Extent::Cut).to_string();
        assert!(serde_json::from_str::<Value>(&view).is_ok() && !view.contains("ud800"), "{view}");
    }
}
