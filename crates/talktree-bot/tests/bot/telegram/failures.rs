//! What a failure of the API, of the model or of the process does to a reply, and what it leaves behind.

use super::*;
use crate::erasure::is_erased;
use crate::tables::Tables;

#[test]
fn an_update_is_confirmed_only_with_the_transaction_that_stores_it() {
    let bot = Running::new(options());
    bot.say(8, "hello");
    bot.settled(8);
    let tables = Tables::of(&bot.home.config.store);
    tables.refuse("UPDATE ON inbox_source");
    let polls = |telegram: &Telegram| {
        telegram.calls_from(0).iter().filter(|call| call.method == "getUpdates").count()
    };
    let before = polls(&bot.telegram);
    bot.say(7, "hello");
    let again = bot.telegram.wait_for(LIMIT, |it| (polls(it) >= before + 3).then_some(()));
    assert!(again.is_some());
    // The offset could not be stored, so the update is not, either; and Telegram still has it.
    assert_eq!(bot.store().inbox("telegram").pending().unwrap(), 0);
    assert_eq!(bot.telegram.waiting(), 1);
    tables.allow("inbox_source");
    assert_eq!(bot.texts(7), ["You said: hello"]);
}

#[test]
fn a_reply_survives_what_the_api_does() {
    let bot = Running::new(options());
    bot.say(7, "first");
    bot.settled(7);
    for (method, fault) in [
        ("sendMessage", Fault::TooMany(1)),
        ("sendMessage", Fault::Status(502)),
        ("sendMessage", Fault::CutBefore),
        ("editMessageText", Fault::TooMany(1)),
        ("editMessageText", Fault::Status(500)),
        ("editMessageText", Fault::CutBefore),
        ("editMessageText", Fault::CutAfter),
        ("getUpdates", Fault::Status(500)),
        ("getUpdates", Fault::TooMany(1)),
        ("getUpdates", Fault::CutAfter),
    ] {
        bot.telegram.fail_next(method, fault);
        let text = format!("{method} {fault:?}");
        bot.say(7, &text);
        let bots = bot.settled(7);
        assert_eq!(bots.last().unwrap().text, format!("You said: {text}"));
    }
    assert_eq!(bot.bots(7).len(), 11);

    // If the answer to `sendMessage` is lost, a placeholder without text stays.
    bot.telegram.fail_next("sendMessage", Fault::CutAfter);
    bot.say(7, "lost");
    assert_eq!(bot.texts(7)[11..], ["…", "You said: lost"]);
}

#[test]
fn a_reply_without_an_answer_is_marked_and_can_be_asked_again() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&is_broken);
    let bot = Running::with(options(), move |text| {
        if broken.load(Ordering::Relaxed) {
            let why = "status 500".to_owned();
            return Err(Error::Model { model: "function".to_owned(), tries: 5, why });
        }
        Ok(format!("You said: {text}"))
    });
    bot.say(7, "hello");
    let bots = bot.settled(7);
    assert!(bots[0].text.contains("/retry"), "{bots:?}");
    let chat = bot.session("telegram:7");
    let marked = chat.message(&id(7, bots[0].id)).unwrap().unwrap();
    assert!(marked.metadata.unwrap().value()["broken"].is_string());
    assert_eq!(chat.history().unwrap().len(), 1); // no model sees it
    is_broken.store(false, Ordering::Relaxed);
    bot.say(7, "/retry");
    assert_eq!(bot.texts(7)[1], "You said: hello");
    bot.say(7, "next");
    assert_eq!(bot.texts(7)[2], "You said: next");
}

#[test]
fn a_panic_of_a_model_stops_one_update_only() {
    let bot = Running::with(options(), |text| {
        assert!(!text.contains("bad"), "a panic on purpose");
        Ok(format!("You said: {text}"))
    });
    bot.say(8, "hello");
    bot.settled(8);
    bot.say(7, "bad");
    bot.say(7, "good");
    bot.say(8, "meanwhile");
    let found = bot.telegram.wait_for(LIMIT_OF_ALL_TRIES, |_| {
        bot.bots(7).last().filter(|shown| shown.text.contains("good")).cloned()
    });
    assert!(found.is_some(), "{:?}", bot.bots(7));
    assert_eq!(bot.texts(7), ["I could not answer that. /retry asks again.", "You said: good"]);
    assert_eq!(bot.texts(8), ["You said: hello", "You said: meanwhile"]);
}

