//! The protocol: JSON-RPC in lines, one request after the other, and the versions of the Model Context Protocol.
//!
//! Clients of the versions with a handshake begin with `initialize`; since 2026-07-28 each request names its version. Nothing depends
//! on which came before, so both are answered at any time, with results that have the fields of both.
//!
//! One thread reads and one answers, so that a request can be cancelled while it waits or runs. A line that cannot be read is
//! answered with an error, and the next one is read.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use talktree::{InterruptHandle, Store};
use talktree_text::foreign::short_line;

use crate::access::{Access, View};
use crate::methods;

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 4 << 20;

/// How many requests wait at most; after that no line is read.
const MAX_WAITING: usize = 64;

/// The version in which each request names its version.
pub(crate) const MODERN: &str = "2026-07-28";

/// The versions with a handshake, the oldest first. A client of another one gets the newest before its own: 2025-03-26 has batches.
const HANDSHAKES: [&str; 3] = ["2024-11-05", "2025-06-18", "2025-11-25"];

const NOT_JSON: i64 = -32700;
const NO_REQUEST: i64 = -32600;
pub(crate) const NO_METHOD: i64 = -32601;
pub(crate) const WRONG_PARAMS: i64 = -32602;
const OTHER_VERSION: i64 = -32022;

/// The result of a request, or an error of the protocol. What a model can correct is no such error but a result.
pub(crate) type Answer = Result<Value, Value>;

/// Returns an error of the protocol.
pub(crate) fn fault(code: i64, message: &str) -> Value {
    json!({"code": code, "message": short_line(message, 500)})
}

