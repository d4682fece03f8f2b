//! Requests to a model's server: timeouts, retries, streamed answers.
//!
//! A request is repeated if the server is too busy, fails or is silent for too long, also in the middle of an answer; the
//! answer then begins again, but only once if a part of it was shown. A server that says when to come again (`retry-after`)
//! is obeyed.
//!
//! Invariant: everything has a limit: the silence, the tries, the bytes of a response, and the time of all tries together.
//! Invariant: no error contains text of the server. Logs show errors, and a server may repeat a key or a message.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBuilder};
use serde_json::Value;
use talktree::Message;
use talktree_model::{Stream, from_response};
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent as Client, Body};

use crate::addresses::agent;
use crate::{Error, Flow, Result};

/// How many times a request is repeated at most.
const REPEATS: usize = 4;

/// How long to wait before the first repeat; twice as long before each further one.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait before a repeat, also if the server asks for more.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How often a caller that waits is asked whether to go on.
const TICK: Duration = Duration::from_millis(200);

/// How long to wait for the end of the body after the answer is complete. A connection whose body was read to its end is
/// reused; some servers never end it.
const END: Duration = Duration::from_millis(50);

/// The maximum size of a response, in bytes: the first number and the second one for each token, but at most the third. The
/// JSON around a token that is streamed alone has a few hundred bytes.
const MAX_BYTES: (u64, u64, u64) = (1 << 20, 4 << 10, 64 << 20);

/// How many times the timeout all tries together may take.
const ALL_TRIES: u32 = 10;

/// The longest timeout: an `Instant` cannot hold the end of every one.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many connections are kept open for the next requests.
const CONNECTIONS: usize = 256;

/// What sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
    timeout: Duration,
}

/// What is asked, and where.
pub(crate) struct Call<'a> {
    pub(crate) model: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    /// The JSON of the request, written once for all tries.
    pub(crate) request: Arc<[u8]>,
    pub(crate) max_tokens: u32,
}

