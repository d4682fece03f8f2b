//! A server with the Bot API of Telegram, and the people who write to the bot.

mod chats;
mod faults;
mod form;
mod limits;
mod methods;
mod updates;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::{Incoming, Reply, Server, cut};
use crate::lock::lock;
use chats::{Chat, Draft, entities};
use faults::Chance;
use form::Form;
use limits::Recent;
use methods::Refusal;
use updates::Updates;

pub use chats::Shown;
pub use faults::{Fault, Faults};
pub use limits::Limits;

/// How a server behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The token that calls must have.
    pub token: String,
    /// The name by which people mention the bot, without `@`.
    pub bot_name: String,
    /// How often the bot may write; `None`: without limits.
    pub limits: Option<Limits>,
    /// How often calls fail.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: "4000000:rig-token".to_owned(),
            bot_name: "rig_bot".to_owned(),
            limits: None,
            faults: Faults::default(),
        }
    }
}

impl Options {
    /// Returns the bot as a user; in full for `getMe`.
    fn me(&self, is_full: bool) -> Value {
        let mut me = json!({"id": 4_000_000, "is_bot": true, "first_name": "Rig",
            "username": self.bot_name});
        if is_full {
            me["can_join_groups"] = true.into();
            me["can_read_all_group_messages"] = true.into();
            me["supports_inline_queries"] = false.into();
        }
        me
    }
}

/// A call of the bot.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// When it was completely read.
    pub at: Instant,
    /// The number before the path of the call, if the bot's `api_url` has one: a mark for each process.
    pub process: Option<u32>,
    /// The method, such as `sendMessage`.
    pub method: String,
    /// The chat that it named.
    pub chat: Option<i64>,
    /// The message that it named or made.
    pub message: Option<i64>,
    /// The text that it sent.
    pub text: Option<String>,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Call {
    /// Returns whether it changed what a chat shows, if its method does that.
    #[must_use]
    pub fn had_effect(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Fault(Fault::CutAfter))
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered with its result.
    Done,
    /// It was refused with this code, by a rule of the API.
    Refused(u16),
    /// It failed on purpose.
    Fault(Fault),
}

/// What a person writes.
#[derive(Debug, Clone)]
#[must_use]
pub struct Saying<'a> {
    chat: i64,
    text: &'a str,
    from: (i64, &'a str),
    topic: Option<i64>,
    reply_to: Option<i64>,
}

impl<'a> Saying<'a> {
    /// Returns a text in a chat; a negative number is a group. Its author is the person of the chat unless `from` sets another.
    pub fn new(chat: i64, text: &'a str) -> Self {
        Self { chat, text, from: (chat.abs(), "Ada"), topic: None, reply_to: None }
    }

    /// Sets who writes, by id and name.
    pub fn from(mut self, id: i64, name: &'a str) -> Self {
        self.from = (id, name);
        self
    }

    /// Sets the topic of the group.
    pub fn topic(mut self, topic: i64) -> Self {
        self.topic = Some(topic);
        self
    }

    /// Sets the message that this one replies to.
    pub fn reply_to(mut self, message: i64) -> Self {
        self.reply_to = Some(message);
        self
    }
}

/// The numbers of what a person sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The number of the update.
    pub update: i64,
    /// The number of the message in its chat.
    pub message: i64,
}

#[derive(Debug)]
struct State {
    updates: Updates,
    chats: HashMap<i64, Chat>,
    calls: Vec<Call>,
    commands: Vec<Value>,
    recent: Recent,
    chance: Chance,
    /// The number of the newest poll.
    poll: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A running server; the last copy ends it.
///
/// ```
/// use talktree_bot_rig::{Options, Saying, Telegram};
///
/// let telegram = Telegram::start(Options::default())?;
/// let sent = telegram.say(&Saying::new(17, "Hello"));
/// assert_eq!(telegram.messages(17)[0].id, sent.message);
/// assert_eq!(telegram.waiting(), 1); // until the bot has polled beyond it
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Telegram {
    shared: Arc<Shared>,
    server: Option<Arc<Ending>>,
}

/// Ends the server with the last copy of its handle.
#[derive(Debug)]
struct Ending {
    shared: Arc<Shared>,
    server: Server,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Telegram {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(options: Options) -> io::Result<Self> {
        let state = State {
            updates: Updates::default(),
            chats: HashMap::new(),
            calls: Vec::new(),
            commands: Vec::new(),
            recent: Recent::default(),
            chance: Chance::new(options.faults.clone()),
            poll: 0,
            is_closed: false,
        };
        let shared =
            Arc::new(Shared { options, state: Mutex::new(state), changed: Condvar::new() });
        let serving = Self { shared: Arc::clone(&shared), server: None };
        let server = Server::start(move |incoming, reply| serving.serve(incoming, reply))?;
        let ending = Ending { shared: Arc::clone(&shared), server };
        Ok(Self { shared, server: Some(Arc::new(ending)) })
    }

    /// Returns the address of the API, as a bot's settings take it. A number may follow, as in `http://127.0.0.1:1/7`: the
    /// calls are then recorded with it.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.as_ref().map(|ending| ending.server.url()).unwrap_or_default()
    }

