//! Schemas of inputs, and the check of an input.
//!
//! They use the few keywords that every provider knows, also in strict mode: `type`, `properties`, `required`,
//! `additionalProperties`, `enum`, `description`. What these cannot express (no blank key) is checked by the call.

use serde_json::{Map, Value, json};
use talktree_text::foreign::quoted;

use super::definition::{Field, Kind};
use super::nearest::{list, suggestion};
use crate::id::shorten;

/// Returns the schema of an object with these fields, in which a label is one of `labels`.
pub(super) fn object<'a>(fields: impl IntoIterator<Item = &'a Field>, labels: &[&str]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        let mut schema = match field.kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Label => json!({"type": "string", "enum": labels}),
            Kind::OneOf(values) => json!({"type": "string", "enum": values}),
            Kind::Object(fields) => object(fields, labels),
        };
        schema["description"] = field.description.into();
        properties.insert(field.name.to_owned(), schema);
        if field.is_required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
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
        return Err(format!("{place}: expected {expected}, not {}", said(value)));
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

fn said(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => format!("the boolean {bool}"),
        Value::Number(number) => format!("the number {}", shorten(&number.to_string())),
        Value::String(text) => format!("the text {}", quoted(&shorten(text))),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use jsonschema::Validator;
    use proptest::prelude::*;

    use super::super::{ToolDefinition, fixture};
    use super::*;

    fn tools() -> Vec<ToolDefinition> {
        fixture::tools().definitions().to_vec()
    }

    fn input_of(name: &str) -> Value {
        let tool = tools().into_iter().find(|tool| tool.name == name);
        tool.map(|tool| tool.input).unwrap_or_default()
    }

    /// Each tool with a validator of its inputs, made once: making one takes longer than a check.
    static JUDGED: LazyLock<Vec<(ToolDefinition, Validator)>> = LazyLock::new(|| {
        let judge = |tool: ToolDefinition| {
            let validator = jsonschema::validator_for(&tool.input).unwrap();
            (tool, validator)
        };
        tools().into_iter().map(judge).collect()
    });

    /// Values that fit or break a schema in each possible way.
    fn value() -> impl Strategy<Value = Value> {
        let plain = prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(5),
            json!(1.5),
            json!("5"),
            json!(""),
            json!([]),
            json!("memory"),
            json!("skills"),
            json!("knowledge"),
            json!("soul"),
            json!("MEMORY"),
            json!("replace"),
            json!("append"),
            json!("all"),
            json!({}),
            json!([{"label": "memory"}]),
        ]);
        let name = prop::sample::select(vec!["title", "description", "key", "label", "content"]);
        prop_oneof![
            4 => plain.clone(),
            1 => prop::collection::hash_map(name, plain, 0..3).prop_map(|map| json!(map)),
        ]
    }

    fn object_of_values() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(vec![
            "label", "content", "action", "metadata", "key", "query", "id", "after", "branches",
            "x",
        ]);
        prop::collection::hash_map(name, value(), 0..5).prop_map(|map| json!(map))
    }

    /// The required fields of the tool, valid, so that many inputs are wrong in one field only.
    fn filled(schema: &Value) -> Value {
        let mut input = Map::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            input.insert(name.clone(), schema["enum"].get(0).cloned().unwrap_or(json!("text")));
        }
        input.retain(|name, _| is_required(schema, name));
        Value::Object(input)
    }

    /// The first of the given fields beside those that are right, or in place of one.
    fn beside(given: &Value, mut right: Value) -> Value {
        if let Some((name, value)) = given.as_object().and_then(|fields| fields.iter().next()) {
            right[name] = value.clone();
        }
        right
    }

    #[test]
    fn schemas_are_schemas() {
        for tool in tools() {
            assert!(jsonschema::meta::is_valid(&tool.input), "{}", tool.name);
            assert!(jsonschema::draft202012::meta::is_valid(&tool.input), "{}", tool.name);
            assert!(jsonschema::draft7::meta::is_valid(&tool.input), "{}", tool.name);
            assert_eq!(check(&tool.input, &filled(&tool.input)), Ok(()), "{}", tool.name);
        }
    }

    #[test]
    fn schemas_use_few_keywords() {
        fn each(schema: &Value) {
            for (keyword, value) in schema.as_object().into_iter().flatten() {
                match keyword.as_str() {
                    "type" => assert!(value == "object" || value == "string"),
                    "properties" => {
                        value.as_object().into_iter().flatten().for_each(|(_, s)| each(s))
                    }
                    "additionalProperties" => assert_eq!(value, false),
                    "required" | "enum" | "description" => {}
                    other => panic!("{other}"),
                }
            }
        }
        tools().iter().for_each(|tool| each(&tool.input));
    }

    proptest! {
        #[test]
        fn inputs_are_judged_as_a_json_schema_library_judges_them(
            given in object_of_values(), is_filled: bool, other in value()
        ) {
            for (tool, validator) in JUDGED.iter() {
                let input = if is_filled { beside(&given, filled(&tool.input)) } else { given.clone() };
                for input in [&input, &other] {
                    let checked = check(&tool.input, input).is_ok();
                    prop_assert_eq!(checked, validator.is_valid(input), "{} {}", tool.name, input);
                }
            }
        }
    }

    #[test]
    fn an_error_names_the_field_and_what_would_be_right() {
        let labels = "\"memory\", \"house rules\", \"skills\", \"knowledge\"";
        let cases = [
            (
                json!({"label": "memory", "content": 5}),
                "field \"content\": expected text, not the number 5",
            ),
            (json!({"label": "memory"}), "field \"content\" is missing"),
            (json!({}), "the fields \"label\", \"content\" are missing"),
            (
                json!({"label": "memory", "contents": "x"}),
                "field \"contents\" is not known; did you mean \"content\"?",
            ),
            (
                json!({"label": "memory", "content": "x", "title": "T"}),
                "field \"title\" is not known here; it belongs in \"metadata\"",
            ),
            (
                json!({"label": "memory", "content": "x", "action": "add"}),
                "field \"action\": expected one of \"replace\", \"append\", not \"add\"",
            ),
            (
                json!({"label": "memory", "content": "x", "metadata": "T"}),
                "field \"metadata\": expected an object, not the text \"T\"",
            ),
            (
                json!({"label": "memory", "content": "x", "metadata": {"titel": "T"}}),
                "field \"metadata.titel\" is not known; did you mean \"title\"?",
            ),
            (
                json!({"label": "memory", "content": "x", "metadata": {"title": ["T"]}}),
                "field \"metadata.title\": expected text, not a list",
            ),
            (json!({"label": null, "content": "x"}), "field \"label\": expected text, not null"),
            (
                json!({"label": true, "content": "x"}),
                "field \"label\": expected text, not the boolean true",
            ),
            (json!({"label": {}, "content": "x"}), "field \"label\": expected text, not an object"),
            (json!([]), "the input: expected an object, not a list"),
        ];
        let schema = input_of("set_context");
        for (input, text) in cases {
            assert_eq!(check(&schema, &input), Err(text.to_owned()), "{input}");
        }
        let error = check(&schema, &json!({"label": "memry", "content": "x"}));
        let text = format!(
            "field \"label\": expected one of {labels}, not \"memry\"; did you mean \"memory\"?"
        );
        assert_eq!(error, Err(text));
        let error = check(&input_of("load_context"), &json!({"label": "memory", "key": "x"}));
        assert_eq!(error, Err("field \"label\": expected \"skills\", not \"memory\"".to_owned()));
        let error = check(&input_of("session_search"), &json!({"query": "x", "zzz": 1}));
        assert_eq!(error, Err("field \"zzz\" is not known; the fields are \"query\"".to_owned()));
        let long = "x".repeat(1_000_000);
        let errors =
            [json!({"label": long}), json!({&long: 1}), json!({"label": long, "content": ""})];
        for input in errors {
            assert!(check(&schema, &input).unwrap_err().len() < 300);
        }
    }

    #[test]
    fn a_null_is_a_field_left_out() {
        let schema = input_of("set_context");
        let mut input = json!({
            "label": null, "content": "x", "action": null, "other": null,
            "metadata": {"title": null, "key": "k"},
        });
        take_nulls(&schema, &mut input);
        let rest = json!({"label": null, "content": "x", "other": null, "metadata": {"key": "k"}});
        assert_eq!(input, rest);
    }
}
