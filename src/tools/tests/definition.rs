//! Which tools there are, and how each provider gets them.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::Tools;
use super::super::call::Fields;
use super::super::definition::{METADATA, SPECS, ToolDefinition, definitions};
use super::{ALL, blocks as all_blocks, of, tools};
use crate::context::{Block, BlockInfo, ToolOptions};
use crate::storage::context::BlockScope;

fn names(blocks: &[BlockInfo], options: ToolOptions) -> Vec<&'static str> {
    definitions(blocks, options).iter().map(|tool| tool.name).collect()
}

#[test]
fn only_tools_that_something_needs_are_offered() {
    let info = |block: Block| [block.info("label", String::new())];
    let none = ToolOptions::default();
    assert_eq!(names(&[], none), [""; 0]);
    assert_eq!(names(&info(Block::text("x")), none), [""; 0]);
    assert_eq!(names(&info(Block::stored()), none), ["set_context"]);
    let skills = ["set_context", "load_context", "unload_context"];
    assert_eq!(names(&info(Block::stored_skills()), none), skills);
    assert_eq!(names(&info(Block::knowledge()), none), ["set_context", "search_context"]);
    assert_eq!(names(&info(Block::history()), none), ["search_context"]);
    assert_eq!(
        names(&[], ToolOptions { sessions: Some(BlockScope::Shared), ..none }),
        ["session_search"]
    );
    let history = ["history_search", "history_expand", "history_branches"];
    assert_eq!(names(&[], ToolOptions { has_history: true, ..none }), history);
    assert_eq!(names(&all_blocks(), ALL).len(), SPECS.len());
}

#[test]
fn a_schema_lists_the_labels_that_fit() {
    let labels = |name: &str| {
        let tools = definitions(&all_blocks(), ALL);
        let tool = tools.into_iter().find(|tool| tool.name == name)?;
        Some(tool.input["properties"]["label"]["enum"].clone())
    };
    let writable = json!(["memory", "house rules", "skills", "knowledge"]);
    assert_eq!(labels("set_context"), Some(writable));
    assert_eq!(labels("load_context"), Some(json!(["skills"])));
    assert_eq!(labels("unload_context"), Some(json!(["skills"])));
    assert_eq!(labels("search_context"), Some(json!(["knowledge", "history"])));
    assert_eq!(labels("session_search"), Some(Value::Null));
}

#[test]
fn metadata_is_asked_for_only_where_documents_can_be_written() {
    let fields = |block: Block| {
        let tools = definitions(&[block.info("label", String::new())], ToolOptions::default());
        let fields = tools.first()?.input["properties"].as_object()?.clone();
        Some(fields.contains_key(METADATA))
    };
    assert_eq!(fields(Block::stored()), Some(false));
    assert_eq!(fields(Block::knowledge()), Some(true));
}

#[test]
fn names_and_descriptions_are_such_as_every_provider_takes() {
    for tool in definitions(&all_blocks(), ALL) {
        let ToolDefinition { name, description, .. } = tool;
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert!((1..=64).contains(&name.len()), "{name}");
        // Older models of OpenAI, and servers that imitate them, refuse longer ones.
        assert!(description.chars().count() <= 1024, "{name}");
        assert!(!description.contains(['\n', '\t']) && !description.contains("  "), "{name}");
        assert!(!(tool.is_readonly && tool.is_destructive), "{name}");
    }
}

fn tool(name: &str, list: &Value) -> Value {
    let mut tools = list.as_array().into_iter().flatten();
    let is_it = |tool: &&Value| tool["name"] == name || tool["function"]["name"] == name;
    tools.find(is_it).cloned().unwrap_or_default()
}

fn parameters(tools: &Tools) -> Vec<(String, Value)> {
    let tools = tools.openai_responses();
    let tools = tools.as_array().into_iter().flatten();
    tools
        .map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool["parameters"].clone()))
        .collect()
}

#[test]
fn each_provider_has_its_own_form() {
    let tools = tools();
    let definition = tools.definitions().iter().find(|tool| tool.name == "load_context").unwrap();
    let description = definition.description;
    let properties = &definition.input["properties"];
    let schema = json!({
        "type": "object",
        "properties": {
            "label": {
                "type": "string", "enum": ["skills"],
                "description": "The block that lists the document, by its label.",
            },
            "key": {"type": "string", "description": "The document's key, as it is listed."},
        },
        "required": ["label", "key"],
        "additionalProperties": false,
    });
    assert_eq!(properties, &schema["properties"]);
    let anthropic =
        json!({"name": "load_context", "description": description, "input_schema": schema});
    assert_eq!(tool("load_context", &tools.anthropic()), anthropic);
    let mcp = json!({
        "name": "load_context", "title": "Load a document", "description": description,
        "inputSchema": schema, "annotations": {"readOnlyHint": true},
    });
    assert_eq!(tool("load_context", &tools.mcp()), mcp);

    let mut strict = schema.clone();
    let order: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    strict["required"] = json!(order);
    let chat = json!({"type": "function", "function": {
        "name": "load_context", "description": description,
        "strict": true, "parameters": strict,
    }});
    assert_eq!(tool("load_context", &tools.openai_chat()), chat);
    let responses = json!({
        "type": "function",
        "name": "load_context", "description": description,
        "strict": true, "parameters": strict,
    });
    assert_eq!(tool("load_context", &tools.openai_responses()), responses);
    assert_eq!(of(&[], ToolOptions::default()).mcp(), json!([]));
}

