//! A message that is read from JSON and written again is the same JSON; a message that is built in code and accepted is
//! read back equal.
//!
//! An extra field of a part could have the name of a field of the part itself, such as `input`: the row then had the
//! field twice, and another part was read back.

use crate::common::Scratch;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use talktree::{Error, Extra, Json, Message, Part, Result, Store};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z ]{0,12}",
        Just("\0".to_owned()),
        Just("\u{1F600}\u{200B}".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no other", |n| n.is_finite()).prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Field names of parts and messages, and others.
fn field() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "type",
        "text",
        "toolCallId",
        "toolName",
        "state",
        "input",
        "output",
        "errorText",
        "url",
        "mediaType",
        "filename",
        "data",
        "result",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => text()]
}

fn part() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        4 => prop::sample::select(vec![
            "text", "reasoning", "file", "dynamic-tool", "tool-x", "tool-", "data-x", "step-start",
        ])
        .prop_map(Value::from),
        1 => value(),
    ];
    // Mostly valid parts with their required fields, so that typed parts occur, too.
    let needed = prop_oneof![
        Just(json!({"text": "said"})),
        Just(json!({"toolCallId": "1", "input": {"a": 1}, "state": "input-available"})),
        Just(json!({"toolCallId": "1", "toolName": "t", "output": null, "errorText": "no"})),
        Just(json!({"mediaType": "a/b", "url": "data:,"})),
        Just(json!({})),
    ];
    (kind, needed, prop::collection::btree_map(field(), value(), 0..3)).prop_map(
        |(kind, needed, further)| {
            let mut part: Map<String, Value> = needed.as_object().cloned().unwrap_or_default();
            part.extend(further);
            part.insert("type".to_owned(), kind);
            Value::Object(part)
        },
    )
}

fn message() -> impl Strategy<Value = Value> {
    (
        "[a-z]{1,8}",
        text(),
        prop::collection::vec(part(), 0..5),
        prop::option::of(value()),
        prop::collection::btree_map("[x-z]{1,3}|parts_|Role|\u{e9}", value(), 0..3),
        any::<bool>(),
    )
        .prop_map(|(id, role, parts, metadata, further, is_hidden)| {
            let mut message = json!({
                "id": id, "parent": null, "role": role, "parts": parts,
                "created_at": "2026-01-31T12:00:00.123456Z",
            });
            if let Some(metadata) = metadata {
                message["metadata"] = metadata;
            }
            if is_hidden {
                message["hidden"] = json!(true);
            }
            for (field, value) in further {
                message[field] = value;
            }
            message
        })
}

type Outcome = std::result::Result<(), TestCaseError>;

fn fail(error: impl std::fmt::Display) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Returns the value of the text. serde_json may read a fraction with an error in the last place, but the same text
/// always gives the same value.
fn parsed(value: &impl serde::Serialize) -> std::result::Result<Value, TestCaseError> {
    let text = serde_json::to_string(value).map_err(fail)?;
    serde_json::from_str(&text).map_err(fail)
}

fn check(store: &Store, given: &Value) -> Outcome {
    let read: Message = serde_json::from_str(&given.to_string()).map_err(fail)?;
    let given = parsed(given)?;
    prop_assert_eq!(&parsed(&read)?, &given);

    let chat = store.session("s").map_err(fail)?;
    chat.clear().map_err(fail)?;
    chat.append(read.clone()).map_err(fail)?;
    let stored = chat.raw_history().map_err(fail)?;
    prop_assert_eq!(&stored[..], std::slice::from_ref(&read));
    prop_assert_eq!(&parsed(&stored[0])?, &given);
    // A second append is a no-op.
    let again = chat.append(read.clone()).map_err(fail)?;
    prop_assert!(!again.is_new && !again.differs);
    prop_assert!(!chat.update(stored[0].clone()).map_err(fail)?.is_changed);
    prop_assert_eq!(chat.row_stats().map_err(fail)?[0].tokens, read.tokens());
    prop_assert_eq!(stored[0].tokens(), read.tokens());
    Ok(())
}

