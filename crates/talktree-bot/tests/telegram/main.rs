//! The front end for Telegram with a fake server: who is answered, where and how often, and what the session holds then.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use talktree::{InboxItem, Message, MessageId, Session, SessionManager, Store};
use talktree_bot::config::Secret;
use talktree_bot::error::Result;
use talktree_bot::models::{Flow, Model, Turn};
use talktree_bot::{Config, Error, telegram};
use talktree_bot_rig::{Call, Fault, Faults, Options, Outcome, Saying, Shown, Telegram};

const LIMIT: Duration = Duration::from_secs(20);

/// A bot that runs, in a folder of its own.
struct Running {
    home: common::Home,
    telegram: Telegram,
    end: Arc<AtomicBool>,
    /// The result of its run, when it has ended.
    ended: Option<Receiver<Result<()>>>,
}

fn options() -> Options {
    Options::default()
}

fn config(home: &common::Home, telegram: &Telegram) -> Config {
    let mut config = home.config.clone();
    config.telegram.api_url = telegram.url();
    config.telegram.token = Secret::new(options().token);
    config.telegram.poll_seconds = 1;
    config.telegram.edit_interval_ms = 20;
    config.telegram.group_edit_interval_ms = 20;
    config.telegram.calls_per_second = 1_000;
    config.http.listen = String::new();
    config
}

impl Running {
    fn new(options: Options) -> Self {
        Self::with(options, |text: &str| Ok(format!("You said: {text}")))
    }

    fn with(
        options: Options,
        model: impl Fn(&str) -> Result<String> + Send + Sync + 'static,
    ) -> Self {
        let telegram = Telegram::start(options).unwrap();
        Self::start(common::Home::new(), telegram, Arc::new(Function(model)))
    }

    fn start(home: common::Home, telegram: Telegram, model: Arc<dyn Model>) -> Self {
        let config = config(&home, &telegram);
        let end = Arc::new(AtomicBool::new(false));
        let (sender, ended) = mpsc::channel();
        let until = Arc::clone(&end);
        thread::spawn(move || {
            let run = |store| telegram::run_until(&config, store, model, until);
            drop(sender.send(Store::open(&config.store).map_err(Error::from).and_then(run)));
        });
        Self { home, telegram, end, ended: Some(ended) }
    }

    fn say(&self, chat: i64, text: &str) -> i64 {
        self.telegram.say(&Saying::new(chat, text)).message
    }

    fn bots(&self, chat: i64) -> Vec<Shown> {
        self.telegram.messages(chat).into_iter().filter(|shown| shown.is_bots).collect()
    }

    /// Waits until the bot has handled everything, and returns its messages in a chat.
    fn settled(&self, chat: i64) -> Vec<Shown> {
        let inbox = self.store().inbox("telegram");
        let settled = self.telegram.wait_for(LIMIT, |telegram| {
            if let Some(ended) = self.ended.as_ref().and_then(|ended| ended.try_recv().ok()) {
                panic!("the bot has ended: {ended:?}");
            }
            let is_idle = telegram.waiting() == 0 && inbox.pending().unwrap() == 0;
            is_idle.then_some(())
        });
        let (waiting, pending) = (self.telegram.waiting(), inbox.pending());
        let shown = || self.telegram.messages(chat);
        assert!(settled.is_some(), "{waiting} not fetched, {pending:?} not done: {:#?}", shown());
        self.bots(chat)
    }

    fn texts(&self, chat: i64) -> Vec<String> {
        self.settled(chat).into_iter().map(|shown| shown.text).collect()
    }

    fn store(&self) -> Store {
        let path = &self.home.config.store;
        self.telegram.wait_for(LIMIT, |_| Store::open(path).ok()).unwrap()
    }

    fn session(&self, key: &str) -> Session {
        let sessions = SessionManager::builder(&self.store()).build().unwrap();
        let newest = sessions.bindings(key).unwrap().remove(0).session;
        self.store().session(newest).unwrap()
    }

    fn stop(&mut self) -> Result<()> {
        self.end.store(true, Ordering::Relaxed);
        self.ended.take().unwrap().recv_timeout(LIMIT).expect("the bot ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if self.ended.is_some() && !thread::panicking() {
            self.stop().unwrap();
        }
    }
}

