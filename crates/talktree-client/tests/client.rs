//! Clients of all providers with a server that fails, is silent, or never ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use talktree::{Message, Session, Store};
use talktree_bot_rig::model::{Fault, Options};
use talktree_bot_rig::{Limit, Model};
use talktree_client::{Client, Error, Flow};

const SECOND: Duration = Duration::from_secs(1);

/// No test may take longer.
fn limit() -> Limit {
    Limit::new(Duration::from_secs(120))
}

fn clients(url: &str) -> [Client; 3] {
    [Client::anthropic("scripted"), Client::openai("scripted"), Client::ollama("scripted")]
        .map(|client| client.base_url(url).key("a-key").timeout(SECOND))
}

fn chat() -> Session {
    let chat = Store::open_in_memory().unwrap().session("s").unwrap();
    chat.append(Message::user("chat1-turn0 hello")).unwrap();
    chat
}

/// Returns the texts that were shown, without repetitions, and the answer.
fn ask(client: &Client) -> (Vec<String>, talktree_client::Result<Message>) {
    let mut shown = Vec::new();
    let answer = client.answer(&chat(), &mut |text| {
        shown.push(text.to_owned());
        Flow::Continue
    });
    shown.dedup();
    shown.retain(|text| !text.is_empty());
    (shown, answer)
}

/// Returns how many times the model was asked, and why there was no answer.
fn refused(client: &Client) -> (u32, String) {
    match ask(client).1 {
        Err(Error::NoAnswer { tries, why, .. }) => (tries, why),
        other => panic!("{other:?}"),
    }
}

/// As the example `ollama` does it.
#[test]
fn a_chat_is_compacted_by_a_model_that_fails_now_and_then() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    let client = Client::ollama("scripted").base_url(model.url()).timeout(SECOND);
    model.fail_next(Fault::ServerError);
    let chat = Store::open_in_memory()
        .unwrap()
        .session_builder("s")
        .summarizer(move |prompt: &str| client.complete(prompt))
        .compact_after(2_000)
        .open()
        .unwrap();
    for turn in 0..100 {
        chat.append(Message::user(format!("chat1-turn{turn} {}", "rain ".repeat(40)))).unwrap();
    }
    assert!(chat.visible_tokens().unwrap() <= 2_000);
    assert_eq!(chat.raw_history().unwrap().len(), 100);
    assert!(!chat.compactions().unwrap().is_empty());
}

#[test]
fn an_answer_that_is_cut_begins_again_once() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    for client in clients(&model.url()) {
        for fault in [Fault::Cut, Fault::Broken] {
            model.fail_next(fault);
            let (shown, answer) = ask(&client);
            let answer = answer.unwrap().text();
            assert!(answer.ends_with("end chat1-turn0"), "{client:?}: {answer}");
            assert_eq!(shown.last(), Some(&answer));
            let begins = shown.windows(2).filter(|two| !two[1].starts_with(&two[0])).count();
            assert_eq!(begins, 1, "{client:?}: {shown:?}");

            model.fail_next(fault);
            model.fail_next(fault);
            assert_eq!(refused(&client).0, 2, "{client:?}");
        }
    }
    assert_eq!(model.asked_from(0).len(), 3 * 2 * 4);
}

#[test]
fn a_busy_server_is_asked_again_when_it_said() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    for client in clients(&model.url()) {
        model.fail_next(Fault::TooMany); // it says `retry-after: 1`
        let start = Instant::now();
        let (shown, answer) = ask(&client);
        let answer = answer.unwrap();
        assert!(answer.text().ends_with("end chat1-turn0"), "{client:?}");
        assert!(answer.field("shown_to_model").is_some(), "what was shown is recorded");
        assert!((SECOND..5 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert!(shown.windows(2).all(|two| two[1].starts_with(&two[0])), "{shown:?}");
    }
    assert_eq!(model.asked_from(0).len(), 6);
}

#[test]
fn a_server_that_fails_is_asked_again() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    for client in clients(&model.url()) {
        model.fail_next(Fault::ServerError);
        model.fail_next(Fault::Overloaded);
        let (_, answer) = ask(&client);
        assert!(answer.unwrap().text().ends_with("end chat1-turn0"), "{client:?}");
        model.fail_next(Fault::ServerError);
        assert!(!client.complete("chat1-turn0").unwrap().is_empty(), "{client:?}");
    }
    assert_eq!(model.asked_from(0).len(), 3 * 5);
}

#[test]
fn a_server_that_is_silent_is_asked_again() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    for client in clients(&model.url()) {
        model.fail_next(Fault::Slow(4 * SECOND));
        let start = Instant::now();
        let (_, answer) = ask(&client);
        assert!(answer.unwrap().text().ends_with("end chat1-turn0"), "{client:?}");
        assert!((SECOND..4 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
    }
}

/// A server that streams. It writes with a function, which gets the number of the request, from 0 on, and returns whether
/// the answer is complete; else the connection is cut.
struct Server {
    url: String,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(write: impl Fn(usize, &mut Events<'_>) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (connections, requests) = (Arc::default(), Arc::<AtomicUsize>::default());
        let (opened, asked, write) =
            (Arc::<AtomicUsize>::clone(&connections), Arc::clone(&requests), Arc::new(write));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                opened.fetch_add(1, Ordering::SeqCst);
                let (asked, write) = (Arc::clone(&asked), Arc::clone(&write));
                std::thread::spawn(move || {
                    while read(&stream).is_some() {
                        let mut events = Events(&stream);
                        if !events.begin()
                            || !write(asked.fetch_add(1, Ordering::SeqCst), &mut events)
                        {
                            break;
                        }
                        let _ = (&stream).write_all(b"0\r\n\r\n");
                    }
                });
            }
        });
        Self { url, connections, requests }
    }
}