#[test]
fn any_message_is_read_back_deep_equal() -> std::result::Result<(), String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&message(), |given| check(&scratch.store, &given));
    result.map_err(|error| error.to_string())
}

/// A part of each kind, with all optional fields or none, and its field names.
fn kinds() -> Vec<(Part, &'static [&'static str])> {
    const TEXT: &[&str] = &["type", "text"];
    const TOOL: &[&str] = &["type", "toolCallId", "state", "input", "output", "errorText"];
    const DYNAMIC: &[&str] =
        &["type", "toolName", "toolCallId", "state", "input", "output", "errorText"];
    const FILE: &[&str] = &["type", "mediaType", "url", "filename"];
    let tool = |is_dynamic, is_full: bool| {
        let mut part = Part::tool_call("t", "1", json!({"a": 1}));
        if let Part::Tool(tool) = &mut part {
            tool.is_dynamic = is_dynamic;
            tool.state = is_full.then(|| "output-error".to_owned());
            tool.input = tool.input.take().filter(|_| is_full);
            tool.output = is_full.then(|| json!(null).into());
            tool.error_text = is_full.then(|| "no".to_owned());
        }
        part
    };
    let mut named = Part::file("a/b", "data:,");
    if let Part::File(file) = &mut named {
        file.filename = Some("b.txt".to_owned());
    }
    vec![
        (Part::text("said"), TEXT),
        (Part::reasoning("hm"), TEXT),
        (tool(false, false), TOOL),
        (tool(false, true), TOOL),
        (tool(true, false), DYNAMIC),
        (tool(true, true), DYNAMIC),
        (Part::file("a/b", "data:,"), FILE),
        (named, FILE),
    ]
}

fn with_extra(mut part: Part, further: Extra) -> Part {
    match &mut part {
        Part::Text(text) => text.extra = further,
        Part::Reasoning(reasoning) => reasoning.extra = further,
        Part::Tool(tool) => tool.extra = further,
        Part::File(file) => file.extra = further,
        _ => {}
    }
    part
}

fn one(field: &str, value: &Value) -> Extra {
    Extra::from([(field.to_owned(), Json::from(value.clone()))])
}

#[test]
fn an_extra_field_with_a_name_of_its_own_part_is_refused() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let before = Message::user("hi").with_id("m");
    chat.append(before.clone())?;
    for (part, own) in kinds() {
        let kind = part.kind().into_owned();
        for (field, value) in own.iter().flat_map(|field| [(field, json!("x")), (field, json!(1))])
        {
            let part = with_extra(part.clone(), one(field, &value));
            let message = Message::user("ho").with_id("m").with_part(part);
            let text = format!(
                "extra field {field:?} cannot be used: \
                 parts[1], of type {kind:?}, has a field of this name"
            );
            let refused = |error: Error| {
                assert_eq!(error.to_string(), text);
                matches!(error, Error::InvalidValue { .. })
            };
            assert!(chat.update(message.clone()).is_err_and(refused), "{kind} {field}");
            assert!(chat.upsert(message.clone()).is_err_and(refused), "{kind} {field}");
            let message = message.with_id("n");
            assert!(chat.import_message(None, message.clone()).is_err_and(refused));
            assert!(chat.append_all([Message::user("x"), message]).is_err_and(refused));
        }
    }
    assert_eq!(chat.raw_history()?, [before]);
    Ok(())
}

#[test]
fn an_extra_field_with_a_name_of_another_part_is_kept() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    for (part, own) in kinds() {
        let all = kinds().into_iter().flat_map(|(_, fields)| fields);
        let further = all.filter(|field| !own.contains(field));
        let further = further.flat_map(|field| one(field, &json!([1, "x"]))).collect();
        let message = Message::new("user", vec![with_extra(part, further)]);
        let id = chat.append_root(message.clone())?.id;
        assert_eq!(chat.message(&id)?, Some(message));
    }
    Ok(())
}

