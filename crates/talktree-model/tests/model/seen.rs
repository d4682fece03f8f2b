//! What a model saw, with a record and without one.

use serde_json::json;
use talktree::{Block, Erasure, Message, MessageId, Result, Session, Store};
use talktree_model::{Conversation, Request, Seen, SeenState, from_response, seen};

use SeenState::{Changed, Exact, MadeAgain, Removed};

/// Stores the answer of a model to the head, with a record.
fn answer(chat: &Session) -> Result<MessageId> {
    let request = Request::of(chat).tools([json!({"name": "weather"})]);
    request.anthropic()?;
    let response = json!({"content": [{"type": "text", "text": "4"}]});
    Ok(chat.append(request.recorded(from_response(&response)?))?.id)
}

fn say(chat: &Session, ids: &[&str]) -> Result<()> {
    chat.append_all(ids.iter().map(|id| Message::user(format!("text {id}")).with_id(*id)))?;
    Ok(())
}

/// Returns the texts and states of what was seen.
fn drawn(seen: &Seen) -> Vec<(String, SeenState)> {
    let text = |message: &Message| message.text();
    let texts = seen.messages.iter();
    texts.map(|it| (it.message.as_ref().map_or_else(String::new, text), it.state)).collect()
}

fn seen_by(chat: &Session, answer: &MessageId) -> Result<Vec<(String, SeenState)>> {
    Ok(drawn(&seen(chat, answer)?.expect("the answer is stored")))
}

fn expected(drawn: &[(&str, SeenState)]) -> Vec<(String, SeenState)> {
    drawn.iter().map(|(text, state)| ((*text).to_owned(), *state)).collect()
}

#[test]
fn a_record_says_exactly_what_was_shown_and_what_became_of_it() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, &["a", "b", "c", "d", "e", "f", "g"])?;
    let old = chat.add_compaction("AB", &"a".into(), &"b".into())?;
    let first = answer(&chat)?;
    assert_eq!(
        seen_by(&chat, &first)?,
        expected(&[
            ("AB", Exact),
            ("text c", Exact),
            ("text d", Exact),
            ("text e", Exact),
            ("text f", Exact),
            ("text g", Exact),
        ])
    );
    chat.update(Message::user("other d").with_id("d"))?;
    chat.delete(&["e".into()])?;
    chat.add_compaction("FG", &"f".into(), &"g".into())?;
    chat.remove_compaction(&old.id)?;
    let now = seen(&chat, &first)?.expect("stored");
    assert_eq!(
        drawn(&now),
        expected(&[
            ("", Removed),
            ("text c", Exact),
            ("other d", Changed),
            ("", Removed),
            ("text f", Exact),
            ("text g", Exact),
        ])
    );
    let shown: Vec<bool> = now.messages.iter().map(|it| it.is_shown_now).collect();
    assert_eq!(shown, [false, true, true, false, false, false]);
    assert_eq!(now.tools, ["weather"]);
    assert_eq!(now.history()?.len(), 4);
    assert_eq!(seen(&chat, &"none".into())?, None);
    Ok(())
}

#[test]
fn a_summary_that_came_before_the_answer_was_stored_was_not_seen() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, &["a", "b", "c"])?;
    let request = Request::of(&chat);
    request.openai_chat()?;
    chat.add_compaction("AB", &"a".into(), &"b".into())?;
    let id = chat.append(request.recorded(Message::assistant("4")))?.id;
    let all = [("text a", Exact), ("text b", Exact), ("text c", Exact)];
    assert_eq!(seen_by(&chat, &id)?, expected(&all));
    let id = chat.append(Message::assistant("unrecorded"))?.id;
    assert_eq!(seen_by(&chat, &id)?[0], ("AB".to_owned(), MadeAgain));
    Ok(())
}

#[test]
fn the_older_messages_of_a_long_history_are_made_again() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all((0..100).map(|n| Message::user(n.to_string())))?;
    let id = answer(&chat)?;
    let seen = seen(&chat, &id)?.expect("stored");
    assert_eq!((seen.count(MadeAgain), seen.count(Exact)), (36, 64));
    let record = chat.message(&id)?.and_then(|it| it.field(Message::REQUEST)).expect("a record");
    assert!(record.as_str().len() < 650, "{record:?}");
    let part = Request::of(&Newest(&chat)).recorded(Message::assistant("nothing was asked"));
    assert_eq!(part.metadata, None);
    let request = Newest(&chat);
    let request = Request::of(&request);
    request.anthropic()?;
    let id = chat.append(request.recorded(Message::assistant("4")))?.id;
    assert_eq!(seen_by(&chat, &id)?, expected(&[("99", Exact), ("4", Exact)]));
    Ok(())
}

/// A program that shows the last two messages.
struct Newest<'a>(&'a Session);

impl Conversation for Newest<'_> {
    fn prompt(&self) -> Result<String> {
        Ok(String::new())
    }

    fn history(&self) -> Result<Vec<Message>> {
        let mut history = self.0.history()?;
        Ok(history.split_off(history.len() - 2))
    }
}

#[test]
fn a_prompt_is_exact_until_another_one_is_frozen() -> Result<()> {
    let store = Store::open_in_memory()?;
    let memory = Block::stored();
    let chat = store.session_builder("s").block("memory", memory).cached_prompt().open()?;
    chat.context().set("memory", "Likes tea.")?;
    say(&chat, &["a"])?;
    let id = answer(&chat)?;
    let seen_now = || Ok::<_, talktree::Error>(seen(&chat, &id)?.expect("stored"));
    chat.context().set("memory", "Likes coffee.")?;
    let seen = seen_now()?;
    assert!(seen.is_prompt_exact && seen.prompt.contains("tea"), "{seen:?}");
    chat.refresh_prompt()?;
    assert!(!seen_now()?.is_prompt_exact);
    Ok(())
}

#[test]
fn an_erasure_removes_the_records_that_have_a_hash_of_what_is_erased() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let store = Store::open(&path)?;
    let chat = store.session("s")?;
    let is_recorded =
        |id: &MessageId| Ok::<_, talktree::Error>(seen(&chat, id)?.unwrap().is_recorded);
    let marks = |id: &MessageId| {
        let record = chat.message(id)?.and_then(|it| it.field(Message::REQUEST));
        let record = record.map(|record| record.value()["marks"].as_str().unwrap().to_owned());
        Ok::<_, talktree::Error>(record.unwrap_or_default())
    };
    say(&chat, &["a"])?;
    let before = answer(&chat)?;
    say(&chat, &["b"])?;
    let after = answer(&chat)?;
    let secret = marks(&after)?;
    let _ = store.erase(&Erasure::messages(&"s".into(), &["b".into()]))?;
    assert_eq!((is_recorded(&before)?, is_recorded(&after)?), (true, false));
    assert!(chat.message(&after)?.unwrap().metadata.unwrap().value()["provider"].is_string());

    say(&chat, &["c"])?;
    let after = answer(&chat)?;
    let other = marks(&after)?;
    chat.delete(&["c".into()])?;
    assert!(is_recorded(&after)?);
    let _ = store.erase(&Erasure::deleted())?;
    assert_eq!((is_recorded(&before)?, is_recorded(&after)?), (true, false));
    drop((chat, store));
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for marks in [&secret, &other] {
            let mark = &marks.as_bytes()[marks.len() - 9..];
            assert!(!bytes.windows(9).any(|bytes| bytes == mark));
        }
    }
    Ok(())
}
