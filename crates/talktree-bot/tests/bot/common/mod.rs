//! What the tests share: a bot in a folder of its own, and a model that is a function.
#![allow(unreachable_pub, reason = "it is a module of a test")]

#[path = "../../../../../tests/common/server.rs"]
#[allow(dead_code, reason = "a part of it is used")]
pub mod server;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use talktree::{Author, Message, Role, Session, Store};
use talktree_bot::commands::{Command, Done, resolve, run};
use talktree_bot::error::Result;
use talktree_bot::models::{Flow, Model, Turn, offline::Offline};
use talktree_bot::{Bot, Config, Place};
use talktree_bot_rig::Limit;
use tempfile::TempDir;

/// A model that is a function of the conversation; its summaries are another one.
pub struct Scripted<A, S>(pub A, pub S);

impl<A, S> fmt::Debug for Scripted<A, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl<A, S> Model for Scripted<A, S>
where
    A: Fn(&Session) -> Result<Message> + Send + Sync,
    S: Fn(&str) -> Result<String> + Send + Sync,
{
    fn name(&self) -> &str {
        "scripted"
    }

    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        let answer = (self.0)(turn.chat)?;
        match on_text(&answer.text()) {
            Flow::Continue => Ok(answer),
            Flow::Stop => Err(talktree_bot::Error::Stopped),
        }
    }

    fn summarize(&self, prompt: &str) -> Result<String> {
        (self.1)(prompt)
    }
}

/// How long a test may take.
const LIMIT: Duration = Duration::from_secs(300);

/// A folder with a store, and a configuration for it. A test that has one fails if it hangs.
pub struct Home {
    pub folder: TempDir,
    pub config: Config,
    pub _limit: Limit,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { store: folder.path().join("bot.db"), ..Config::default() };
        Self { folder, config, _limit: Limit::new(LIMIT) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the bot with the offline model, as after a restart.
    pub fn bot(&self) -> Bot {
        self.bot_with(Arc::new(Offline))
    }

    pub fn store(&self) -> Store {
        Store::open(&self.config.store).unwrap()
    }

    pub fn bot_with(&self, model: Arc<dyn Model>) -> Bot {
        Bot::new(&self.config, self.store(), model).unwrap()
    }
}

/// A private chat of a person.
pub fn private(id: u64, name: &str) -> Place {
    Place {
        key: format!("telegram:{id}"),
        owner: Some(format!("user:{id}")),
        is_group: false,
        person: Author::new(id.to_string()).named(name),
    }
}

/// A person in a group.
pub fn group(chat: u64, id: u64, name: &str) -> Place {
    Place {
        key: format!("telegram:-{chat}"),
        owner: Some(format!("chat:-{chat}")),
        is_group: true,
        person: Author::new(id.to_string()).named(name),
    }
}

/// Stores what a person writes, as a front end does, and returns what the bot answers.
pub fn say(bot: &Bot, place: &Place, text: &str) -> String {
    let message = Message::user(text).from(&place.person);
    let chat = bot.chat(place, &message.id).unwrap();
    chat.append(message).unwrap();
    reply(bot, &chat)
}

pub fn reply(bot: &Bot, chat: &Session) -> String {
    let id = Message::assistant("").id;
    bot.reply(chat, &id, None, &mut |_| Flow::Continue).unwrap().text()
}

pub fn session(bot: &Bot, place: &Place) -> Session {
    bot.chat(place, &"any".into()).unwrap()
}

/// Runs a command, with its reply if it has one.
pub fn command(bot: &Bot, place: &Place, text: &str) -> String {
    let done = done(bot, place, text);
    match done.then_reply {
        true => done.text + &reply(bot, &session(bot, place)),
        false => done.text,
    }
}

pub fn done(bot: &Bot, place: &Place, text: &str) -> Done {
    let chat = session(bot, place);
    let step = resolve(&chat, &Command::parse(text, None).unwrap()).unwrap();
    run(bot, place, &chat, &step).unwrap()
}

pub fn texts(chat: &Session) -> Vec<String> {
    let said = |message: &Message| message.role == Role::User || message.role == Role::Assistant;
    chat.raw_history().unwrap().iter().filter(|message| said(message)).map(Message::text).collect()
}

/// Waits until something is done.
#[track_caller]
pub fn wait_for(what: &str, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
