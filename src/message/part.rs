//! Parts: the typed pieces of a message.
//!
//! JSON that fits one of the typed shapes becomes that shape, with extra fields in `extra`. All
//! other JSON becomes [`Part::Other`], which keeps its text unchanged.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::json::replace_lone_surrogates;
use super::wire::TypedPart;
use super::{Extra, Json};

/// One typed piece of a message.
///
/// ```
/// use serde_json::json;
/// use talktree::Part;
///
/// let part: Part = serde_json::from_value(json!({"type": "text", "text": "hi", "state": "done"}))?;
/// assert!(matches!(&part, Part::Text(text) if text.extra.contains_key("state")));
///
/// let unknown: Part = serde_json::from_value(json!({"type": "data-weather", "data": {"c": 21}}))?;
/// assert_eq!(serde_json::to_value(&unknown)?, json!({"type": "data-weather", "data": {"c": 21}}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Text: `{"type": "text", "text": ..}`.
    Text(Text),
    /// A model's reasoning: `{"type": "reasoning", "text": ..}`.
    Reasoning(Reasoning),
    /// A tool call, its result, or both: `{"type": "tool-NAME", "toolCallId": .., "input": ..,
    /// "output": ..}`, or `"type": "dynamic-tool"` with `"toolName"`.
    Tool(Tool),
    /// A file: `{"type": "file", "mediaType": .., "url": ..}`.
    File(File),
    /// A part of another type, or one that no typed shape can hold unchanged.
    Other(Json),
}

/// A text.
///
/// ```
/// use talktree::Part;
///
/// let Part::Text(text) = Part::text("hello") else { unreachable!() };
/// assert_eq!(text.text, "hello");
/// assert!(text.extra.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Fields talktree does not know.
    pub extra: Extra,
}

/// A model's reasoning.
///
/// ```
/// use talktree::Part;
///
/// let Part::Reasoning(reasoning) = Part::reasoning("2 and 2") else { unreachable!() };
/// assert_eq!(reasoning.text, "2 and 2");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reasoning {
    /// The text.
    pub text: String,
    /// Fields talktree does not know.
    pub extra: Extra,
}

/// A tool call, its result, or both.
///
/// ```
/// use serde_json::json;
/// use talktree::Part;
///
/// let part: Part = serde_json::from_value(json!({
///     "type": "dynamic-tool", "toolName": "weather", "toolCallId": "call-1",
///     "state": "output-error", "errorText": "no such city",
/// }))?;
/// let Part::Tool(tool) = part else { unreachable!() };
/// assert_eq!((tool.name.as_str(), tool.is_dynamic), ("weather", true));
/// assert_eq!(tool.error_text.as_deref(), Some("no such city"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Tool {
    /// The name of the tool.
    pub name: String,
    /// Whether the name is in the field `toolName` (of a `dynamic-tool`) and not in the type.
    pub is_dynamic: bool,
    /// The id that pairs the call with its result.
    pub call_id: String,
    /// The progress of the call: `input-streaming`, `input-available`, `output-available`,
    /// `output-error`, ..
    pub state: Option<String>,
    /// The arguments of the call.
    pub input: Option<Json>,
    /// The result.
    pub output: Option<Json>,
    /// The error of a call that failed.
    pub error_text: Option<String>,
    /// Fields talktree does not know.
    pub extra: Extra,
}

/// A file.
///
/// ```
/// use talktree::Part;
///
/// let Part::File(mut file) = Part::file("image/png", "cat.png") else { unreachable!() };
/// file.filename = Some("cat.png".to_owned());
/// let json = serde_json::to_value(Part::File(file))?;
/// assert_eq!(json["filename"], "cat.png");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct File {
    /// The IANA media type.
    pub media_type: String,
    /// Where the file is; a `data:` URL holds its content.
    pub url: String,
    /// The name of the file.
    pub filename: Option<String>,
    /// Fields talktree does not know.
    pub extra: Extra,
}