/// A model that is a function of the newest text; it shows half of the answer first.
struct Function<A>(A);

impl<A> std::fmt::Debug for Function<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}

impl<A: Fn(&str) -> Result<String> + Send + Sync> Model for Function<A> {
    fn name(&self) -> &str {
        "function"
    }

    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        let newest = turn.chat.history()?.pop().map(|it| it.text()).unwrap_or_default();
        let answer = (self.0)(&newest)?;
        let middle = answer.chars().count() / 2;
        let half: String = answer.chars().take(middle).collect();
        for text in [&half, &answer] {
            if on_text(text) == Flow::Stop {
                return Err(Error::Stopped);
            }
        }
        Ok(Message::assistant(answer))
    }

    fn summarize(&self, _: &str) -> Result<String> {
        Ok("a summary".to_owned())
    }
}

fn texts(chat: &Session) -> Vec<String> {
    chat.raw_history().unwrap().iter().map(Message::text).collect()
}

fn id(chat: i64, message: i64) -> MessageId {
    format!("telegram:{chat}:{message}").into()
}

#[test]
fn a_message_is_answered_in_one_message() {
    let bot = Running::new(options());
    let sent = bot.say(7, "hello");
    let bots = bot.settled(7);
    assert_eq!(bots.len(), 1);
    assert_eq!(bots[0].text, "You said: hello");
    let chat = bot.session("telegram:7");
    let history = chat.raw_history().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].id, id(7, sent));
    assert_eq!(history[1].id, id(7, bots[0].id));
    assert_eq!(chat.info().unwrap().unwrap().owner.as_deref(), Some("user:7"));
    let author = talktree::Author::of(&history[0]).unwrap();
    assert_eq!((author.id.as_deref(), author.name.as_deref()), (Some("user:7"), Some("Ada")));
}

#[test]
fn each_message_is_answered_once_and_in_order_whatever_is_delivered_twice() {
    let faults = Faults { seed: 5, duplicates: 0.4, shuffled: 0.5, ..Faults::default() };
    let bot = Running::new(Options { faults, ..options() });
    for n in 0..30 {
        for chat in 1..=4 {
            bot.say(chat, &format!("{chat}-{n}"));
        }
    }
    for chat in 1..=4 {
        let expected: Vec<_> = (0..30).map(|n| format!("You said: {chat}-{n}")).collect();
        assert_eq!(bot.texts(chat), expected);
        assert_eq!(texts(&bot.session(&format!("telegram:{chat}"))).len(), 60);
    }
}

