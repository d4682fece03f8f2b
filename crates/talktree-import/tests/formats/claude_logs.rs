//! What logs of Claude Code hold besides a plain chain: compactions that keep messages, prompts that waited, answers in many
//! lines, copies in other sessions, lines without ids; and logs whose lines are in another order, twice or missing.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use talktree::{CompactionId, Message, Part, Result, Role, Session, Store};
use talktree_import::{ImportOptions, ImportReport, import_reader};

use crate::random;

/// The text of a log.
fn log(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn import(store: &Store, name: &str, lines: &[Value]) -> Result<ImportReport> {
    let file = std::io::Cursor::new(log(lines));
    let report = import_reader(store, name, file, &ImportOptions::default(), |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok(report)
}

fn session(lines: &[Value]) -> Result<(Session, ImportReport)> {
    let store = Store::open_in_memory()?;
    let report = import(&store, "log.jsonl", lines)?;
    Ok((store.session(report.sessions.last().unwrap())?, report))
}

/// An entry of session `s` under a parent; none for `-`. Its time is that of its number.
fn entry(kind: &str, at: usize, uuid: &str, parent: &str, more: Value) -> Value {
    let parent = if parent == "-" { Value::Null } else { json!(parent) };
    let mut entry = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s",
        "timestamp": format!("2026-03-01T10:{:02}:{:02}Z", at / 60, at % 60)});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    entry
}

fn asked(at: usize, uuid: &str, parent: &str, text: &str) -> Value {
    entry("user", at, uuid, parent, json!({"message": {"role": "user", "content": text}}))
}

fn answered(at: usize, uuid: &str, parent: &str, blocks: Value) -> Value {
    let message = json!({"role": "assistant", "id": format!("msg-{uuid}"), "model": "large", "content": blocks,
        "usage": {"input_tokens": 10, "output_tokens": 5}});
    entry("assistant", at, uuid, parent, json!({"message": message}))
}

fn told(at: usize, uuid: &str, parent: &str, text: &str) -> Value {
    answered(at, uuid, parent, json!([{"type": "text", "text": text}]))
}

fn boundary(at: usize, logical: Value, metadata: Value) -> Value {
    let more = json!({"subtype": "compact_boundary", "content": "Compacted",
        "logicalParentUuid": logical, "compactMetadata": metadata});
    entry("system", at, "b", "-", more)
}

fn summary(at: usize) -> Value {
    let mut summary = asked(at, "c", "b", "They spoke of tea.");
    summary["isCompactSummary"] = json!(true);
    summary
}

/// The ids of a history; that of a summary is `*`.
fn shown(session: &Session) -> Result<String> {
    let name = |message: &Message| match CompactionId::from_message(&message.id) {
        Some(_) => "*".to_owned(),
        None => message.id.to_string(),
    };
    Ok(session.history()?.iter().map(name).collect::<Vec<_>>().join(" "))
}

/// Two questions with their answers.
fn two_turns() -> Vec<Value> {
    vec![
        asked(0, "u1", "-", "Which tea?"),
        told(1, "a1", "u1", "Assam."),
        asked(2, "u2", "a1", "Which cup?"),
        told(3, "a2", "u2", "The blue one."),
    ]
}

#[test]
fn a_compaction_keeps_the_messages_that_its_boundary_names() -> Result<()> {
    let ends =
        |head: &str, tail: &str| json!({"headUuid": head, "tailUuid": tail, "anchorUuid": "c"});
    let list = |ids: &[&str], anchor: &str| json!({"uuids": ids, "anchorUuid": anchor});
    for (logical, metadata, next, right) in [
        (json!("a2"), json!({"preservedSegment": ends("u2", "a2")}), "a2", "* u2 a2 u3"),
        (json!("a2"), json!({"preservedSegment": ends("u2", "a2")}), "c", "* u2 a2 u3"),
        (Value::Null, json!({"preservedMessages": list(&["u2", "a2"], "c")}), "a2", "* u2 a2 u3"),
        // The list supersedes the ends.
        (
            json!("a2"),
            json!({"preservedSegment": ends("u1", "a2"), "preservedMessages": list(&["a2"], "c")}),
            "a2",
            "* a2 u3",
        ),
        // Its anchor is the boundary: it keeps the beginning.
        (json!("a2"), json!({"preservedMessages": list(&["u1", "a1"], "b")}), "c", "u1 a1 * u3"),
        // The parent is lost, and an abandoned branch is before the boundary.
        (json!("lost"), json!({"preservedSegment": ends("u2", "a2")}), "a2", "* u2 a2 u3"),
        // What it names as kept was never there.
        (json!("a2"), json!({"preservedSegment": ends("x", "y")}), "c", "* u3"),
    ] {
        let mut lines = two_turns();
        lines.push(asked(4, "x1", "a1", "No, coffee."));
        lines.extend([boundary(5, logical, metadata.clone()), summary(6)]);
        lines.push(asked(7, "u3", next, "And sugar?"));
        let (chat, report) = session(&lines)?;
        assert_eq!(shown(&chat)?, right, "{metadata}: {:#?}", report.notes);
        assert_eq!(report.first_fault(), None, "{metadata}");
    }
    Ok(())
}

