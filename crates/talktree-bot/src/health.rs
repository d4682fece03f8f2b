//! The HTTP pages `/health` and `/metrics`. They are served on loopback only, because they have no password.
//!
//! A few threads each answer one connection at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use talktree::Inbox;

use crate::error::{Error, Result};
use crate::lock::lock;
use crate::metrics::Metrics;

/// After this many poll periods without an answer of Telegram the bot is not well.
const PERIODS: u32 = 3;

/// How many connections are answered at once.
const THREADS: usize = 4;

/// How long a client may send or read nothing.
const LIMIT: Duration = Duration::from_secs(2);

/// The longest head of a request, in bytes.
const MAX_HEAD: u64 = 8 << 10;

/// Whether updates still come in.
#[derive(Debug)]
pub struct Health {
    /// How long a poll without updates takes.
    period: Duration,
    /// When a poll was answered last.
    polled: Mutex<Option<Instant>>,
}

impl Health {
    /// Returns the state before the first poll, which is not well.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        Self { period: period.max(Duration::from_secs(1)), polled: Mutex::new(None) }
    }

    /// Notes that a poll was answered and its updates were stored.
    pub fn polled(&self, now: Instant) {
        *lock(&self.polled) = Some(now);
    }

    /// Returns whether a poll was answered within the last three periods, and how long ago it was.
    #[must_use]
    pub fn state(&self, now: Instant) -> (bool, Option<Duration>) {
        let polled = *lock(&self.polled);
        let ago = polled.map(|polled| now.saturating_duration_since(polled));
        (ago.is_some_and(|ago| ago <= self.period * PERIODS), ago)
    }
}

/// Serves the pages on this address, in threads of its own; returns the address. An empty one serves nothing.
///
/// # Errors
/// [`Error::Config`] if it is no loopback address; [`Error::System`] if another program listens there.
pub fn serve(
    listen: &str,
    health: Arc<Health>,
    metrics: Metrics,
    inbox: Inbox,
) -> Result<Option<SocketAddr>> {
    if listen.is_empty() {
        return Ok(None);
    }
    let address = loopback(listen).map_err(Error::Config)?;
    let failed = |source| Error::System { what: "the address of /health and /metrics", source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let listener = Arc::new(listener);
    for _ in 0..THREADS {
        let (listener, health) = (Arc::clone(&listener), Arc::clone(&health));
        let (metrics, inbox) = (metrics.clone(), inbox.clone());
        let work = move || {
            loop {
                let asked = listener.accept().and_then(|(stream, _)| {
                    let path = path(&stream)?;
                    respond(&stream, answer(&path, &health, &metrics, &inbox))
                });
                if let Err(error) = asked {
                    tracing::debug!(%error, "a client of /health disconnected or was too slow");
                    // If there are too many open files, the next try fails at once, too.
                    thread::sleep(Duration::from_millis(10));
                }
            }
        };
        let thread = thread::Builder::new().name("http".to_owned()).spawn(work);
        thread.map_err(failed)?;
    }
    tracing::info!(%address, "/health and /metrics are served");
    Ok(Some(address))
}

/// Returns the address that a setting names; an error if it is not on loopback.
pub(crate) fn loopback(listen: &str) -> Result<SocketAddr, String> {
    let address = listen.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback());
    address.ok_or_else(|| {
        format!("[http] listen is {listen:?}, which is no loopback address with a port")
    })
}

/// Reads the head of a request and returns its path.
fn path(stream: &TcpStream) -> io::Result<String> {
    stream.set_read_timeout(Some(LIMIT))?;
    let mut lines = BufReader::new(stream.take(MAX_HEAD)).lines();
    let first = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    // The rest of the head: a connection that is closed before it was read is reset.
    lines.find(|line| line.as_ref().map_or(true, String::is_empty)).transpose()?;
    Ok(first.split(' ').nth(1).unwrap_or_default().to_owned())
}