/// Answers a client until its input ends.
///
/// A line of `input` is a message of the protocol, and so is one of `output`; it is flushed after each. What was read before the end
/// of the input is answered.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_mcp::{Access, serve};
///
/// let store = Store::open_in_memory()?;
/// store.session("monday")?.append(Message::user("We deploy on Friday."))?;
///
/// let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
///     "params": {"name": "search", "arguments": {"query": "deploy"}}}"#.replace('\n', "");
/// let mut output = Vec::new();
/// serve(&store, Access::default(), std::io::Cursor::new(call), &mut output)?;
/// assert!(String::from_utf8(output)?.contains("> We **deploy** on Friday."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of `input` and `output`. An error of the store is an answer.
pub fn serve(
    store: &Store,
    access: Access,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> io::Result<()> {
    let view = View { store: store.clone(), access };
    let waiting = Arc::new(Waiting::default());
    let (sender, messages) = sync_channel(MAX_WAITING);
    let (of_reader, handle) = (Arc::clone(&waiting), store.interrupt_handle());
    // It ends with the input, or with the program.
    std::thread::spawn(move || read(input, &sender, &of_reader, &handle));
    for message in messages {
        let message: Result<Value, Value> = message?;
        let id = message.as_ref().ok().and_then(|message| message.get("id")).cloned();
        let is_cancelled = |at: fn(&Waiting, &Value) -> Option<usize>| {
            id.as_ref().is_some_and(|id| at(&waiting, id).is_none())
        };
        if is_cancelled(Waiting::place) {
            continue;
        }
        let answer = match message {
            Ok(message) => answer(&view, &message),
            Err(fault) => Some(response(&Value::Null, Err(fault))),
        };
        let is_cancelled_since = is_cancelled(Waiting::remove);
        if let Some(answer) = answer.filter(|_| !is_cancelled_since) {
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
    Ok(())
}

/// The ids of the requests that are neither answered nor cancelled; the first one is being answered.
#[derive(Default)]
struct Waiting(Mutex<Vec<Value>>);

impl Waiting {
    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, id: &Value) -> Option<usize> {
        self.ids().iter().position(|waiting| waiting == id)
    }

    /// Removes an id, and returns where it was.
    fn remove(&self, id: &Value) -> Option<usize> {
        let mut ids = self.ids();
        let at = ids.iter().position(|waiting| waiting == id)?;
        ids.remove(at);
        Some(at)
    }
}

/// Reads lines until the input ends, and passes them on, but those that cancel a request.
fn read(
    mut input: impl BufRead,
    sender: &SyncSender<io::Result<Result<Value, Value>>>,
    waiting: &Waiting,
    handle: &InterruptHandle,
) {
    loop {
        let message = match next_line(&mut input) {
            Ok(None) => return,
            Ok(Some(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) if line.len() > MAX_LINE => {
                Ok(Err(fault(NO_REQUEST, &format!("a line has at most {MAX_LINE} bytes"))))
            }
            Ok(Some(line)) => Ok(serde_json::from_slice::<Value>(&line)
                .map_err(|error| fault(NOT_JSON, &format!("the line is no JSON: {error}")))),
            Err(error) => Err(error),
        };
        if let Ok(Ok(message)) = &message {
            if message["method"] == "notifications/cancelled" {
                if waiting.remove(&message["params"]["requestId"]) == Some(0) {
                    handle.interrupt();
                }
                continue;
            }
            waiting.ids().extend(message.get("id").cloned());
        }
        let is_end = message.is_err();
        if sender.send(message).is_err() || is_end {
            return;
        }
    }
}

/// Returns the next line, or the beginning of one that is too long, which has more than `MAX_LINE` bytes.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MAX_LINE {
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

/// Answers a message; neither a notification nor a response has an answer: this server asks nothing.
fn answer(view: &View, message: &Value) -> Option<Value> {
    let why = match (message, message.get("id")) {
        (Value::Array(_), _) => "there are no batches: send one request a line",
        (Value::Object(fields), _)
            if ["result", "error"].iter().any(|it| fields.contains_key(*it)) =>
        {
            return None;
        }
        (_, None) if message["method"].is_string() => return None,
        (_, Some(id)) if id.is_string() || id.is_i64() || id.is_u64() => {
            return Some(response(id, requested(view, message)));
        }
        _ => "a request is an object with a method, and an id that is a text or a whole number",
    };
    Some(response(&Value::Null, Err(fault(NO_REQUEST, why))))
}

fn requested(view: &View, message: &Value) -> Answer {
    let (Some("2.0"), Some(method)) = (message["jsonrpc"].as_str(), message["method"].as_str())
    else {
        return Err(fault(NO_REQUEST, "a request has \"jsonrpc\": \"2.0\" and a method"));
    };
    let params = &message["params"];
    if !params.is_null() && !params.is_object() {
        return Err(fault(WRONG_PARAMS, "\"params\" is an object"));
    }
    let of_protocol = |name: &str| &params["_meta"][format!("io.modelcontextprotocol/{name}")];
    let version = of_protocol("protocolVersion");
    if !version.is_null() && version != MODERN {
        let mut fault = fault(OTHER_VERSION, "unsupported protocol version");
        fault["data"] = json!({"supported": [MODERN], "requested": version});
        return Err(fault);
    }
    if !version.is_null() && !of_protocol("clientCapabilities").is_object() {
        return Err(fault(
            WRONG_PARAMS,
            "\"_meta\" has no \"io.modelcontextprotocol/clientCapabilities\"",
        ));
    }
    let mut result = methods::result(view, method, params)?;
    if method == "initialize" {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let [.., newest] = HANDSHAKES;
        let known = HANDSHAKES.into_iter().rev().find(|version| *version <= asked);
        result["protocolVersion"] = known.unwrap_or(newest).into();
    }
    Ok(result)
}

fn response(id: &Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// An input that tells when it was read.
    struct Input(io::Cursor<String>, #[expect(dead_code, reason = "it is dropped")] Sender<()>);

    impl Read for Input {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    /// An output that takes nothing before the input was read.
    struct Output(Receiver<()>, Vec<u8>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_that_is_cancelled_while_it_waits_is_not_answered()
    -> Result<(), Box<dyn std::error::Error>> {
        let (sender, receiver) = channel();
        let request = |id: u8| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string();
        let cancelled = |id: u8| {
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string()
        };
        let lines = [request(1), request(2), request(3), cancelled(2), cancelled(9)];
        let input = Input(io::Cursor::new(lines.join("\n")), sender);
        let mut output = Output(receiver, Vec::new());
        let store = Store::open_in_memory()?;
        serve(&store, Access::default(), io::BufReader::new(input), &mut output)?;
        let ids: Vec<Value> = serde_json::Deserializer::from_slice(&output.1)
            .into_iter::<Value>()
            .map(|line| line.map(|line| line["id"].clone()))
            .collect::<Result<_, _>>()?;
        assert_eq!(ids, [1, 3]);
        Ok(())
    }

    #[test]
    fn the_first_that_waits_is_the_one_that_an_interrupt_stops() {
        let waiting = Waiting::default();
        waiting.ids().extend([json!(1), json!("a"), json!(2)]);
        assert_eq!(["a", "b"].map(|id| waiting.remove(&json!(id))), [Some(1), None]);
        assert_eq!((waiting.remove(&json!(1)), waiting.place(&json!(2))), (Some(0), Some(0)));
    }
}