#[test]
fn a_compaction_that_repeats_the_history_shows_nothing_twice() -> Result<()> {
    let mut lines = two_turns();
    lines.extend(two_turns().into_iter().take(3));
    lines.push(entry("system", 4, "n", "u2", json!({"content": "A hook ran."})));
    let kept = json!({"uuids": ["a2", "n"], "anchorUuid": "c"});
    lines.extend([boundary(5, json!("n"), json!({"preservedMessages": kept})), summary(6)]);
    lines.push(asked(7, "u3", "n", "And sugar?"));
    let (chat, report) = session(&lines)?;
    assert_eq!(shown(&chat)?, "* a2 u3");
    assert_eq!((report.dropped, report.first_fault()), (3, None), "{report:#?}");
    Ok(())
}

#[test]
fn a_prompt_that_waited_is_a_message_and_a_notice_is_none() -> Result<()> {
    let waiting = |uuid: &str, parent: &str, prompt: &str, more: Value| {
        let mut attached = json!({"type": "queued_command", "prompt": prompt});
        attached.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry("attachment", 3, uuid, parent, json!({"attachment": attached}))
    };
    let notice = "<task-notification>\n<status>completed</status>\n</task-notification>";
    let mut lines = two_turns();
    lines.extend([
        json!({"type": "queue-operation", "operation": "enqueue", "content": "Use the red cup.",
               "sessionId": "s", "timestamp": "2026-03-01T10:00:03Z"}),
        waiting("q1", "a2", "Use the red cup.", json!({"origin": {"kind": "human"}})),
        waiting("q2", "q1", notice, json!({"commandMode": "prompt"})),
        waiting("q3", "q2", "Done.", json!({"origin": {"kind": "task-notification"}})),
        told(4, "a3", "q3", "The red one."),
    ]);
    let (chat, _) = session(&lines)?;
    assert_eq!(shown(&chat)?, "u1 a1 u2 a2 q1 a3");
    let prompt = chat.message(&"q1".into())?.unwrap();
    assert_eq!((&prompt.role, prompt.text().as_str()), (&Role::User, "Use the red cup."));
    let found = chat.path().search("red cup").run()?.hits;
    let found: BTreeSet<_> = found.iter().map(|hit| hit.id.as_str()).collect();
    assert!(found.contains("q1"), "{found:?}");
    assert!(chat.message(&"q2".into())?.unwrap().is_hidden);
    Ok(())
}

#[test]
fn an_answer_in_many_lines_shows_its_text_once() -> Result<()> {
    let part = |at: usize, uuid: &str, parent: &str, model: &str, output: u64, block: Value| {
        let mut part = answered(at, uuid, parent, json!([block]));
        part["message"]["id"] = json!("msg");
        part["message"]["model"] = json!(model);
        part["message"]["usage"] = json!({"input_tokens": 900 / output, "output_tokens": output});
        part
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let lines = [
        asked(0, "u", "-", "Look for the kettle."),
        part(1, "p1", "u", "large", 1, text("Let")),
        part(2, "p2", "p1", "large", 2, text("Let me")),
        part(3, "p3", "p2", "small", 30, text("Let me look.")),
        part(
            4,
            "p4",
            "p3",
            "small",
            30,
            json!({"type": "tool_use", "id": "t", "name": "Find", "input": {}}),
        ),
        asked(5, "u2", "p4", "And?"),
    ];
    let (chat, report) = session(&lines)?;
    assert_eq!(shown(&chat)?, "u p3 p4 u2");
    assert_eq!((report.kept, report.converted), (4, 2));
    let usage = chat.usage()?;
    assert_eq!((usage.answers, usage.input, usage.output), (1, 30, 30));
    Ok(())
}

#[test]
fn a_result_in_another_file_is_named_and_an_error_is_no_answer() -> Result<()> {
    let call = json!([{"type": "tool_use", "id": "t", "name": "List", "input": {}}]);
    let kept =
        "<persisted-output>\nOutput too large. Full output saved to: /x/tool-results/t.txt\nkettle";
    let result = json!({"message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": kept}]}});
    let mut error = told(3, "e", "r", "API Error: overloaded");
    error["isApiErrorMessage"] = json!(true);
    error["message"]["model"] = json!("<synthetic>");
    let lines = [
        asked(0, "u", "-", "List it."),
        answered(1, "a", "u", call),
        entry("user", 2, "r", "a", result),
        error,
        asked(4, "u2", "e", "Again."),
    ];
    let (chat, report) = session(&lines)?;
    assert_eq!(shown(&chat)?, "u a r u2");
    assert!(report.notes.iter().any(|note| note.why.contains("/x/tool-results/t.txt")));
    assert!(matches!(&chat.message(&"r".into())?.unwrap().parts[0], Part::Tool(tool)
        if tool.output.as_ref().unwrap().as_str().contains("kettle")));
    assert_eq!(chat.usage()?.answers, 1);
    assert_eq!(chat.info()?.unwrap().model.as_deref(), Some("large"));
    Ok(())
}

