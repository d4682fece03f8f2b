//! A message that is read and written again is the same JSON.

mod common;

use common::Scratch;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use talktree::{Message, Store};

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

/// Names that parts and messages know, and others.
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
    // Mostly the shapes there are, with what they need, so that typed parts come up, too.
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
        .prop_map(|(id, role, parts, metadata, further, is_aside)| {
            let mut message = json!({
                "id": id, "parent": null, "role": role, "parts": parts,
                "created_at": "2026-01-31T12:00:00.123456Z",
            });
            if let Some(metadata) = metadata {
                message["metadata"] = metadata;
            }
            if is_aside {
                message["aside"] = json!(true);
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

/// Returns what the value's text reads as: serde_json's reading of a fraction may be off by one in
/// the last place, but always for the same text in the same way.
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
    // Saying it again is no news, and changes nothing.
    let again = chat.append(read.clone()).map_err(fail)?;
    prop_assert!(!again.is_new && !again.differs);
    prop_assert!(!chat.update(stored[0].clone()).map_err(fail)?.is_changed);
    prop_assert_eq!(chat.row_stats().map_err(fail)?[0].tokens, read.tokens());
    prop_assert_eq!(stored[0].tokens(), read.tokens());
    Ok(())
}

#[test]
fn any_message_comes_back_deep_equal() -> std::result::Result<(), String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let config = ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let result = runner.run(&message(), |given| check(&scratch.store, &given));
    result.map_err(|error| error.to_string())
}
