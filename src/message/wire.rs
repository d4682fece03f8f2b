//! Reading and writing messages as JSON.
//!
//! Rows are read often, so the usual parts have a fast path: one pass, without a copy of the JSON.
//! Parts that do not fit it are read a second time, one by one, and kept as text if no typed shape
//! holds them.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, SubsecRound, Utc};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Extra, File, Json, Message, Part, Reasoning, Role, Text, Tool, now};
use crate::error::{Error, Result};
use crate::id::{MessageId, shorten};
use crate::records::blocks::ToolNames;
use crate::records::chat;
use crate::records::fields::Fields;

/// Writes the parts for a row.
pub(crate) fn parts_to_text(parts: &[Part]) -> Result<String> {
    serde_json::to_string(parts).map_err(|source| Error::Json { what: "message parts", source })
}

/// Reads the parts of a row.
pub(crate) fn parts_from_text(text: &str) -> Result<Vec<Part>> {
    if let Some(text) = single_text(text) {
        return Ok(vec![Part::text(text)]);
    }
    if let Ok(typed) = serde_json::from_str::<TypedParts>(text) {
        return Ok(typed.0);
    }
    serde_json::from_str(text).map_err(|source| Error::Json { what: "message parts", source })
}

/// Returns the text of parts that are a single text part in talktree's own spelling, without
/// escapes.
pub(crate) fn single_text(parts: &str) -> Option<&str> {
    let text = parts.strip_prefix(r#"[{"type":"text","text":""#)?.strip_suffix(r#""}]"#)?;
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | ..0x20);
    text.as_bytes()
        .chunks(64)
        .all(|chunk| chunk.iter().fold(true, |all, byte| all & is_plain(byte)))
        .then_some(text)
}

/// Writes the extra fields for a row; `None` if there are none.
pub(crate) fn extra_to_text(extra: &Extra) -> Result<Option<String>> {
    if extra.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(extra);
    text.map(Some).map_err(|source| Error::Json { what: "message fields", source })
}

/// Reads the extra fields of a row.
pub(crate) fn extra_from_text(text: Option<&str>) -> Result<Extra> {
    let extra = text.map_or(Ok(Extra::new()), serde_json::from_str);
    // The message as JSON would have two fields of this name.
    let extra = extra.and_then(|extra| match reserved_field(&extra) {
        Some(name) => Err(de::Error::custom(format!("every message has a field {name:?}"))),
        None => Ok(extra),
    });
    extra.map_err(|source| Error::Json { what: "message fields", source })
}

/// Checks that the message can be read back: no extra field has the name of a field that the
/// message or its part itself has, and every part is a JSON object.
pub(crate) fn check_shape(message: &Message) -> Result<()> {
    if let Some(name) = reserved_field(&message.extra) {
        return Err(reserved(name, "every message has a field of this name".to_owned()));
    }
    for (at, part) in message.parts.iter().enumerate() {
        if let Some(name) = part.reserved_field() {
            let kind = part.kind();
            let why =
                format!("parts[{at}], of type {:?}, has a field of this name", shorten(&kind));
            return Err(reserved(name, why));
        }
        if let Part::Other(json) = part
            && !json.as_str().starts_with('{')
        {
            let why = format!("parts[{at}] is not a JSON object");
            return Err(Error::InvalidValue {
                what: "part",
                given: shorten(json.as_str()).into_owned(),
                why,
            });
        }
    }
    Ok(())
}

fn reserved(name: &str, why: String) -> Error {
    Error::InvalidValue { what: "extra field", given: name.to_owned(), why }
}

/// Returns the name of an extra field that is also a field of every message.
fn reserved_field(extra: &Extra) -> Option<&'static str> {
    if extra.is_empty() {
        return None;
    }
    let known = ["id", "parent", "role", "parts", "metadata", "created_at", "createdAt", "hidden"];
    known.into_iter().find(|name| extra.contains_key(*name))
}