/// A copy of a log in session `t`, which goes on there.
fn copied(lines: &[Value], mark: impl Fn(&mut Value)) -> Vec<Value> {
    let mut copies: Vec<Value> = lines.to_vec();
    copies.push(asked(8, "u3", "a2", "And the pot?"));
    for copy in &mut copies {
        copy["sessionId"] = json!("t");
        mark(copy);
    }
    copies
}

#[test]
fn a_copied_conversation_is_a_fork_of_its_origin_in_any_order() -> Result<()> {
    let origin = two_turns();
    let mut continued = origin.clone();
    continued.push(json!({"type": "continued-in", "sessionId": "s", "continuedInSessionId": "t"}));
    let background = copied(&origin, |copy| copy["sessionKind"] = json!("bg"));
    let named = copied(&origin, |copy| {
        if copy["uuid"] != "u3" {
            copy["forkedFrom"] = json!({"sessionId": "s", "messageUuid": copy["uuid"]});
        }
    });
    let plain = copied(&origin, |_| {});
    for (origin, copy) in [(&origin, background), (&origin, named), (&continued, plain)] {
        for is_reversed in [false, true] {
            let store = Store::open_in_memory()?;
            let mut files = [("s.jsonl", origin), ("t.jsonl", &copy)];
            if is_reversed {
                files.reverse();
            }
            for (name, lines) in files {
                import(&store, name, lines)?;
            }
            let info = store.session("t")?.info()?.unwrap();
            assert_eq!(info.parent_session, Some("s".into()), "{is_reversed}");
            assert_eq!(info.fork_point, Some("a2".into()));
            assert_eq!(store.session("s")?.info()?.unwrap().parent_session, None);
            let total = store.usage().total()?;
            assert_eq!((total.answers, total.output), (2, 10), "{is_reversed}");
            assert_eq!(store.search("blue").run()?.hits.len(), 1);
            assert_eq!(store.verify(|_| {})?.damages, []);
            assert_eq!(shown(&store.session("t")?)?, "u1 a1 u2 a2 u3");
            // Again, nothing changes.
            assert_eq!(import(&store, "t.jsonl", &copy)?.added, 0);
            assert_eq!(store.usage().total()?, total);
        }
    }
    Ok(())
}

/// A copy as the agent SDK makes it: each entry has a new id and names its origin.
fn renamed(lines: &[Value]) -> Vec<Value> {
    let name = |id: &Value| id.as_str().map_or(json!(null), |id| json!(format!("copy-of-{id}")));
    let copy = |line: &Value| {
        let mut copy = line.clone();
        copy["forkedFrom"] = json!({"sessionId": line["sessionId"], "messageUuid": line["uuid"]});
        for field in ["uuid", "parentUuid", "logicalParentUuid"] {
            copy[field] = name(&line[field]);
        }
        copy["sessionId"] = json!("t");
        copy
    };
    lines.iter().map(copy).collect()
}

