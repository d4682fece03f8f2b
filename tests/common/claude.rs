//! Random entries of Claude Code: branches, side chains, compactions, tools, missing and late parents, cycles; prompts that
//! waited, answers that grow, copied entries, and lines without ids.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What one entry is; numbers are those of uuids and calls.
#[derive(Debug, Clone)]
pub(crate) enum Drawn {
    /// `parent`: that many entries before it, or none.
    Said {
        back: u8,
        text: String,
        side: bool,
        meta: bool,
    },
    Asks {
        back: u8,
        call: u8,
        name: char,
    },
    Answers {
        back: u8,
        call: u8,
    },
    /// Names a parent that comes later, or never.
    Early {
        to: u8,
    },
    Progress {
        back: u8,
        to: Option<u8>,
    },
    Boundary {
        back: u8,
        kept: Option<u8>,
    },
    /// A boundary that lists what it keeps, at the end or at the beginning.
    Keeps {
        back: u8,
        kept: Vec<u8>,
        is_prefix: bool,
    },
    Summary {
        text: String,
    },
    Queued {
        back: u8,
        text: String,
        is_notice: bool,
    },
    Grows {
        back: u8,
        text: String,
    },
    Fails {
        back: u8,
    },
    Bare {
        text: String,
    },
    Copied {
        back: u8,
    },
    Title {
        kind: &'static str,
        text: String,
    },
    Note,
    Odd(Value),
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let said = (0..5_u8, "[a-z ]{0,8}", prop::bool::weighted(0.15), prop::bool::weighted(0.05));
    let kinds = prop::sample::select(vec!["custom-title", "ai-title", "summary", "tag"]);
    prop_oneof![
        10 => said.prop_map(|(back, text, side, meta)| Drawn::Said { back, text, side, meta }),
        3 => (0..3_u8, 0..4_u8, prop::char::range('a', 'c'))
            .prop_map(|(back, call, name)| Drawn::Asks { back, call, name }),
        3 => (0..3_u8, 0..4_u8).prop_map(|(back, call)| Drawn::Answers { back, call }),
        2 => (0..40_u8).prop_map(|to| Drawn::Early { to }),
        2 => (0..3_u8, proptest::option::weighted(0.2, 0..40_u8))
            .prop_map(|(back, to)| Drawn::Progress { back, to }),
        1 => (0..3_u8, proptest::option::of(0..40_u8))
            .prop_map(|(back, kept)| Drawn::Boundary { back, kept }),
        1 => "[a-z ]{0,8}".prop_map(|text| Drawn::Summary { text }),
        1 => (0..3_u8, prop::collection::vec(0..40_u8, 1..4), any::<bool>())
            .prop_map(|(back, kept, is_prefix)| Drawn::Keeps { back, kept, is_prefix }),
        1 => (0..3_u8, "[a-z]{0,4}", any::<bool>())
            .prop_map(|(back, text, is_notice)| Drawn::Queued { back, text, is_notice }),
        2 => (0..2_u8, "[ab]{0,3}").prop_map(|(back, text)| Drawn::Grows { back, text }),
        1 => (0..3_u8).prop_map(|back| Drawn::Fails { back }),
        1 => "[a-z]{1,4}".prop_map(|text| Drawn::Bare { text }),
        1 => (0..3_u8).prop_map(|back| Drawn::Copied { back }),
        1 => (kinds, "[a-z]{0,4}").prop_map(|(kind, text)| Drawn::Title { kind, text }),
        2 => Just(Drawn::Note),
        1 => prop::sample::select(odd()).prop_map(Drawn::Odd),
    ]
}

/// Entries whose members have the wrong types.
fn odd() -> Vec<Value> {
    vec![
        json!({}),
        json!({"type": 5, "uuid": "odd-type", "parentUuid": 7}),
        json!({"type": "user", "uuid": "odd-message", "message": 5}),
        json!({"type": "assistant", "uuid": "odd-content", "message": {"content": {"a": 1}}}),
        json!({"type": "user", "uuid": "odd-role", "message": {"role": [], "content": [1, null]}}),
        json!({"type": "system", "uuid": "odd-self", "parentUuid": "odd-self", "content": "x"}),
        json!({"type": "system", "uuid": "compaction-1", "subtype": "compact_boundary"}),
        json!({"type": "user", "uuid": "compaction:x", "message": {"content": "reserved"}}),
    ]
}

/// Transcripts; `links` says how often they name parents at all.
pub(crate) fn entries(most: usize) -> impl Strategy<Value = Vec<Value>> {
    let links = prop::bool::weighted(0.9);
    (prop::collection::vec(drawn(), 1..most), links).prop_map(|(drawn, links)| {
        let entries = drawn.into_iter().enumerate().map(|(at, drawn)| entry(at, drawn, links));
        let mut entries: Vec<Value> = entries.collect();
        // Without any time before it, a message has that of the append.
        if let Some(first) = entries.iter_mut().find(|entry| entry["type"] != "progress") {
            first["timestamp"] = json!("2023-11-14T22:13:20Z");
        }
        entries
    })
}