/// What the thread that reads a response sends.
enum Received {
    /// An answer is streamed; its lines follow.
    Begun,
    /// The lines that arrived together.
    Lines(String),
    /// A response that is not streamed.
    Whole { status: StatusCode, wait: Option<Duration>, body: String },
    /// There is no response, or no more of it.
    Failed(String),
    /// The response is over the limit.
    TooLong,
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
        let timeout = timeout.min(MAX_TIMEOUT);
        let client = Client::config_builder()
            .http_status_as_error(false) // the status decides whether to ask again
            .max_redirects(0) // a redirect would take the key along
            .max_idle_connections(CONNECTIONS)
            .max_idle_connections_per_host(CONNECTIONS)
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout))
            .timeout_send_request(Some(timeout)) // a server may accept and never read
            .timeout_send_body(Some(timeout))
            .timeout_recv_response(Some(timeout))
            // Ends a thread whose caller has returned.
            .timeout_recv_body(Some(timeout.saturating_mul(2 * ALL_TRIES)))
            .build();
        Self { client: agent(client), timeout }
    }

    /// Sends a request, again if need be, and returns the answer.
    pub(crate) fn ask(
        &self,
        call: &Call<'_>,
        stream: fn() -> Stream,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Message> {
        let until = Instant::now() + self.timeout.saturating_mul(ALL_TRIES);
        let waits = ExponentialBuilder::default().with_min_delay(FIRST_WAIT).with_jitter();
        let mut waits = waits.with_max_times(REPEATS).build();
        let mut text = None;
        let mut tries = 0;
        loop {
            tries += 1;
            let is_last = text.is_some(); // a part of an answer was shown, and is replaced once
            let answer = self.try_once(call, stream(), until, &mut text, on_text);
            let no_answer = |_| Failure::Final("the response has no answer".to_owned());
            let answer = answer.and_then(|response| from_response(&response).map_err(no_answer));
            let (why, wait) = match answer {
                Ok(answer) => return Ok(answer),
                Err(Failure::Stopped) => return Err(Error::Stopped),
                Err(Failure::Final(why)) => (why, None),
                Err(Failure::Passing(why, _)) if is_last => (why, None),
                Err(Failure::Passing(why, wait)) => {
                    let next = waits.next();
                    (why, next.map(|next| wait.unwrap_or(next).min(MAX_WAIT)))
                }
            };
            let model = call.model;
            let Some(wait) = wait.filter(|wait| Instant::now() + *wait < until) else {
                return Err(Error::NoAnswer { model: model.to_owned(), tries, why });
            };
            tracing::warn!(model, tries, %why, ?wait, "the model is asked again");
            let again = Instant::now() + wait;
            while let Some(left) = again.checked_duration_since(Instant::now()) {
                if on_text(text.as_deref().unwrap_or_default()) == Flow::Stop {
                    return Err(Error::Stopped);
                }
                thread::sleep(left.min(TICK));
            }
        }
    }

    /// Asks whether to go on, sends a request and returns the response. `text` gets the text of this try as soon as there is
    /// any; until then it is that of the try before.
    fn try_once(
        &self,
        call: &Call<'_>,
        mut stream: Stream,
        until: Instant,
        text: &mut Option<String>,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Value, Failure> {
        if on_text(text.as_deref().unwrap_or_default()) == Flow::Stop {
            return Err(Failure::Stopped);
        }
        let mut post = self.client.post(call.url);
        for (name, value) in call.headers {
            post = post.header(*name, *value);
        }
        let post = post.header("content-type", "application/json");
        let request = Arc::clone(&call.request);
        let (least, of_token, most) = MAX_BYTES;
        let max = (least + of_token * u64::from(call.max_tokens)).min(most);
        let (sender, received) = mpsc::sync_channel(256);
        // A thread sends and reads, so that a silent server is noticed, and the caller can stop at any time.
        thread::spawn(move || {
            if let Err(why) = hear(post.send(&request[..]), max, &sender) {
                let _ = sender.send(Received::Failed(why)); // or nobody waits any more
            }
        });
        let mut word: Option<Instant> = None;
        let mut asked = Instant::now();
        let mut is_former = true;
        loop {
            match received.recv_timeout(TICK) {
                Ok(Received::Begun) => word = Some(Instant::now()),
                Ok(Received::Lines(lines)) => {
                    let has_word = lines.lines().any(is_word);
                    for line in lines.lines() {
                        let broken = |_| passing("an error in the middle of the answer");
                        if let Some(piece) = stream.line(line).map_err(broken)? {
                            let text = text.get_or_insert_default();
                            if std::mem::take(&mut is_former) {
                                text.clear();
                            }
                            text.push_str(&piece);
                            asked = Instant::now();
                            if on_text(text) == Flow::Stop {
                                return Err(Failure::Stopped);
                            }
                        }
                    }
                    if has_word {
                        word = Some(Instant::now()); // the time that the caller took is not the server's
                    }
                    if stream.is_complete() {
                        let end = Instant::now() + END;
                        let left = || end.saturating_duration_since(Instant::now());
                        while received.recv_timeout(left()).is_ok() {}
                        return stream.finish().map_err(cut);
                    }
                }
                Ok(Received::Whole { status, wait, body }) => return whole(status, wait, &body),
                Ok(Received::Failed(why)) => return Err(passing(why)),
                Ok(Received::TooLong) => {
                    return Err(Failure::Final(format!(
                        "the response is over the limit of {max} bytes"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => return stream.finish().map_err(cut),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() > until {
                let seconds = self.timeout.saturating_mul(ALL_TRIES).as_secs();
                return Err(Failure::Final(format!(
                    "the answer is not complete after {seconds} s"
                )));
            }
            if word.is_some_and(|word| word.elapsed() > self.timeout) {
                return Err(passing(format!(
                    "the server was silent for {} s",
                    self.timeout.as_secs()
                )));
            }
            if asked.elapsed() >= TICK {
                asked = Instant::now();
                if on_text(text.as_deref().unwrap_or_default()) == Flow::Stop {
                    return Err(Failure::Stopped);
                }
            }
        }
    }
}

/// Returns whether a line of a stream is a part of an answer. Comments and the event `ping` only keep a connection open.
fn is_word(line: &str) -> bool {
    let Some(data) = line.strip_prefix("data:") else { return false };
    // Only a short line can be a ping; the others need not be parsed.
    let is_ping = || serde_json::from_str::<Value>(data).is_ok_and(|it| it["type"] == "ping");
    !(data.len() < 64 && data.contains("ping") && is_ping())
}

/// Reads a response, and tells what it hears, until the end or until nobody waits for the rest.
fn hear(
    response: Result<Response<Body>, ureq::Error>,
    max: u64,
    sender: &SyncSender<Received>,
) -> Result<(), String> {
    let response = response.map_err(|error| error.to_string())?;
    let (status, wait) = (response.status(), retry_after(&response));
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut body = BufReader::new(response.into_body().into_reader().take(max));
    let (mut text, read) = (String::new(), &mut body);
    let read = match status.is_success() && is_stream {
        true => send_lines(read, sender),
        false => read.read_to_string(&mut text).map(drop),
    };
    if body.get_ref().limit() == 0 {
        let _ = sender.send(Received::TooLong);
        return Ok(());
    }
    read.map_err(|error| error.to_string())?;
    if !(status.is_success() && is_stream) {
        let _ = sender.send(Received::Whole { status, wait, body: text });
    }
    Ok(())
}

/// Tells the lines of a stream.
fn send_lines(body: &mut BufReader<impl Read>, sender: &SyncSender<Received>) -> io::Result<()> {
    let mut is_connected = sender.send(Received::Begun).is_ok();
    let mut lines = String::new();
    while is_connected && body.read_line(&mut lines)? > 0 {
        // Lines that arrived together are sent together, because each send wakes a thread.
        if !body.buffer().contains(&b'\n') {
            is_connected = sender.send(Received::Lines(std::mem::take(&mut lines))).is_ok();
        }
    }
    Ok(())
}

/// Returns the response of a body that was not streamed.
fn whole(status: StatusCode, wait: Option<Duration>, body: &str) -> Result<Value, Failure> {
    if status.is_success() {
        let no_json = |_| Failure::Final("the response is no JSON".to_owned());
        return serde_json::from_str(body).map_err(no_json);
    }
    let why = format!("HTTP {}, with {} bytes", status.as_u16(), body.len());
    let is_passing = status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429);
    Err(if is_passing { Failure::Passing(why, wait) } else { Failure::Final(why) })
}

/// Returns the failure of a try that may succeed later.
fn passing(why: impl fmt::Display) -> Failure {
    Failure::Passing(why.to_string(), None)
}

/// Returns the failure of a try whose answer is not complete.
fn cut(_: talktree::Error) -> Failure {
    passing("the answer was cut off")
}

fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    let seconds: f64 =
        response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
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
        let call = Call { model: "m", url: &url, headers: &[], request, max_tokens: 1 };
        let start = Instant::now();
        let mut on_text = |_: &str| {
            assert!(start.elapsed() < Duration::from_secs(20), "it waits for ever");
            Flow::Continue
        };
        let http = Http::new(Duration::from_millis(300));
        let until = start + Duration::from_secs(60);
        let answer = http.try_once(&call, Stream::openai_chat(), until, &mut None, &mut on_text);
        assert!(matches!(answer, Err(Failure::Passing(..))));
    }

    #[test]
    fn only_a_part_of_an_answer_is_a_word() {
        for (line, expected) in [
            ("", false),
            (": keep-alive", false),
            ("event: ping", false),
            (r#"data: {"type": "ping"}"#, false),
            (r#"data:{"type":"ping"}"#, false),
            (r#"data: {"type":"content_block_delta","delta":{"text":"ping"}}"#, true),
            (r#"data: {"delta":"ping"}"#, true),
            ("data: [DONE]", true),
        ] {
            assert_eq!(is_word(line), expected, "{line}");
        }
    }
}
