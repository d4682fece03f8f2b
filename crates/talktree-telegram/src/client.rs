//! Calls of the Bot API: the types are those of `frankenstein`, the HTTP client is our own.
//!
//! The client of that crate reads a batch of updates as one value, so one update of an unknown kind loses the whole batch;
//! and its errors show the URL, which contains the token.
//!
//! Invariant: no error contains the token. Every text from the server or the HTTP client goes through `redact`.
//! Invariant: the text of an error contains nothing that the server says: it may repeat a message.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use frankenstein::types::{MessageId, User};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::addresses::agent;
use crate::pace::{Chats, Window};
use crate::stop::Stop;

/// How long a call may take; a poll takes this longer than it waits for updates.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How long a chat is not edited after a failed edit. The edit with the whole answer waits for it, too, so it is short.
const PAUSE: Duration = Duration::from_secs(1);

/// The timeout of an edit with a part of an answer: the model waits meanwhile, and the next edit repeats it anyway.
const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// The backoff: the first wait, and the longest. A random part of up to the same length is added.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// How often a call is repeated after errors of the server: for about half an hour. Without a connection there is no limit.
const MAX_SERVER_ERRORS: u32 = 60;

/// The longest wait that a server may ask for: an `Instant` cannot hold the end of every one.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum size of an answer, in bytes. A batch of 100 updates is far smaller.
const MAX_ANSWER: u64 = 64 << 20;

/// Why a call failed. Its text begins with the method, and contains nothing that the server says, because it may be logged.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There was no answer, or none that can be read.
    #[error("{0}")]
    Lost(String),
    /// The server refused or failed.
    #[error("{method}: status {status}")]
    Refused {
        /// The method.
        method: &'static str,
        /// The status.
        status: u16,
        /// What the server says.
        why: String,
        /// How long to wait, if the server says so.
        retry_after: Option<Duration>,
    },
    /// The server did it, but its result has another form than the Bot API says. Doing it again would do it twice.
    #[error("{0}: the result has another form")]
    Unreadable(&'static str),
    /// The program ends.
    #[error("the program ends")]
    Stopped,
}

impl CallError {
    /// Returns whether the token is refused, not the call.
    #[must_use]
    pub fn is_about_token(&self) -> bool {
        matches!(self, Self::Refused { status: 401 | 404, .. })
    }
}

/// The outcome of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    /// The message shows the text.
    Shown,
    /// Nothing is known to have changed: the limits did not allow the edit now, or it failed and may succeed later.
    Later,
    /// There is no such message any more.
    Gone,
}

/// A chat, and how its messages are sent.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    /// The number of the chat.
    pub chat: i64,
    /// The topic in a group or chat that has them.
    pub topic: Option<i32>,
    /// The message to reply to, where many people write.
    pub reply_to: Option<i32>,
    /// The shortest time between two edits.
    pub interval: Duration,
}

/// Who the bot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// Its number.
    pub id: u64,
    /// The name by which people mention it, without `@`.
    pub name: String,
}

/// What happened to a call, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A message shows another text.
    Edited,
    /// A call was refused because there were too many.
    TooMany,
    /// A call is repeated.
    Again,
}

/// The settings of a client.
#[derive(Clone)]
pub struct Settings {
    /// The address of the API: `https://api.telegram.org`.
    pub url: String,
    /// The token of the bot.
    pub token: String,
    /// How many calls are made in a second.
    pub calls_per_second: u32,
    /// How many connections are kept open.
    pub connections: usize,
}

/// An answer of the API.
#[derive(Deserialize)]
struct Answer {
    ok: bool,
    result: Option<Box<RawValue>>,
    error_code: Option<u16>,
    description: Option<String>,
    parameters: Option<Value>,
}

/// A client of the Bot API. Its calls wait for the rate limits, and repeat what may succeed later.
pub struct Client {
    agent: ureq::Agent,
    /// The address of the methods, with the token.
    base: String,
    token: String,
    window: Mutex<Window>,
    chats: Mutex<Chats>,
    stop: Arc<Stop>,
    on_event: Box<dyn Fn(Event) + Send + Sync>,
}