fn entry(at: usize, drawn: Drawn, links: bool) -> Value {
    // The first number of a uuid that comes later is hit now and then.
    let uuid = |at: usize| format!("{at:02}");
    let before = |back: u8| match (links, at.checked_sub(usize::from(back) + 1)) {
        (true, Some(at)) => json!(uuid(at)),
        _ => Value::Null,
    };
    let mut entry = Map::new();
    let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    if at % 7 != 3 {
        let time = 1_700_000_000 + 5 * at as i64;
        let time = chrono::DateTime::from_timestamp(time, 0).unwrap_or_default();
        set("timestamp", json!(time.to_rfc3339()));
    }
    let has_uuid =
        !matches!(drawn, Drawn::Title { .. } | Drawn::Note | Drawn::Bare { .. } | Drawn::Odd(_));
    if has_uuid {
        set("uuid", json!(uuid(at)));
        set("cwd", json!("/work"));
    }
    let message = |role: &str, content: Value| json!({"role": role, "content": content});
    match drawn {
        Drawn::Said { back, text, side, meta } => {
            let kind = if at.is_multiple_of(2) { "user" } else { "assistant" };
            set("type", json!(kind));
            set("parentUuid", before(back));
            set("message", message(kind, json!(text)));
            if side {
                set("isSidechain", json!(true));
                set("agentId", json!("a1"));
            }
            if meta {
                set("isMeta", json!(true));
            }
        }
        Drawn::Asks { back, call, name } => {
            let call =
                json!([{"type": "tool_use", "id": format!("c{call}"), "name": name, "input": {}}]);
            set("type", json!("assistant"));
            set("parentUuid", before(back));
            let usage = json!({"input_tokens": at, "output_tokens": 1});
            set(
                "message",
                json!({"id": format!("m{}", at / 6), "role": "assistant", "content": call, "model": "m",
                       "usage": usage}),
            );
        }
        Drawn::Answers { back, call } => {
            let result = json!([{"type": "tool_result", "tool_use_id": format!("c{call}"), "content": "ok"}]);
            set("type", json!("user"));
            set("parentUuid", before(back));
            set("message", message("user", result));
        }
        Drawn::Early { to } => {
            set("type", json!("user"));
            set("parentUuid", json!(uuid(usize::from(to))));
            set("message", message("user", json!("early")));
        }
        Drawn::Progress { back, to } => {
            set("type", json!("progress"));
            let to = to.map(|to| json!(uuid(usize::from(to))));
            set("parentUuid", to.unwrap_or_else(|| before(back)));
        }
        Drawn::Boundary { back, kept } => {
            set("type", json!("system"));
            set("subtype", json!("compact_boundary"));
            set("parentUuid", Value::Null);
            set("logicalParentUuid", before(back));
            if let Some(kept) = kept {
                let segment = json!({"headUuid": uuid(usize::from(kept))});
                set("compactMetadata", json!({"preservedSegment": segment}));
            }
        }
        Drawn::Keeps { back, kept, is_prefix } => {
            set("type", json!("system"));
            set("subtype", json!("compact_boundary"));
            set("logicalParentUuid", before(back));
            let kept: Vec<String> = kept.into_iter().map(|kept| uuid(usize::from(kept))).collect();
            let anchor = uuid(if is_prefix { at } else { at + 1 });
            let list = json!({"uuids": kept, "anchorUuid": anchor});
            set("compactMetadata", json!({"preservedMessages": list}));
        }
        Drawn::Queued { back, text, is_notice } => {
            set("type", json!("attachment"));
            set("parentUuid", before(back));
            let kind = if is_notice { "task-notification" } else { "human" };
            let attached =
                json!({"type": "queued_command", "prompt": text, "origin": {"kind": kind}});
            set("attachment", attached);
        }
        Drawn::Grows { back, text } => {
            set("type", json!("assistant"));
            set("parentUuid", before(back));
            let content = json!([{"type": "text", "text": text}]);
            let id = format!("m{}", at / 6);
            set("message", json!({"id": id, "role": "assistant", "content": content}));
        }
        Drawn::Fails { back } => {
            set("type", json!("assistant"));
            set("parentUuid", before(back));
            set("isApiErrorMessage", json!(true));
            let message = json!({"id": "e", "model": "<synthetic>", "content": "API Error"});
            set("message", message);
        }
        Drawn::Bare { text } => {
            set("type", json!("user"));
            set("message", message("user", json!(text)));
        }
        Drawn::Copied { back } => {
            set("type", json!("user"));
            set("parentUuid", before(back));
            set("forkedFrom", json!({"sessionId": "origin", "messageUuid": uuid(at)}));
            set("message", message("user", json!("copied")));
        }
        Drawn::Summary { text } => {
            set("type", json!("user"));
            set("isCompactSummary", json!(true));
            set("parentUuid", before(0));
            set("message", message("user", json!(text)));
        }
        Drawn::Title { kind, text } => {
            set("type", json!(kind));
            let name = match kind {
                "custom-title" => "customTitle",
                "ai-title" => "aiTitle",
                kind => kind,
            };
            set(name, json!(text));
            if kind == "summary" {
                set("leafUuid", json!(uuid(at / 2)));
            }
        }
        Drawn::Note => {
            set("type", json!("file-history-snapshot"));
            set("messageId", json!(uuid(at / 2)));
        }
        Drawn::Odd(odd) => {
            let Value::Object(odd) = odd else { return odd };
            entry.extend(odd);
        }
    }
    Value::Object(entry)
}