impl Text {
    /// Returns whether the text continues a text part right before it, in a message of a model, that has these extra fields: a
    /// provider cuts an answer where it cites.
    #[must_use]
    pub fn continues(&self, before: &Extra) -> bool {
        let is_same = |field: &&str| before.get(*field) == self.extra.get(*field);
        ["id", "refusal", "audio"].iter().all(is_same)
    }
}

impl Part {
    /// Returns a text part.
    ///
    /// ```
    /// use talktree::Part;
    ///
    /// assert_eq!(Part::text("hello"), "hello".into());
    /// ```
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), extra: Extra::new() })
    }

    /// Returns a reasoning part.
    ///
    /// ```
    /// use talktree::{Message, Part, Role};
    ///
    /// let message = Message::new(Role::Assistant, vec![Part::reasoning("2 and 2"), "4".into()]);
    /// assert_eq!(message.text(), "4");
    /// ```
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(Reasoning { text: text.into(), extra: Extra::new() })
    }

    /// Returns a tool call without its result.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let call = Part::tool_call("weather", "call-1", json!({"city": "Jena"}));
    /// assert_eq!(
    ///     serde_json::to_value(&call)?,
    ///     json!({"type": "tool-weather", "toolCallId": "call-1", "state": "input-available",
    ///            "input": {"city": "Jena"}}),
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn tool_call(
        name: impl Into<String>,
        call_id: impl Into<String>,
        input: impl Into<Json>,
    ) -> Self {
        Self::Tool(Tool {
            name: name.into(),
            call_id: call_id.into(),
            state: Some("input-available".to_owned()),
            input: Some(input.into()),
            ..Tool::default()
        })
    }

    /// Returns a tool result without its call, for programs that store the two in separate parts.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let result = Part::tool_result("weather", "call-1", json!({"c": 21}));
    /// assert_eq!(
    ///     serde_json::to_value(&result)?,
    ///     json!({"type": "tool-weather", "toolCallId": "call-1", "state": "output-available",
    ///            "output": {"c": 21}}),
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn tool_result(
        name: impl Into<String>,
        call_id: impl Into<String>,
        output: impl Into<Json>,
    ) -> Self {
        Self::Tool(Tool {
            name: name.into(),
            call_id: call_id.into(),
            state: Some("output-available".to_owned()),
            output: Some(output.into()),
            ..Tool::default()
        })
    }

    /// Returns the error of a tool call that failed, without the call.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// let error = Part::tool_error("weather", "call-1", "no such city");
    /// assert_eq!(
    ///     serde_json::to_value(&error)?,
    ///     json!({"type": "tool-weather", "toolCallId": "call-1", "state": "output-error",
    ///            "errorText": "no such city"}),
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn tool_error(
        name: impl Into<String>,
        call_id: impl Into<String>,
        error: impl Into<String>,
    ) -> Self {
        Self::Tool(Tool {
            name: name.into(),
            call_id: call_id.into(),
            state: Some("output-error".to_owned()),
            error_text: Some(error.into()),
            ..Tool::default()
        })
    }

    /// Returns a file part.
    ///
    /// ```
    /// use talktree::Part;
    ///
    /// let file = Part::file("image/png", "cat.png");
    /// assert!(matches!(file, Part::File(file) if file.media_type == "image/png"));
    /// ```
    #[must_use]
    pub fn file(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        Self::File(File { media_type: media_type.into(), url: url.into(), ..File::default() })
    }

    /// Returns the `type` of the part.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Part;
    ///
    /// assert_eq!(Part::text("hello").kind(), "text");
    /// assert_eq!(Part::tool_call("weather", "call-1", json!({})).kind(), "tool-weather");
    /// ```
    #[must_use]
    pub fn kind(&self) -> Cow<'_, str> {
        match self {
            Self::Text(_) => "text".into(),
            Self::Reasoning(_) => "reasoning".into(),
            Self::Tool(tool) if tool.is_dynamic => "dynamic-tool".into(),
            Self::Tool(tool) => format!("tool-{}", tool.name).into(),
            Self::File(_) => "file".into(),
            Self::Other(json) => {
                json.value()["type"].as_str().unwrap_or_default().to_owned().into()
            }
        }
    }

    /// Returns the name of a field in `extra` that the part itself writes.
    ///
    /// Written as JSON, the part would have this field twice, so a message with such a part is refused.
    /// A part that was read from JSON has no such field.
    ///
    /// ```
    /// use talktree::{Json, Part, Reasoning};
    ///
    /// let mut reasoning = Reasoning::default();
    /// reasoning.extra.insert("text".to_owned(), Json::parse("1")?);
    /// assert_eq!(Part::Reasoning(reasoning).reserved_field(), Some("text"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn reserved_field(&self) -> Option<&str> {
        let extra = match self {
            Self::Text(Text { extra, .. })
            | Self::Reasoning(Reasoning { extra, .. })
            | Self::Tool(Tool { extra, .. })
            | Self::File(File { extra, .. }) => extra,
            Self::Other(_) => return None,
        };
        extra.keys().map(String::as_str).find(|field| self.writes(field))
    }

    /// Returns whether a field belongs to the typed shape, even if it is not set.
    fn writes(&self, field: &str) -> bool {
        match self {
            Self::Text(_) | Self::Reasoning(_) => matches!(field, "type" | "text"),
            // Any other tool has its name in its type.
            Self::Tool(tool) if field == "toolName" => tool.is_dynamic,
            Self::Tool(_) => {
                matches!(field, "type" | "toolCallId" | "state" | "input" | "output" | "errorText")
            }
            Self::File(_) => matches!(field, "type" | "mediaType" | "url" | "filename"),
            Self::Other(_) => false,
        }
    }

    /// Returns the part in a typed shape if replacing its lone surrogates makes it fit one.
    ///
    /// A text part with a lone surrogate is [`Part::Other`], so that it is stored unchanged. This
    /// method returns it as [`Part::Text`] with U+FFFD in their place.
    ///
    /// ```
    /// use talktree::Part;
    ///
    /// let part: Part = serde_json::from_str(r#"{"type": "text", "text": "a\ud800"}"#)?;
    /// assert!(matches!(part, Part::Other(_)));
    /// assert!(matches!(part.typed().as_ref(), Part::Text(text) if text.text == "a\u{FFFD}"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn typed(&self) -> Cow<'_, Self> {
        if let Self::Other(json) = self {
            let mended = replace_lone_surrogates(json.as_str());
            if matches!(mended, Cow::Owned(_))
                && let Some(part) = TypedPart::parse(&mended)
            {
                return Cow::Owned(part);
            }
        }
        Cow::Borrowed(self)
    }
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Other(json) = self {
            return json.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        // The fast reader expects the type first.
        map.serialize_entry("type", &self.kind())?;
        let extra = match self {
            Self::Text(Text { text, extra }) | Self::Reasoning(Reasoning { text, extra }) => {
                map.serialize_entry("text", text)?;
                extra
            }
            Self::Tool(tool) => {
                if tool.is_dynamic {
                    map.serialize_entry("toolName", &tool.name)?;
                }
                map.serialize_entry("toolCallId", &tool.call_id)?;
                entry(&mut map, "state", tool.state.as_ref())?;
                entry(&mut map, "input", tool.input.as_ref())?;
                entry(&mut map, "output", tool.output.as_ref())?;
                entry(&mut map, "errorText", tool.error_text.as_ref())?;
                &tool.extra
            }
            Self::File(file) => {
                map.serialize_entry("mediaType", &file.media_type)?;
                map.serialize_entry("url", &file.url)?;
                entry(&mut map, "filename", file.filename.as_ref())?;
                &file.extra
            }
            Self::Other(_) => return map.end(),
        };
        for (field, value) in extra {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

fn entry<M: SerializeMap>(
    map: &mut M,
    field: &str,
    value: Option<&impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(field, value))
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        TypedPart::parse_or_keep(&raw).map_err(serde::de::Error::custom)
    }
}
