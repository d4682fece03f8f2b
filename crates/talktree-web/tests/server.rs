//! The server over a socket: who may ask, what is answered, and what is not revealed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use talktree::{Message, MessageId, Part, SessionDetails, Store, Usage};
use talktree_web::{Options, Server};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A server that ends with the test.
struct Rig {
    port: String,
    token: String,
    should_stop: Arc<AtomicBool>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Relaxed);
    }
}

impl Rig {
    fn new(store: &Store, options: Options) -> Result<Self, Box<dyn std::error::Error>> {
        let server = Server::bind(store, options)?;
        let address = server.address();
        let (port, token) = address
            .trim_start_matches("http://127.0.0.1:")
            .trim_end_matches('/')
            .split_once('/')
            .ok_or("no token")?;
        let should_stop = Arc::new(AtomicBool::new(false));
        let rig = Self {
            port: port.to_owned(),
            token: token.to_owned(),
            should_stop: Arc::clone(&should_stop),
        };
        std::thread::spawn(move || server.run(|| should_stop.load(Ordering::Relaxed)));
        Ok(rig)
    }

    /// Sends a request as it is written, and returns the status, the head and the body.
    fn sent(&self, request: &str) -> Result<(u16, String, String), Box<dyn std::error::Error>> {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        Ok((status, head.to_owned(), body.to_owned()))
    }

    fn head(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\nConnection: close\r\n", self.port)
    }

    fn get(&self, path: &str) -> Result<(u16, Value), Box<dyn std::error::Error>> {
        let (status, _, body) =
            self.sent(&format!("GET /{}{path} HTTP/1.1\r\n{}\r\n", self.token, self.head()))?;
        Ok((status, serde_json::from_str(&body).unwrap_or_else(|_| json!(body))))
    }

    /// Returns the first event of the live connection.
    fn live(&self, query: &str) -> Result<String, Box<dyn std::error::Error>> {
        let mut lines = self.listen(query)?.lines();
        let event = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("data: ")));
        Ok(event.ok_or("no event")??)
    }

    fn listen(&self, query: &str) -> Result<BufReader<TcpStream>, Box<dyn std::error::Error>> {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let (token, head) = (&self.token, self.head());
        write!(stream, "GET /{token}/api/live?{query} HTTP/1.1\r\n{head}\r\n")?;
        Ok(BufReader::new(stream))
    }

    fn write(&self, body: &Value) -> Result<(u16, Value), Box<dyn std::error::Error>> {
        let (body, head, Self { port, token, .. }) = (body.to_string(), self.head(), self);
        let length = body.len();
        let (status, _, answer) = self.sent(&format!(
            "POST /{token}/api/write HTTP/1.1\r\n{head}Origin: http://127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))?;
        Ok((status, serde_json::from_str(&answer)?))
    }
}

/// A store with a session of two branches, a summary, and another owner's session; usage in both.
fn store() -> Result<Store, Box<dyn std::error::Error>> {
    let store = Store::open_in_memory()?;
    let of = |owner: &str| SessionDetails {
        owner: Some(owner.to_owned()),
        ..SessionDetails::named(owner)
    };
    let chat = store.create_session_as("s", of("ada"))?;
    let ids: Vec<MessageId> = (0..9).map(|n| format!("m{n}").into()).collect();
    chat.append_all(ids.iter().map(|id| Message::user(format!("zebra {id}")).with_id(id.clone())))?;
    let usage = Usage { input: 7, ..Usage::default() };
    let answer = |text: &str| Message::assistant(text).with_usage(&usage);
    chat.append_to(&ids[4], answer("left behind").with_id("left"))?;
    chat.checkout(&ids[8])?;
    chat.add_compaction("They spoke of zebras.", &ids[0], &ids[2])?;
    let secret = store.create_session_as("of-bob", of("bob"))?;
    secret.append(Message::user("zebra secret").with_id("b1"))?;
    secret.append(answer("secret"))?;
    Ok(store)
}

#[test]
fn only_who_has_the_token_the_host_and_the_origin_is_answered() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    let Rig { port, token, .. } = &rig;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let path = format!("/{token}/api/sessions");
    for (path, lines, expected) in [
        (&*path, host.clone(), 200),
        (&path, format!("Host: localhost:{port}\r\n"), 200),
        (&path, format!("{host}Origin: http://127.0.0.1:{port}\r\n"), 200),
        ("/", host.clone(), 403),
        ("/api/sessions", host.clone(), 403),
        ("//api/sessions", host.clone(), 403),
        (&format!("/{}/api/sessions", &token[1..]), host.clone(), 403),
        (&format!("/{}/api/sessions", "0".repeat(32)), host.clone(), 403),
        (&format!("/api/sessions?token={token}"), host.clone(), 403),
        ("/api/sessions", format!("{host}Cookie: token={token}\r\n"), 403),
        (&path, format!("Host: evil.example:{port}\r\n"), 403),
        (&path, "Host: 127.0.0.1\r\n".to_owned(), 403),
        (&path, String::new(), 403),
        (&path, format!("{host}Origin: http://evil.example\r\n"), 403),
        (&path, format!("{host}Origin: null\r\n"), 403),
        (&path, format!("{host}Origin: http://127.0.0.1:1\r\n"), 403),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
        let (status, _, body) = rig.sent(&request)?;
        assert_eq!(status, expected, "{path} {lines}: {body}");
        assert!(expected == 200 || !body.contains("ada"), "{body}");
    }
    Ok(())
}

