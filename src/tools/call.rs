//! Calls: the input of a tool, checked. An error is text for the model: which field is wrong, and what is expected.

use serde_json::{Map, Value};
use talktree_text::foreign::{self, breaks_line, quoted};

use super::definition::{Kind, METADATA, Need, SET_CONTEXT, SPECS, Spec, is_required};
use crate::context::{BlockInfo, ToolOptions};
use crate::id::{MessageId, shorten};
use crate::storage::context::Document;

/// The most names that an answer lists.
const MAX_LISTED: usize = 20;

/// The fields of a checked input.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// Returns the tool of a name, and the fields of an input.
    ///
    /// The input is an object, or text that holds one. An optional field may be null.
    pub(super) fn of(
        name: &str,
        input: &Value,
        blocks: &[BlockInfo],
        options: ToolOptions,
    ) -> Result<(&'static str, Self), String> {
        let offered = || SPECS.iter().filter(|spec| spec.is_open(options));
        let Some(spec) = offered().find(|spec| spec.name == name) else {
            let names: Vec<_> = offered().map(|spec| spec.name).collect();
            let given = shorten(name);
            return Err(format!("there is no tool {given:?}{}", suggestion(name, &names)));
        };
        let fields = Self(checked(spec, input, blocks)?);
        for filled in
            spec.fields.iter().filter(|known| matches!(known.kind, Kind::Filled | Kind::Label))
        {
            if fields.stated(filled.name).is_none() {
                return Err(format!("{} is blank", field(filled.name)));
            }
        }
        if spec.name == SET_CONTEXT {
            let label = fields.text("label");
            let is_keyed = blocks.iter().any(|block| block.label == label && block.is_keyed());
            fields.check_document(is_keyed)?;
        }
        Ok((spec.name, fields))
    }

    /// Returns a text; an empty one if it is left out.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns an optional text. A model that must give every field leaves it blank.
    fn stated(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.trim().is_empty())
    }

    /// Returns an optional id.
    pub(super) fn id(&self, name: &str) -> Option<MessageId> {
        self.stated(name).map(MessageId::from)
    }

    /// Returns the document to write; without a key, that of the title or the content.
    pub(super) fn document(&self) -> Document {
        let metadata = self.0.get(METADATA).and_then(Value::as_object).cloned();
        let metadata = Self(metadata.unwrap_or_default());
        Document {
            key: metadata.stated("key").unwrap_or_default().to_owned(),
            title: metadata.stated("title").map(foreign::line),
            description: metadata.stated("description").map(foreign::line),
            content: self.text("content").to_owned(),
        }
    }

    fn check_document(&self, is_keyed: bool) -> Result<(), String> {
        let (Document { key, title, description, content }, label) =
            (self.document(), quoted(self.text("label")));
        if !is_keyed {
            return match title.is_some() || description.is_some() || !key.is_empty() {
                true => Err(format!(
                    "{}: context block {label} holds one text, no documents; leave it out",
                    field(METADATA)
                )),
                false => Ok(()),
            };
        }
        if content.trim().is_empty() {
            return Err(format!("{} is blank; a document needs text", field("content")));
        }
        // The prompt lists the key in one line.
        let words: Vec<_> = key.split_whitespace().collect();
        if key.contains(breaks_line) || words.join(" ") != key {
            return Err(format!(
                "{}: a key is one line, with no white space but single spaces in it",
                field("metadata.key")
            ));
        }
        if self.text("action") == "append" && title.is_none() && key.is_empty() {
            return Err(format!(
                "{} is missing: say by its title or key to which document of {label} the text is added",
                field(METADATA)
            ));
        }
        Ok(())
    }
}

/// Returns the fields of an input, checked by the schema of the tool.
fn checked(spec: &Spec, input: &Value, blocks: &[BlockInfo]) -> Result<Map<String, Value>, String> {
    let mut input = object_of(input)?;
    if let Need::Block(participle, _) = spec.need {
        let labels = spec.labels(blocks);
        if labels.is_empty() {
            return Err(format!("there is no context block that can be {participle}"));
        }
        let given = input["label"].as_str();
        let is_there = |given: &str| blocks.iter().any(|block| block.label == given);
        if let Some(given) = given.filter(|given| is_there(given) && !labels.contains(given)) {
            return Err(format!(
                "context block {} cannot be {participle}; those that can: {}",
                quoted(given),
                list(&labels)
            ));
        }
    }
    let schema = spec.schema(blocks);
    take_nulls(&schema, &mut input);
    check(&schema, &input)?;
    match input {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// Returns the input as an object, read from text if need be.
fn object_of(input: &Value) -> Result<Value, String> {
    let read = match input {
        // Some servers pass on a call without arguments like this.
        Value::Null => return Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => return Ok(Value::Object(Map::new())),
        Value::String(text) => serde_json::from_str(text)
            .map_err(|error| format!("the input is text that is not valid JSON: {error}"))?,
        other => other.clone(),
    };
    if read.is_object() { Ok(read) } else { Err("the input is not a JSON object".to_owned()) }
}

/// Removes optional fields that are null: in a strict mode a model cannot leave them out.
pub(super) fn take_nulls(schema: &Value, input: &mut Value) {
    let Some(fields) = input.as_object_mut() else { return };
    let Some(properties) = schema["properties"].as_object() else { return };
    fields.retain(|name, value| {
        !value.is_null() || !properties.contains_key(name) || is_required(schema, name)
    });
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            take_nulls(schema, value);
        }
    }
}

