//! The content of a message or of a tool result, in the form common to all providers.

use std::borrow::Cow;

use serde_json::{Value, json};
use talktree::{File, Json, Part, Tool};

use crate::files::as_text;
use crate::input::plain;
use crate::turns::is_white_space;

/// The text of an error whose own text is blank: providers require one.
pub(super) const NO_REASON: &str = "(failed without an error message)";

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    File(File),
}

impl Content {
    pub(super) fn is_white_space(&self) -> bool {
        matches!(self, Self::Text(text) if is_white_space(text))
    }

    /// Returns the text; of a file, its own text, or its name in brackets.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::File(file) => as_text(file),
        }
    }
}

/// Returns the content as one text, joined by line breaks.
pub(super) fn joined(content: &[Content]) -> String {
    content.iter().map(Content::text).collect::<Vec<_>>().join("\n")
}

/// Returns the content as one text, or as a list of parts if the API accepts one of the files, of which `file` returns the part.
pub(super) fn text_or_parts(
    content: &[Content],
    text_kind: &str,
    file: fn(&File) -> Option<Value>,
) -> Value {
    let files = content.iter().map(|piece| match piece {
        Content::File(of) => file(of),
        Content::Text(_) => None,
    });
    let files: Vec<Option<Value>> = files.collect();
    if files.iter().all(Option::is_none) {
        return joined(content).into();
    }
    let text = |piece: &Content| json!({"type": text_kind, "text": piece.text()});
    content.iter().zip(files).map(|(piece, file)| file.unwrap_or_else(|| text(piece))).collect()
}

/// Returns the part in its nearest typed shape; of a tool part that does not fit, the fields that do.
pub(super) fn read(part: &Part) -> Cow<'_, Part> {
    match (part, part.tool()) {
        (Part::Other(_), Some(tool)) => Cow::Owned(Part::Tool(tool.into_owned())),
        _ => part.typed(),
    }
}

/// Returns the texts and files of a `steering-message`, in which the AI SDK stores what a user said while the model worked.
pub(super) fn steering_parts(message: &Value) -> impl Iterator<Item = Part> {
    let parts = message["parts"].as_array().into_iter().flatten();
    let parts = parts.filter_map(|part| serde_json::from_value::<Part>(part.clone()).ok());
    parts.filter(|part| matches!(part, Part::Text(_) | Part::File(_)))
}

/// The result or the failure of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) content: Vec<Content>,
    pub(super) is_error: bool,
}

/// Returns the outcome that the part holds; `None` if it is a call without a result.
pub(super) fn outcome(tool: &Tool) -> Option<Outcome> {
    if !tool.has_result() {
        return None;
    }
    let mut content = match (&tool.error_text, tool.effective_output()) {
        (Some(error), _) => vec![Content::Text(error.clone())],
        (None, Some(output)) => pieces(output),
        (None, None) => denial(tool).map(Content::Text).into_iter().collect(),
    };
    let is_error = tool.error_text.is_some()
        || tool.is_denied()
        || tool.state.as_deref() == Some("output-error");
    if is_error && content.iter().all(Content::is_white_space) {
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
        pieces.retain(|piece| !piece.is_white_space());
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
            let mut file = File::default();
            (file.media_type, file.url) = (media.to_owned(), url);
            Some(Content::File(file))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