#[test]
fn an_answer_that_is_stored_is_not_replaced_by_an_apology() {
    let long = |text: &str| Ok(format!("You said: {text} {}.", "and so on ".repeat(500)));
    let bot = Running::with(options(), long);
    bot.say(8, "hello");
    bot.settled(8);
    // The answer is stored. Then the numbers of its two messages are to be recorded, which fails again and again.
    Tables::of(&bot.home.config.store).refuse("UPDATE OF metadata ON message");
    bot.say(7, "hello");
    let shown = bot.settled_within(LIMIT_OF_ALL_TRIES, 7);
    let shown: Vec<String> = shown.into_iter().map(|shown| shown.text).collect();
    let answer = bot.session("telegram:7").raw_history().unwrap()[1].text();
    assert!(answer.starts_with("You said: hello"), "{answer}");
    assert_eq!(
        shown.join(" ").replace(char::is_whitespace, ""),
        answer.replace(char::is_whitespace, "")
    );
}

/// A model that shows a long text and panics, and then has a short answer.
#[derive(Debug, Default)]
struct Faltering(AtomicUsize);

impl Model for Faltering {
    fn name(&self) -> &str {
        "faltering"
    }

    fn answer(&self, _: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            for _ in 0..10 {
                on_text(&"a long text ".repeat(500));
                thread::sleep(Duration::from_millis(40));
            }
            panic!("on purpose, with two messages in the chat");
        }
        Ok(Message::assistant("short"))
    }

    fn summarize(&self, _: &str) -> Result<String> {
        Ok("a summary".to_owned())
    }
}

#[test]
fn messages_of_a_longer_try_are_removed() {
    let telegram = Telegram::start(options()).unwrap();
    let bot = Running::start(common::Home::new(), telegram, Arc::new(Faltering::default()));
    bot.say(7, "hello");
    assert!(bot.telegram.wait_for(LIMIT, |_| (bot.bots(7).len() == 2).then_some(())).is_some());
    assert_eq!(bot.texts(7), ["short"]);
}

#[test]
fn a_message_that_was_deleted_meanwhile_is_replaced() {
    let gate = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&gate);
    let bot = Running::with(options(), move |text| {
        common::wait_for("the gate is opened", || opened.load(Ordering::Relaxed));
        Ok(format!("You said: {text}"))
    });
    bot.say(7, "hello");
    let placeholder = bot.telegram.wait_for(LIMIT, |_| bot.bots(7).pop()).unwrap();
    let delete = format!("{}/bot{}/deleteMessage", bot.telegram.url(), options().token);
    let agent = ureq::Agent::config_builder().timeout_global(Some(LIMIT)).build().new_agent();
    agent.post(delete).send_json(json!({"chat_id": 7, "message_id": placeholder.id})).unwrap();
    gate.store(true, Ordering::Relaxed);
    let bots = bot.settled(7);
    assert_eq!(bots.len(), 1);
    assert_eq!(bots[0].text, "You said: hello");
    // A reply to the message that took its place is one to the answer.
    let reply = bot.telegram.say(&Saying::new(7, "and on").reply_to(bots[0].id)).message;
    bot.settled(7);
    let parent = bot.session("telegram:7").message(&id(7, reply)).unwrap().unwrap().parent;
    assert_eq!(parent, Some(id(7, placeholder.id)));
}

