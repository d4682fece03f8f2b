//! The core of a chat bot for many people, offline: its model is a script.
//!
//! All chats of a person share a memory. After a long pause a chat gets a new session, and what was said before can still
//! be searched. Summaries are written by a worker. A person who asks for it is forgotten: `cargo run -p talktree-model --example bot_core`.

use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use talktree::{Author, Block, BoxError, Error, Message, Session, SessionManager, Store, ToolCall};
use talktree_model::{anthropic_request, append_answer};

mod bot_model;
type Outcome<T> = Result<T, BoxError>;

struct Bot {
    sessions: SessionManager,
    expire_after: Duration,
}

impl Bot {
    fn new(store: &Store, queue: Sender<Box<dyn FnOnce() + Send>>) -> Outcome<Self> {
        let sessions = SessionManager::builder(store)
            .block("soul", Block::text("You help with everyday things. Be brief."))
            .block("memory", Block::stored().per_owner().describe("About this person").remind())
            .searchable_history("past conversations") // of the same person only
            .cached_prompt()
            .summarizer(|_: &str| -> Outcome<String> { Ok("They planned meals.".to_owned()) })
            .compact_after(1_500)
            .compact_on(move |job| drop(queue.send(job)))
            .on_error(|error| println!("not compacted: {error}"))
            .build()?;
        Ok(Self { sessions, expire_after: Duration::from_secs(24 * 60 * 60) })
    }

    /// Answers what a person wrote in a chat.
    fn hear(&self, chat: &str, person: &str, text: &str) -> Outcome<String> {
        let resumed = self.sessions.resume(chat).owner(person).expire_after(self.expire_after);
        let chat = resumed.open()?;
        let message = |text: &str| Message::user(text).from(&Author::new(person));
        match text.split_once(' ').unwrap_or((text, "")) {
            ("/retry", _) => drop(chat.retry()?),
            ("/edit", text) => match chat.question()? {
                Some(question) => drop(chat.edit(&question, message(text))?),
                None => return Ok("There is nothing to edit.".to_owned()),
            },
            ("/usage", _) => {
                let total = self.sessions.usage().owner(person).total()?;
                return Ok(format!("{} answers, {} tokens.", total.answers, total.output));
            }
            ("/forget", _) => {
                return match self.sessions.erase_owner(person)?.prove() {
                    Ok(proof) => {
                        Ok(format!("Forgotten; erased text was found at {} places.", proof.found))
                    }
                    Err(Error::Unsupported { .. }) => Ok("Forgotten.".to_owned()), // on a server
                    Err(error) => Err(error.into()),
                };
            }
            _ => drop(chat.append(message(text))?),
        }
        self.answer(&chat)
    }

    /// Asks the model until it calls no more tools.
    fn answer(&self, chat: &Session) -> Outcome<String> {
        loop {
            let request = anthropic_request(chat)?; // ready to send
            let answer = append_answer(chat, bot_model::answer(&request))?;
            if chat.tools().answer(&answer, run_tool)?.is_none() {
                return Ok(answer.text());
            }
        }
    }
}

fn run_tool(call: &ToolCall) -> Outcome<Value> {
    match call.name.as_str() {
        "weather" => Ok(json!({"city": call.input["city"], "celsius": 21})),
        other => Err(format!("there is no tool {other:?}").into()),
    }
}

fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path().join("bot.db"))?;
    let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let worker = thread::spawn(move || jobs.into_iter().for_each(|job| job()));
    let mut bot = Bot::new(&store, queue)?;
    let say = |bot: &Bot, chat, person, text| -> Outcome<()> {
        println!("{chat} {text} -> {}", bot.hear(chat, person, text)?);
        Ok(())
    };
    for text in ["I am Bob", "My cat is Mozart", "How is the weather?", "Name a colour"] {
        say(&bot, "telegram:1", "bob", text)?;
    }
    say(&bot, "telegram:1", "bob", "/retry")?;
    say(&bot, "telegram:1", "bob", "/edit Name a tree")?;
    say(&bot, "discord:7", "bob", "Who am I?")?; // another chat of the same person
    bot.expire_after = Duration::from_millis(1);
    thread::sleep(Duration::from_millis(5));
    say(&bot, "telegram:1", "bob", "What is my cat called?")?; // in a new session
    bot.expire_after = Duration::ZERO; // never
    for day in 0..60 {
        bot.hear("telegram:2", "ann", &format!("Day {day}: {}", "soup and bread, ".repeat(8)))?;
    }
    say(&bot, "telegram:2", "ann", "What is my cat called?")?;
    for text in ["/usage", "/forget", "/usage", "What is my cat called?"] {
        say(&bot, "telegram:1", "bob", text)?;
    }
    drop(bot); // closes the queue, so that the worker ends
    worker.join().map_err(|_| "the worker panicked")?;
    for listed in store.list().limit(9).run()?.sessions {
        let chat = store.session(&listed.info.id)?;
        let owner = listed.info.owner.unwrap_or_default();
        let (stored, shown) = (chat.path_length()?, chat.history()?.len());
        println!("{owner}: {stored} messages are stored, a model sees {shown}.");
    }
    Ok(())
}
