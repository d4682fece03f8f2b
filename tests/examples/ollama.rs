//! The example `ollama` plays 5 000 turns with a model behind a URL, however that model fails.
//!
//! A server in this test answers with the API of Ollama or OpenAI, and sometimes fails as such servers do. Each failure is
//! reported, the chat continues, and a later attempt compacts it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::example::{Turn, run};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MODEL: &str = "small-1";
const KEY: &str = "secret-1";

/// How the server answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Answer,
    /// Status 500.
    Fail,
    /// No answer until the client times out.
    Wait,
    /// The connection closes in the middle of the answer.
    Break,
    /// A body that is not JSON.
    Garbage,
    /// JSON without a text.
    Empty,
    Blank,
    /// A summary longer than the text it replaces.
    Long,
}

/// The message that reports each failure.
const FAILURES: [(Act, &str); 7] = [
    (Act::Fail, r#"answered 500 "overloaded""#),
    (Act::Wait, "did not answer within 2.5 s: raise --timeout"),
    (Act::Break, "cannot reach http://"),
    (Act::Garbage, r#"answered without a chat message: "<html>\u{1b}[2J""#),
    (Act::Empty, r#"answered without a chat message: "{\"choices\":[]}""#),
    (Act::Blank, "a summary needs text; the one given is blank"),
    (Act::Long, " tokens) is not shorter than what it replaces ("),
];

/// Returns how the server answers the n-th request: usually with a summary, and always so the first one, which only tests it.
fn act(number: usize) -> Act {
    match number % 5 {
        3 => FAILURES.get(number / 5).map_or(Act::Answer, |(act, _)| *act),
        _ => Act::Answer,
    }
}

/// A local server, and the requests it got.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Request>>>,
}

/// A request.
#[derive(Debug)]
struct Request {
    line: String,
    key: Option<String>,
    body: Value,
}

impl Server {
    /// Starts a server whose body `wording` builds; it runs until the test ends.
    fn start(wording: fn(&str) -> Value) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&asked);
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let requests = Arc::clone(&requests);
                // A client that waits must not block the next one.
                thread::spawn(move || serve(client?, act(number), wording, &requests));
            }
        });
        Ok(Self { address, asked })
    }
}

fn serve(
    mut client: TcpStream,
    act: Act,
    wording: fn(&str) -> Value,
    requests: &Mutex<Vec<Request>>,
) -> io::Result<()> {
    let asked = read(&mut client)?;
    let summary = format!(
        "## Topic\nOrders.\n## Open Items\nNone; {} bytes read.",
        asked.body.to_string().len()
    );
    requests.lock().unwrap().push(asked);
    let (status, body) = match act {
        Act::Answer => (200, wording(&summary).to_string()),
        Act::Fail => (500, "overloaded".to_owned()),
        // Waits until the client closes the connection.
        Act::Wait => return client.read(&mut [0]).map(|_| ()),
        Act::Break => return client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        Act::Garbage => (200, "<html>\u{1b}[2J".to_owned()),
        Act::Empty => (200, json!({"choices": []}).to_string()),
        Act::Blank => (200, wording(" \n").to_string()),
        Act::Long => (200, wording(&"many words ".repeat(4_000)).to_string()),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Reads a complete request.
fn read(client: &mut TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(client);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let (mut length, mut key) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "authorization" => key = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { line: line.trim_end().to_owned(), key, body: serde_json::from_slice(&body)? })
}

/// Plays 5 000 turns with a server, and checks the output.
fn plays(server: &Server, path: &str, options: &[&str]) -> Outcome {
    let url = format!("http://{}{path}", server.address);
    let args = [&[url.as_str(), MODEL, "--turns", "5000", "--timeout", "2.5"], options].concat();
    let output = run("ollama", &args, &[("NO_PROXY", "127.0.0.1"), ("TALKTREE_TEST_KEY", KEY)])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout)?;
    assert!(stdout.contains("All 10 000 messages are stored unchanged."), "{stdout}");
    assert!(!stdout.contains(KEY) && !stdout.contains('\u{1b}'));

    let turns: Vec<Turn> = stdout.lines().filter_map(Turn::read).collect();
    assert!(turns.iter().map(|turn| turn.number).eq(1..=5_000));
    // Each failure is reported once; from then on until the next compaction the window may exceed its threshold.
    let mut failures: Vec<&str> = FAILURES.iter().map(|(_, expected)| *expected).collect();
    let mut is_behind = false;
    for line in stdout.lines() {
        if let Some(why) = line.strip_prefix("not compacted, will be retried: ") {
            assert!(!failures.is_empty() && why.contains(failures.remove(0)), "{why}");
            is_behind = true;
        } else if line.starts_with("compacted: ") {
            is_behind = false;
        } else if let Some(turn) = Turn::read(line) {
            assert!(turn.total <= turn.threshold || is_behind, "{line}");
            assert!(turn.total <= turn.threshold * 5 / 4, "{line}");
        }
    }
    assert_eq!((failures, is_behind), (vec![], false));
    Ok(())
}

#[test]
fn five_thousand_turns_work_with_a_failing_ollama() -> Outcome {
    let server = Server::start(
        |text| json!({"message": {"role": "assistant", "content": text}, "done": true}),
    )?;
    plays(&server, "", &[])?;
    for asked in server.asked.lock().unwrap().iter() {
        assert_eq!(asked.line, "POST /api/chat HTTP/1.1");
        assert_eq!((&asked.body["model"], &asked.body["stream"]), (&json!(MODEL), &json!(false)));
        assert_eq!(asked.body["options"]["num_ctx"], 4_096);
        assert_eq!(asked.key, None);
    }
    Ok(())
}

#[test]
fn five_thousand_turns_work_with_a_failing_openai_server() -> Outcome {
    let server = Server::start(
        |text| json!({"choices": [{"message": {"role": "assistant", "content": text}}]}),
    )?;
    plays(&server, "/v1", &["--key-env", "TALKTREE_TEST_KEY"])?;
    let asked = server.asked.lock().unwrap();
    for asked in asked.iter() {
        assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(asked.key.as_deref(), Some("Bearer secret-1"));
    }
    // The prompt contains the previous summary, to be updated.
    let last = asked[asked.len() - 1].body["messages"][0]["content"].as_str().unwrap();
    assert!(last.contains("None; ") && last.contains("Order 4"), "{last}");
    Ok(())
}

#[test]
fn what_prevents_the_start_is_reported_with_advice() -> Outcome {
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let url = format!("http://{closed}");
    let url = url.as_str();
    for (args, expected) in [
        (&[][..], "usage: ollama URL MODEL"),
        (&[url], "usage: ollama URL MODEL"),
        (&[url, MODEL], "is the host right, and the server running? (Ollama: `ollama serve`)"),
        (&["nowhere", MODEL], "a URL begins with http:// or https://"),
        (&[url, MODEL, "--turns", "x"], "--turns takes a number"),
        (&[url, MODEL, "--timeout", "-1"], "--timeout takes a number of seconds"),
        (&[url, MODEL, "--timeout"], "--timeout needs a value"),
        (
            &[url, MODEL, "--key-env", "TALKTREE_NO_KEY"],
            "the environment variable TALKTREE_NO_KEY is not set",
        ),
        (&[url, MODEL, "--fast"], "unknown option --fast"),
    ] {
        let output = run("ollama", args, &[("NO_PROXY", "127.0.0.1")])?;
        let stderr = String::from_utf8(output.stderr)?;
        assert!(!output.status.success() && stderr.contains(expected), "{args:?}: {stderr}");
    }
    Ok(())
}