/// Parts of which each fits a typed shape.
struct TypedParts(Vec<Part>);

impl<'de> Deserialize<'de> for TypedParts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = TypedParts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of parts")
            }
            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut parts: A,
            ) -> std::result::Result<Self::Value, A::Error> {
                // Most messages have one part; serde would reserve four, of 200 bytes each.
                let mut typed = Vec::with_capacity(1);
                while let Some(TypedPart(part)) = parts.next_element()? {
                    typed.push(part);
                }
                Ok(TypedParts(typed))
            }
        }
        deserializer.deserialize_seq(Collect)
    }
}

/// A part whose JSON fits a typed shape and has `type` as its first field.
pub(super) struct TypedPart(Part);

impl TypedPart {
    pub(super) fn parse(text: &str) -> Option<Part> {
        serde_json::from_str::<Self>(text).ok().map(|part| part.0)
    }

    /// Returns the typed part, else one that keeps the text; an error if it is not a JSON object.
    pub(super) fn parse_or_keep(raw: &RawValue) -> std::result::Result<Part, &'static str> {
        if !raw.get().starts_with('{') {
            return Err("a part is a JSON object");
        }
        let typed = Self::parse(raw.get()).or_else(|| Self::parse(&type_first(raw.get())?));
        Ok(typed.unwrap_or_else(|| Part::Other(Json::keep(raw))))
    }
}

/// Returns the object with `type` moved to the front; `None` if it is there already or missing.
fn type_first(text: &str) -> Option<String> {
    struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);
    impl<'de> Deserialize<'de> for Fields<'de> {
        fn deserialize<D: Deserializer<'de>>(
            deserializer: D,
        ) -> std::result::Result<Self, D::Error> {
            struct Collect;
            impl<'de> Visitor<'de> for Collect {
                type Value = Fields<'de>;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> std::result::Result<Self::Value, A::Error> {
                    let mut fields = Vec::new();
                    while let Some(field) = map.next_entry::<Field<'_>, _>()? {
                        fields.push((field.0.0, field.1));
                    }
                    Ok(Fields(fields))
                }
            }
            deserializer.deserialize_map(Collect)
        }
    }
    let mut fields = serde_json::from_str::<Fields<'_>>(text).ok()?.0;
    let at = fields.iter().position(|(field, _)| field == "type")?;
    if at == 0 {
        return None;
    }
    let kind = fields.remove(at);
    fields.insert(0, kind);
    let mut object = String::with_capacity(text.len());
    for (field, value) in fields {
        object.push(if object.is_empty() { '{' } else { ',' });
        object.push_str(&serde_json::to_string(&field).ok()?);
        object.push(':');
        object.push_str(value.get());
    }
    object.push('}');
    Some(object)
}

/// The name of a field, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Field<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for TypedPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(TypedPartVisitor)
    }
}

struct TypedPartVisitor;

impl<'de> Visitor<'de> for TypedPartVisitor {
    type Value = TypedPart;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a known type, its type first")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<TypedPart, A::Error> {
        let unfit = || de::Error::custom("not a typed part");
        match map.next_key::<Field<'_>>()? {
            Some(field) if field.0 == "type" => {}
            _ => return Err(unfit()),
        }
        let Field(kind) = map.next_value()?;
        let part = match &*kind {
            "text" => {
                let (text, extra) = read_text(&mut map)?;
                Part::Text(Text { text, extra })
            }
            "reasoning" => {
                let (text, extra) = read_text(&mut map)?;
                Part::Reasoning(Reasoning { text, extra })
            }
            "file" => Part::File(read_file(&mut map)?),
            "dynamic-tool" => Part::Tool(read_tool(&mut map, None)?),
            kind => match kind.strip_prefix("tool-") {
                Some(name) => Part::Tool(read_tool(&mut map, Some(name))?),
                None => return Err(unfit()),
            },
        };
        Ok(TypedPart(part))
    }
}