/// The renamed copies were counted as messages of their own.
#[test]
fn a_copy_under_other_ids_is_a_fork_of_its_origin_in_any_order() {
    let strategy = turns().prop_flat_map(|turns| {
        let origin = conversation(&turns);
        let copied = renamed(&origin[..]);
        let parts = (1..=copied.len()).prop_flat_map(move |count| {
            let mut copy = copied[..count].to_vec();
            let last = copy[count - 1]["uuid"].as_str().unwrap().to_owned();
            copy.push(asked(900, "own1", &last, "And the pot?"));
            copy.push(told(901, "own2", "own1", "Steel."));
            copy[count]["sessionId"] = json!("t");
            copy[count + 1]["sessionId"] = json!("t");
            (Just(copy.clone()), Just(copy).prop_shuffle())
        });
        (Just(origin), parts, any::<bool>())
    });
    random::check_all(random::cases(60), &strategy, |(origin, (copy, shuffled), is_reversed)| {
        let copies = copy.len() - 2;
        let (store, alone) = (Store::open_in_memory()?, Store::open_in_memory()?);
        import(&alone, "s.jsonl", &origin)?;
        let mut files = [("s.jsonl", &origin), ("t.jsonl", &shuffled)];
        if is_reversed {
            files.reverse();
        }
        for (name, lines) in files {
            assert_eq!(import(&store, name, lines)?.first_fault(), None);
        }
        let fork = store.session("t")?;
        let info = fork.info()?.unwrap();
        assert_eq!(info.parent_session, Some("s".into()));
        assert_eq!(outcome(&store.session("s")?)?, outcome(&alone.session("s")?)?);
        let ids: Vec<_> = origin[..copies].iter().map(|line| &line["uuid"]).collect();
        for id in &ids {
            assert!(fork.message(&id.as_str().unwrap().into())?.is_some(), "{id}");
        }
        assert_eq!(info.messages, copies as u64 + 2);
        // Only the answer of its own is added.
        assert_eq!(store.usage().total()?.answers, alone.usage().total()?.answers + 1);
        assert_eq!(store.search("steel").run()?.hits.len(), 1);
        let questions =
            |store: &Store| Ok::<_, talktree::Error>(store.search("question").run()?.hits.len());
        assert_eq!(questions(&store)?, questions(&alone)?);
        assert_eq!(store.verify(|_| {})?.damages, []);
        for (name, lines) in [("t.jsonl", &copy), ("s.jsonl", &origin)] {
            assert_eq!(import(&store, name, lines)?.added, 0);
        }
        assert_eq!(store.verify(|_| {})?.damages, []);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_session_that_a_later_line_makes_an_origin_takes_its_copy_in() -> Result<()> {
    let store = Store::open_in_memory()?;
    let mut origin = two_turns();
    import(&store, "s.jsonl", &origin)?;
    let report = import(&store, "t.jsonl", &copied(&origin, |_| {}))?;
    assert!(report.notes.iter().any(|note| note.why.contains("nothing says which is the copy")));
    assert_eq!(store.usage().total()?.answers, 4);
    origin.push(json!({"type": "continued-in", "sessionId": "s", "continuedInSessionId": "t"}));
    import(&store, "s.jsonl", &origin)?;
    assert_eq!(store.session("t")?.info()?.unwrap().parent_session, Some("s".into()));
    assert_eq!(store.usage().total()?.answers, 2);
    assert_eq!(store.search("blue").run()?.hits.len(), 1);
    Ok(())
}

#[test]
fn lines_without_ids_follow_each_other_in_a_session_named_by_the_file() -> Result<()> {
    let bare = |mut line: Value| {
        let line = line.as_object_mut().unwrap();
        ["uuid", "parentUuid", "sessionId"].iter().for_each(|name| drop(line.remove(*name)));
        json!(line)
    };
    let lines: Vec<Value> = two_turns().into_iter().map(bare).collect();
    let store = Store::open_in_memory()?;
    let report = import(&store, "logs/tea.jsonl", &lines[..2])?;
    assert_eq!((report.format.as_str(), report.sessions[0].as_str()), ("claude-code", "tea"));
    assert_eq!(import(&store, "logs/tea.jsonl", &lines)?.added, 2);
    let texts: Vec<String> = store.session("tea")?.history()?.iter().map(Message::text).collect();
    assert_eq!(texts, ["Which tea?", "Assam.", "Which cup?", "The blue one."]);
    Ok(())
}

/// A conversation of so many turns; an answer may call tools, in parts, and a result follows its own call.
fn conversation(turns: &[(u8, bool)]) -> Vec<Value> {
    let (mut lines, mut last) = (Vec::new(), "-".to_owned());
    for (turn, (calls, is_compacted)) in turns.iter().enumerate() {
        let at = 10 * turn;
        if *is_compacted && turn > 0 {
            let kept = json!({"uuids": [last], "anchorUuid": format!("c{turn}")});
            let mut cut = boundary(at, json!(last), json!({"preservedMessages": kept}));
            cut["uuid"] = json!(format!("b{turn}"));
            let mut summary = summary(at);
            summary["uuid"] = json!(format!("c{turn}"));
            summary["parentUuid"] = json!(format!("b{turn}"));
            lines.extend([cut, summary]);
        }
        let question = format!("u{turn}");
        lines.push(asked(at, &question, &last, &format!("Question {turn}")));
        last = question;
        for call in 0..*calls {
            let (part, id) = (format!("p{turn}-{call}"), format!("t{turn}-{call}"));
            let block = json!([{"type": "tool_use", "id": id, "name": "Brew", "input": {}}]);
            let mut line = answered(at + 1, &part, &last, block);
            line["message"]["id"] = json!(format!("calls-{turn}"));
            lines.push(line);
            last = part;
        }
        for call in 0..*calls {
            let result = json!({"message": {"role": "user", "content": [{"type": "tool_result",
                "tool_use_id": format!("t{turn}-{call}"), "content": "hot"}]}});
            last = format!("r{turn}-{call}");
            lines.push(entry("user", at + 2, &last, &format!("p{turn}-{call}"), result));
        }
        let answer = format!("a{turn}");
        lines.push(told(at + 3, &answer, &last, &format!("Answer {turn}")));
        last = answer;
    }
    lines
}

/// What a log shows: the ids of its history, whether each result follows its call, and the head.
fn outcome(session: &Session) -> Result<(BTreeSet<String>, bool, Option<String>)> {
    let history = session.history()?;
    let place = |id: &str| history.iter().position(|message| message.id.as_str() == id);
    let results = history.iter().filter(|message| message.id.as_str().starts_with('r'));
    let follows = |result: &Message| {
        let call = place(&result.id.as_str().replacen('r', "p", 1));
        call.is_some_and(|call| Some(call) < place(result.id.as_str()))
    };
    let is_in_order = results.into_iter().all(follows);
    let ids = shown(session)?.split(' ').map(str::to_owned).collect();
    Ok((ids, is_in_order, session.head()?.map(|head| head.to_string())))
}

fn turns() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0..3_u8, prop::bool::weighted(0.2)), 1..6)
}