#[test]
fn hints_say_what_a_call_does() {
    let hints = |name| tool(name, &tools().mcp())["annotations"].clone();
    let overwrites = json!({"readOnlyHint": false, "destructiveHint": true});
    assert_eq!(hints("set_context"), overwrites);
    let changes = json!({"readOnlyHint": false, "destructiveHint": false});
    assert_eq!(hints("unload_context"), changes);
    assert_eq!(hints("history_search"), json!({"readOnlyHint": true}));
}

/// Checks the rules of strict mode, as documented.
fn assert_strict(schema: &Value) {
    for keyword in schema.as_object().unwrap().keys() {
        let known = [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "enum",
            "description",
            "anyOf",
        ];
        assert!(known.contains(&keyword.as_str()), "{keyword}");
    }
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false);
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(schema["required"], json!(names));
    }
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .for_each(|(_, inner)| assert_strict(inner));
    schema["anyOf"].as_array().into_iter().flatten().for_each(assert_strict);
}

#[test]
fn strict_schemas_keep_the_rules_of_strict_mode() {
    for (name, schema) in parameters(&tools()) {
        assert_eq!(schema["type"], "object", "{name}");
        assert_strict(&schema);
        assert!(jsonschema::meta::is_valid(&schema), "{name}");
    }
    let schema = tool("set_context", &tools().openai_responses())["parameters"].clone();
    let action = &schema["properties"]["action"];
    let values = json!([{"type": "string", "enum": ["replace", "append"]}, {"type": "null"}]);
    assert_eq!(action["anyOf"], values);
    assert!(action["description"].is_string());
    assert_eq!(
        schema["properties"]["metadata"]["anyOf"][0]["required"].as_array().map(Vec::len),
        Some(3)
    );
}

#[test]
fn too_many_or_odd_labels_are_no_strict_schema() {
    let is_strict = |labels: Vec<String>| {
        let blocks: Vec<_> =
            labels.iter().map(|label| Block::stored().info(label, String::new())).collect();
        let tools = of(&blocks, ToolOptions::default()).openai_chat();
        let function = tools[0]["function"].clone();
        let is_closed = jsonschema::meta::is_valid(&function["parameters"]);
        assert!(is_closed);
        function["strict"].as_bool()
    };
    let labels = |count: usize, width: usize| (0..count).map(|n| format!("{n:0width$}")).collect();
    assert_eq!(is_strict(labels(250, 80)), Some(true));
    assert_eq!(is_strict(labels(251, 80)), Some(false));
    assert_eq!(is_strict(labels(251, 50)), Some(true));
    // Two of them are the actions.
    assert_eq!(is_strict(labels(998, 5)), Some(true));
    assert_eq!(is_strict(labels(999, 5)), Some(false));
    assert_eq!(is_strict(vec!["a \"b\"".to_owned()]), Some(false));
    assert_eq!(is_strict(vec!["a \\ b".to_owned()]), Some(false));
}

/// An input as a strict mode gives it: with every field, some of them null.
fn given(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(choices) = schema["anyOf"].as_array() {
        let choices: Vec<_> = choices.iter().map(given).collect();
        return prop::strategy::Union::new(choices).boxed();
    }
    if let Some(values) = schema["enum"].as_array() {
        return prop::sample::select(values.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().unwrap();
            let names: Vec<_> = fields.keys().cloned().collect();
            let values: Vec<_> = fields.values().map(given).collect();
            values
                .prop_map(move |values| {
                    names.iter().cloned().zip(values).collect::<Map<_, _>>().into()
                })
                .boxed()
        }
        Some("string") => Just(json!("text")).boxed(),
        _ => Just(Value::Null).boxed(),
    }
}

#[test]
fn what_a_strict_schema_allows_is_a_call_or_a_block_of_another_kind() {
    let mut runner = proptest::test_runner::TestRunner::default();
    for (name, schema) in parameters(&tools()) {
        let validator = jsonschema::validator_for(&schema).unwrap();
        let checked = runner.run(&given(&schema), |input| {
            prop_assert!(validator.is_valid(&input), "{}", input);
            let call = Fields::of(&name, &input, &all_blocks(), ALL);
            // No schema can say whether this block holds documents.
            let refused = call.as_ref().err().is_some_and(|text| text.contains("\"metadata\""));
            prop_assert!(call.is_ok() || refused, "{} {}: {:?}", name, input, call);
            Ok(())
        });
        assert!(checked.is_ok(), "{checked:?}");
    }
}
