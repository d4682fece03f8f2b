//! A server that plays a provider of models, with OpenAI's chat completions API and Anthropic's messages API.
//!
//! An answer follows from the request alone. It begins with `answer` and the mark of the last user message, lists the
//! turns of each chat that the request shows, and ends with `end` and the mark. Words of the last user message change it:
//! `remember this` calls `set_context`, `search for WORDS` calls `session_search`, `at length` gives an answer longer than
//! a message of Telegram. A request for a summary is answered with one.
//!
//! Invariant: a request is a violation if a provider would refuse it, if it is over the window, or if it shows the marks
//! of two chats.

mod anthropic;
mod fault;
mod openai;
mod request;
pub(crate) mod script;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;
use talktree_model::Provider;

use crate::Mark;
use crate::http::{Incoming, Reply, Server, cut};
use crate::lock::lock;
use request::Said;
use script::Answer;

pub use fault::{Fault, Faults};

/// How the model behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// The most tokens of a request, by talktree's estimate; more is a violation.
    pub window: Option<u64>,
    /// How long the model thinks before the first text.
    pub first_text_after: Duration,
    /// How long it takes from a piece of a streamed answer to the next.
    pub between_pieces: Duration,
    /// How long it takes for a summary.
    pub summary_after: Duration,
    /// How often requests fail.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            window: None,
            first_text_after: Duration::ZERO,
            between_pieces: Duration::ZERO,
            summary_after: Duration::ZERO,
            faults: Faults::default(),
        }
    }
}

/// What a request was answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A text.
    Text,
    /// A call of a tool.
    Tool,
    /// A summary.
    Summary,
}

/// A request to the model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Asked {
    /// When it was completely read.
    pub at: Instant,
    /// When the first text of the answer was written.
    pub first_text: Option<Instant>,
    /// When the answer was complete, or cut.
    pub ended: Instant,
    /// Which API was used.
    pub provider: Provider,
    /// The mark of the last user message.
    pub mark: Option<Mark>,
    /// What it was answered with.
    pub kind: Kind,
    /// Its tokens, by talktree's estimate.
    pub tokens: u64,
    /// How many messages it has.
    pub messages: usize,
    /// Whether the answer was streamed.
    pub is_streamed: bool,
    /// What went wrong.
    pub fault: Option<Fault>,
}

/// How many violations are kept; the rest is counted.
const MAX_VIOLATIONS: usize = 200;

#[derive(Debug)]
struct State {
    asked: Vec<Asked>,
    violations: Vec<String>,
    violation_count: usize,
    rng: Rng,
    scripted: Vec<Fault>,
    /// How many requests for each mark went wrong one after the other.
    in_a_row: HashMap<(Option<Mark>, bool), u32>,
}

#[derive(Debug)]
struct Shared {
    options: Mutex<Options>,
    state: Mutex<State>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn options(&self) -> MutexGuard<'_, Options> {
        lock(&self.options)
    }
}

/// A running server; the last copy ends it.
#[derive(Debug, Clone)]
pub struct Model {
    shared: Arc<Shared>,
    server: Arc<Server>,
}

impl Model {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn start(options: Options) -> io::Result<Self> {
        let state = State {
            asked: Vec::new(),
            violations: Vec::new(),
            violation_count: 0,
            rng: Rng::with_seed(options.faults.seed),
            scripted: Vec::new(),
            in_a_row: HashMap::new(),
        };
        let shared = Arc::new(Shared { options: Mutex::new(options), state: Mutex::new(state) });
        let serving = Arc::clone(&shared);
        let server = Server::start(move |incoming, reply| serving.serve(incoming, reply))?;
        Ok(Self { shared, server: Arc::new(server) })
    }

    /// Returns the address that a bot's settings take as `base_url`, with `/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    /// Returns the requests from this number on, in the order in which their answers ended.
    #[must_use]
    pub fn asked_from(&self, first: usize) -> Vec<Asked> {
        self.shared.lock().asked.get(first..).unwrap_or_default().to_vec()
    }

    /// Returns what was wrong with requests, and how often something was: only the first 200 are kept.
    #[must_use]
    pub fn violations(&self) -> (Vec<String>, usize) {
        let state = self.shared.lock();
        (state.violations.clone(), state.violation_count)
    }

    /// Makes the next request fail in this way.
    pub fn fail_next(&self, fault: Fault) {
        self.shared.lock().scripted.push(fault);
    }

    /// Changes how the model behaves.
    pub fn change(&self, change: impl FnOnce(&mut Options)) {
        change(&mut self.shared.options());
    }
}