#[test]
fn the_page_loads_nothing_from_elsewhere_is_in_no_frame_and_sets_no_cookie() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    let Rig { port, token, .. } = &rig;
    let visit =
        format!("GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let (status, head, page) = rig.sent(&visit)?;
    assert_eq!(status, 200);
    let head = head.to_lowercase();
    assert!(!head.contains("set-cookie"), "{head}");
    for line in [
        "content-security-policy: default-src 'none'; script-src 'nonce-",
        "frame-ancestors 'none'",
        "x-frame-options: deny",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(line), "{line} is not in {head}");
    }
    assert!(!page.contains(token.as_str()) && page.contains("<title>talktree</title>"));
    let (_, again, _) = rig.sent(&visit)?;
    let nonce = |head: &str| head.split("nonce-").nth(1).map(|rest| rest[..32].to_owned());
    assert_ne!(nonce(&head), nonce(&again.to_lowercase()));
    Ok(())
}

#[test]
fn nothing_is_written_without_the_option_or_the_origin() -> Outcome {
    let store = store()?;
    let label = json!({"verb": "label", "session": "s", "message": "m1", "name": "here"});
    let rig = Rig::new(&store, Options::default())?;
    assert_eq!(rig.write(&label)?.0, 403);

    let rig = Rig::new(&store, Options { can_write: true, ..Options::default() })?;
    let body = label.to_string();
    let length = body.len();
    let (head, token) = (rig.head(), &rig.token);
    let (status, ..) = rig.sent(&format!(
        "POST /{token}/api/write HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}"
    ))?;
    assert_eq!(status, 403);
    assert!(store.session("s")?.labels()?.is_empty());
    assert_eq!(rig.write(&label)?.0, 200);
    assert_eq!(store.session("s")?.labelled("here")?, Some("m1".into()));

    for (verb, fields) in [
        ("unlabel", json!({"name": "here"})),
        ("checkout", json!({"message": "left"})),
        ("rename", json!({"name": "Zebras"})),
        ("pin", json!({})),
        ("compact", json!({"first": "m3", "last": "left", "summary": "Part of it."})),
        ("trash", json!({})),
        ("restore", json!({})),
    ] {
        let mut body = fields;
        (body["verb"], body["session"]) = (verb.into(), "s".into());
        assert_eq!(rig.write(&body)?, (200, json!({"done": true})), "{verb}");
    }
    let chat = store.session("s")?;
    let info = chat.info()?.ok_or("no session")?;
    assert_eq!(
        (info.name.as_deref(), info.is_pinned, info.deleted_at),
        (Some("Zebras"), true, None)
    );
    assert_eq!(chat.history()?.len(), 2);
    for (body, status) in [
        (json!({"verb": "label", "session": "s", "message": "none", "name": "x"}), 404),
        (json!({"verb": "erase", "session": "s"}), 400),
        (json!({"verb": "pin", "session": "none"}), 404),
        (json!({"verb": "label", "session": "s"}), 400),
    ] {
        assert_eq!(rig.write(&body)?.0, status, "{body}");
    }
    Ok(())
}

