//! The content of a message or of a tool result, in the form common to all providers.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::turns::is_blank;
use crate::message::{File, Json, Part, Side, Tool, output_of, replace_lone_surrogates, tool_of};

/// The longest name of a tool that all providers accept.
const MAX_NAME: usize = 64;

/// The image types that all providers accept.
const IMAGES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// The text of an error whose own text is blank: providers require one.
const NO_REASON: &str = "(failed without an error message)";

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    File(File),
}

impl Content {
    pub(super) fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if is_blank(text))
    }

    /// Returns the text; of a file, its name in brackets.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::File(file) => mention(file),
        }
    }
}

/// Returns the pieces as one text, joined by line breaks.
pub(super) fn joined(content: &[Content]) -> String {
    content.iter().map(Content::text).collect::<Vec<_>>().join("\n")
}

/// Returns the part in its nearest typed shape; of a tool part that does not fit, the fields that do.
pub(super) fn read(part: &Part) -> Cow<'_, Part> {
    match (part, tool_of(part)) {
        (Part::Other(_), Some(tool)) => Cow::Owned(Part::Tool(tool.into_owned())),
        _ => part.typed(),
    }
}

/// The result or the failure of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) content: Vec<Content>,
    pub(super) is_error: bool,
}

/// Returns the outcome that the part holds; `None` if it is a call without a result.
pub(super) fn outcome(tool: &Tool) -> Option<Outcome> {
    if !Side::of(tool).has_result() {
        return None;
    }
    let mut content = match (&tool.error_text, output_of(tool)) {
        (Some(error), _) => vec![Content::Text(error.clone())],
        (None, Some(output)) => pieces(output),
        (None, None) => denial(tool).map(Content::Text).into_iter().collect(),
    };
    let is_error = tool.error_text.is_some()
        || matches!(tool.state.as_deref(), Some("output-error" | "output-denied"));
    if is_error && content.iter().all(Content::is_blank) {
        content = vec![Content::Text(NO_REASON.to_owned())];
    }
    Some(Outcome { content, is_error })
}

/// Returns the reason a person gave for denying the call.
fn denial(tool: &Tool) -> Option<String> {
    let approval = tool.extra.get("approval")?.value();
    approval["reason"].as_str().map(str::to_owned)
}

/// Returns the texts and images of an output that is a list of them, else the output as one text.
fn pieces(output: &Json) -> Vec<Content> {
    if output.as_str().starts_with('[')
        && let Value::Array(items) = output.value()
        && let Some(mut pieces) = items.iter().map(piece).collect::<Option<Vec<_>>>()
        && !pieces.is_empty()
    {
        pieces.retain(|piece| !piece.is_blank());
        return pieces;
    }
    vec![Content::Text(plain(output))]
}

/// Reads a text or an image of the Anthropic API or of the Model Context Protocol.
fn piece(item: &Value) -> Option<Content> {
    let data_url = |media: &str, data: &str| format!("data:{media};base64,{data}");
    match item["type"].as_str()? {
        "text" => Some(Content::Text(item["text"].as_str()?.to_owned())),
        "image" => {
            let source = if item["source"].is_object() { &item["source"] } else { item };
            let media = source["media_type"].as_str().or(source["mimeType"].as_str());
            let media = media.unwrap_or("image/*");
            let url = match (source["data"].as_str(), source["url"].as_str()) {
                (Some(data), _) => data_url(media, data),
                (None, url) => url?.to_owned(),
            };
            let media_type = media.to_owned();
            Some(Content::File(File { media_type, url, ..File::default() }))
        }
        _ => None,
    }
}

/// Returns a JSON string's text, or the JSON as text.
pub(super) fn plain(json: &Json) -> String {
    let text = json.as_str().starts_with('"').then(|| json.value());
    text.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_else(|| json.to_string())
}

/// Returns an input as an object, which providers require. Any other value becomes its field
/// `input`.
pub(super) fn arguments(input: &Json) -> Map<String, Value> {
    match input.value() {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::from_iter([("input".to_owned(), Value::String(text))]),
        },
        other => Map::from_iter([("input".to_owned(), other)]),
    }
}

/// Returns the same object as JSON text, with the input's own spelling and order of fields.
pub(super) fn arguments_text(input: &Json) -> String {
    let is_object = |json: &Json| json.as_str().starts_with('{');
    if is_object(input) {
        return replace_lone_surrogates(input.as_str()).into_owned();
    }
    if let Value::String(text) = input.value()
        && let Ok(inner) = Json::parse(&text)
        && is_object(&inner)
    {
        return replace_lone_surrogates(inner.as_str()).into_owned();
    }
    Value::Object(arguments(input)).to_string()
}

