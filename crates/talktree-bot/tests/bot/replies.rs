//! Replies: rounds of tools and their limit, a crash in the middle, a model that fails, a stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Home, Scripted, command, private, say, session, texts};
use serde_json::json;
use talktree::{Message, MessageId, Part, Role, Session};
use talktree_bot::models::{Flow, Model};
use talktree_bot::{Bot, Error, Result};

fn scripted(
    answer: impl Fn(&Session) -> Result<Message> + Send + Sync + 'static,
) -> Arc<dyn Model> {
    Arc::new(Scripted(answer, |_: &str| Ok("They talked.".to_owned())))
}

fn call(id: &str, name: &str, input: serde_json::Value) -> Message {
    Message::new(Role::Assistant, vec![Part::tool_call(name, id, input)])
}

fn try_reply(bot: &Bot, chat: &Session, id: &str) -> Result<Message> {
    bot.reply(chat, &MessageId::from(id), None, &mut |_| Flow::Continue)
}

#[test]
fn the_tools_of_the_context_run_until_the_model_answers() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot_with(scripted(|chat| {
        let memory = chat.block("memory")?.map(|memory| memory.content).unwrap_or_default();
        Ok(match memory.as_str() {
            "" => call("c1", "set_context", json!({"label": "memory", "content": "Likes tea."})),
            memory => Message::assistant(format!("I know: {memory}")),
        })
    }));
    assert_eq!(say(&bot, &ada, "I like tea"), "I know: Likes tea.");
    assert_eq!(session(&bot, &ada).path_length().unwrap(), 4); // question, call, result, answer
}

#[test]
fn rounds_of_tools_have_a_limit() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.max_turns = 3;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let bot = home.bot_with(scripted(move |_| {
        let at = count.fetch_add(1, Ordering::Relaxed);
        Ok(call(&format!("c{at}"), "session_search", json!({"query": "tea"})))
    }));
    let chat = session(&bot, &ada);
    chat.append(Message::user("where is the tea?")).unwrap();
    let error = try_reply(&bot, &chat, "r1").unwrap_err();
    assert!(matches!(error, Error::TooManyTurns { max: 3 }));
    assert_eq!(asked.load(Ordering::Relaxed), 3);

    let broken = bot.give_up(&chat, &"r1".into(), &error).unwrap();
    assert!(broken.is_hidden && broken.text().contains("/retry"));
    assert_eq!(try_reply(&bot, &chat, "r1").unwrap().id, broken.id); // the apology is not repeated
}

#[test]
fn a_failed_reply_can_be_asked_again() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let asked = AtomicUsize::new(0);
    let bot = home.bot_with(scripted(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => {
            Err(Error::Model { model: "scripted".to_owned(), tries: 5, why: "HTTP 500".to_owned() })
        }
        _ => Ok(Message::assistant("Here I am.")),
    }));
    let chat = session(&bot, &ada);
    chat.append(Message::user("are you there?")).unwrap();
    let error = try_reply(&bot, &chat, "r1").unwrap_err();
    bot.give_up(&chat, &"r1".into(), &error).unwrap();
    assert_eq!(chat.history().unwrap().len(), 1); // no model sees it
    assert_eq!(command(&bot, &ada, "/retry"), "Here I am.");
    assert_eq!(texts(&chat), ["are you there?", "Here I am."]);
}

#[test]
fn a_reply_that_is_stored_is_not_asked_for_again() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let bot = home.bot_with(scripted(move |_| {
        Ok(Message::assistant(format!("answer {}", count.fetch_add(1, Ordering::Relaxed))))
    }));
    let chat = session(&bot, &ada);
    let question = chat.append(Message::user("hello?")).unwrap().id;
    let shown_in = Some(("messages", json!([17])));
    let first = bot.reply(&chat, &"r1".into(), shown_in, &mut |_| Flow::Continue).unwrap();
    assert_eq!(first.field("messages").unwrap().value()[0], 17);
    chat.checkout(&question).unwrap(); // a command that is repeated after a crash
    assert_eq!(try_reply(&bot, &chat, "r1").unwrap().text(), first.text());
    assert_eq!(chat.head().unwrap(), Some(first.id));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn calls_whose_results_a_crash_took_are_run_before_the_model_is_asked() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot_with(scripted(|chat| {
        let last = chat.history()?.pop().unwrap();
        assert_eq!(last.role, Role::Tool);
        Ok(Message::assistant("Noted."))
    }));
    let chat = session(&bot, &ada);
    chat.append(Message::user("I like tea")).unwrap();
    chat.append(call("c1", "set_context", json!({"label": "memory", "content": "Likes tea."})))
        .unwrap();
    assert_eq!(try_reply(&bot, &chat, "r1").unwrap().text(), "Noted.");
    assert_eq!(chat.block("memory").unwrap().unwrap().content, "Likes tea.");
}

#[test]
fn a_reply_can_be_stopped() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot();
    let chat = session(&bot, &ada);
    chat.append(Message::user("hello")).unwrap();
    let stopped = bot.reply(&chat, &"r1".into(), None, &mut |_| Flow::Stop);
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(chat.path_length().unwrap(), 1);
}