#[test]
fn an_owner_narrows_everything() -> Outcome {
    let store = store()?;
    let details = SessionDetails {
        owner: Some("ada".to_owned()),
        parent_session: Some("of-bob".into()),
        ..SessionDetails::named("zebra")
    };
    let fork = store.create_session_as("fork", details)?;
    fork.append(Message::user("zebra fork"))?;
    let rig = Rig::new(
        &store,
        Options { owner: Some("ada".to_owned()), can_write: true, ..Options::default() },
    )?;
    for path in [
        "/api/session?session=of-bob",
        "/api/messages?session=of-bob",
        "/api/search?session=of-bob&q=zebra",
        "/api/part?session=of-bob&message=b1&part=0",
        "/api/seen?session=of-bob&message=b1",
        "/api/expand?session=of-bob&compaction=c",
    ] {
        let unknown = rig.get(&path.replace("of-bob", "none"))?;
        assert_eq!(rig.get(path)?, unknown, "{path}");
        assert_eq!(unknown.0, 404);
    }
    for path in [
        "/api/sessions",
        "/api/sessions?owner=bob",
        "/api/search?q=zebra",
        "/api/search?q=zebra&owner=bob",
        "/api/usage?by=session&owner=bob",
        "/api/session?session=fork",
    ] {
        let (status, answer) = rig.get(path)?;
        let text = answer.to_string();
        assert!(status == 200 && !text.contains("bob"), "{path}: {answer}");
        assert!(text.contains("ada"), "{path}: {answer}");
    }
    let (_, used) = rig.get("/api/usage")?;
    assert_eq!((&used["rows"][0]["answers"], &used["rows"][0]["input"]), (&json!(1), &json!(7)));
    let live = |session: &str| rig.live(&format!("session={session}"));
    assert_eq!(live("of-bob")?, live("none")?);
    assert!(live("of-bob")?.contains("no such session"));
    assert!(live("s")?.contains("\"session\":["));
    assert_eq!(rig.write(&json!({"verb": "trash", "session": "of-bob"}))?.0, 404);
    Ok(())
}

#[test]
fn filters_narrow_a_search_and_one_that_finds_nothing_proposes_others() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    let hits = |filter: &str| -> Result<usize, Box<dyn std::error::Error>> {
        let (_, found) = rig.get(&format!("/api/search?q=zebra&{filter}"))?;
        Ok(found["hits"].as_array().ok_or("no hits")?.len())
    };
    assert_eq!((hits("owner=bob")?, hits("name=BOB")?, hits("name=none")?), (1, 1, 0));
    assert_eq!((hits("until=2001-01-01")?, hits("since=2001-01-01")?), (0, 10));
    assert_eq!((hits("state=ended")?, hits("state=open")?), (0, 10));
    let (_, found) = rig.get("/api/search?q=zebra+role:tool&propose=1")?;
    assert_eq!(found["about"]["alternatives"], json!([["for any role", "zebra"]]));
    let (_, found) = rig.get("/api/search?q=zebra+giraffe")?;
    let notices = found["about"]["notices"].to_string();
    assert!(notices.contains("some of the words"), "{found}");
    Ok(())
}

#[test]
fn connections_that_come_at_once_and_stay_open_are_all_answered() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    let mut open = Vec::new();
    for _ in 0..3 {
        let streams: std::io::Result<Vec<TcpStream>> =
            (0..12).map(|_| TcpStream::connect(format!("127.0.0.1:{}", rig.port))).collect();
        for mut stream in streams.as_ref().map_err(ToString::to_string)? {
            let Rig { port, token, .. } = &rig;
            write!(stream, "GET /{token}/api/start HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
        }
        for stream in streams? {
            stream.set_read_timeout(Some(Duration::from_secs(20)))?;
            let mut line = String::new();
            BufReader::new(stream.try_clone()?).read_line(&mut line)?;
            assert!(line.starts_with("HTTP/1.1 200"), "{line}");
            open.push(stream);
        }
    }
    Ok(())
}

#[test]
fn a_live_connection_ends_with_the_server() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    let mut lines = rig.listen("session=s")?.lines();
    assert!(lines.by_ref().any(|line| line.is_ok_and(|line| line.starts_with("data: "))));
    rig.should_stop.store(true, Ordering::Relaxed);
    assert!(lines.all(|line| line.is_ok()), "it went on");
    Ok(())
}