/// Checks an input. The error tells the model which field is wrong and what is expected.
pub(super) fn check(schema: &Value, input: &Value) -> Result<(), String> {
    check_at("", schema, input)
}

fn check_at(path: &str, schema: &Value, value: &Value) -> Result<(), String> {
    let (expected, is_of_type) = match schema["type"].as_str() {
        Some("object") => ("an object", value.is_object()),
        Some("string") => ("text", value.is_string()),
        // The schemas made here have no other type.
        other => return Err(format!("its schema has a type that is not known: {other:?}")),
    };
    if !is_of_type {
        let place = if path.is_empty() { "the input".to_owned() } else { field(path) };
        return Err(format!("{place}: expected {expected}, not {}", printed(value)));
    }
    if let (Some(values), Some(given)) = (schema["enum"].as_array(), value.as_str()) {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        if !values.contains(&given) {
            let expected = match &values[..] {
                [only] => quoted(only),
                several => format!("one of {}", list(several)),
            };
            let suggestion = suggestion(given, &values);
            return Err(format!(
                "{}: expected {expected}, not {}{suggestion}",
                field(path),
                quoted(&shorten(given))
            ));
        }
    }
    match (schema["properties"].as_object(), value.as_object()) {
        (Some(properties), Some(fields)) => check_fields(path, schema, properties, fields),
        _ => Ok(()),
    }
}

fn check_fields(
    path: &str,
    schema: &Value,
    properties: &Map<String, Value>,
    fields: &Map<String, Value>,
) -> Result<(), String> {
    let inner = |name: &str| {
        if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
    };
    // Before missing fields: a mistyped name is both unknown and missing, and this error says more.
    if let Some(name) = fields.keys().find(|name| !properties.contains_key(*name)) {
        return Err(unknown(&inner(name), name, properties));
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<_> = required.filter(|name| !fields.contains_key(*name)).map(inner).collect();
    match &missing[..] {
        [] => {}
        [one] => return Err(format!("{} is missing", field(one))),
        several => {
            let names: Vec<_> = several.iter().map(String::as_str).collect();
            return Err(format!("the fields {} are missing", list(&names)));
        }
    }
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            check_at(&inner(name), schema, value)?;
        }
    }
    Ok(())
}

/// Says that a field is unknown, and where it belongs or what was probably meant.
fn unknown(path: &str, name: &str, properties: &Map<String, Value>) -> String {
    let place = field(path);
    let has_it = |schema: &Value| schema["properties"].get(name).is_some();
    if let Some((outer, _)) = properties.iter().find(|(_, schema)| has_it(schema)) {
        return format!("{place} is not known here; it belongs in {outer:?}");
    }
    let names: Vec<_> = properties.keys().map(String::as_str).collect();
    match suggestion(name, &names) {
        near if near.is_empty() => {
            format!("{place} is not known; the fields are {}", list(&names))
        }
        near => format!("{place} is not known{near}"),
    }
}

/// Returns how an answer names a field; a long name is cut.
pub(super) fn field(path: &str) -> String {
    format!("field {}", quoted(&shorten(path)))
}

fn printed(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => format!("the boolean {bool}"),
        Value::Number(number) => format!("the number {}", shorten(&number.to_string())),
        Value::String(text) => format!("the text {}", quoted(&shorten(text))),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Returns the name that is most like the given one, if it is close enough. Case does not count.
pub(super) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // What a model gives may have any length.
    let given: Vec<char> = shorten(given).to_lowercase().chars().collect();
    let near = names.iter().filter_map(|name| {
        let letters: Vec<char> = name.to_lowercase().chars().collect();
        let distance = distance(&given, &letters);
        let allowed = (given.len().max(letters.len()) * 2 / 5).max(1);
        (distance <= allowed && distance < letters.len()).then_some((distance, *name))
    });
    let near = near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name);
    // A key may end in a hash, which nobody types: the beginning is enough if only one name has it.
    let begun = || {
        let mut begun = names.iter().filter(|name| {
            let mut letters = name.chars().flat_map(char::to_lowercase);
            !given.is_empty() && given.iter().all(|letter| letters.next() == Some(*letter))
        });
        begun.next().filter(|_| begun.next().is_none()).copied()
    };
    near.or_else(begun)
}

/// Returns `; did you mean "name"?`, or nothing if no name is near.
pub(super) fn suggestion(given: &str, names: &[&str]) -> String {
    nearest(given, names)
        .map(|name| format!("; did you mean {}?", quoted(name)))
        .unwrap_or_default()
}

/// Returns the names with quotes and commas; of many only the first.
pub(super) fn list(names: &[&str]) -> String {
    let shown = names.iter().take(MAX_LISTED).map(|name| quoted(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the number of letters to insert, remove or replace to make one of the other.
pub(super) fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        // The cells to the upper left and to the left.
        let (mut corner, mut left) = (i, i + 1);
        for (cell, to) in row.iter_mut().skip(1).zip(b) {
            let replaced = corner + usize::from(from != to);
            corner = *cell;
            left = replaced.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}
