//! The wire: the form of a tool for each provider.
//!
//! - Anthropic (Messages API): `name` of at most 64 letters, digits, `_` and `-`, `description`, `input_schema`.
//! - OpenAI: in strict mode every field is required and every object is closed; an optional field takes null instead.
//!   The default of `strict` differs by API, so it is always set.
//! - MCP: `inputSchema`, and hints about what a call does.

use serde_json::{Map, Value, json};

use super::definition::ToolDefinition;
use super::schema;

/// The most values of all enums of a strict schema together.
const MAX_STRICT_VALUES: usize = 1000;

/// The most values of one enum, unless they are short.
const MAX_LONG_VALUES: usize = 250;

/// The most characters of the values of an enum with more values than that.
const MAX_VALUE_CHARS: usize = 15_000;

pub(super) fn anthropic(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input,
    })
}

pub(super) fn openai_chat(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": function(tool)})
}

pub(super) fn openai_responses(tool: &ToolDefinition) -> Value {
    let mut function = function(tool);
    function["type"] = json!("function");
    function
}

pub(super) fn mcp(tool: &ToolDefinition) -> Value {
    let mut hints = json!({"readOnlyHint": tool.is_readonly});
    // MCP defines it only for tools that are not read-only.
    if !tool.is_readonly {
        hints["destructiveHint"] = json!(tool.is_destructive);
    }
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input,
        "annotations": hints,
    })
}

fn function(tool: &ToolDefinition) -> Value {
    let is_strict = fits_strict_mode(&tool.input);
    json!({
        "name": tool.name,
        "description": tool.description,
        "strict": is_strict,
        "parameters": if is_strict { strict(&tool.input) } else { tool.input.clone() },
    })
}

/// Returns whether the enums of a schema are within the limits of strict mode.
fn fits_strict_mode(schema: &Value) -> bool {
    let mut count = 0;
    let fits = enums(schema).into_iter().all(|values| {
        let values = || values.iter().filter_map(Value::as_str);
        count += values().count();
        let is_long = values().count() > MAX_LONG_VALUES
            && values().map(|value| value.chars().count()).sum::<usize>() > MAX_VALUE_CHARS;
        // Strict mode refuses a line break in a value; other characters that JSON escapes may be refused, too.
        !is_long && !values().any(|value| value.contains(['"', '\\']))
    });
    fits && count <= MAX_STRICT_VALUES
}

fn enums(schema: &Value) -> Vec<&Vec<Value>> {
    let inner = schema["properties"].as_object().into_iter().flatten();
    let inner = inner.flat_map(|(_, schema)| enums(schema));
    schema["enum"].as_array().into_iter().chain(inner).collect()
}

/// Returns the schema with every field required; an optional one takes null.
fn strict(schema: &Value) -> Value {
    let Some(fields) = schema["properties"].as_object() else { return schema.clone() };
    let mut properties = Map::new();
    for (name, field) in fields {
        let mut field = strict(field);
        if !schema::is_required(schema, name) {
            // `anyOf`, because an enum refuses null even if the type allows it.
            let description = field["description"].take();
            if let Some(field) = field.as_object_mut() {
                field.remove("description");
            }
            field = json!({"anyOf": [field, {"type": "null"}], "description": description});
        }
        properties.insert(name.clone(), field);
    }
    let mut strict = schema.clone();
    strict["required"] = properties.keys().cloned().collect();
    strict["properties"] = Value::Object(properties);
    strict
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::call::Call;
    use super::super::{Tools, fixture};
    use super::*;
    use crate::context::{Block, ToolOptions};

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
        let tools = fixture::tools();
        let definition =
            tools.definitions().iter().find(|tool| tool.name == "load_context").unwrap();
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
        assert_eq!(fixture::of(&[], ToolOptions::default()).mcp(), json!([]));
    }

    #[test]
    fn hints_say_what_a_call_does() {
        let hints = |name| tool(name, &fixture::tools().mcp())["annotations"].clone();
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
        for (name, schema) in parameters(&fixture::tools()) {
            assert_eq!(schema["type"], "object", "{name}");
            assert_strict(&schema);
            assert!(jsonschema::meta::is_valid(&schema), "{name}");
        }
        let schema =
            tool("set_context", &fixture::tools().openai_responses())["parameters"].clone();
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
            let tools = fixture::of(&blocks, ToolOptions::default()).openai_chat();
            let function = tools[0]["function"].clone();
            let is_closed = jsonschema::meta::is_valid(&function["parameters"]);
            assert!(is_closed);
            function["strict"].as_bool()
        };
        let labels =
            |count: usize, width: usize| (0..count).map(|n| format!("{n:0width$}")).collect();
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
        for (name, schema) in parameters(&fixture::tools()) {
            let validator = jsonschema::validator_for(&schema).unwrap();
            let checked = runner.run(&given(&schema), |input| {
                prop_assert!(validator.is_valid(&input), "{}", input);
                let call = Call::parse(&name, &input, &fixture::blocks(), fixture::ALL);
                // No schema can say whether this block holds documents.
                let refused = call.as_ref().err().is_some_and(|text| text.contains("\"metadata\""));
                prop_assert!(call.is_ok() || refused, "{} {}: {:?}", name, input, call);
                Ok(())
            });
            assert!(checked.is_ok(), "{checked:?}");
        }
    }
}
