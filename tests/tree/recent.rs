//! The newest messages within a budget.
//!
//! While others cleared or removed a session, `recent` reported damage of a sound store: it counted the path again after the
//! path was gone.

use std::sync::{Arc, Mutex};

use crate::common::{drawn, letters};
use serde_json::json;
use talktree::{Budget, Error, Message, MessageId, Part, Result, Session, Store, TokenCounter};

fn chat(path: &str) -> Result<Session> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters(path))?;
    Ok(chat)
}

#[test]
fn the_newest_messages_that_fit_are_returned() -> Result<()> {
    let chat = chat("a b c d e")?;
    for (max, shown, left_out) in
        [(0, "e", 4), (1, "e", 4), (2, "d e", 3), (5, "a b c d e", 0), (99, "a b c d e", 0)]
    {
        let recent = chat.recent(Budget::messages(max))?;
        assert_eq!((drawn(&recent.messages), recent.left_out), (shown.to_owned(), left_out));
    }
    Ok(())
}

#[test]
fn tokens_and_bytes_are_those_of_row_stats() -> Result<()> {
    let chat = chat("a b c d e f g h")?;
    let stats = chat.row_stats()?;
    for count in 1..=8 {
        let tokens: u64 = stats.iter().rev().take(count).map(|stat| stat.tokens).sum();
        let bytes: u64 = stats.iter().rev().take(count).map(|stat| stat.bytes).sum();
        for (budget, fit) in [
            (Budget::tokens(tokens), count),
            (Budget::bytes(bytes), count),
            (Budget::tokens(tokens - 1), (count - 1).max(1)),
            (Budget::bytes(bytes - 1), (count - 1).max(1)),
        ] {
            assert_eq!(chat.recent(budget)?.messages.len(), fit, "{budget:?}");
        }
    }
    Ok(())
}

#[test]
fn an_empty_session_leaves_nothing_out() -> Result<()> {
    let recent = Store::open_in_memory()?.session("s")?.recent(Budget::tokens(100))?;
    assert_eq!((recent.messages.len(), recent.left_out), (0, 0));
    Ok(())
}

#[test]
fn recent_never_starts_between_a_call_and_its_result() -> Result<()> {
    let chat = chat("a")?;
    let call = Part::tool_call("t", "1", json!({}));
    let result = Part::tool_result("t", "1", json!("done"));
    chat.append_all([
        Message::new("assistant", vec![call]).with_id("call"),
        Message::new("tool", vec![result]).with_id("result"),
        Message::assistant("done").with_id("z"),
    ])?;
    for (max, shown) in [(1, "z"), (2, "z"), (3, "call result z"), (4, "a call result z")] {
        assert_eq!(drawn(&chat.recent(Budget::messages(max))?.messages), shown);
    }
    chat.checkout(&"result".into())?;
    assert_eq!(drawn(&chat.recent(Budget::messages(1))?.messages), "call result");
    Ok(())
}

/// Everything before such a result was left out, however large the budget was.
#[test]
fn a_result_whose_call_is_deleted_ends_nothing() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append(Message::user("q").with_id("q"))?;
    let call = Message::assistant("").with_part(Part::tool_call("t", "1", json!({})));
    let call = chat.append(call)?.id;
    let result = Message::assistant("").with_part(Part::tool_result("t", "1", json!("done")));
    chat.append(result.with_id("r"))?;
    chat.append_all(["x", "y", "z"].map(|id| Message::user(id).with_id(id)))?;
    chat.delete([&call])?;
    for (max, shown) in [(50, "q r x y z"), (5, "q r x y z"), (4, "r x y z"), (3, "x y z")] {
        assert_eq!(drawn(&chat.recent(Budget::messages(max))?.messages), shown);
    }
    assert_eq!(chat.recent(Budget::tokens(10_000))?.messages.len(), 5);
    Ok(())
}

#[test]
fn the_summary_before_the_messages_is_included() -> Result<()> {
    let chat = chat("a b c d e")?;
    let compaction = chat.add_compaction("first", &"a".into(), &"c".into())?.id.as_message();
    let recent = chat.recent(Budget::messages(2))?;
    assert_eq!((drawn(&recent.messages), recent.left_out), (format!("{compaction} d e"), 0));
    assert_eq!(chat.recent(Budget::messages(1))?.left_out, 2);
    Ok(())
}

