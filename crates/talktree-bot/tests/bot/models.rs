//! Models behind a server: streamed answers, retries, timeouts. The server is a script of responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{Home, command, private, session};
use serde_json::{Value, json};
use talktree::{Author, Message, Usage};
use talktree_bot::config::Provider;
use talktree_bot::models::{self, Flow};
use talktree_bot::{Bot, Error};

/// What the server does with one request.
enum Does {
    /// Sends this.
    Sends(String),
    /// Sends this and says nothing more, for so long.
    Waits(String, Duration),
}

/// A server that does one thing after the other, and notes the requests: their heads and bodies.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn start(script: Vec<Does>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        std::thread::spawn(move || {
            for does in script {
                let (stream, _) = listener.accept().unwrap();
                noted.lock().unwrap().push(read(&stream));
                let (text, pause) = match does {
                    Does::Sends(text) => (text, Duration::ZERO),
                    Does::Waits(text, pause) => (text, pause),
                };
                let mut stream = stream;
                let _ = stream.write_all(text.as_bytes());
                std::thread::spawn(move || {
                    std::thread::sleep(pause);
                    drop(stream);
                });
            }
        });
        Self { url, seen }
    }

    fn requests(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> (String, Value) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        match line.trim() {
            "" => break,
            _ => head += &line.to_lowercase(),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

fn response(status: &str, kind: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn failure(status: &str, headers: &str) -> Does {
    let body = json!({"error": {"message": "not now"}}).to_string();
    Does::Sends(response(status, "application/json", headers, &body))
}

/// An answer of the chat completions API in pieces.
fn chunks(pieces: &[&str]) -> String {
    let mut body = String::new();
    for piece in pieces {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "small",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]});
        body += &format!("data: {chunk}\n\n");
    }
    body
}

fn ended(pieces: &[&str]) -> Does {
    let last = json!({"id": "c", "object": "chat.completion.chunk", "model": "small",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}});
    let body = format!("{}data: {last}\n\ndata: [DONE]\n\n", chunks(pieces));
    Does::Sends(response("200 OK", "text/event-stream", "", &body))
}

fn bot(home: &mut Home, server: &Server, provider: Provider) -> Bot {
    bot_with(home, server, provider, 1)
}

fn bot_with(home: &mut Home, server: &Server, provider: Provider, timeout: u64) -> Bot {
    home.config.agent.provider = provider;
    home.config.agent.model = "small".to_owned();
    home.config.agent.base_url = server.url.clone();
    // Any variable that is set is a key.
    home.config.agent.api_key_env = "PATH".to_owned();
    home.config.agent.api_timeout = timeout;
    let model = models::of(&home.config.agent).unwrap();
    home.bot_with(model)
}

/// Asks the bot something, and returns the texts that were shown and the answer.
fn ask(bot: &Bot) -> (Vec<String>, Result<Message, Error>) {
    let chat = session(bot, &private(42, "Ada"));
    chat.append(Message::user("2 + 2?").from(&Author::new("42").named("Ada"))).unwrap();
    let mut shown = Vec::new();
    let answer = bot.reply(&chat, &"r1".into(), None, &mut |text| {
        shown.push(text.to_owned());
        Flow::Continue
    });
    shown.dedup();
    shown.retain(|text| !text.is_empty());
    (shown, answer)
}

#[test]
fn an_answer_is_shown_while_it_comes() {
    let server = Server::start(vec![ended(&["The answer", " is", " 4."])]);
    let mut home = Home::new();
    let (shown, answer) = ask(&bot(&mut home, &server, Provider::OpenAi));
    let answer = answer.unwrap();
    assert_eq!(shown, ["The answer", "The answer is", "The answer is 4."]);
    assert_eq!((answer.text().as_str(), answer.id.as_str()), ("The answer is 4.", "r1"));
    assert_eq!(Usage::of(&answer).unwrap().output, 3);
    let (head, body) = server.requests().remove(0);
    assert!(
        head.starts_with("post /v1/chat/completions") && head.contains("authorization: bearer ")
    );
    assert_eq!((&body["model"], &body["stream"]), (&json!("small"), &json!(true)));
    let text = body["messages"].to_string();
    assert!(text.contains("[from Ada (id 42), 20"), "{text}"); // who said it, and when
}