/// Reads a request; `None` at the end of the connection.
fn read(stream: &TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            return reader.read_exact(&mut vec![0; length]).ok();
        }
    }
}

struct Events<'a>(&'a TcpStream);

impl Events<'_> {
    fn begin(&mut self) -> bool {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.0.write_all(head.as_bytes()).is_ok()
    }

    /// Writes lines; returns whether the client is still there.
    fn write(&mut self, lines: &str) -> bool {
        self.0.write_all(format!("{:x}\r\n{lines}\r\n", lines.len()).as_bytes()).is_ok()
    }

    fn say(&mut self, text: &str) -> bool {
        self.write(&format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"))
    }

    /// Writes the end of an answer.
    fn end(&mut self) -> bool {
        self.write(
            "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        )
    }
}

fn openai(server: &Server) -> Client {
    Client::openai("m").base_url(&server.url).timeout(SECOND)
}

#[test]
fn a_connection_is_used_again() {
    let _limit = limit();
    let server = Server::start(|_, events| events.say("yes") && events.end());
    let client = openai(&server);
    for _ in 0..5 {
        assert_eq!(ask(&client).1.unwrap().text(), "yes");
    }
    let count = |of: &AtomicUsize| of.load(Ordering::SeqCst);
    assert_eq!((count(&server.requests), count(&server.connections)), (5, 1));
}

#[test]
fn signs_that_keep_a_connection_open_are_no_words() {
    let _limit = limit();
    for sign in [": keep-alive\n\n", "event: ping\ndata: {\"type\": \"ping\"}\n\n", "\n"] {
        let server = Server::start(move |number, events| {
            let start = Instant::now();
            while number == 0 && events.write(sign) {
                assert!(start.elapsed() < 20 * SECOND, "the client waits for ever");
                std::thread::sleep(SECOND / 50);
            }
            events.say("yes") && events.end()
        });
        let start = Instant::now();
        assert_eq!(ask(&openai(&server)).1.unwrap().text(), "yes", "{sign:?}");
        assert_eq!(server.requests.load(Ordering::SeqCst), 2, "{sign:?}");
        assert!((SECOND..8 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());

        // A caller can stop meanwhile.
        let server = Server::start(move |_, events| {
            while events.write(sign) {
                std::thread::sleep(SECOND / 50);
            }
            false
        });
        let start = Instant::now();
        let client = openai(&server).timeout(60 * SECOND);
        let stopped = client.answer(&chat(), &mut |_| match start.elapsed() > SECOND / 2 {
            true => Flow::Stop,
            false => Flow::Continue,
        });
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
        assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    }
}

#[test]
fn an_endless_answer_is_over_the_limit_of_bytes() {
    let _limit = limit();
    let server = Server::start(|_, events| {
        let text = "word ".repeat(200);
        while events.say(&text) {}
        false
    });
    let (tries, why) = refused(&openai(&server).timeout(60 * SECOND).max_tokens(16));
    assert_eq!((tries, why.as_str()), (1, "the response is over the limit of 1114112 bytes"));

    // One without lines, and one that is not streamed.
    let server = Server::start(|_, events| {
        let text = "x".repeat(8 << 10);
        while events.write(&text) {}
        false
    });
    let (tries, why) = refused(&openai(&server).timeout(60 * SECOND).max_tokens(16));
    assert_eq!((tries, why.as_str()), (1, "the response is over the limit of 1114112 bytes"));
}

#[test]
fn all_tries_together_have_a_deadline() {
    let _limit = limit();
    let server = Server::start(|_, events| {
        while events.say("word ") {
            std::thread::sleep(SECOND / 20);
        }
        false
    });
    let start = Instant::now();
    let (tries, why) = refused(&openai(&server).timeout(SECOND / 4));
    assert_eq!((tries, why.as_str()), (1, "the answer is not complete after 2 s"));
    assert!((2 * SECOND..6 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());

    // A server that is never there: the waits between the tries would be longer than the deadline.
    let server = Server::start(|_, _| false);
    let start = Instant::now();
    let (tries, why) = refused(&openai(&server).timeout(SECOND / 5));
    assert!((2..5).contains(&tries), "{tries}: {why}");
    assert!(start.elapsed() < 4 * SECOND, "{:?}", start.elapsed());
}

#[test]
fn no_error_has_a_text_of_the_server() {
    let _limit = limit();
    for text in
        ["data: {\"error\":{\"message\":\"a secret\"}}\n\n", "data: a secret\n\n", "a secret\n"]
    {
        let server = Server::start(move |_, events| events.say("x") && events.write(text));
        let (tries, why) = refused(&openai(&server));
        assert!(tries == 2 && !why.contains("secret"), "{text:?}: {tries}, {why}");
    }
}

#[test]
fn a_caller_that_stops_at_once_sends_nothing() {
    let _limit = limit();
    let model = Model::start(Options::default()).unwrap();
    for client in clients(&model.url()) {
        let stopped = client.answer(&chat(), &mut |_| Flow::Stop);
        assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    }
    assert_eq!(model.asked_from(0).len(), 0);
}