/// The call of a tool is inside a summary's range, and its result after it. The range was extended to the call, which
/// never came, and the summary was lost with the result.
#[test]
fn a_summary_over_the_call_of_a_tool_is_kept_with_its_result() -> Result<()> {
    let chat = chat("a")?;
    chat.append_all([
        Message::new("assistant", vec![Part::tool_call("t", "1", json!({}))]).with_id("call"),
        Message::new("tool", vec![Part::tool_result("t", "1", json!("done"))]).with_id("result"),
        Message::assistant("done").with_id("z"),
    ])?;
    let compaction = chat.add_compaction("first", &"a".into(), &"call".into())?.id.as_message();
    for max in [2, 3, 100] {
        let recent = chat.recent(Budget::messages(max))?;
        assert_eq!(drawn(&recent.messages), format!("{compaction} result z"), "{max} messages");
    }
    Ok(())
}

#[test]
fn hidden_messages_cost_nothing_and_are_not_counted_as_left_out() -> Result<()> {
    let chat = chat("a b")?;
    chat.append(Message::user("hidden").with_id("x").hidden())?;
    chat.append(Message::user("c").with_id("c"))?;
    let recent = chat.recent(Budget::messages(2))?;
    assert_eq!((drawn(&recent.messages), recent.left_out), ("b c".into(), 1));
    let raw = chat.path().raw().recent(Budget::messages(2))?;
    assert_eq!((drawn(&raw.messages), raw.left_out), ("x c".into(), 2));
    Ok(())
}

type Deletion = Box<dyn FnOnce() -> Result<()> + Send>;

/// Counts one token a message; once, it does something else before.
#[derive(Clone, Default)]
struct Busy(Arc<Mutex<Option<Deletion>>>);

impl TokenCounter for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn count_text(&self, _: &str) -> f64 {
        1.0
    }

    fn count(&self, _: &Message) -> f64 {
        let deletion = self.0.lock().unwrap().take();
        if let Some(deletion) = deletion {
            deletion().unwrap();
        }
        1.0
    }
}

/// Returns a session of 100 messages, named by their numbers.
fn hundred(store: &Store, counter: &Busy) -> Result<Session> {
    let chat = store.session_builder("s").token_counter(counter.clone()).open()?;
    chat.append_all((1..=100).map(|n| Message::user("x").with_id(n.to_string())))?;
    Ok(chat)
}

#[test]
fn recent_is_of_one_state_while_others_delete() -> Result<()> {
    type Delete = fn(&Store) -> Result<()>;
    let deletions: [(Delete, usize); 3] = [
        (|store| store.session("s")?.clear(), 0),
        (|store| store.remove(&"s".into()), 0),
        (|store| store.session("s")?.delete_branch(&"51".into()).map(drop), 50),
    ];
    for (delete, left) in deletions {
        // Of the first batch, the state at the beginning; beyond it, the state after the deletion.
        for (max, expected) in [(3, (3, 97)), (99, (left, 0))] {
            let store = Store::open_in_memory()?;
            let counter = Busy::default();
            let chat = hundred(&store, &counter)?;
            let other = store.clone();
            *counter.0.lock().unwrap() = Some(Box::new(move || delete(&other)));
            let recent = chat.recent(Budget::tokens(max))?;
            assert_eq!((recent.messages.len(), recent.left_out), expected, "{max}");
        }
    }
    Ok(())
}

#[test]
fn a_path_that_is_deleted_while_it_is_read_is_unknown() -> Result<()> {
    let store = Store::open_in_memory()?;
    let counter = Busy::default();
    let chat = hundred(&store, &counter)?;
    let other = chat.clone();
    *counter.0.lock().unwrap() = Some(Box::new(move || other.clear()));
    let leaf = MessageId::from("90");
    let refused = chat.at(&leaf).recent(Budget::tokens(99));
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })), "{refused:?}");
    Ok(())
}
