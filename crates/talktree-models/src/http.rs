//! Requests to a model's server: timeouts, retries, streamed answers.
//!
//! A request is repeated if the server is too busy, fails or is silent for too long, also in the middle of an answer; the
//! answer then begins again. A server that says when to come again (`retry-after`) is obeyed.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use talktree::Message;
use talktree::model::from_response;
use talktree::model::stream::Stream;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent as Client, Body};

use crate::{Error, Flow, Result};

/// How many times a request is made at most.
const TRIES: u32 = 5;

/// How long to wait before the first retry; twice as long before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait before a retry, also if the server asks for more.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often a reply that waits is asked whether to go on.
const TICK: Duration = Duration::from_millis(200);

/// The largest response, in bytes.
const MAX_RESPONSE: u64 = 64 * 1024 * 1024;

/// How many times the timeout a whole answer may take.
const WHOLE_ANSWER: u32 = 10;

/// The headers that have the key.
const SECRET: [&str; 2] = ["authorization", "x-api-key"];

/// What sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
    timeout: Duration,
}

/// What is sent, and where to.
struct Call<'a> {
    url: &'a str,
    headers: &'a [(&'a str, &'a str)],
    /// The JSON of the request, written once for all tries.
    request: Arc<[u8]>,
}

impl Call<'_> {
    /// Returns a text without the key, which a server may repeat when it refuses it.
    fn redact(&self, text: &str) -> String {
        let secret = self.headers.iter().filter(|(name, _)| SECRET.contains(name));
        let keys = secret.map(|(_, value)| value.trim_start_matches("Bearer "));
        keys.filter(|key| !key.is_empty())
            .fold(text.to_owned(), |text, key| text.replace(key, "***"))
    }
}

/// What the thread that reads a response tells.
enum Heard {
    /// An answer is streamed; its lines follow.
    Begun,
    Line(String),
    /// A response that is not streamed.
    Whole {
        status: StatusCode,
        wait: Option<Duration>,
        body: String,
    },
    /// There is no response, or no more of it.
    Failed(String),
}

/// Why a try failed.
enum Failure {
    /// The caller stopped it.
    Stopped,
    /// The same request would fail again.
    Final(String),
    /// It may succeed later, after this time if the server named one.
    Passing(String, Option<Duration>),
}

