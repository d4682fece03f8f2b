//! What a call may say, and the answer to one that makes no sense.

use serde_json::{Map, Value, json};

use super::super::call::{Fields, distance, list, nearest, suggestion};
use super::super::definition::METADATA;
use super::{ALL, blocks, tools};
use crate::context::Block;
use crate::storage::context::Document;

fn text(text: &str) -> String {
    text.to_owned()
}

fn parse(name: &str, input: Value) -> Result<(&'static str, Fields), String> {
    Fields::of(name, &input, &blocks(), ALL)
}

#[test]
fn an_input_that_makes_sense_is_a_call() {
    let set = |label: &str, content: &str| json!({"label": label, "content": content});
    let load = json!({"label": "skills", "key": "pdf"});
    let cases = [
        ("set_context", set("memory", "x"), set("memory", "x")),
        ("set_context", set("memory", ""), set("memory", "")),
        (
            "set_context",
            json!({"label": "house rules", "content": "x", "action": "append"}),
            json!({"label": "house rules", "content": "x", "action": "append"}),
        ),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "action": null,
                   "metadata": {"title": "", "description": null, "key": " "}}),
            json!({"label": "memory", "content": "x", "metadata": {"title": "", "key": " "}}),
        ),
        ("load_context", load.clone(), load.clone()),
        ("load_context", json!("{\"label\": \"skills\", \"key\": \"pdf\"}"), load.clone()),
        ("unload_context", load.clone(), load),
        (
            "search_context",
            json!({"label": "history", "query": "tea"}),
            json!({"label": "history", "query": "tea"}),
        ),
        ("session_search", json!({"query": "tea"}), json!({"query": "tea"})),
        (
            "history_search",
            json!({"query": "tea", "branches": "current"}),
            json!({"query": "tea", "branches": "current"}),
        ),
        (
            "history_expand",
            json!({"id": "compaction_c1", "after": null}),
            json!({"id": "compaction_c1"}),
        ),
        ("history_branches", json!({"id": "m1"}), json!({"id": "m1"})),
        ("history_branches", json!({}), json!({})),
        ("history_branches", json!(""), json!({})),
        ("history_branches", json!(null), json!({})),
    ];
    for (name, input, fields) in cases {
        let (tool, found) = parse(name, input.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((tool, Value::Object(found.0)), (name, fields), "{input}");
    }
}

#[test]
fn a_document_is_written_under_a_key() {
    let key = |input: Value| {
        let Document { key, title, description, .. } = parse("set_context", input)?.1.document();
        Ok::<_, String>((key, title, description))
    };
    let with =
        |metadata: Value| json!({"label": "skills", "content": "text", "metadata": metadata});
    let coffee = (String::new(), Some(text("coffee")), None);
    assert_eq!(key(with(json!({"title": "coffee"}))), Ok(coffee));
    let all = with(json!({"title": " How \n to", "description": "a\tb", "key": "my key"}));
    let named = (text("my key"), Some(text("How to")), Some(text("a b")));
    assert_eq!(key(all), Ok(named));
    let made = key(json!({"label": "knowledge", "content": "Likes tea"}));
    assert_eq!(made, Ok((String::new(), None, None)));
    let mut added = with(json!({"title": "coffee"}));
    added["action"] = json!("append");
    assert!(key(added).is_ok());
}