#[test]
fn a_reply_that_is_erased_while_it_is_written_leaves_nothing() {
    let (is_asked, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (asked, free) = (Arc::clone(&is_asked), Arc::clone(&go_on));
    let bot = Running::with(options(), move |text| {
        asked.store(true, Ordering::Relaxed);
        let start = Instant::now();
        while text.contains("slow") && !free.load(Ordering::Relaxed) && start.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(format!("You said: {text}"))
    });
    let say = |topic, text| bot.telegram.say(&Saying::new(17, text).topic(topic));
    say(1, "something slow");
    common::wait_for("the model is asked", || is_asked.load(Ordering::Relaxed));
    assert_eq!(bot.bots(17).len(), 1, "a placeholder");
    say(2, "/forget yes");
    common::wait_for("it is erased", || bot.bots(17).iter().any(|shown| is_erased(&shown.text)));
    go_on.store(true, Ordering::Relaxed);
    common::wait_for("the placeholder goes", || bot.bots(17).len() == 1);
    let left = bot.settled(17);
    assert_eq!((left.len(), left[0].topic), (1, Some(2)), "{left:?}");
    // The store has nothing of it either.
    let sessions = SessionManager::builder(&bot.store()).build().unwrap();
    assert_eq!(sessions.bindings("telegram:17/1").unwrap().len(), 0);
    assert_eq!(bot.store().search("slow").run().unwrap().hits.len(), 0);
}

#[test]
fn a_question_waits_for_its_placeholder_and_one_note_has_all() {
    let bot = Running::new(options());
    bot.say(7, "first");
    bot.settled(7);
    bot.telegram.fail_next("sendMessage", Fault::TooMany(3));
    bot.say(7, "hello");
    let refused = bot.telegram.wait_for(LIMIT, |telegram| {
        let is_refused = |call: &Call| call.outcome == Outcome::Fault(Fault::TooMany(3));
        telegram.calls_from(0).iter().any(is_refused).then_some(())
    });
    assert!(refused.is_some());
    // The call is repeated after three seconds. A kill now leaves nothing.
    let item = bot.store().inbox("telegram").next("telegram:7").unwrap().unwrap();
    assert_eq!(item.note, None);
    assert_eq!(texts(&bot.session("telegram:7")), ["first", "You said: first"]);
    assert_eq!(bot.texts(7)[1..], ["You said: hello"]);
    assert_eq!(texts(&bot.session("telegram:7"))[2..], ["hello", "You said: hello"]);
}

#[test]
fn a_question_is_stored_although_its_reply_is_refused() {
    let bot = Running::new(options());
    bot.telegram.fail_next("sendMessage", Fault::Status(403));
    bot.say(7, "hello");
    assert_eq!(bot.texts(7), [""; 0]);
    assert_eq!(texts(&bot.session("telegram:7")), ["hello"]);
    bot.say(7, "again");
    assert_eq!(bot.texts(7), ["You said: again"]);
    assert_eq!(texts(&bot.session("telegram:7")), ["hello", "again", "You said: again"]);
}

#[test]
fn a_kill_between_the_note_and_the_question_loses_neither() {
    let mut bot = Running::new(options());
    bot.say(7, "first");
    bot.settled(7);
    let session = bot.session("telegram:7").id().clone();
    bot.stop().unwrap();
    // What a kill leaves then: a placeholder in the chat, and all else in the note.
    let send = format!("{}/bot{}/sendMessage", bot.telegram.url(), options().token);
    let agent = ureq::Agent::config_builder().timeout_global(Some(LIMIT)).build().new_agent();
    agent.post(send).send_json(json!({"chat_id": 7, "text": "…"})).unwrap();
    let placeholder = bot.bots(7)[1].id;
    let question = json!({"update_id": 1, "message": {"message_id": 900, "date": 1_700_000_000,
        "chat": {"id": 7, "type": "private"}, "text": "hello",
        "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}});
    let note = json!({"tries": 1, "run": 1, "session": session, "target": "Head",
        "answer": id(7, placeholder), "parts": [placeholder]});
    let inbox = bot.store().inbox("telegram");
    let item = InboxItem::new("1", "telegram:7", question.to_string()).owner("user:7");
    inbox.receive(&[item], None).unwrap();
    inbox.note("1", &note.to_string()).unwrap();
    drop(inbox);

    let (home, telegram) = (common::Home::new(), bot.telegram.clone());
    let home = common::Home { config: bot.home.config.clone(), ..home };
    let answer = |text: &str| Ok(format!("You said: {text}"));
    let next = Running::start(home, telegram, Arc::new(Function(answer)));
    assert_eq!(next.texts(7), ["You said: first", "You said: hello"]);
    let history = next.session("telegram:7").raw_history().unwrap();
    let ids: Vec<_> = history[2..].iter().map(|message| message.id.clone()).collect();
    assert_eq!(ids, [id(7, 900), id(7, placeholder)]);
}
