//! Calls of a model are run once and answered in one message, whatever happens on the way.

use std::cell::{Cell, RefCell};
use std::sync::mpsc;

use serde_json::{Value, json};
use talktree::{
    Block, BoxError, Change, Document, Error, Message, Part, Result, Role, SessionManager, Store,
    ToolCall,
};

fn calls(ids: &str) -> Message {
    let call = |id: &str| Part::tool_call("add", id, json!({"n": id}));
    Message::new(Role::Assistant, ids.split(' ').map(call).collect())
        .with_id(format!("calls {ids}"))
}

fn echo(call: &ToolCall) -> Result<Value, BoxError> {
    Ok(json!(format!("{} {}", call.name, call.input["n"])))
}

fn never(call: &ToolCall) -> Result<Value, BoxError> {
    panic!("{call:?} was run")
}

/// Draws the results in a message: `id=output`, an error as `id!text`.
fn drawn(message: &Message) -> String {
    let words = message.parts.iter().map(|part| match part {
        Part::Tool(tool) => match (&tool.error_text, &tool.output) {
            (Some(error), _) => format!("{}!{error}", tool.call_id),
            (None, Some(output)) => format!("{}={output}", tool.call_id),
            _ => format!("{}?", tool.call_id),
        },
        part => format!("{part:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn all_results_are_one_message_in_the_order_of_the_calls() -> Result<()> {
    let store = Store::open_in_memory()?;
    {
        let chat = store.session("s")?;
        chat.append(Message::user("2 + 2?"))?;
        chat.append(calls("a b c"))?;
        let (sender, changes) = mpsc::channel();
        let _subscription = chat.subscribe(move |event| drop(sender.send(event.change.clone())));
        let results = chat.tools().answer(&calls("a b c"), echo)?.unwrap();
        assert_eq!(results.role, Role::Tool);
        assert_eq!(drawn(&results), r#"a="add \"a\"" b="add \"b\"" c="add \"c\"""#);
        assert_eq!(changes.try_recv().ok(), Some(Change::Append { ids: vec![results.id.clone()] }));
        assert_eq!(chat.head()?, Some(results.id.clone()));
        assert_eq!(chat.message(&results.id)?.unwrap().parts, results.parts);
    }
    Ok(())
}

#[test]
fn an_answer_without_calls_is_none() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let both = json!({"type": "tool-add", "toolCallId": "a", "input": {}, "output": 1});
    let part = |json: Value| serde_json::from_value::<Part>(json).unwrap();
    for message in [
        Message::assistant("4"),
        // Only a model calls tools.
        Message::new(Role::User, vec![Part::tool_call("add", "a", json!({}))]),
        Message::new("tool", vec![Part::tool_call("add", "a", json!({}))]),
        Message::new(Role::Assistant, vec![Part::tool_result("add", "a", json!(1))]),
        Message::new(Role::Assistant, vec![part(both)]),
        // The provider runs it.
        Message::new(
            Role::Assistant,
            vec![
                part(
                    json!({"type": "tool-add", "toolCallId": "a", "input": {}, "providerExecuted": true}),
                ),
                part(
                    json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
                ),
            ],
        ),
        // A person has to approve it.
        Message::new(
            Role::Assistant,
            vec![part(json!({
                "type": "tool-add", "toolCallId": "a", "input": {}, "state": "approval-requested",
                "approval": {"id": "1"},
            }))],
        ),
    ] {
        chat.append(message.clone())?;
        assert_eq!(chat.tools().answer(&message, never)?, None, "{message:?}");
    }
    Ok(())
}

#[test]
fn errors_and_panics_are_results() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(calls("a b c"))?;
    let run = |call: &ToolCall| match call.id.as_str() {
        "a" => Err("there is no such tool".into()),
        "b" => panic!("boom"),
        _ => Ok(Value::Null),
    };
    let results = chat.tools().answer(&calls("a b c"), run)?.unwrap();
    assert_eq!(
        drawn(&results),
        "a!there is no such tool b!the tool failed: it panicked: boom c=null"
    );
    assert!(
        matches!(&results.parts[0], Part::Tool(tool) if tool.state.as_deref() == Some("output-error"))
    );
    // Stored and read again, each call has its result.
    assert!(chat.tools().answer(&calls("a b c"), never)?.is_some());
    Ok(())
}

#[test]
fn an_interrupted_call_has_no_result_and_ends_the_round() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(calls("a b c"))?;
    let (sender, changes) = mpsc::channel();
    let _subscription = chat.subscribe(move |event| drop(sender.send(event.change.clone())));
    let stop = |_: &ToolCall| -> Result<Value, BoxError> { Err(Error::Interrupted.into()) };
    let stopped = chat.tools().answer(&calls("a b c"), stop);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert_eq!(changes.try_iter().count(), 0);

    // The results of the calls before it are stored, at once.
    let run = |call: &ToolCall| if call.id == "b" { stop(call) } else { echo(call) };
    let stopped = chat.tools().answer(&calls("a b c"), run);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    let head = chat.head()?.unwrap();
    let appended = [Change::Append { ids: vec![head.clone()] }];
    assert_eq!(changes.try_iter().collect::<Vec<_>>(), appended);
    assert_eq!(drawn(&chat.message(&head)?.unwrap()), r#"a="add \"a\"""#);
    let rest = chat.tools().answer(&calls("a b c"), echo)?.unwrap();
    assert_eq!(drawn(&rest), r#"b="add \"b\"" c="add \"c\"""#);
    Ok(())
}

#[test]
fn a_call_with_a_result_is_not_run_again() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(calls("a b"))?;
    chat.append(Message::new(Role::Tool, vec![Part::tool_result("add", "b", json!(1))]))?;
    chat.append(Message::user("Well?"))?;
    let rest = chat.tools().answer(&calls("a b"), echo)?.unwrap();
    assert_eq!(drawn(&rest), r#"a="add \"a\"""#);
    // The program stopped before it called the model, and begins again.
    let again = chat.tools().answer(&calls("a b"), never)?;
    assert_eq!(again.map(|message| message.id), Some(rest.id));
    Ok(())
}

#[test]
fn a_result_belongs_to_the_round_of_its_call() -> Result<()> {
    // Many providers number the calls of each turn from one.
    let chat = Store::open_in_memory()?.session("s")?;
    let runs = Cell::new(0);
    let run = |call: &ToolCall| {
        runs.set(runs.get() + 1);
        echo(call)
    };
    for turn in 1..=2 {
        let message = calls("1").with_id(format!("turn {turn}"));
        chat.append(message.clone())?;
        assert!(chat.tools().answer(&message, run)?.is_some());
        assert_eq!(runs.get(), turn);
    }
    // Two calls of one id are two calls.
    chat.append(calls("1 1"))?;
    assert_eq!(chat.tools().answer(&calls("1 1"), run)?.unwrap().parts.len(), 2);
    assert_eq!(chat.tools().answer(&calls("1 1"), never)?.unwrap().parts.len(), 2);
    Ok(())
}

#[test]
fn what_is_said_while_a_tool_runs_stays() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(calls("a"))?;
    let run = |call: &ToolCall| {
        chat.append(Message::user("Hurry!").with_id("hurry"))?;
        echo(call)
    };
    let results = chat.tools().answer(&calls("a"), run)?.unwrap();
    assert_eq!(chat.message(&results.id)?.unwrap().parent, Some("hurry".into()));
    assert_eq!(chat.history()?.len(), 3);
    Ok(())
}

#[test]
fn two_programs_that_answer_one_message_store_each_result_once() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(calls("a b"))?;
    let other = RefCell::new(None);
    let run = |call: &ToolCall| {
        if other.borrow().is_none() {
            *other.borrow_mut() = chat.tools().answer(&calls("a b"), |call| Ok(json!(call.id)))?;
        }
        echo(call)
    };
    let results = chat.tools().answer(&calls("a b"), run)?.unwrap();
    assert_eq!(drawn(&results), r#"a="a" b="b""#);
    assert_eq!(Some(results.id), other.into_inner().map(|message| message.id));
    assert_eq!(chat.path_length()?, 2);
    Ok(())
}

#[test]
fn results_of_a_branch_that_was_left_are_not_stored() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let question = chat.append(Message::user("2 + 2?"))?.id;
    chat.append(calls("a"))?;
    let left = |call: &ToolCall| {
        chat.retry()?;
        chat.append(Message::assistant("4").with_id("other"))?;
        echo(call)
    };
    let refused = chat.tools().answer(&calls("a"), left);
    assert!(matches!(refused, Err(Error::HeadMoved { .. })), "{refused:?}");
    assert_eq!((chat.head()?, chat.branches(&question)?.len()), (Some("other".into()), 2));
    // Nor are calls of another branch run.
    let refused = chat.tools().answer(&calls("a"), never);
    assert!(matches!(refused, Err(Error::HeadMoved { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn calls_are_stored_before_they_are_run() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let refused = chat.tools().answer(&calls("a"), never);
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })), "{refused:?}");
    // The stored calls count, not those of a message that was changed since.
    chat.append(calls("a").with_id("m"))?;
    let results = chat.tools().answer(&calls("b").with_id("m"), echo)?.unwrap();
    assert_eq!(drawn(&results), r#"a="add \"a\"""#);
    let summary = chat.add_compaction("1.", &"m".into(), &results.id)?.id;
    let refused = chat.tools().answer(&calls("a").with_id(summary.as_message()), never);
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })), "{refused:?}");
    let refused = chat.context().tools().answer(&calls("a").with_id("m"), never);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn the_tools_of_the_context_run_by_themselves_and_what_they_load_is_loaded() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .block("memory", Block::stored())
        .block("skills", Block::stored_skills())
        .open()?;
    chat.context().set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    let skill = json!({"label": "skills", "key": "pdf"});
    let message = Message::new(
        Role::Assistant,
        vec![
            Part::tool_call("load_context", "a", skill),
            Part::tool_call("add", "b", json!({"n": 1})),
            Part::tool_call("set_context", "c", json!({"label": "memory", "content": "Ada"})),
            Part::tool_call("set_context", "d", json!({"label": "memry", "content": "x"})),
            // Not offered, since no block can be searched.
            Part::tool_call("search_context", "e", json!({"n": 2})),
        ],
    );
    chat.append(message.clone())?;
    let ran = RefCell::new(Vec::new());
    let run = |call: &ToolCall| {
        ran.borrow_mut().push(call.name.clone());
        echo(call)
    };
    let results = chat.tools().answer(&message, run)?.unwrap();
    assert_eq!(ran.into_inner(), ["add", "search_context"]);
    let drawn = drawn(&results);
    assert!(drawn.contains("Use pdftotext.") && drawn.contains(r#"d="Error: "#), "{drawn}");
    assert_eq!(chat.block("memory")?.unwrap().content, "Ada");
    assert_eq!(chat.context().loaded()?, [("skills".to_owned(), "pdf".to_owned())]);
    assert_eq!(chat.context().unload("skills", "pdf")?, Some(1));
    Ok(())
}

#[test]
fn a_model_finds_what_it_did_in_the_present_turn() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session_builder("s").history_tools().open()?;
    chat.append(Message::user("Which file has the frobnicator?"))?;
    let read = Part::tool_call("read", "r", json!({"path": "lib.rs"}));
    chat.append(Message::new(Role::Assistant, vec![read]))?;
    let found = Part::tool_result("read", "r", json!("fn frobnicator() {}"));
    chat.append(Message::new(Role::Tool, vec![found]))?;
    let query = json!({"query": "in:tools frobnicator"});
    let call = Message::new(Role::Assistant, vec![Part::tool_call("history_search", "c", query)]);
    chat.append(call.clone())?;
    let answered = drawn(&chat.tools().answer(&call, never)?.unwrap());
    assert!(answered.contains("**frobnicator**() {}"), "{answered}");
    assert!(!answered.contains("Which file"), "{answered}");
    Ok(())
}

