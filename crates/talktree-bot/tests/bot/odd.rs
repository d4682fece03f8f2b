//! A server that answers as no Bot API does: no call is repeated without an end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::common;
use talktree::Store;
use talktree_bot::config::Secret;
use talktree_bot::models::offline::Offline;
use talktree_bot::telegram;

const UPDATE: &str = r#"{"ok": true, "result": [{"update_id": 1, "message": {"message_id": 1,
    "date": 1700000000, "chat": {"id": 7, "type": "private"}, "text": "hello",
    "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}}]}"#;

/// Answers the requests of a connection; `sends` counts those for `sendMessage`, which get this status and body.
fn serve(
    stream: &TcpStream,
    sends: &AtomicUsize,
    (status, sent): (u16, &str),
    polls: (Duration, &AtomicUsize),
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let from = head.len();
            (reader.read_line(&mut head).ok()? > 0).then_some(())?;
            let line = head[from..].to_lowercase();
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let is_first = !String::from_utf8_lossy(&body).contains("offset");
        let (status, body) = match head.split(' ').nth(1)?.rsplit('/').next()? {
            "getMe" => {
                (200, r#"{"ok": true, "result": {"id": 1, "is_bot": true, "first_name": "B"}}"#)
            }
            "getUpdates" if is_first => (200, UPDATE),
            "getUpdates" => {
                polls.1.fetch_add(1, Ordering::Relaxed);
                thread::sleep(polls.0);
                (200, r#"{"ok": true, "result": []}"#)
            }
            "sendMessage" => {
                sends.fetch_add(1, Ordering::Relaxed);
                (status, sent)
            }
            _ => (200, r#"{"ok": true, "result": true}"#),
        };
        let length = body.len();
        write!(&mut &*stream, "HTTP/1.1 {status} It\r\ncontent-length: {length}\r\n\r\n{body}")
            .ok()?;
    }
}

/// Returns how often a message was sent within this time, if each is answered so, and what is pending then.
fn sends(time: Duration, status: u16, sent: &'static str) -> (usize, u64) {
    sends_and_polls(time, status, sent, Duration::from_millis(300), &Arc::default())
}

/// The same; each poll takes so long and is counted.
fn sends_and_polls(
    time: Duration,
    status: u16,
    sent: &'static str,
    poll: Duration,
    polls: &Arc<AtomicUsize>,
) -> (usize, u64) {
    let home = common::Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = home.config.clone();
    config.telegram.api_url = format!("http://{}", listener.local_addr().unwrap());
    config.telegram.token = Secret::new("1:a");
    config.telegram.poll_seconds = 1;
    config.http.listen = String::new();
    let count = Arc::new(AtomicUsize::new(0));
    let (counts, polled) = (Arc::clone(&count), Arc::clone(polls));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (counts, polled) = (Arc::clone(&counts), Arc::clone(&polled));
            thread::spawn(move || serve(&stream, &counts, (status, sent), (poll, &polled)));
        }
    });
    let store = Store::open(&config.store).unwrap();
    let inbox = store.inbox("telegram");
    let end = Arc::new(AtomicBool::new(false));
    let (until, (sender, ended)) = (Arc::clone(&end), mpsc::channel());
    thread::spawn(move || {
        sender.send(telegram::run_until(&config, store, Arc::new(Offline), until))
    });
    common::wait_for("a message is sent", || count.load(Ordering::Relaxed) > 0);
    thread::sleep(time);
    let (sent, pending) = (count.load(Ordering::Relaxed), inbox.pending().unwrap());
    end.store(true, Ordering::Relaxed);
    let start = Instant::now();
    ended.recv_timeout(Duration::from_secs(20)).unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    (sent, pending)
}

#[test]
fn a_message_whose_number_cannot_be_read_is_not_sent_again() {
    let time = Duration::from_secs(2);
    for result in ["true", r#"{"date": 1}"#, r#"{"message_id": 1099511627776}"#] {
        let body = format!(r#"{{"ok": true, "result": {result}}}"#).leak();
        assert_eq!(sends(time, 200, body), (1, 0), "{result}");
    }
}

#[test]
fn a_server_that_does_not_wait_for_updates_is_not_asked_without_a_pause() {
    // A result that cannot be read is given up at once, so only polls follow.
    let polls = Arc::new(AtomicUsize::new(0));
    sends_and_polls(
        Duration::from_secs(2),
        200,
        r#"{"ok": true, "result": true}"#,
        Duration::ZERO,
        &polls,
    );
    let count = polls.load(Ordering::Relaxed);
    assert!((3..=20).contains(&count), "{count}");
}

#[test]
fn a_wait_of_years_is_one() {
    let error =
        r#"{"ok": false, "error_code": 429, "parameters": {"retry_after": 18446744073709551615}}"#;
    assert_eq!(sends(Duration::from_secs(2), 429, error), (1, 1));
}

#[test]
fn a_token_that_is_refused_is_tried_less_and_less() {
    let error = r#"{"ok": false, "error_code": 401}"#;
    let (sent, pending) = sends(Duration::from_secs(5), 401, error);
    assert!((2..=6).contains(&sent), "{sent}");
    assert_eq!(pending, 1);
}
