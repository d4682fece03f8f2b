//! The schemas of inputs, and the check of an input.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;

use serde_json::{Map, Value, json};

use super::super::ToolDefinition;
use super::super::call::{check, take_nulls};
use super::super::definition::is_required;

fn tools() -> Vec<ToolDefinition> {
    super::tools().definitions().to_vec()
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
        "label", "content", "action", "metadata", "key", "query", "id", "after", "branches", "x",
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
                "properties" => value.as_object().into_iter().flatten().for_each(|(_, s)| each(s)),
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
    let errors = [json!({"label": long}), json!({&long: 1}), json!({"label": long, "content": ""})];
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