#[test]
fn a_part_that_is_not_an_object_is_refused() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for json in ["1", "null", "[{}]", "\"text\""] {
        let part = Part::Other(Json::parse(json)?);
        let error = chat.append(Message::new("user", vec![Part::text("x"), part])).unwrap_err();
        let expected = format!("part {json:?} cannot be used: parts[1] is not a JSON object");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(chat.raw_history()?, []);
    Ok(())
}

/// Parts built in code, with any extra fields, and parts read from JSON.
///
/// Except a `Part::Other` with JSON of another kind of part: it is read back as that kind.
fn made_part() -> impl Strategy<Value = Part> {
    let further = prop::collection::btree_map(field(), value().prop_map(Json::from), 0..3);
    let made =
        (prop::sample::select(kinds()), text(), further).prop_map(|((part, _), text, more)| {
            let mut part = with_extra(part, more);
            match &mut part {
                Part::Text(part) => part.text = text,
                Part::Reasoning(part) => part.text = text,
                Part::Tool(part) => part.name = text,
                Part::File(part) => part.url = text,
                _ => {}
            }
            part
        });
    let read = part().prop_map(|json| {
        serde_json::from_value::<Part>(json).unwrap_or_else(|error| panic!("{error}"))
    });
    prop_oneof![3 => made, 1 => read]
}

fn made_message() -> impl Strategy<Value = Message> {
    let names = prop_oneof![
        6 => "[x-z]{1,3}|toolName|text".prop_map(String::from),
        1 => prop::sample::select(vec!["id", "parts", "createdAt"]).prop_map(str::to_owned),
    ];
    let further = prop::collection::btree_map(names, value().prop_map(Json::from), 0..2);
    let metadata = prop::option::of(value());
    (text(), prop::collection::vec(made_part(), 0..3), metadata, further).prop_map(
        |(role, parts, metadata, further)| {
            let mut message = Message::new(role.as_str(), parts);
            message.metadata = metadata.map(Json::from);
            message.extra = further;
            message
        },
    )
}

/// Returns whether the message's JSON is parsed to the message.
fn is_its_json(message: &Message) -> std::result::Result<bool, TestCaseError> {
    let text = serde_json::to_string(message).map_err(fail)?;
    Ok(serde_json::from_str::<Message>(&text).is_ok_and(|read| read == *message))
}

fn check_made(store: &Store, message: &Message) -> Outcome {
    let chat = store.session("s").map_err(fail)?;
    chat.clear().map_err(fail)?;
    let other = Message::user("other").with_id("other");
    chat.append(other.clone()).map_err(fail)?;
    let is_sound = is_its_json(message)?;
    let changed = message.clone().with_id("other").at(other.created_at);
    match chat.append_root(message.clone()) {
        Err(Error::InvalidValue { .. }) => {
            prop_assert!(!is_sound, "refused without need");
            prop_assert!(chat.update(changed).is_err());
            prop_assert_eq!(chat.leaves().map_err(fail)?.len(), 1);
        }
        answer => {
            answer.map_err(fail)?;
            prop_assert!(is_sound, "accepted though it does not come back");
            let stored = chat.message(&message.id).map_err(fail)?;
            prop_assert_eq!(stored.as_ref(), Some(message));
            chat.update(changed.clone()).map_err(fail)?;
            prop_assert_eq!(chat.message(&changed.id).map_err(fail)?, Some(changed));
        }
    }
    Ok(())
}

#[test]
fn any_accepted_message_is_read_back_equal() -> std::result::Result<(), String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&made_message(), |made| check_made(&scratch.store, &made));
    result.map_err(|error| error.to_string())
}