/// Reads a field that may occur once. JSON with a repeated field fits no typed shape.
fn once<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    place: &mut Option<T>,
    map: &mut A,
) -> std::result::Result<(), A::Error> {
    match place.replace(map.next_value()?) {
        None => Ok(()),
        Some(_) => Err(de::Error::custom("a field occurs twice")),
    }
}

fn other<'de, A: MapAccess<'de>>(
    extra: &mut Extra,
    field: &str,
    map: &mut A,
) -> std::result::Result<(), A::Error> {
    match extra.insert(field.to_owned(), map.next_value()?) {
        None if field != "type" => Ok(()),
        _ => Err(de::Error::custom("a field occurs twice")),
    }
}

fn read_text<'de, A: MapAccess<'de>>(
    map: &mut A,
) -> std::result::Result<(String, Extra), A::Error> {
    let (mut text, mut extra) = (None, Extra::new());
    while let Some(Field(field)) = map.next_key()? {
        match &*field {
            "text" => once(&mut text, map)?,
            field => other(&mut extra, field, map)?,
        }
    }
    Ok((text.ok_or_else(|| de::Error::missing_field("text"))?, extra))
}

fn read_file<'de, A: MapAccess<'de>>(map: &mut A) -> std::result::Result<File, A::Error> {
    let (mut media_type, mut url, mut filename) = (None, None, None);
    let mut extra = Extra::new();
    while let Some(Field(field)) = map.next_key()? {
        match &*field {
            "mediaType" => once(&mut media_type, map)?,
            "url" => once(&mut url, map)?,
            "filename" => once(&mut filename, map)?,
            field => other(&mut extra, field, map)?,
        }
    }
    Ok(File {
        media_type: media_type.ok_or_else(|| de::Error::missing_field("mediaType"))?,
        url: url.ok_or_else(|| de::Error::missing_field("url"))?,
        filename,
        extra,
    })
}

fn read_tool<'de, A: MapAccess<'de>>(
    map: &mut A,
    name: Option<&str>,
) -> std::result::Result<Tool, A::Error> {
    let is_dynamic = name.is_none();
    let mut name = name.map(str::to_owned);
    let (mut call_id, mut state, mut error_text) = (None, None, None);
    let (mut input, mut output, mut extra) = (None, None, Extra::new());
    while let Some(Field(field)) = map.next_key()? {
        match &*field {
            "toolName" if is_dynamic => once(&mut name, map)?,
            "toolCallId" => once(&mut call_id, map)?,
            "state" => once(&mut state, map)?,
            "input" => once(&mut input, map)?,
            "output" => once(&mut output, map)?,
            "errorText" => once(&mut error_text, map)?,
            field => other(&mut extra, field, map)?,
        }
    }
    Ok(Tool {
        name: name.ok_or_else(|| de::Error::missing_field("toolName"))?,
        is_dynamic,
        call_id: call_id.ok_or_else(|| de::Error::missing_field("toolCallId"))?,
        state,
        input,
        output,
        error_text,
        extra,
    })
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("parent", &self.parent)?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("parts", &self.parts)?;
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.serialize_entry("created_at", &self.created_at)?;
        if self.is_hidden {
            map.serialize_entry("hidden", &true)?;
        }
        for (field, value) in &self.extra {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

/// Reads `{id?, parent?, role, parts | content, metadata?, created_at? | createdAt?, hidden?, ..}`. A missing
/// id is generated, and an empty one is an error. A missing time is the current time; a time is a text as in RFC 3339 or
/// a number since 1970, as of `Date.now()`.
///
/// Without `parts` it is a message of a chat API: `content` is a text or a list of typed blocks, as those of Anthropic and
/// OpenAI, and `tool_calls` and `tool_call_id` become parts, too. An empty message is an error then.
impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(MessageVisitor)
    }
}

/// A time: a text as in RFC 3339, or a number since 1970.
struct Time(DateTime<Utc>);