fn respond(mut stream: &TcpStream, (status, text): (u16, String)) -> io::Result<()> {
    let (kind, length) = ("text/plain; charset=utf-8", text.len());
    let head =
        format!("HTTP/1.1 {status} \r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(format!("{head}Connection: close\r\n\r\n{text}").as_bytes())
}

fn answer(url: &str, health: &Health, metrics: &Metrics, inbox: &Inbox) -> (u16, String) {
    let pending = inbox.pending().ok();
    match url {
        "/health" => {
            let (is_well, ago) = health.state(Instant::now());
            let seconds = ago.map(|ago| ago.as_secs());
            let state = json!({ "ok": is_well, "seconds_since_poll": seconds, "pending": pending });
            (if is_well { 200 } else { 503 }, state.to_string())
        }
        "/metrics" => {
            metrics.pending.set(pending.and_then(|it| it.try_into().ok()).unwrap_or_default());
            match metrics.text() {
                Ok(text) => (200, text),
                Err(error) => (500, error.to_string()),
            }
        }
        _ => (404, "there are /health and /metrics\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use talktree::Store;

    use super::*;

    #[test]
    fn it_is_well_for_three_periods_after_a_poll() {
        let health = Health::new(Duration::from_secs(30));
        let start = Instant::now();
        assert_eq!(health.state(start), (false, None));
        health.polled(start);
        let after = |seconds| health.state(start + Duration::from_secs(seconds)).0;
        assert!(after(0) && after(90));
        assert!(!after(91));
    }

    #[test]
    fn only_loopback_may_ask() {
        let serve = |listen: &str| {
            let inbox = Store::open_in_memory().unwrap().inbox("telegram");
            let health = Arc::new(Health::new(Duration::from_secs(1)));
            serve(listen, health, Metrics::new().unwrap(), inbox).map_err(|error| error.to_string())
        };
        for listen in ["0.0.0.0:0", "localhost", "127.0.0.1"] {
            assert!(serve(listen).unwrap_err().contains("no loopback address with a port"));
        }
        assert!(serve("127.0.0.1:0").unwrap().unwrap().port() > 0);
        assert_eq!(serve("").unwrap(), None);
    }

    #[test]
    fn health_and_metrics_are_answered() {
        let inbox = Store::open_in_memory().unwrap().inbox("telegram");
        inbox.receive(&[talktree::InboxItem::new("1", "k", "text")], None).unwrap();
        let health = Arc::new(Health::new(Duration::from_secs(1)));
        let metrics = Metrics::new().unwrap();
        metrics.received.inc_by(3);
        let at = serve("127.0.0.1:0", Arc::clone(&health), metrics, inbox).unwrap().unwrap();
        let get = |path: &str| {
            let agent = ureq::Agent::config_builder().http_status_as_error(false);
            let agent = agent.timeout_global(Some(Duration::from_secs(20))).build().new_agent();
            let mut answer = agent.get(format!("http://{at}{path}")).call().unwrap();
            (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
        };
        assert_eq!(get("/health").0, 503);
        health.polled(Instant::now());
        let (status, text) = get("/health");
        assert_eq!(status, 200);
        assert_eq!(text, r#"{"ok":true,"pending":1,"seconds_since_poll":0}"#);
        let (status, text) = get("/metrics");
        assert_eq!(status, 200);
        assert!(text.contains("\ntalktree_bot_updates_received_total 3\n"), "{text}");
        assert!(text.contains("\ntalktree_bot_pending 1\n"), "{text}");
        assert_eq!(get("/").0, 404);
    }

    #[test]
    fn clients_that_say_nothing_are_cut_off() {
        let inbox = Store::open_in_memory().unwrap().inbox("telegram");
        let health = Arc::new(Health::new(Duration::from_secs(1)));
        let at = serve("127.0.0.1:0", health, Metrics::new().unwrap(), inbox).unwrap().unwrap();
        let connect = || {
            let stream = TcpStream::connect(at).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            stream
        };
        // Twice as many as there are threads.
        let mut slow: Vec<TcpStream> = (0..2 * THREADS).map(|_| connect()).collect();
        let mut quick = connect();
        quick.write_all(b"GET /health HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        quick.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        for stream in &mut slow {
            match stream.read(&mut [0]) {
                Ok(count) => assert_eq!(count, 0),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
            }
        }
    }
}