#[test]
fn an_update_is_confirmed_only_with_the_transaction_that_stores_it() {
    let bot = Running::new(options());
    bot.say(8, "hello");
    bot.settled(8);
    let file = rusqlite::Connection::open(&bot.home.config.store).unwrap();
    file.busy_timeout(LIMIT).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE ON inbox_source
        BEGIN SELECT RAISE(ABORT, 'no offset'); END";
    file.execute_batch(refuse).unwrap();
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
    file.execute_batch("DROP TRIGGER refuse").unwrap();
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
fn a_long_answer_is_split_and_each_part_is_the_answer() {
    let long = |text: &str| {
        let lines = if text.contains("long") { 300 } else { 1 };
        Ok((0..lines).map(|n| format!("Line {n} of an answer to this.\n")).collect())
    };
    let bot = Running::with(options(), long);
    bot.say(7, "long");
    let bots = bot.settled(7);
    assert_eq!(bots.len(), 3);
    assert!(bots.iter().all(|shown| shown.text.encode_utf16().count() <= 4_096));
    let shown: Vec<_> = bots.iter().flat_map(|shown| shown.text.lines()).collect();
    let stored = bot.session("telegram:7").raw_history().unwrap().pop().unwrap();
    assert_eq!(shown, stored.text().lines().collect::<Vec<_>>());
    let parts: Vec<_> = bots.iter().map(|shown| shown.id).collect();
    assert_eq!(stored.metadata.unwrap().value()["telegram"], json!(parts));
    assert_eq!(stored.id, id(7, parts[0]));

    bot.say(7, "another");
    bot.settled(7);
    let reply = bot.telegram.say(&Saying::new(7, "to the last part").reply_to(parts[2])).message;
    bot.settled(7);
    let chat = bot.session("telegram:7");
    assert_eq!(chat.message(&id(7, reply)).unwrap().unwrap().parent, Some(id(7, parts[0])));
}

#[test]
fn a_reply_to_an_older_message_branches_there() {
    let bot = Running::new(options());
    bot.say(7, "one");
    let first = bot.settled(7)[0].id;
    bot.say(7, "two");
    let second = bot.settled(7)[1].id;
    let branch = bot.telegram.say(&Saying::new(7, "instead of two").reply_to(first)).message;
    bot.settled(7);
    let newest = bot.settled(7)[2].id;
    bot.telegram.say(&Saying::new(7, "and on").reply_to(newest));
    bot.settled(7);
    let chat = bot.session("telegram:7");
    let parent = |message| chat.message(&id(7, message)).unwrap().unwrap().parent;
    assert_eq!(parent(branch), Some(id(7, first)));
    assert_eq!(
        texts(&chat),
        [
            "one",
            "You said: one",
            "instead of two",
            "You said: instead of two",
            "and on",
            "You said: and on"
        ]
    );
    assert!(!chat.is_on_path(&id(7, second)).unwrap());

    // What the session does not know is quoted.
    bot.say(7, "/new");
    bot.settled(7);
    bot.telegram.say(&Saying::new(7, "what of this?").reply_to(first));
    bot.settled(7);
    assert_eq!(texts(&bot.session("telegram:7"))[0], "> You said: one\n\nwhat of this?");
}

#[test]
fn an_edit_makes_a_sibling_and_a_new_answer() {
    let bot = Running::new(options());
    let first = bot.say(7, "one");
    bot.settled(7);
    bot.say(7, "two");
    bot.settled(7);
    bot.telegram.edit(7, first, "one!").unwrap();
    assert_eq!(bot.texts(7), ["You said: one", "You said: two", "You said: one!"]);
    let chat = bot.session("telegram:7");
    assert_eq!(texts(&chat), ["one!", "You said: one!"]);
    assert_eq!(chat.roots().unwrap().len(), 2);

    // The same text, as when a preview is added; a message that is not known; a command.
    bot.telegram.edit(7, first, "one!").unwrap();
    let command = bot.say(7, "/help");
    bot.settled(7);
    bot.telegram.edit(7, command, "/usage").unwrap();
    let unknown = json!({"edited_message": {"message_id": 9_999, "date": 1, "edit_date": 2,
        "chat": {"id": 7, "type": "private"}, "text": "?",
        "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}});
    bot.telegram.push(unknown);
    assert_eq!(bot.texts(7).len(), 4);
    assert_eq!(texts(&bot.session("telegram:7")), ["one!", "You said: one!"]);

    // A reply to the message that was edited goes to its newest version.
    let reply = bot.telegram.say(&Saying::new(7, "of the first").reply_to(first)).message;
    bot.settled(7);
    let parent = bot.session("telegram:7").message(&id(7, reply)).unwrap().unwrap().parent;
    assert!(parent.unwrap().as_str().starts_with(&format!("telegram:7:{first}:e")));
}

#[test]
fn in_a_group_the_bot_answers_when_it_is_spoken_to() {
    let bot = Running::new(options());
    let say =
        |id, name, text: &str| bot.telegram.say(&Saying::new(-5, text).from(id, name)).message;
    let chatter = say(1, "Ada", "shall we meet on Friday?");
    say(2, "Bob", "/help@another_bot");
    say(2, "Bob", "/other");
    assert_eq!(bot.texts(-5), [""; 0]);
    let asked = say(2, "Bob", "🙂 @rig_bot, what do you think?");
    assert_eq!(bot.texts(-5), ["You said: 🙂 @rig_bot, what do you think?"]);
    let answer = bot.bots(-5)[0].clone();
    assert_eq!(answer.reply_to, Some(asked));

    bot.telegram.edit(-5, chatter, "shall we meet on Monday?").unwrap();
    say(1, "Ada", "good question");
    let reply = Saying::new(-5, "why?").from(1, "Ada").reply_to(answer.id);
    bot.telegram.say(&reply);
    assert_eq!(bot.texts(-5).len(), 2);
    let chat = bot.session("telegram:-5");
    assert_eq!(
        texts(&chat),
        [
            "shall we meet on Monday?",
            "/help@another_bot",
            "/other",
            "🙂 @rig_bot, what do you think?",
            "You said: 🙂 @rig_bot, what do you think?",
            "good question",
            "why?",
            "You said: why?"
        ]
    );
    assert_eq!(chat.info().unwrap().unwrap().owner.as_deref(), Some("chat:-5"));
    let authors: Vec<_> =
        chat.raw_history().unwrap().iter().filter_map(talktree::Author::of).collect();
    assert_eq!(authors[0].name.as_deref(), Some("Ada"));
    assert_eq!(authors[1].id.as_deref(), Some("user:2"));

    // Each topic is a conversation.
    bot.telegram.say(&Saying::new(-5, "@rig_bot hello").from(1, "Ada").topic(3));
    bot.settled(-5);
    assert_eq!(bot.bots(-5).last().unwrap().topic, Some(3));
    assert_eq!(texts(&bot.session("telegram:-5/3")).len(), 2);
}

#[test]
fn commands_answer_and_answers_can_be_retried() {
    let count = AtomicUsize::new(0);
    let bot = Running::with(options(), move |text| {
        Ok(format!("answer {} to {text}", count.fetch_add(1, Ordering::Relaxed)))
    });
    bot.say(7, "one");
    bot.say(7, "/retry");
    assert_eq!(bot.texts(7), ["answer 0 to one", "answer 1 to one"]);
    let chat = bot.session("telegram:7");
    assert_eq!(texts(&chat), ["one", "answer 1 to one"]);
    assert_eq!(chat.leaves().unwrap().len(), 2);

    bot.say(7, "/export");
    let bots = bot.settled(7);
    let (name, page) = bots.last().unwrap().file.clone().unwrap();
    assert!(name.ends_with(".md"), "{name}");
    assert!(String::from_utf8(page).unwrap().contains("answer 1 to one"));

    bot.say(7, "/forget");
    let bots = bot.settled(7);
    assert!(bots.last().unwrap().text.starts_with("Erased: "), "{:?}", bots.last());
    assert!(bot.store().sessions().unwrap().is_empty());
    bot.say(7, "two");
    assert_eq!(bot.texts(7).last().unwrap(), "answer 2 to two");
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
    // Each of the tries waits longer than the one before.
    bot.say(7, "bad");
    bot.say(7, "good");
    bot.say(8, "meanwhile");
    let found = bot.telegram.wait_for(Duration::from_secs(60), |_| {
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
    let file = rusqlite::Connection::open(&bot.home.config.store).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE OF metadata ON message BEGIN SELECT RAISE(ABORT, 'no'); END";
    file.execute_batch(refuse).unwrap();
    bot.say(7, "hello");
    let shown = bot.texts(7);
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
fn what_is_not_understood_is_ignored() {
    let mut bot = Running::new(options());
    bot.telegram.push(json!({"brand_new_kind": {"x": [1, 2]}}));
    bot.telegram.push(json!({"message": {"message_id": "?"}}));
    let sticker = json!({"message": {"message_id": 5, "date": 1, "sticker": {"new": true},
        "chat": {"id": 7, "type": "private"},
        "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}});
    bot.telegram.push(sticker);
    bot.say(7, "hello");
    assert_eq!(bot.texts(7), ["You said: hello"]);
    bot.stop().unwrap();
}

#[test]
fn only_those_who_are_allowed_are_answered() {
    let home = common::Home::new();
    let telegram = Telegram::start(options()).unwrap();
    let mut config = config(&home, &telegram);
    config.telegram.allowed_users = vec![7];
    let home = common::Home { config, ..home };
    let bot = Running::start(home, telegram, Arc::new(Function(|text: &str| Ok(text.to_owned()))));
    bot.say(8, "hello");
    bot.say(7, "hello");
    assert_eq!(bot.texts(7).len(), 1);
    assert_eq!(bot.texts(8).len(), 0);
}

#[test]
fn running_replies_are_finished_before_the_end() {
    let mut bot = Running::with(options(), |text| {
        thread::sleep(Duration::from_millis(700));
        Ok(format!("You said: {text}"))
    });
    bot.say(7, "one");
    bot.say(7, "two");
    let begun = bot.telegram.wait_for(LIMIT, |_| bot.bots(7).first().cloned());
    assert!(begun.is_some());
    let started = Instant::now();
    bot.stop().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let shown: Vec<_> = bot.bots(7).into_iter().map(|shown| shown.text).collect();
    assert_eq!(shown, ["You said: one"]);
    assert_eq!(bot.store().inbox("telegram").pending().unwrap(), 1);

    // What waited goes on with the next start.
    let (home, telegram) = (common::Home::new(), bot.telegram.clone());
    let home = common::Home { config: bot.home.config.clone(), ..home };
    let next = Running::start(home, telegram, Arc::new(Function(|text: &str| Ok(text.to_owned()))));
    assert_eq!(next.texts(7), ["You said: one", "two"]);
}

#[test]
fn a_refused_token_is_an_error_without_the_token() {
    let home = common::Home::new();
    let telegram = Telegram::start(options()).unwrap();
    let mut config = config(&home, &telegram);
    config.telegram.token = Secret::new("123:other-secret");
    let end = Arc::new(AtomicBool::new(false));
    let model = Arc::new(talktree_bot::models::offline::Offline);
    let store = Store::open(&config.store).unwrap();
    let error = telegram::run_until(&config, store, model.clone(), Arc::clone(&end)).unwrap_err();
    assert!(error.to_string().contains("refuses the token"), "{error}");
    assert!(!format!("{error:?} {error}").contains("other-secret"));
    for token in ["", "123:other-secret\n", "123:other secret", "123:other/secret"] {
        config.telegram.token = Secret::new(token);
        let store = Store::open(&config.store).unwrap();
        let error = telegram::run_until(&config, store, model.clone(), Arc::clone(&end));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("TELEGRAM_TOKEN") && !error.contains("other"), "{error}");
    }
}

#[test]
fn another_refusal_of_the_first_call_is_not_called_one_of_the_token() {
    let telegram = Telegram::start(options()).unwrap();
    telegram.fail_next("getMe", Fault::Status(403));
    let home = common::Home::new();
    let config = config(&home, &telegram);
    let store = Store::open(&config.store).unwrap();
    let model = Arc::new(talktree_bot::models::offline::Offline);
    let error = telegram::run_until(&config, store, model, Arc::default()).unwrap_err().to_string();
    assert!(!error.contains("token") && error.contains("getMe: status 403"), "{error}");
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
    say(2, "/forget");
    common::wait_for("it is erased", || {
        bot.bots(17).iter().any(|shown| shown.text.contains("nothing of it is left"))
    });
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

#[test]
fn the_program_ends_while_its_first_call_hangs() {
    let telegram = Telegram::start(options()).unwrap();
    telegram.fail_next("getMe", Fault::Hang(Duration::from_secs(60)));
    let mut bot =
        Running::start(common::Home::new(), telegram, Arc::new(Function(|_: &str| Ok("".into()))));
    bot.store(); // it has begun
    let start = Instant::now();
    bot.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn two_edits_in_one_second_are_two_versions() {
    let bot = Running::new(options());
    let first = bot.say(7, "a");
    bot.settled(7);
    let edit = |text: &str| {
        bot.telegram.push(json!({"edited_message": {"message_id": first, "date": 1_700_000_000,
            "edit_date": 1_700_000_009, "chat": {"id": 7, "type": "private"}, "text": text,
            "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}}));
    };
    edit("b");
    edit("c");
    assert_eq!(bot.texts(7), ["You said: a", "You said: b", "You said: c"]);
    assert_eq!(texts(&bot.session("telegram:7")), ["c", "You said: c"]);
}