impl Shared {
    fn serve(&self, incoming: &Incoming, reply: &mut Reply<'_>) -> io::Result<()> {
        let at = Instant::now();
        let path = incoming.path.split('?').next().unwrap_or_default();
        let provider = match path {
            path if path.ends_with("/chat/completions") => Provider::OpenAiChat,
            path if path.ends_with("/messages") => Provider::Anthropic,
            _ => return reply.json(404, &[], "{\"error\":{\"message\":\"no such path\"}}"),
        };
        let body: Value = match serde_json::from_slice(&incoming.body) {
            Ok(body) => body,
            Err(error) => {
                self.violation(format!("a request that is not JSON: {error}"));
                let (status, body) = error_of(provider, 400, "invalid_request_error");
                return reply.json(status, &[], &body);
            }
        };
        let options = self.options().clone();
        let said = Said::read(provider, &body, &incoming.body);
        for problem in said.problems(&body, incoming, options.window) {
            let mark = said.mark.map(|mark| mark.to_string()).unwrap_or_default();
            self.violation(format!("{mark}: {problem}"));
        }
        let fault = self.fault(&said, &options.faults);
        let answer = script::answer(&said);
        let mut asked = Asked {
            at,
            first_text: None,
            ended: at,
            provider,
            mark: said.mark,
            kind: answer.kind(&said),
            tokens: said.tokens,
            messages: said.messages,
            is_streamed: said.is_streamed,
            fault,
        };
        let result = respond(&said, &answer, fault, &options, reply, &mut asked);
        asked.ended = Instant::now();
        self.lock().asked.push(asked);
        result
    }

    fn violation(&self, what: String) {
        let mut state = self.lock();
        state.violation_count += 1;
        if state.violations.len() < MAX_VIOLATIONS {
            state.violations.push(what);
        }
    }

    fn fault(&self, said: &Said, faults: &Faults) -> Option<Fault> {
        let mut state = self.lock();
        let State { rng, scripted, in_a_row, .. } = &mut *state;
        if !scripted.is_empty() {
            return Some(scripted.remove(0));
        }
        let in_a_row = in_a_row.entry((said.mark, said.is_summary)).or_default();
        let fault = match *in_a_row < faults.in_a_row {
            true => faults.drawn(rng),
            false => None,
        };
        *in_a_row = if fault.is_some() { *in_a_row + 1 } else { 0 };
        fault
    }
}

/// Writes the answer, or what goes wrong.
fn respond(
    said: &Said,
    answer: &Answer,
    fault: Option<Fault>,
    options: &Options,
    reply: &mut Reply<'_>,
    asked: &mut Asked,
) -> io::Result<()> {
    let refuse = |reply: &mut Reply<'_>, status, kind: &str| {
        let (status, body) = error_of(said.provider, status, kind);
        let wait = if status == 429 { vec![("retry-after", "1".to_owned())] } else { Vec::new() };
        reply.json(status, &wait, &body)
    };
    let mut thinking =
        if said.is_summary { options.summary_after } else { options.first_text_after };
    match fault {
        Some(Fault::TooMany) => return refuse(reply, 429, "rate_limit_error"),
        Some(Fault::ServerError) => return refuse(reply, 500, "api_error"),
        Some(Fault::Overloaded) => return refuse(reply, 529, "overloaded_error"),
        Some(Fault::Slow(time)) => thinking += time,
        Some(Fault::Cut | Fault::Broken) | None => {}
    }
    std::thread::sleep(thinking);
    let id = said.id();
    if !said.is_streamed {
        let body = match said.provider {
            Provider::Anthropic => anthropic::whole(said, answer, &id),
            _ => openai::whole(said, answer, &id),
        };
        asked.first_text = Some(Instant::now());
        return match fault {
            Some(Fault::Cut | Fault::Broken) => reply.half(200, &body.to_string()),
            _ => reply.json(200, &[], &body.to_string()),
        };
    }
    let events = match said.provider {
        Provider::Anthropic => anthropic::events(said, answer, &id),
        _ => openai::events(said, answer, &id),
    };
    reply.begin_events()?;
    let half = events.len() / 2;
    for (at, event) in events.iter().enumerate() {
        match fault {
            Some(Fault::Cut) if at == half => return cut(),
            Some(Fault::Broken) if at == half => {
                let (_, error) = error_of(said.provider, 529, "overloaded_error");
                let name = match said.provider {
                    Provider::Anthropic => "event: error\n",
                    _ => "",
                };
                reply.chunk(&format!("{name}data: {error}\n\n"))?;
                return reply.end();
            }
            _ => {}
        }
        if event.is_text && asked.first_text.is_none() {
            asked.first_text = Some(Instant::now());
        } else if event.is_text && !options.between_pieces.is_zero() {
            std::thread::sleep(options.between_pieces);
        }
        reply.chunk(&event.text)?;
    }
    reply.end()
}

/// An event of a streamed answer.
struct Event {
    text: String,
    /// Whether it has a piece of the answer.
    is_text: bool,
}

/// Returns an error in the provider's form.
fn error_of(provider: Provider, status: u16, kind: &str) -> (u16, String) {
    let body = match provider {
        Provider::Anthropic => serde_json::json!({"type": "error",
            "error": {"type": kind, "message": "on purpose"}, "request_id": "req_rig"}),
        _ => serde_json::json!({"error":
            {"message": "on purpose", "type": kind, "param": null, "code": null}}),
    };
    (status, body.to_string())
}