impl Http {
    pub(crate) fn new(timeout: Duration) -> Self {
        let client = Client::config_builder()
            .http_status_as_error(false) // the body describes the error
            .max_redirects(0) // a redirect would take the key along
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout))
            .timeout_send_request(Some(timeout)) // a server may accept and never read
            .timeout_send_body(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .timeout_recv_body(Some(timeout.saturating_mul(WHOLE_ANSWER)))
            .build()
            .new_agent();
        Self { client, timeout }
    }

    /// Sends a request, again if need be, and returns the answer.
    pub(crate) fn ask(
        &self,
        model: &str,
        url: &str,
        headers: &[(&str, &str)],
        request: &Value,
        stream: fn() -> Stream,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Message> {
        let request = request.to_string().into_bytes().into();
        let call = Call { url, headers, request };
        let mut text = String::new();
        let mut tries = 0;
        loop {
            tries += 1;
            let read = |response: Value| {
                from_response(&response).map_err(|error| Failure::Final(error.to_string()))
            };
            let answer = self.try_once(&call, stream(), &mut text, on_text).and_then(read);
            let (why, wait) = match answer {
                Ok(answer) => return Ok(answer),
                Err(Failure::Stopped) => return Err(Error::Stopped),
                Err(Failure::Passing(why, wait)) if tries < TRIES => (call.redact(&why), wait),
                Err(Failure::Final(why) | Failure::Passing(why, _)) => {
                    let why = call.redact(&why);
                    return Err(Error::NoAnswer { model: model.to_owned(), tries, why });
                }
            };
            let wait = wait.unwrap_or_else(|| backoff(tries)).min(MAX_WAIT);
            tracing::warn!(model, tries, %why, ?wait, "the model is asked again");
            let until = Instant::now() + wait;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                if on_text(&text) == Flow::Stop {
                    return Err(Error::Stopped);
                }
                thread::sleep(left.min(TICK));
            }
        }
    }

    fn try_once(
        &self,
        call: &Call<'_>,
        mut stream: Stream,
        text: &mut String,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Value, Failure> {
        let mut post = self.client.post(call.url);
        for (name, value) in call.headers {
            post = post.header(*name, *value);
        }
        let post = post.header("content-type", "application/json");
        let request = Arc::clone(&call.request);
        let (sender, heard) = mpsc::sync_channel(256);
        // A thread sends and reads, so that a silent server is noticed, and the caller can stop at any time.
        thread::spawn(move || {
            if let Err(why) = hear(post.send(&request[..]), &sender) {
                let _ = sender.send(Heard::Failed(why)); // or nobody waits any more
            }
        });
        let mut last = None;
        let mut is_former = true; // the text is that of the last try, until there is a new one
        loop {
            match heard.recv_timeout(TICK) {
                Ok(Heard::Begun) => last = Some(Instant::now()),
                Ok(Heard::Line(line)) => {
                    last = Some(Instant::now());
                    match stream.line(&line).map_err(passing)? {
                        Some(piece) => {
                            if std::mem::take(&mut is_former) {
                                text.clear();
                            }
                            text.push_str(&piece);
                        }
                        // The server may keep the connection open.
                        None if stream.is_complete() => return stream.finish().map_err(passing),
                        None => continue,
                    }
                }
                Ok(Heard::Whole { status, wait, body }) => return whole(call, status, wait, &body),
                Ok(Heard::Failed(why)) => return Err(passing(why)),
                Err(RecvTimeoutError::Disconnected) => return stream.finish().map_err(passing),
                Err(RecvTimeoutError::Timeout)
                    if last.is_some_and(|last| last.elapsed() > self.timeout) =>
                {
                    return Err(passing(format!("no word for {} s", self.timeout.as_secs())));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if on_text(text) == Flow::Stop {
                return Err(Failure::Stopped);
            }
        }
    }
}

/// Reads a response, and tells what it hears, until the end or until nobody waits for the rest.
fn hear(
    response: Result<Response<Body>, ureq::Error>,
    heard: &SyncSender<Heard>,
) -> Result<(), String> {
    let response = response.map_err(|error| error.to_string())?;
    let (status, wait) = (response.status(), retry_after(&response));
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = response.into_body().into_with_config().limit(MAX_RESPONSE);
    if !(status.is_success() && is_stream) {
        let mut text = String::new();
        body.reader().read_to_string(&mut text).map_err(|error| error.to_string())?;
        let _ = heard.send(Heard::Whole { status, wait, body: text });
        return Ok(());
    }
    let mut is_heard = heard.send(Heard::Begun).is_ok();
    for line in BufReader::new(body.reader()).lines() {
        let line = line.map_err(|error| error.to_string())?;
        is_heard = is_heard && heard.send(Heard::Line(line)).is_ok();
        if !is_heard {
            break;
        }
    }
    Ok(())
}

/// Returns the response of a body that was not streamed.
fn whole(
    call: &Call<'_>,
    status: StatusCode,
    wait: Option<Duration>,
    body: &str,
) -> Result<Value, Failure> {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    if status.is_success() {
        let no_json = || Failure::Final("the response is no JSON".to_owned());
        return if json.is_null() { Err(no_json()) } else { Ok(json) };
    }
    let why = format!("HTTP {}: {}", status.as_u16(), reason(call, &json["error"]));
    let is_passing = status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429);
    Err(if is_passing { Failure::Passing(why, wait) } else { Failure::Final(why) })
}

/// Returns the failure of a try that may succeed later.
fn passing(why: impl fmt::Display) -> Failure {
    Failure::Passing(why.to_string(), None)
}

/// Returns what the server says of an error, in one line.
fn reason(call: &Call<'_>, error: &Value) -> String {
    let text = error["message"].as_str().or(error.as_str()).unwrap_or("no reason given");
    call.redact(text).chars().take(200).map(|it| if it.is_control() { ' ' } else { it }).collect()
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds: f64 =
        response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns how long to wait after so many tries: twice as long each time, and up to a half more, by chance.
fn backoff(tries: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(1 << tries.saturating_sub(1).min(16));
    let chance = RandomState::new().hash_one(tries) % 1_000;
    wait + wait.mul_f64(chance as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_server_that_never_reads_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let request = vec![b' '; 64 << 20].into(); // more than the system keeps for a reader
        let call = Call { url: &url, headers: &[], request };
        let start = Instant::now();
        let mut on_text = |_: &str| {
            assert!(start.elapsed() < Duration::from_secs(20), "it waits for ever");
            Flow::Continue
        };
        let http = Http::new(Duration::from_millis(300));
        let answer = http.try_once(&call, Stream::openai_chat(), &mut String::new(), &mut on_text);
        assert!(matches!(answer, Err(Failure::Passing(..))));
    }
}