#[test]
fn nonsense_is_refused_with_what_would_be_right() {
    let skill = |metadata: Value| json!({"label": "skills", "content": "x", "metadata": metadata});
    let can = "those that can: \"memory\", \"house rules\", \"skills\", \"knowledge\"";
    let cannot = format!("context block \"soul\" cannot be written; {can}");
    let cases = [
        ("set_contxt", json!({}), "there is no tool \"set_contxt\"; did you mean \"set_context\"?"),
        ("launch", json!({}), "there is no tool \"launch\""),
        ("load_context", json!([]), "the input is not a JSON object"),
        ("load_context", json!("[]"), "the input is not a JSON object"),
        ("load_context", json!(5), "the input is not a JSON object"),
        (
            "load_context",
            json!("{\"label\""),
            "the input is text that is not valid JSON: EOF while parsing an object at line 1 column 8",
        ),
        ("load_context", json!(null), "the fields \"label\", \"key\" are missing"),
        (
            "load_context",
            json!({"label": "skills", "key": 5}),
            "field \"key\": expected text, not the number 5",
        ),
        ("load_context", json!({"label": "skills", "key": " "}), "field \"key\" is blank"),
        (
            "load_context",
            json!({"label": "memory", "key": "k"}),
            "context block \"memory\" cannot be loaded from; those that can: \"skills\"",
        ),
        (
            "search_context",
            json!({"label": "memory", "query": "k"}),
            "context block \"memory\" cannot be searched; those that can: \"knowledge\", \"history\"",
        ),
        ("search_context", json!({"label": "history", "query": "\n"}), "field \"query\" is blank"),
        ("set_context", json!({"label": "soul", "content": "x"}), &cannot),
        (
            "set_context",
            json!({"label": "memory", "content": "x", "metadata": {"title": "T"}}),
            "field \"metadata\": context block \"memory\" holds one text, no documents; leave it out",
        ),
        (
            "set_context",
            json!({"label": "skills", "content": " "}),
            "field \"content\" is blank; a document needs text",
        ),
        (
            "set_context",
            json!({"label": "skills", "content": "x", "action": "append"}),
            "field \"metadata\" is missing: say by its title or key to which document of \"skills\" the text is added",
        ),
        (
            "set_context",
            skill(json!({"key": "a\nb"})),
            "field \"metadata.key\": a key is one line, with no white space but single spaces in it",
        ),
        ("history_expand", json!({"id": ""}), "field \"id\" is blank"),
        (
            "history_search",
            json!({"query": "tea", "branches": true}),
            "field \"branches\": expected text, not the boolean true",
        ),
    ];
    for (name, input, text) in cases {
        assert_eq!(parse(name, input.clone()), Err(text.to_owned()), "{name} {input}");
    }
    let soul = [Block::text("x").info("soul", text("x"))];
    let refused = |name| Fields::of(name, &json!({"label": "soul"}), &soul, ALL).unwrap_err();
    assert_eq!(refused("set_context"), "there is no context block that can be written");
    assert_eq!(refused("load_context"), "there is no context block that can be loaded from");
    assert_eq!(refused("search_context"), "there is no context block that can be searched");
}

#[test]
fn a_label_as_the_prompt_writes_it_is_told_apart() {
    let error = parse("load_context", json!({"label": "SKILLS", "key": "pdf"})).unwrap_err();
    let text = "field \"label\": expected \"skills\", not \"SKILLS\"; did you mean \"skills\"?";
    assert_eq!(error, text);
}

#[test]
fn a_deep_or_large_input_is_answered() {
    let deep = json!("[".repeat(100_000));
    assert!(parse("load_context", deep).unwrap_err().contains("recursion limit"));
    let large = json!({"label": "memory", "content": "x".repeat(10_000_000)});
    assert!(parse("set_context", large).is_ok());
}

#[test]
fn every_tool_that_is_offered_can_be_called() {
    for tool in tools().definitions() {
        let mut input = Map::new();
        for (name, schema) in tool.input["properties"].as_object().into_iter().flatten() {
            let value = schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text"));
            input.insert(name.clone(), value);
        }
        input.remove(METADATA);
        let call = parse(tool.name, Value::Object(input));
        assert!(call.is_ok(), "{}: {call:?}", tool.name);
    }
}

#[test]
fn the_distance_counts_letters() {
    let cases = [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("abc", "abc", 0),
        ("kitten", "sitting", 3),
        ("flaw", "lawn", 2),
        ("memry", "memory", 1),
    ];
    for (a, b, letters) in cases {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars(a), &chars(b)), letters, "{a} {b}");
    }
}

#[test]
fn a_name_that_is_much_like_another_is_found() {
    let names = ["memory", "skills", "soul", "记忆"];
    let cases = [
        ("memry", Some("memory")),
        ("MEMORY", Some("memory")),
        ("skill", Some("skills")),
        ("souls", Some("soul")),
        ("记", Some("记忆")),
        ("knowledge", None),
        ("", None),
        ("x", None),
    ];
    for (given, name) in cases {
        assert_eq!(nearest(given, &names), name, "{given}");
    }
    assert_eq!(nearest(&"x".repeat(10_000_000), &names), None);
    assert_eq!(suggestion("memry", &names), "; did you mean \"memory\"?");
    assert_eq!(suggestion("x", &names), "");
}

#[test]
fn a_long_list_is_cut() {
    assert_eq!(list(&["a", "b"]), "\"a\", \"b\"");
    assert!(list(&["a"; 25]).ends_with("\"a\" and 5 more"));
}