    /// Sends what a person writes: the chat shows it, and the bot gets an update.
    pub fn say(&self, saying: &Saying<'_>) -> Sent {
        let mut state = self.shared.lock();
        let chat = saying.chat;
        let (id, name) = saying.from;
        let draft = Draft {
            from: json!({"id": id, "is_bot": false, "first_name": name, "language_code": "en"}),
            text: saying.text,
            topic: saying.topic,
            reply_to: saying.reply_to,
            file: None,
            entities: entities(saying.text),
        };
        let message = state.chats.entry(chat).or_insert_with(|| Chat::new(chat)).add(draft);
        let number = message["message_id"].as_i64().unwrap_or_default();
        let update = state.updates.push(json!({"message": message}));
        self.shared.changed.notify_all();
        Sent { update, message: number }
    }

    /// Edits what a person wrote; `None` if there is no such message.
    pub fn edit(&self, chat: i64, message: i64, text: &str) -> Option<Sent> {
        let mut state = self.shared.lock();
        let edited = state.chats.get_mut(&chat)?.edit(message, text, entities(text))?;
        let update = state.updates.push(json!({"edited_message": edited}));
        self.shared.changed.notify_all();
        Some(Sent { update, message })
    }

    /// Pushes an update of any form; the server adds its number.
    pub fn push(&self, update: Value) -> i64 {
        let number = self.shared.lock().updates.push(update);
        self.shared.changed.notify_all();
        number
    }

    /// Makes the next call of a method fail in this way.
    pub fn fail_next(&self, method: &str, fault: Fault) {
        self.shared.lock().chance.script(method, fault);
    }

    /// Ends all faults from now on.
    pub fn heal(&self) {
        self.shared.lock().chance.clear();
    }

    /// Returns what a chat shows, oldest first.
    #[must_use]
    pub fn messages(&self, chat: i64) -> Vec<Shown> {
        let state = self.shared.lock();
        state.chats.get(&chat).into_iter().flat_map(Chat::shown).cloned().collect()
    }

    /// Returns the calls of the bot from this number on, oldest first.
    #[must_use]
    pub fn calls_from(&self, first: usize) -> Vec<Call> {
        self.shared.lock().calls.get(first..).unwrap_or_default().to_vec()
    }

    /// Returns how many updates are not confirmed.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.lock().updates.waiting()
    }

    /// Returns when an update was handed out for the last time.
    #[must_use]
    pub fn handed(&self, update: i64) -> Option<Instant> {
        self.shared.lock().updates.handed.get(&update).copied()
    }

    /// Returns the commands that the bot has registered.
    #[must_use]
    pub fn commands(&self) -> Vec<Value> {
        self.shared.lock().commands.clone()
    }

    /// Waits until a question about the server has an answer; `None` if there is none in time.
    pub fn wait_for<T>(
        &self,
        limit: Duration,
        mut question: impl FnMut(&Self) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + limit;
        loop {
            if let Some(answer) = question(self) {
                return Some(answer);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn serve(&self, incoming: &Incoming, reply: &mut Reply<'_>) -> io::Result<()> {
        let at = Instant::now();
        let (before, path) = incoming.path.split_once("/bot").unwrap_or_default();
        let (token, method) = path.rsplit_once('/').unwrap_or_default();
        if token != self.shared.options.token {
            let refusal = Refusal::new(401, "Unauthorized");
            return reply.json(401, &[], &refusal.body());
        }
        let form = match Form::read(incoming) {
            Ok(form) => form,
            Err(what) => return reply.json(400, &[], &Refusal::bad(&what).body()),
        };
        let mut call = Call {
            at,
            process: before.strip_prefix('/').and_then(|number| number.parse().ok()),
            method: method.to_owned(),
            chat: form.number("chat_id"),
            message: form.number("message_id"),
            text: form.text("text").map(str::to_owned),
            outcome: Outcome::Done,
        };
        let fault = self.shared.lock().chance.of_call(method, call.chat.unwrap_or(0));
        let result = match fault {
            None | Some(Fault::CutAfter) => self.run(form, &mut call),
            Some(Fault::TooMany(seconds)) => Err(Refusal::too_many(seconds.into())),
            Some(Fault::Status(code)) => Err(Refusal::new(code, "Internal Server Error")),
            Some(Fault::Hang(time)) => {
                self.record(call, fault);
                std::thread::sleep(time);
                return cut();
            }
            Some(Fault::CutBefore) => {
                self.record(call, fault);
                return cut();
            }
        };
        // A refused call had no effect that a cut could follow.
        let fault = fault.filter(|fault| result.is_ok() || *fault != Fault::CutAfter);
        call.outcome = Outcome::of(&result);
        self.record(call, fault);
        let (status, body) = match result {
            Ok(result) => (200, json!({"ok": true, "result": result}).to_string()),
            Err(refusal) => (refusal.code, refusal.body()),
        };
        match fault {
            Some(Fault::CutAfter) => reply.half(status, &body),
            _ => reply.json(status, &[], &body),
        }
    }

    fn run(&self, form: Form, call: &mut Call) -> Result<Value, Refusal> {
        match call.method.as_str() {
            "getUpdates" => methods::get_updates(self, &form),
            _ => methods::run(&self.shared.options, &mut self.shared.lock(), form, call),
        }
    }

    fn record(&self, mut call: Call, fault: Option<Fault>) {
        if let Some(fault) = fault {
            call.outcome = Outcome::Fault(fault);
        }
        self.shared.lock().calls.push(call);
    }
}