#[test]
fn a_path_is_read_in_pages_around_before_and_after_a_message() -> Outcome {
    let store = store()?;
    let rig = Rig::new(&store, Options::default())?;
    let page = |query: &str| -> Result<(String, Value), Box<dyn std::error::Error>> {
        let (status, answer) = rig.get(&format!("/api/messages?session=s&{query}"))?;
        assert_eq!(status, 200, "{query}: {answer}");
        let ids = answer["messages"].as_array().ok_or("no messages")?.iter();
        let ids: Vec<&str> = ids
            .map(|it| {
                if it["compaction"].is_null() { it["id"].as_str().unwrap_or("") } else { "summary" }
            })
            .collect();
        Ok((ids.join(" "), answer))
    };
    for (query, expected, ends, place) in [
        ("limit=3", "m6 m7 m8", [true, false], [7, 9]),
        ("limit=3&before=m6", "m3 m4 m5", [true, true], [4, 9]),
        ("limit=3&before=m4", "summary m3", [false, true], [3, 9]),
        ("limit=3&after=m7", "m8", [true, false], [9, 9]),
        ("limit=2&around=m5", "m4 m5 m6", [true, true], [5, 9]),
        // On another branch, and under the summary.
        ("limit=2&around=left", "m4 left", [true, false], [5, 6]),
        ("limit=2&around=m1", "m0 m1 m2", [false, true], [1, 9]),
        ("limit=2&around=m1&summaries=1", "summary m3", [false, true], [3, 9]),
        ("limit=2&leaf=left&raw=1", "m4 left", [true, false], [5, 6]),
    ] {
        let (ids, answer) = page(query)?;
        assert_eq!(ids, expected, "{query}");
        assert_eq!([&answer["before"], &answer["after"]], ends, "{query}");
        assert_eq!([&answer["messages"][0]["position"], &answer["total"]], place, "{query}");
    }
    let (_, answer) = page("limit=2&around=m1")?;
    assert_eq!((&answer["raw"], &answer["leaf"]), (&json!(true), &Value::Null));
    let summary = page("limit=9")?.1["messages"][0]["compaction"]["id"].clone();
    let (_, opened) =
        rig.get(&format!("/api/expand?session=s&compaction={}", summary.as_str().ok_or("no id")?))?;
    assert_eq!(opened["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(opened["more"], false);
    let id = summary.as_str().ok_or("no id")?;
    let (_, opened) =
        rig.get(&format!("/api/expand?session=s&compaction={id}&limit=1&after=m0"))?;
    assert_eq!((&opened["messages"][0]["id"], &opened["more"]), (&json!("m1"), &json!(true)));
    // Hidden messages count.
    let chat = store.session("s")?;
    chat.append(Message::system("hidden").hidden())?;
    chat.append(Message::user("seen").with_id("m10"))?;
    let (_, answer) = page("limit=2")?;
    let positions = [0, 1].map(|at| &answer["messages"][at]["position"]);
    assert_eq!(positions, [9, 11], "{answer}");
    Ok(())
}

#[test]
fn sessions_are_listed_in_pages_and_by_filters() -> Outcome {
    let store = Store::open_in_memory()?;
    for n in 0..7 {
        let details = SessionDetails {
            model: Some(["large", "small"][n % 2].to_owned()),
            ..SessionDetails::default()
        };
        let chat = store.create_session_as(format!("s{n}"), details)?;
        chat.append(
            Message::user(format!("question {n}\nand more")).at(format!(
                "2026-0{}-01T00:00:00Z",
                n + 1
            )
            .parse()?),
        )?;
    }
    let rig = Rig::new(&store, Options::default())?;
    let (mut after, mut ids) = (String::new(), Vec::new());
    loop {
        let (_, page) = rig.get(&format!("/api/sessions?limit=3&after={after}"))?;
        for session in page["sessions"].as_array().ok_or("no sessions")? {
            ids.push(session["id"].as_str().unwrap_or_default().to_owned());
            assert_eq!(session["preview"], format!("question {}", &ids[ids.len() - 1][1..]));
        }
        let Some(next) = page["after"].as_str() else { break };
        after = next.replace('+', "%2B").replace(' ', "+");
    }
    assert_eq!(ids, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
    let count = |query: &str| -> Result<usize, Box<dyn std::error::Error>> {
        Ok(rig.get(&format!("/api/sessions?{query}"))?.1["sessions"].as_array().map_or(0, Vec::len))
    };
    assert_eq!(count("model=small")?, 3);
    assert_eq!(count("since=2026-03-01&until=2026-05-31")?, 3);
    assert_eq!(count("state=trash")?, 0);
    Ok(())
}

#[test]
fn a_hit_says_where_it_is() -> Outcome {
    let store = store()?;
    let call = Part::tool_result("look", "c", json!({"animal": "okapi"}));
    store
        .session("s")?
        .append(Message::assistant("It is here.").with_part(call).with_id("tool"))?;
    let rig = Rig::new(&store, Options::default())?;
    for (query, id, on_path, is_under, in_tools) in [
        ("left+behind", "left", false, false, false),
        ("m1", "m1", true, true, false),
        ("okapi", "tool", true, false, true),
    ] {
        let (_, found) = rig.get(&format!("/api/search?q={query}"))?;
        let hit = &found["hits"][0];
        assert_eq!(hit["id"], id, "{found}");
        let place = (&hit["on_path"], !hit["under"].is_null(), &hit["in_tools"]);
        assert_eq!(place, (&json!(on_path), is_under, &json!(in_tools)), "{query}");
        assert_eq!(found["sessions"]["s"]["name"], "ada");
    }
    Ok(())
}

#[test]
fn what_a_model_saw_has_the_summaries_of_its_time() -> Outcome {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let ids: Vec<MessageId> = ["q", "a", "q2", "a2"].map(MessageId::from).into();
    chat.append(Message::user("first").with_id("q"))?;
    chat.append(Message::assistant("one").with_id("a"))?;
    chat.append(Message::user("second").with_id("q2"))?;
    chat.append(Message::assistant("two").with_id("a2"))?;
    chat.add_compaction("Later.", &ids[0], &ids[1])?;
    let rig = Rig::new(&store, Options::default())?;
    let (_, seen) = rig.get("/api/seen?session=s&message=a2&provider=anthropic")?;
    let shown: Vec<(&str, bool)> = seen["messages"]
        .as_array()
        .ok_or("no messages")?
        .iter()
        .map(|it| {
            assert_eq!(it["state"], "reconstructed");
            (it["id"].as_str().unwrap_or(""), it["gone"] == true)
        })
        .collect();
    assert_eq!(shown, [("q", true), ("a", true), ("q2", false)]);
    assert_eq!(seen["request"]["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(rig.get("/api/seen?session=s&message=a2&provider=none")?.0, 400);
    assert_eq!(rig.get("/api/seen?session=s&message=none")?.0, 404);
    Ok(())
}

#[test]
fn errors_have_a_status_and_a_reason() -> Outcome {
    let rig = Rig::new(&store()?, Options::default())?;
    for (path, status) in [
        ("/api/none", 404),
        ("/none", 404),
        ("/api/session", 400),
        ("/api/session?session=none", 404),
        ("/api/messages?session=s&around=none", 404),
        ("/api/messages?session=s&limit=many", 400),
        ("/api/sessions?since=never", 400),
        ("/api/sessions?state=new", 400),
        ("/api/search?q=", 400),
        ("/api/part?session=s&message=m1&part=7", 404),
        ("/api/session?session=%FF%00", 404),
    ] {
        let (found, answer) = rig.get(path)?;
        assert_eq!(found, status, "{path}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|why| !why.is_empty()), "{path}: {answer}");
    }
    let (head, token) = (rig.head(), &rig.token);
    assert_eq!(
        rig.sent(&format!(
            "PUT /{token}/ HTTP/1.1\r\n{head}Origin: http://127.0.0.1:{}\r\n\r\n",
            rig.port
        ))?
        .0,
        405
    );
    let long = format!(
        "POST /{token}/api/write HTTP/1.1\r\n{head}Origin: http://127.0.0.1:{}\r\nContent-Length: 2000000\r\n\r\n{}",
        rig.port,
        " ".repeat(2_000_000)
    );
    assert_eq!(rig.sent(&long)?.0, 413);
    Ok(())
}
