//! The example `ollama` keeps 5 000 turns going with a model behind a URL, whatever that model does.
//!
//! The server here stands in for one: it answers as Ollama or as OpenAI do, and now and then fails in one of the
//! ways in which such servers fail. Each failure is told, the chat goes on, and is compacted later.

mod common;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use common::example::{Turn, run};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const MODEL: &str = "small-1";
const KEY: &str = "secret-1";

/// What the server does when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Answer,
    /// An answer of the status 500.
    Fail,
    /// No answer, until the client gives up.
    Wait,
    /// The connection ends in the middle of the answer.
    Break,
    /// An answer that is no JSON.
    Garbage,
    /// JSON without a text.
    Empty,
    Blank,
    /// A summary longer than what it is a summary of.
    Long,
}

/// What is told of each failure.
const FAILURES: [(Act, &str); 7] = [
    (Act::Fail, r#"answered 500 "overloaded""#),
    (Act::Wait, "did not answer within 2.5 s: raise --timeout"),
    (Act::Break, "cannot reach http://"),
    (Act::Garbage, r#"answered without a chat message: "<html>\u{1b}[2J""#),
    (Act::Empty, r#"answered without a chat message: "{\"choices\":[]}""#),
    (Act::Blank, "a summary needs text; the one given is blank"),
    (Act::Long, " tokens; it would replace "),
];

/// Returns what the server does the n-th time: most times it answers, also the first, when it is only tried.
fn act(number: usize) -> Act {
    match number % 5 {
        3 => FAILURES.get(number / 5).map_or(Act::Answer, |(act, _)| *act),
        _ => Act::Answer,
    }
}

/// A server on this machine, and what it was asked.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request.
#[derive(Debug)]
struct Asked {
    line: String,
    key: Option<String>,
    body: Value,
}

impl Server {
    /// Starts a server that words its answers by `wording`; it ends with the test.
    fn start(wording: fn(&str) -> Value) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let heard = Arc::clone(&heard);
                // A client that is kept waiting does not hold up the next.
                thread::spawn(move || serve(client?, act(number), wording, &heard));
            }
        });
        Ok(Self { address, asked })
    }
}

fn serve(
    mut client: TcpStream,
    act: Act,
    wording: fn(&str) -> Value,
    heard: &Mutex<Vec<Asked>>,
) -> io::Result<()> {
    let asked = read(&mut client)?;
    let summary = format!(
        "## Topic\nOrders.\n## Open Items\nNone; {} bytes read.",
        asked.body.to_string().len()
    );
    heard.lock().unwrap().push(asked);
    let (status, body) = match act {
        Act::Answer => (200, wording(&summary).to_string()),
        Act::Fail => (500, "overloaded".to_owned()),
        // The client ends the connection.
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
        "HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Reads a request to its end.
fn read(client: &mut TcpStream) -> io::Result<Asked> {
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
    Ok(Asked { line: line.trim_end().to_owned(), key, body: serde_json::from_slice(&body)? })
}

/// Plays 5 000 turns with a server, and checks what was printed.
fn plays(server: &Server, path: &str, options: &[&str]) -> Outcome {
    let url = format!("http://{}{path}", server.address);
    let args = [&[url.as_str(), MODEL, "--turns", "5000", "--timeout", "2.5"], options].concat();
    let output = run("ollama", &args, &[("NO_PROXY", "127.0.0.1"), ("TALKTREE_TEST_KEY", KEY)])?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout)?;
    assert!(said.contains("All 10 000 messages are stored unchanged."), "{said}");
    assert!(!said.contains(KEY) && !said.contains('\u{1b}'));

    let turns: Vec<Turn> = said.lines().filter_map(Turn::read).collect();
    assert!(turns.iter().map(|turn| turn.number).eq(1..=5_000));
    // Each failure was told once; from then on until the next compact the window may be over its threshold.
    let mut failures: Vec<&str> = FAILURES.iter().map(|(_, told)| *told).collect();
    let mut is_behind = false;
    for line in said.lines() {
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
fn five_thousand_turns_go_on_whatever_an_ollama_does() -> Outcome {
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
fn five_thousand_turns_go_on_whatever_a_server_like_openai_does() -> Outcome {
    let server = Server::start(
        |text| json!({"choices": [{"message": {"role": "assistant", "content": text}}]}),
    )?;
    plays(&server, "/v1", &["--key-env", "TALKTREE_TEST_KEY"])?;
    let asked = server.asked.lock().unwrap();
    for asked in asked.iter() {
        assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(asked.key.as_deref(), Some("Bearer secret-1"));
    }
    // What the model wrote is what it is given again, to be brought up to date.
    let last = asked[asked.len() - 1].body["messages"][0]["content"].as_str().unwrap();
    assert!(last.contains("None; ") && last.contains("Order 4"), "{last}");
    Ok(())
}

#[test]
fn what_cannot_begin_is_told_with_what_to_do() -> Outcome {
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let url = format!("http://{closed}");
    let url = url.as_str();
    for (args, told) in [
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
        let heard = String::from_utf8(output.stderr)?;
        assert!(!output.status.success() && heard.contains(told), "{args:?}: {heard}");
    }
    Ok(())
}
