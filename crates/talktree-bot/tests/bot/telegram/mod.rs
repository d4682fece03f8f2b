//! The front end for Telegram, with a fake server.

mod conversation;
mod failures;
mod start_and_end;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use serde_json::json;
use talktree::{InboxItem, Message, MessageId, Session, SessionManager, Store};
use talktree_bot::config::Secret;
use talktree_bot::error::Result;
use talktree_bot::models::{Flow, Model, Turn};
use talktree_bot::{Config, Error, telegram};
use talktree_bot_rig::{Call, Fault, Faults, Options, Outcome, Saying, Shown, Telegram};

const LIMIT: Duration = Duration::from_secs(20);

/// An update is given up after six tries. The random waits between them take 12 to 25 s together.
const LIMIT_OF_ALL_TRIES: Duration = Duration::from_secs(60);

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
        self.settled_within(LIMIT, chat)
    }

    fn settled_within(&self, limit: Duration, chat: i64) -> Vec<Shown> {
        let inbox = self.store().inbox("telegram");
        let settled = self.telegram.wait_for(limit, |telegram| {
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
