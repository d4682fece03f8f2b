//! `talktree browse` in a pseudo terminal: what a person sees after each key.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use talktree::{Message, SessionDetails, Store};

use crate::common::{Outcome, Rig};

/// How long a screen is waited for.
const LIMIT: Duration = Duration::from_secs(30);

/// `talktree browse` on a terminal of this size.
struct Screen {
    child: Child,
    keys: ChildStdin,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Screen {
    fn of(rig: &Rig, columns: u16) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_talktree");
        // It finds no browser to start.
        let line = format!("stty cols {columns} rows 24; PATH=/none '{program}' browse");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.env("TALKTREE_STORE", rig.store()).env("TERM", "xterm-256color");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = script.spawn().ok()?;
        let (keys, mut output) = (child.stdin.take()?, child.stdout.take()?);
        let (sent, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                let _ = sent.send(bytes[..count].to_vec());
            }
        });
        let screen = vt100::Parser::new(NonZero::new(24)?, NonZero::new(columns)?, 0);
        Some(Self { child, keys, written, screen })
    }

    /// Waits until the screen shows a text, and returns the screen.
    fn shows(&mut self, text: &str) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen.screen().contents();
            if screen.contains(text) {
                return screen;
            }
            assert!(since.elapsed() < LIMIT, "no {text:?} on this screen:\n{screen}");
            if let Ok(bytes) = self.written.recv_timeout(Duration::from_millis(50)) {
                self.screen.process(&bytes);
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

#[test]
fn the_answer_left_behind_in_march_is_found_with_eight_keys() -> Outcome {
    for columns in [80, 140] {
        let rig = Rig::empty();
        let chat = Store::open(rig.store())?.create_session("Trip to Kyoto")?;
        let march = "2026-03-14T09:00:00Z".parse()?;
        let ask = chat.append(Message::user("Where should we stay?").at(march))?.id;
        chat.append(Message::assistant("In the ryokan by the river.").at(march))?;
        chat.append_to(&ask, Message::assistant("In the hostel 京都旅館.").at(march))?;
        chat.append(Message::user("Good, the hostel."))?;
        let Some(mut person) = Screen::of(&rig, columns) else { return Ok(()) }; // no terminals here
        person.shows("Trip to Kyoto");
        // Seven keys: the line of the search, four letters, Enter to leave the line, Enter to open the hit.
        person.press("/ryok");
        person.shows("on another branch");
        person.press("\r\r");
        let screen = person.shows("‹ 1/2 ›");
        assert!(screen.contains("In the ryokan by the river.") && screen.contains("2026-03-14"));
        assert!(!screen.contains("京都旅館"), "{screen}");
        person.press("]");
        let screen = person.shows("‹ 2/2 ›");
        assert!(screen.contains("In the hostel 京都旅館."), "{screen}");
        person.press("q");
        assert!(person.child.wait()?.success());
    }
    Ok(())
}

#[test]
fn a_message_is_opened_in_the_page() -> Outcome {
    let rig = Rig::empty();
    let chat = Store::open(rig.store())?.create_session_as("s/1", SessionDetails::default())?;
    chat.append(Message::user("Where?").with_id("m 1"))?;
    let Some(mut person) = Screen::of(&rig, 140) else { return Ok(()) };
    person.shows("Where?");
    person.press("lo");
    let screen = person.shows("#s=s%2F1&m=m%201");
    let address = screen.split("http://").nth(1).and_then(|rest| rest.split('#').next());
    let (host, path) = address.and_then(|it| it.split_once('/')).ok_or("no address")?;
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{path}api/start HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""can_write":false"#));
    // It ends with its terminal.
    let host = host.to_owned();
    drop(person);
    let since = Instant::now();
    while TcpStream::connect(&host).is_ok() {
        assert!(since.elapsed() < LIMIT, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn without_a_terminal_it_says_what_prints() {
    let said = Rig::toured().fails(2, ["browse"]);
    assert!(said.contains("this needs a terminal; `talktree sessions`"), "{said}");
}