#[test]
fn the_anthropic_api_is_spoken_too() {
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "small",
            "content": [], "usage": {"input_tokens": 12, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is 4."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ];
    let events = events
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    let server = Server::start(vec![Does::Sends(response(
        "200 OK",
        "text/event-stream",
        "",
        &events.concat(),
    ))]);
    let mut home = Home::new();
    let (_, answer) = ask(&bot(&mut home, &server, Provider::Anthropic));
    assert_eq!(answer.unwrap().text(), "It is 4.");
    let (head, body) = server.requests().remove(0);
    assert!(
        head.starts_with("post /v1/messages")
            && head.contains("x-api-key: ")
            && head.contains("anthropic-version: ")
    );
    assert!(body["system"].to_string().contains("You answer in a chat"));
    assert!(body["tools"].to_string().contains("session_search"));
    assert_eq!(body["max_tokens"], 4096);
}

#[test]
fn a_server_without_streams_is_understood() {
    let body = json!({"id": "c", "object": "chat.completion", "model": "small", "choices": [{"index": 0,
        "finish_reason": "stop", "message": {"role": "assistant", "content": "4"}}]});
    let server = Server::start(vec![Does::Sends(response(
        "200 OK",
        "application/json",
        "",
        &body.to_string(),
    ))]);
    let mut home = Home::new();
    assert_eq!(ask(&bot(&mut home, &server, Provider::Ollama)).1.unwrap().text(), "4");
}

#[test]
fn a_busy_server_is_asked_again_when_it_said() {
    let server = Server::start(vec![
        failure("429 Too Many Requests", "retry-after: 1\r\n"),
        failure("503 Busy", ""),
        ended(&["4"]),
    ]);
    let mut home = Home::new();
    let start = Instant::now();
    assert_eq!(ask(&bot(&mut home, &server, Provider::OpenAi)).1.unwrap().text(), "4");
    assert!(start.elapsed() >= Duration::from_millis(1_900), "{:?}", start.elapsed()); // 1 s, then 1 s and some
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_answer_that_is_cut_or_silent_begins_again() {
    let cut = response("200 OK", "text/event-stream", "", &chunks(&["The ans"]));
    let silent = cut.replace("content-length: ", "content-length: 9"); // more is to come
    let server = Server::start(vec![
        Does::Sends(cut),
        ended(&["The answer", " is 4."]),
        Does::Waits(silent, Duration::from_secs(10)),
        ended(&["The answer", " is 4."]),
    ]);
    let mut home = Home::new();
    let bot = bot(&mut home, &server, Provider::OpenAi);
    for _ in 0..2 {
        let (shown, answer) = ask(&bot);
        assert_eq!(answer.unwrap().text(), "The answer is 4.");
        assert_eq!(shown, ["The ans", "The answer", "The answer is 4."]);
        command(&bot, &private(42, "Ada"), "/new"); // the answer has a fixed id
    }
    assert_eq!(server.requests().len(), 4);
    let lengths = home.store().sessions().unwrap().into_iter().map(|it| it.messages);
    assert_eq!(lengths.collect::<Vec<_>>(), [2, 2]); // each is stored once
}

#[test]
fn a_request_that_is_refused_is_not_repeated() {
    let server = Server::start(vec![failure("400 Bad Request", "")]);
    let mut home = Home::new();
    let bot = bot(&mut home, &server, Provider::OpenAi);
    let error = ask(&bot).1.unwrap_err();
    assert!(matches!(&error, Error::Model { tries: 1, .. }), "{error:?}");
    assert!(
        error.to_string().contains("HTTP 400, with 31 bytes")
            && !error.to_string().contains("not now")
    );
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_wait_for_a_busy_server_can_be_stopped() {
    let server = Server::start(vec![failure("429 Too Many Requests", "retry-after: 50\r\n")]);
    let mut home = Home::new();
    let bot = bot_with(&mut home, &server, Provider::OpenAi, 15);
    let chat = session(&bot, &private(42, "Ada"));
    chat.append(Message::user("2 + 2?")).unwrap();
    let start = Instant::now();
    let stopped = bot.reply(&chat, &"r1".into(), None, &mut |_| Flow::Stop);
    assert!(matches!(stopped, Err(Error::Stopped)) && start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_model_without_its_key_is_refused() {
    let mut home = Home::new();
    home.config.agent.provider = Provider::Anthropic;
    home.config.agent.api_key_env = "TALKTREE_TEST_NO_SUCH_KEY".to_owned();
    assert!(models::of(&home.config.agent).unwrap_err().to_string().contains("model is empty"));
    home.config.agent.model = "small".to_owned();
    let error = models::of(&home.config.agent).unwrap_err();
    assert!(error.to_string().contains("TALKTREE_TEST_NO_SUCH_KEY"));
}

#[test]
fn a_response_without_an_answer_is_an_error_of_the_model() {
    for (status, body, part) in [
        ("200 OK", "{}", "the response has no answer"),
        ("200 OK", r#"{"error": {"message": "about 2 + 2"}}"#, "the response has no answer"),
        ("200 OK", "<html>", "no JSON"),
        ("302 Found", "", "HTTP 302"),
    ] {
        // Who followed the redirect would get the answer.
        let to = "location: /v1/elsewhere\r\n";
        let first = Does::Sends(response(status, "application/json", to, body));
        let server = Server::start(vec![first, ended(&["4"])]);
        let mut home = Home::new();
        let error = ask(&bot(&mut home, &server, Provider::OpenAi)).1.unwrap_err();
        assert!(matches!(&error, Error::Model { tries: 1, .. }), "{error:?}");
        assert!(
            error.to_string().contains(part) && !error.to_string().contains("2 + 2"),
            "{error}"
        );
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn what_the_server_says_is_not_told_because_it_may_repeat_the_key() {
    let key = std::env::var("PATH").unwrap(); // which `bot` takes for the key
    let body = json!({"error": {"message": format!("the key {key} is wrong")}}).to_string();
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        let refused = response("401 Unauthorized", "application/json", "", &body);
        let server = Server::start(vec![Does::Sends(refused)]);
        let mut home = Home::new();
        let error = ask(&bot(&mut home, &server, provider)).1.unwrap_err().to_string();
        assert!(error.contains("HTTP 401") && !error.contains(&key), "{error}");
        assert!(!error.contains("is wrong"), "{error}");
    }
}

#[test]
fn a_server_that_says_nothing_at_all_can_be_stopped() {
    let server = Server::start(vec![Does::Waits(String::new(), Duration::from_secs(20))]);
    let mut home = Home::new();
    let bot = bot_with(&mut home, &server, Provider::OpenAi, 15);
    let chat = session(&bot, &private(42, "Ada"));
    chat.append(Message::user("2 + 2?")).unwrap();
    let start = Instant::now();
    let stopped = bot.reply(&chat, &"r1".into(), None, &mut |_| Flow::Stop);
    assert!(matches!(stopped, Err(Error::Stopped)) && start.elapsed() < Duration::from_secs(5));
}