impl Client {
    /// Returns a client. Its waits end when `stop` is [over](Stop::over); `on_event` gets what happens to its calls.
    #[must_use]
    pub fn new(
        settings: Settings,
        stop: Arc<Stop>,
        on_event: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        let Settings { url, token, calls_per_second, connections } = settings;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(connections)
            .max_idle_connections_per_host(connections);
        Self {
            agent: agent(config.build()),
            base: format!("{}/bot{token}", url.trim_end_matches('/')),
            token,
            window: Mutex::new(Window::new(calls_per_second)),
            chats: Mutex::default(),
            stop,
            on_event: Box::new(on_event),
        }
    }

    /// Returns who the bot is.
    ///
    /// # Errors
    /// [`CallError`], after all retries.
    pub fn me(&self) -> Result<Me, CallError> {
        let user: User = Self::read("getMe", &self.call("getMe", &json!({}))?)?;
        Ok(Me { id: user.id, name: user.username.unwrap_or_default() })
    }

    /// Returns the updates from this offset on, as JSON; waits so many seconds for the first. Tried once.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn updates(
        &self,
        offset: Option<i64>,
        seconds: u64,
    ) -> Result<Vec<Box<RawValue>>, CallError> {
        let kinds = ["message", "edited_message"];
        let mut params = json!({ "timeout": seconds, "allowed_updates": kinds });
        if let Some(offset) = offset {
            params["offset"] = offset.into();
        }
        let timeout = Duration::from_secs(seconds) + TIMEOUT;
        Self::read("getUpdates", &self.once("getUpdates", &params, timeout)?)
    }

    /// Sends a message and returns its number.
    ///
    /// If the answer is lost, the message is sent again and may appear twice. So send a placeholder, and edit it.
    ///
    /// # Errors
    /// [`CallError`], after all retries.
    pub fn send(&self, to: &Address, text: &str) -> Result<i32, CallError> {
        let mut params = json!({ "chat_id": to.chat, "text": text });
        if let Some(topic) = to.topic {
            params["message_thread_id"] = topic.into();
        }
        if let Some(id) = to.reply_to {
            let reply = json!({ "message_id": id, "allow_sending_without_reply": true });
            params["reply_parameters"] = reply;
        }
        let sent: MessageId = Self::read("sendMessage", &self.call("sendMessage", &params)?)?;
        Ok(sent.message_id)
    }

    /// Replaces the text of a message, as soon as the limits allow it.
    ///
    /// # Errors
    /// [`CallError`], after all retries.
    pub fn edit(&self, to: &Address, id: i32, text: &str) -> Result<Edited, CallError> {
        let at = lock(&self.chats).reserve(to.chat, Instant::now(), to.interval);
        self.wait_until(at)?;
        self.edited(self.call("editMessageText", &edit(to, id, text)))
    }

    /// Returns whether the limits allow an edit in this chat now.
    #[must_use]
    pub fn may_edit(&self, to: &Address) -> bool {
        let now = Instant::now();
        lock(&self.chats).is_free(to.chat, now) && lock(&self.window).is_free(now)
    }

    /// Replaces the text of a message, if the limits allow it now. Tried once.
    ///
    /// # Errors
    /// [`CallError::Refused`] if the server refuses the edit for good.
    pub fn try_edit(&self, to: &Address, id: i32, text: &str) -> Result<Edited, CallError> {
        let now = Instant::now();
        if !lock(&self.chats).try_reserve(to.chat, now, to.interval)
            || !lock(&self.window).try_reserve(now)
        {
            return Ok(Edited::Later);
        }
        let answer = self.once("editMessageText", &edit(to, id, text), SHORT_TIMEOUT);
        let pause = match &answer {
            Err(CallError::Refused { status: 429, retry_after, .. }) => {
                (self.on_event)(Event::TooMany);
                retry_after.unwrap_or(SHORT_TIMEOUT)
            }
            Err(CallError::Refused { status: 500.., .. } | CallError::Lost(_)) => PAUSE,
            _ => return self.edited(answer),
        };
        lock(&self.chats).block(to.chat, Instant::now() + pause);
        Ok(Edited::Later)
    }

    fn edited(&self, answer: Result<Box<RawValue>, CallError>) -> Result<Edited, CallError> {
        let gone = ["message to edit not found", "message can't be edited", "MESSAGE_ID_INVALID"];
        match answer {
            Err(CallError::Refused { why, .. }) if why.contains("message is not modified") => {}
            Err(CallError::Refused { why, .. }) if gone.iter().any(|text| why.contains(text)) => {
                return Ok(Edited::Gone);
            }
            answer => _ = answer?,
        }
        (self.on_event)(Event::Edited);
        Ok(Edited::Shown)
    }

    /// Deletes a message. One that does not exist is no error.
    ///
    /// # Errors
    /// [`CallError`], after all retries.
    pub fn delete(&self, to: &Address, id: i32) -> Result<(), CallError> {
        match self.call("deleteMessage", &json!({ "chat_id": to.chat, "message_id": id })) {
            Err(CallError::Refused { status: 400, .. }) => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Sends a file.
    ///
    /// # Errors
    /// [`CallError`], after all retries.
    pub fn send_file(&self, to: &Address, name: &str, text: &str) -> Result<(), CallError> {
        let mut fields = vec![("chat_id", to.chat.to_string())];
        fields.extend(to.topic.map(|topic| ("message_thread_id", topic.to_string())));
        let (boundary, body) = form(&fields, name, text);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let once = || self.post("sendDocument", &kind, body.as_bytes(), TIMEOUT);
        self.retry("sendDocument", once).map(drop)
    }

    /// Calls a method, with retries.
    fn call(&self, method: &'static str, params: &Value) -> Result<Box<RawValue>, CallError> {
        self.retry(method, || self.once(method, params, TIMEOUT))
    }

    /// Makes a call within the rate limit, and repeats it while that may help.
    fn retry<R>(
        &self,
        method: &'static str,
        once: impl Fn() -> Result<R, CallError>,
    ) -> Result<R, CallError> {
        let (mut tries, mut server_errors) = (0, 0);
        loop {
            let at = lock(&self.window).reserve(Instant::now());
            self.wait_until(at)?;
            let error = match once() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = match &error {
                CallError::Refused { status: 429, retry_after, .. } => {
                    (self.on_event)(Event::TooMany);
                    retry_after.unwrap_or_else(|| backoff(tries))
                }
                CallError::Refused { status: 500.., .. } if server_errors < MAX_SERVER_ERRORS => {
                    server_errors += 1;
                    backoff(tries)
                }
                CallError::Lost(_) => backoff(tries),
                _ => return Err(error),
            };
            tries += 1;
            (self.on_event)(Event::Again);
            tracing::warn!(method, tries, ?wait, %error, "a call fails");
            self.wait_until(Instant::now() + wait)?;
        }
    }

    fn wait_until(&self, at: Instant) -> Result<(), CallError> {
        match self.stop.wait(at.saturating_duration_since(Instant::now())) {
            true => Ok(()),
            false => Err(CallError::Stopped),
        }
    }

    fn once(
        &self,
        method: &'static str,
        params: &Value,
        timeout: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        self.post(method, "application/json", params.to_string().as_bytes(), timeout)
    }

    fn post(
        &self,
        method: &'static str,
        kind: &str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let lost = |error: ureq::Error| self.lost(method, &error.to_string());
        let request = self.agent.post(format!("{}/{method}", self.base));
        let request = request.config().timeout_global(Some(timeout)).build();
        let mut answer = request.header("Content-Type", kind).send(body).map_err(lost)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().map_err(lost)?;
        match serde_json::from_slice::<Answer>(&body) {
            Ok(Answer { ok: true, result: Some(result), .. }) => Ok(result),
            Err(_) if status < 400 => Err(self.lost(method, "the answer is none of the Bot API")),
            answer => {
                let error = answer.ok();
                let why = error.as_ref().and_then(|it| it.description.as_deref());
                let after =
                    error.as_ref().and_then(|it| it.parameters.as_ref()?["retry_after"].as_u64());
                Err(CallError::Refused {
                    method,
                    status: error.as_ref().and_then(|it| it.error_code).unwrap_or(status),
                    why: self.redact(why.unwrap_or_default()),
                    retry_after: after.map(|it| Duration::from_secs(it).min(LONGEST_WAIT)),
                })
            }
        }
    }

    fn read<'a, T: Deserialize<'a>>(
        method: &'static str,
        result: &'a RawValue,
    ) -> Result<T, CallError> {
        // Without the error of serde_json: it quotes what it cannot read.
        serde_json::from_str(result.get()).map_err(|_| CallError::Unreadable(method))
    }

    fn lost(&self, method: &str, why: &str) -> CallError {
        CallError::Lost(self.redact(&format!("{method}: {why}")))
    }

    /// Returns a text without the token.
    fn redact(&self, text: &str) -> String {
        if self.token.is_empty() { text.to_owned() } else { text.replace(&self.token, "TOKEN") }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("url", &self.url).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn edit(to: &Address, id: i32, text: &str) -> Value {
    json!({ "chat_id": to.chat, "message_id": id, "text": text })
}

/// Returns the wait after this many tries: an exponential backoff with jitter, so that many chats do not all come back at
/// once.
#[must_use]
pub fn backoff(tries: u32) -> Duration {
    let (first, longest) = BACKOFF;
    let waits = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest);
    let mut waits = waits.without_max_times().with_jitter().build();
    waits.nth(tries.min(16) as usize).unwrap_or(longest)
}

/// The wait after the first poll that fails: often the server has only closed an idle connection, and people wait for answers.
/// It doubles with each further failure.
const FIRST_POLL: Duration = Duration::from_millis(20);

/// Returns how long to wait after a failed poll, if this many polls failed since the last one that succeeded.
///
/// ```
/// # use std::time::Duration;
/// use talktree_telegram::poll_again_after;
///
/// let waits = [0, 1, 5, 11, u32::MAX].map(|failures| poll_again_after(failures).as_millis());
/// assert_eq!(waits, [20, 40, 640, 30_000, 30_000]);
/// ```
#[must_use]
pub fn poll_again_after(failures: u32) -> Duration {
    FIRST_POLL.saturating_mul(1 << failures.min(16)).min(BACKOFF.1)
}

/// Returns the boundary and the body of a form with a file.
fn form(fields: &[(&str, String)], name: &str, text: &str) -> (String, String) {
    let mut boundary = "talktree".to_owned();
    while text.contains(&boundary) {
        boundary.push('x');
    }
    let mut body = String::new();
    for (field, value) in fields {
        body += &format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"
        );
    }
    let name: String = name.chars().filter(|c| !c.is_control() && !"\"\\/".contains(*c)).collect();
    body += &format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"document\"; filename=\"{name}\"\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n--{boundary}--\r\n"
    );
    (boundary, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit() {
        for tries in 0..40 {
            let wait = backoff(tries);
            let least = Duration::from_millis(200 << tries.min(16)).min(BACKOFF.1);
            assert!((least..=2 * least).contains(&wait), "{tries}: {wait:?}");
        }
    }

    #[test]
    fn a_file_ends_only_where_the_form_does() {
        let (boundary, body) =
            form(&[("chat_id", "7".to_owned())], "a\"b/c.md", "talktree talktreex");
        assert!(!"talktree talktreex".contains(&boundary));
        assert_eq!(body.matches(&boundary).count(), 3);
        assert!(body.contains("filename=\"abc.md\""));
    }
}