#[test]
fn a_model_that_searches_finds_neither_its_question_nor_earlier_searches() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = SessionManager::builder(&store).searchable_history("past").history_tools().build()?;
    let old = bot.resume("telegram:1").owner("ann").open()?;
    old.append(Message::user("My cat is Mozart."))?;
    old.append(Message::assistant("What a name for a cat!"))?;
    bot.unbind("telegram:1")?;
    let chat = bot.resume("telegram:1").owner("ann").open()?;
    for (turn, (tool, query, expected)) in [
        ("session_search", "whose cat", "Mozart"),
        ("session_search", "dentist appointment", "Nothing"),
        ("search_context", "my cat", "Mozart"),
        ("history_search", "cat dog", "Nothing has all the words"),
    ]
    .into_iter()
    .enumerate()
    {
        chat.append(Message::user(format!("Turn {turn}: {query}?")))?;
        let input = match tool {
            "search_context" => json!({"label": "past", "query": query}),
            _ => json!({"query": query}),
        };
        let call = Message::new(Role::Assistant, vec![Part::tool_call(tool, "c", input)]);
        chat.append(call.clone())?;
        let answered = drawn(&chat.tools().answer(&call, never)?.unwrap());
        assert!(answered.contains(expected), "{tool}: {answered}");
        assert!(!answered.contains(&format!("Turn {turn}")), "{tool}: {answered}");
        assert!(!answered.contains("_search **"), "{tool}: {answered}");
        chat.append(Message::assistant("I see."))?;
    }
    Ok(())
}