#[test]
fn a_log_in_any_order_is_the_same_conversation() {
    let strategy = turns().prop_flat_map(|turns| {
        let lines = conversation(&turns);
        (Just(lines.clone()), Just(lines).prop_shuffle())
    });
    random::check_all(random::cases(100), &strategy, |(lines, shuffled)| {
        let (chat, _) = session(&lines)?;
        let (other, report) = session(&shuffled)?;
        assert_eq!(outcome(&other)?, outcome(&chat)?, "{:#?}", report.notes);
        assert_eq!(report.first_fault(), None);
        assert_eq!(other.compactions()?.len(), chat.compactions()?.len());
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_log_with_lines_twice_is_the_same_conversation() {
    let strategy = (
        turns(),
        prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..5),
    );
    random::check_all(random::cases(100), &strategy, |(turns, repeated)| {
        let lines = conversation(&turns);
        let mut twice = lines.clone();
        for (line, place) in &repeated {
            let place = place.index(twice.len() + 1);
            twice.insert(place, lines[line.index(lines.len())].clone());
        }
        let (chat, _) = session(&lines)?;
        let (other, report) = session(&twice)?;
        assert_eq!(outcome(&other)?, outcome(&chat)?);
        assert_eq!((report.dropped, report.first_fault()), (repeated.len() as u64, None));
        Ok(())
    })
    .unwrap();
}

#[test]
fn of_a_log_that_lost_lines_the_rest_is_one_conversation() {
    let strategy = (turns(), prop::collection::vec(any::<prop::sample::Index>(), 1..4));
    random::check_all(random::cases(100), &strategy, |(turns, lost)| {
        let turns: Vec<(u8, bool)> = turns.into_iter().map(|(calls, _)| (calls, false)).collect();
        let mut lines = conversation(&turns);
        for line in lost {
            if lines.len() > 1 {
                lines.remove(line.index(lines.len()));
            }
        }
        let (chat, report) = session(&lines)?;
        let ids: BTreeSet<&str> = lines.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
        let parents = lines.iter().filter_map(|line| line["parentUuid"].as_str());
        let missing = parents.filter(|parent| !ids.contains(parent)).count();
        let faults = report.notes.iter().filter(|note| note.is_fault).count();
        assert_eq!((report.kept, faults), (lines.len() as u64, missing), "{:#?}", report.notes);
        assert_eq!(chat.head()?.unwrap().as_str(), lines.last().unwrap()["uuid"]);
        assert_eq!(chat.roots()?.len(), 1);
        Ok(())
    })
    .unwrap();
}