/// Numbers below this are seconds, others milliseconds: as seconds it is the year 5138, as milliseconds 1973.
const FIRST_MILLISECONDS: f64 = 1e11;

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time: a text as in RFC 3339, or milliseconds or seconds since 1970")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Time, E> {
        text.parse()
            .map(Time)
            .map_err(|error| E::custom(format_args!("{:?} is not a time: {error}", shorten(text))))
    }

    fn visit_f64<E: de::Error>(self, since_1970: f64) -> std::result::Result<Time, E> {
        let is_seconds = since_1970.abs() < FIRST_MILLISECONDS;
        let micros = since_1970 * if is_seconds { 1e6 } else { 1e3 };
        DateTime::from_timestamp_micros(micros.round() as i64)
            .map(Time)
            .ok_or_else(|| E::custom(format_args!("{since_1970} is not a time since 1970")))
    }

    fn visit_u64<E: de::Error>(self, since_1970: u64) -> std::result::Result<Time, E> {
        self.visit_f64(since_1970 as f64)
    }

    fn visit_i64<E: de::Error>(self, since_1970: i64) -> std::result::Result<Time, E> {
        self.visit_f64(since_1970 as f64)
    }
}

/// Returns the role, the parts and the other fields of a message that has no `parts`.
fn of_chat_api(
    role: Role,
    fields: Extra,
) -> std::result::Result<(Role, Vec<Part>, Extra), &'static str> {
    let fields: Fields = fields.into_iter().collect();
    let is_given = chat::FIELDS.iter().any(|field| fields.get(field).is_some());
    if fields.get("content").is_some_and(|content| !content.as_str().starts_with(['"', '['])) {
        return Err("`content` is a text or a list of parts");
    }
    let (role, parts, others) = chat::message(role, fields, &ToolNames::new());
    if !is_given || parts.is_empty() {
        return Err("the message is empty; give it `parts` or `content`");
    }
    Ok((role, parts, others.into_iter().collect()))
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message: an object with a role and parts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Message, A::Error> {
        let (mut id, mut parent, mut role, mut parts) = (None, None, None, None);
        let (mut metadata, mut created_at, mut is_hidden) = (None, None, None);
        let mut extra = Extra::new();
        while let Some(Field(field)) = map.next_key()? {
            match &*field {
                "id" => once::<Option<MessageId>, _>(&mut id, &mut map)?,
                "parent" => once::<Option<MessageId>, _>(&mut parent, &mut map)?,
                "role" => once::<Role, _>(&mut role, &mut map)?,
                "parts" => once::<Vec<Part>, _>(&mut parts, &mut map)?,
                "metadata" => once::<Json, _>(&mut metadata, &mut map)?,
                "created_at" | "createdAt" => {
                    once::<Option<Time>, _>(&mut created_at, &mut map)?;
                }
                "hidden" => once::<bool, _>(&mut is_hidden, &mut map)?,
                field => {
                    extra.insert(field.to_owned(), map.next_value()?);
                }
            }
        }
        let (id, parent) = (id.flatten(), parent.flatten());
        for (field, given) in [("id", &id), ("parent", &parent)] {
            if given.as_ref().is_some_and(|given| given.as_str().is_empty()) {
                return Err(de::Error::custom(format_args!(
                    "the field `{field}` is an empty text; leave it out or give an id"
                )));
            }
        }
        let role = role.ok_or_else(|| de::Error::missing_field("role"))?;
        let (role, parts, extra) = match parts {
            Some(parts) => (role, parts, extra),
            None => of_chat_api(role, extra).map_err(de::Error::custom)?,
        };
        Ok(Message {
            id: id.unwrap_or_default(),
            parent,
            role,
            parts,
            metadata,
            created_at: created_at.flatten().map_or_else(now, |Time(time)| time.trunc_subsecs(6)),
            is_hidden: is_hidden.unwrap_or(false),
            extra,
        })
    }
}
