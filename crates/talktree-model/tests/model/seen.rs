//! What a model saw, with a record and without one.

use serde_json::json;
use talktree::{Block, Message, MessageId, Result, Session, Store};
use talktree_model::{Conversation, Request, Seen, SeenState, from_response, seen};

use SeenState::{Reconstructed, Recorded, Removed};

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

/// Returns what was seen in the session.
fn seen_in(store: &Store, answer: &MessageId) -> Result<Option<Seen>> {
    seen(store, &"s".into(), answer)
}

/// Returns the texts and states of what was seen.
fn drawn(seen: &Seen) -> Vec<(String, SeenState)> {
    let text = |message: &Message| message.text();
    let texts = seen.messages.iter();
    texts.map(|it| (it.message.as_ref().map_or_else(String::new, text), it.state)).collect()
}

fn seen_by(store: &Store, answer: &MessageId) -> Result<Vec<(String, SeenState)>> {
    Ok(drawn(&seen_in(store, answer)?.expect("the answer is stored")))
}

fn expected(drawn: &[(&str, SeenState)]) -> Vec<(String, SeenState)> {
    drawn.iter().map(|(text, state)| ((*text).to_owned(), *state)).collect()
}

#[test]
fn a_record_says_exactly_which_messages_were_shown() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    say(&chat, &["a", "b", "c", "d", "e", "f", "g"])?;
    let old = chat.add_compaction("AB", &"a".into(), &"b".into())?;
    let first = answer(&chat)?;
    assert_eq!(
        seen_by(&store, &first)?,
        expected(&[
            ("AB", Recorded),
            ("text c", Recorded),
            ("text d", Recorded),
            ("text e", Recorded),
            ("text f", Recorded),
            ("text g", Recorded),
        ])
    );
    chat.update(Message::user("other d").with_id("d"))?;
    chat.delete(&["e".into()])?;
    chat.add_compaction("FG", &"f".into(), &"g".into())?;
    chat.remove_compaction(&old.id)?;
    let now = seen_in(&store, &first)?.expect("stored");
    assert_eq!(
        drawn(&now),
        expected(&[
            ("", Removed),
            ("text c", Recorded),
            ("other d", Recorded),
            ("", Removed),
            ("text f", Recorded),
            ("text g", Recorded),
        ])
    );
    let shown: Vec<bool> = now.messages.iter().map(|it| it.is_shown_now).collect();
    assert_eq!(shown, [false, true, true, false, false, false]);
    assert_eq!(now.tools, ["weather"]);
    assert_eq!(now.history()?.len(), 4);
    assert_eq!(seen_in(&store, &"none".into())?, None);
    Ok(())
}

#[test]
fn a_summary_that_came_before_the_answer_was_stored_was_not_seen() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    say(&chat, &["a", "b", "c"])?;
    let request = Request::of(&chat);
    request.openai_chat()?;
    chat.add_compaction("AB", &"a".into(), &"b".into())?;
    let id = chat.append(request.recorded(Message::assistant("4")))?.id;
    let all = [("text a", Recorded), ("text b", Recorded), ("text c", Recorded)];
    assert_eq!(seen_by(&store, &id)?, expected(&all));
    let id = chat.append(Message::assistant("unrecorded"))?.id;
    assert_eq!(seen_by(&store, &id)?[0], ("AB".to_owned(), Reconstructed));
    Ok(())
}

#[test]
fn the_older_messages_of_a_long_history_are_reconstructed() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all((0..100).map(|n| Message::user(n.to_string())))?;
    let id = answer(&chat)?;
    let seen = seen_in(&store, &id)?.expect("stored");
    assert_eq!((seen.count(Reconstructed), seen.count(Recorded)), (36, 64));
    let record = chat.message(&id)?.and_then(|it| it.field("shown_to_model")).expect("a record");
    assert!(record.as_str().len() < 450, "{record:?}");
    let part = Request::of(&Newest(&chat)).recorded(Message::assistant("nothing was asked"));
    assert_eq!(part.metadata, None);
    let request = Newest(&chat);
    let request = Request::of(&request);
    request.anthropic()?;
    let id = chat.append(request.recorded(Message::assistant("4")))?.id;
    assert_eq!(seen_by(&store, &id)?, expected(&[("99", Recorded), ("4", Recorded)]));
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
    let seen_now = || Ok::<_, talktree::Error>(seen_in(&store, &id)?.expect("stored"));
    chat.context().set("memory", "Likes coffee.")?;
    let seen = seen_now()?;
    assert!(seen.is_prompt_exact && seen.prompt.contains("tea"), "{seen:?}");
    chat.refresh_prompt()?;
    assert!(!seen_now()?.is_prompt_exact);
    Ok(())
}

#[test]
fn of_another_prompt_than_the_frozen_one_nothing_is_recorded() -> Result<()> {
    let store = Store::open_in_memory()?;
    let frozen = store.session_builder("s").block("soul", Block::text("Be brief.")).cached_prompt();
    frozen.open()?.prompt()?;
    let chat = store.session_builder("s").block("soul", Block::text("Be long.")).open()?;
    say(&chat, &["a"])?;
    let id = answer(&chat)?;
    assert!(!seen_in(&store, &id)?.expect("stored").is_prompt_exact);
    Ok(())
}

/// A hash of a short text gives it away to who tries others.
#[test]
fn a_record_tells_nothing_of_a_text() -> Result<()> {
    let records = ["yes", "no"].map(|text| -> Result<_> {
        let chat = Store::open_in_memory()?.session("s")?;
        chat.append(Message::user(text).with_id("a"))?;
        let id = answer(&chat)?;
        Ok(chat.message(&id)?.and_then(|it| it.field("shown_to_model")).expect("a record"))
    });
    let [yes, no] = records;
    assert_eq!(yes?, no?);
    Ok(())
}