/// Returns the JSON of an API's argument text; if it is not JSON, the text as a string.
pub(super) fn arguments_of(text: &str) -> Json {
    match text.trim() {
        "" => Json::from(json!({})),
        _ => Json::parse(text).unwrap_or_else(|_| Json::from(Value::from(text))),
    }
}

/// Returns the name with all characters replaced that some provider refuses.
pub(super) fn tool_name(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let name = name.chars().map(|letter| if fits(letter) { letter } else { '_' });
    let name: String = name.take(MAX_NAME).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// Returns the text that is sent instead of a file that the provider does not accept.
pub(super) fn mention(file: &File) -> String {
    let name = file.filename.as_deref().unwrap_or(&file.media_type);
    let url = if file.url.starts_with("data:") { "attached" } else { &file.url };
    format!("[file {name}: {url}]")
}

/// A file in a form that providers accept.
#[derive(Debug, PartialEq)]
pub(super) enum Taken<'a> {
    /// Base64, of one of [`IMAGES`].
    ImageData {
        media: &'a str,
        data: &'a str,
    },
    ImageUrl(&'a str),
    PdfData(&'a str),
    PdfUrl(&'a str),
}

/// Returns the file in a form that providers accept; `None` if they accept no file of its kind.
pub(super) fn taken(file: &File) -> Option<Taken<'_>> {
    if let Some(url) = file.url.strip_prefix("data:") {
        let (head, data) = url.split_once(',')?;
        let media = head.strip_suffix(";base64")?;
        if !is_base64(data) {
            return None;
        }
        let media = media.split(';').next().filter(|media| !media.is_empty());
        let media = media.unwrap_or(&file.media_type).to_ascii_lowercase();
        let media = if media == "image/jpg" { "image/jpeg" } else { &media };
        if media == "application/pdf" {
            return Some(Taken::PdfData(data));
        }
        let media = IMAGES.into_iter().find(|image| *image == media)?;
        return Some(Taken::ImageData { media, data });
    }
    let is_web = ["https://", "http://"]
        .iter()
        .any(|scheme| file.url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
    let media = file.media_type.to_ascii_lowercase();
    match media.split_once('/') {
        _ if !is_web => None,
        Some(("image", "svg+xml")) => None,
        Some(("image", _)) => Some(Taken::ImageUrl(&file.url)),
        Some(("application", "pdf")) => Some(Taken::PdfUrl(&file.url)),
        _ => None,
    }
}

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    data.len().is_multiple_of(4)
        && !digits.is_empty()
        && data.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_some_kinds_are_accepted() {
        let file = |media: &str, url: &str| File {
            media_type: media.to_owned(),
            url: url.to_owned(),
            ..File::default()
        };
        for (media, url, is_taken) in [
            ("image/png", "data:image/png;base64,AAAA", true),
            ("image/*", "data:image/JPG;base64,AA==", true),
            ("image/png", "data:image/png;base64,AAA", false),
            ("image/png", "data:image/png;base64,", false),
            ("image/png", "data:image/png,AAAA", false),
            ("image/svg+xml", "data:image/svg+xml;base64,AAAA", false),
            ("application/pdf", "data:application/pdf;base64,AAAA", true),
            ("image/png", "https://example.org/a.png", true),
            ("application/pdf", "https://example.org/a.pdf", true),
            ("text/plain", "https://example.org/a.txt", false),
            ("image/png", "cat.png", false),
            ("image/png", "https://", false),
        ] {
            assert_eq!(taken(&file(media, url)).is_some(), is_taken, "{media} {url}");
        }
    }

    #[test]
    fn arguments_are_an_object() {
        for (input, as_text) in [
            (json!({"a": 1}), r#"{"a":1}"#),
            (json!(null), "{}"),
            (json!("{\"a\": 1}"), r#"{"a":1}"#),
            (json!("{\"a\": "), r#"{"input":"{\"a\": "}"#),
            (json!([1]), r#"{"input":[1]}"#),
        ] {
            let input = Json::from(input);
            assert_eq!(Value::from(arguments(&input)).to_string(), as_text);
            assert_eq!(super::arguments_text(&input).replace(' ', ""), as_text.replace(' ', ""));
        }
    }

    #[test]
    fn arguments_keep_their_spelling() {
        let input = Json::parse(r#"{"b": 1.50, "a": "\ud800"}"#).unwrap();
        assert_eq!(super::arguments_text(&input), r#"{"b": 1.50, "a": "\ufffd"}"#);
    }

    #[test]
    fn an_output_of_texts_and_images_becomes_pieces() {
        let output = json!([
            {"type": "text", "text": "a"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        ]);
        let found = pieces(&output.into());
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], found[2]);
        assert_eq!(pieces(&json!([1]).into()), [Content::Text("[1]".to_owned())]);
        assert_eq!(pieces(&json!("x").into()), [Content::Text("x".to_owned())]);
    }
}