/// JavaScript's `Date.now()` is a number: such messages were refused as a whole.
#[test]
fn a_time_is_a_text_or_a_number_since_1970() {
    let read = |time: &str| -> std::result::Result<String, String> {
        let text = format!(r#"{{"role":"user","parts":[],"createdAt":{time}}}"#);
        let message = serde_json::from_str::<Message>(&text).map_err(|error| error.to_string())?;
        Ok(message.created_at.to_rfc3339())
    };
    for (time, expected) in [
        ("1767323045500", "2026-01-02T03:04:05.500+00:00"),
        ("1767323045500.25", "2026-01-02T03:04:05.500250+00:00"),
        ("1767323045", "2026-01-02T03:04:05+00:00"),
        ("1767323045.5", "2026-01-02T03:04:05.500+00:00"),
        ("0", "1970-01-01T00:00:00+00:00"),
        ("-86400", "1969-12-31T00:00:00+00:00"),
        ("\"2026-01-02T04:04:05+01:00\"", "2026-01-02T03:04:05+00:00"),
    ] {
        assert_eq!(read(time).as_deref(), Ok(expected), "{time}");
    }
    for bad in ["1e300", "true", "[]", "{}", "\"yesterday\"", "\"\""] {
        let why = read(bad).unwrap_err();
        assert!(why.contains("time"), "{bad}: {why}");
    }
    assert!(read("null").is_ok());
}

/// An empty id was replaced by a new one at each reading, so a message that was stored twice was there twice.
#[test]
fn an_empty_id_is_an_error_that_names_it() {
    for field in ["id", "parent"] {
        let text = format!(r#"{{"role":"user","parts":[],"{field}":""}}"#);
        let why = serde_json::from_str::<Message>(&text).unwrap_err().to_string();
        assert!(why.contains(&format!("the field `{field}` is an empty text")), "{why}");
    }
    assert!(
        serde_json::from_str::<Message>(r#"{"role":"user","parts":[],"id":null,"parent":null}"#)
            .is_ok()
    );
}

/// `{"role": "user", "content": "hello"}` was stored without a word: nothing was found, and no model saw it.
#[test]
fn a_message_of_a_chat_api_is_read_with_its_content() -> serde_json::Result<()> {
    let read = |given: Value| serde_json::from_value::<Message>(given);
    let call = json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Jena\"}"}});
    for (given, parts) in [
        (json!({"content": "hello"}), vec![Part::text("hello")]),
        (
            json!({"content": ["a", {"type": "text", "text": "b"}]}),
            vec![Part::text("a"), Part::text("b")],
        ),
        (
            json!({"content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]}),
            vec![Part::file("image/*", "https://x.example/a.png")],
        ),
        (
            json!({"content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Jena"}}]}),
            vec![Part::tool_call("weather", "c1", json!({"city": "Jena"}))],
        ),
        (
            json!({"content": null, "tool_calls": [call]}),
            vec![Part::tool_call("weather", "c1", json!({"city": "Jena"}))],
        ),
        (
            json!({"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "warm"}),
            vec![Part::tool_result("weather", "c1", json!("warm"))],
        ),
    ] {
        let mut given = given;
        given["mood"] = json!("calm");
        if given.get("role").is_none() {
            given["role"] = json!("assistant");
        }
        let message = read(given.clone())?;
        assert_eq!(message.parts, parts, "{given}");
        assert_eq!(message.extra.keys().collect::<Vec<_>>(), ["mood"], "{given}");
        // As JSON it has parts, so what it has besides is not read as content.
        assert_eq!(read(serde_json::to_value(&message)?)?, message);
    }
    let kept = read(json!({"role": "user", "parts": [], "content": "beside the parts"}))?;
    assert_eq!((kept.parts.len(), kept.extra["content"].value()), (0, json!("beside the parts")));
    Ok(())
}

#[test]
fn an_empty_message_is_refused() {
    for (role, given) in [
        ("user", json!({})),
        ("user", json!({"content": null})),
        ("user", json!({"content": ""})),
        ("user", json!({"content": []})),
        ("assistant", json!({"tool_calls": [], "mood": "calm"})),
        ("tool", json!({"name": "weather"})),
    ] {
        let mut given = given;
        given["role"] = json!(role);
        let why = serde_json::from_value::<Message>(given).unwrap_err().to_string();
        assert_eq!(why, "the message is empty; give it `parts` or `content`");
    }
    for given in [json!({"role": "user", "content": 5}), json!({"role": "user", "content": {}})] {
        let why = serde_json::from_value::<Message>(given).unwrap_err().to_string();
        assert_eq!(why, "`content` is a text or a list of parts");
    }
}
