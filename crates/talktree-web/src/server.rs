//! Connections: who may ask, and what every response has.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use socket2::SockRef;
use talktree::Store;
use tiny_http::{Header, Method, Request, Response};

use crate::html;
use crate::routes::{self, Answer, Query, Refused};

/// The longest body of a request, in bytes. A summary by hand is the longest.
const MAX_BODY: u64 = 1 << 20;

/// How many requests are answered at a time; more are refused.
const MAX_REQUESTS: usize = 64;

/// How often the server looks whether it should stop.
const TICK: Duration = Duration::from_millis(100);

/// How many ticks after a request waiting connections are woken.
const WAKES: usize = 20;

/// How often the store is looked at for a page that is open.
const LIVE_TICK: Duration = Duration::from_millis(700);

/// After how many looks without a change the connection is tried.
const LIVE_PING: u32 = 20;

/// What the page may show and do. The default shows all sessions, writes nothing, and takes a free port.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The owner whose sessions are shown; all if there is none.
    pub owner: Option<String>,
    /// Whether the page may write: labels, checkout, names, pins, summaries by hand, the trash.
    pub can_write: bool,
    /// The port; 0 takes a free one.
    pub port: u16,
}

/// A page on the loopback interface.
///
/// A request is answered if its path begins with the token, if its `Host` is this server's, and its `Origin`, if there is one. A
/// request that writes must have an `Origin`. There is no cookie, because a browser gives cookies to each port of a host: to the
/// servers of others on this machine, too.
///
/// ```no_run
/// use talktree::Store;
/// use talktree_web::{Options, Server};
///
/// let server = Server::bind(&Store::open("bot.db")?, Options::default())?;
/// println!("{}", server.address());
/// server.run(|| false);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    http: tiny_http::Server,
    page: Arc<Page>,
}

/// A store as the page shows it.
pub(crate) struct Page {
    pub(crate) store: Store,
    pub(crate) options: Options,
    port: u16,
    token: String,
    is_over: AtomicBool,
}

impl Server {
    /// Listens on 127.0.0.1.
    ///
    /// # Errors
    /// If the port is taken, or the system gives no random numbers.
    pub fn bind(store: &Store, options: Options) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listener = TcpListener::bind(address)?;
        // Its connections have it, too. Otherwise a response of several writes waits 40 ms until the first is acknowledged.
        SockRef::from(&listener).set_tcp_nodelay(true)?;
        let http = tiny_http::Server::from_listener(listener, None).map_err(io::Error::other)?;
        let port = http.server_addr().to_ip().map_or(options.port, |address| address.port());
        let (store, token, is_over) = (store.clone(), random()?, AtomicBool::new(false));
        Ok(Self { http, page: Arc::new(Page { store, options, port, token, is_over }) })
    }

    /// Returns the address to open, with its token.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.page.port, self.page.token)
    }

    /// Answers requests until `should_stop` says so, which is asked ten times a second.
    pub fn run(&self, should_stop: impl Fn() -> bool) {
        self.page.is_over.store(false, Ordering::Relaxed);
        let mut wakes = 0;
        while !should_stop() {
            let Ok(Some(request)) = self.http.recv_timeout(TICK) else {
                // If connections come at once, the pool of tiny_http gives several to one idle thread, and all but the first wait
                // until any connection ends; those of a browser last. This one ends.
                if wakes > 0 {
                    let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.page.port));
                    wakes -= 1;
                }
                continue;
            };
            wakes = WAKES;
            // The server holds the page, and so does each request until it is answered.
            if Arc::strong_count(&self.page) > MAX_REQUESTS {
                // The client hears it or has gone.
                let _ = request.respond(json_response(503, &json!({"error": "too many requests"})));
                continue;
            }
            let page = Arc::clone(&self.page);
            std::thread::spawn(move || page.respond(request));
        }
        self.page.is_over.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        f.debug_struct("Server").field("port", &self.page.port).finish_non_exhaustive()
    }
}

/// Returns 128 random bits.
pub(crate) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

type Body = Response<io::Cursor<Vec<u8>>>;

fn header(name: &str, value: &str) -> Option<Header> {
    Header::from_bytes(name, value).ok()
}

/// Returns a response that no cache keeps, no other site embeds, and no browser takes for something else.
pub(crate) fn response(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Body {
    let headers = [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
    ];
    let mut response = Response::from_data(body).with_status_code(status);
    for header in headers.into_iter().filter_map(|(name, value)| header(name, value)) {
        response.add_header(header);
    }
    response
}

fn json_response(status: u16, value: &Value) -> Body {
    with_policy(response(status, "application/json", value.to_string()), "default-src 'none'")
}

fn with_policy(mut response: Body, policy: &str) -> Body {
    header("Content-Security-Policy", policy).into_iter().for_each(|it| response.add_header(it));
    response
}

fn field<'r>(request: &'r Request, name: &'static str) -> Option<&'r str> {
    let found = request.headers().iter().find(|header| header.field.equiv(name));
    found.map(|header| header.value.as_str())
}

/// Returns whether two texts are equal, in a time that does not depend on where they differ.
fn is_same(given: &str, token: &str) -> bool {
    let differ = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differ == 0
}

impl Page {
    /// Returns what is asked, below the token, or why the request is not answered.
    fn path<'u>(&self, request: &Request, path: &'u str) -> Result<&'u str, &'static str> {
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        let host = field(request, "Host").unwrap_or_default();
        // Another name that leads here is a page's that rebinds its name to this machine.
        if !hosts.iter().any(|known| known == host) {
            return Err("this address is not the server's");
        }
        match field(request, "Origin") {
            Some(origin) if origin != format!("http://{host}") => {
                return Err("another site may not ask");
            }
            None if *request.method() != Method::Get => return Err("the origin is missing"),
            _ => {}
        }
        let (given, below) =
            path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
        is_same(given, &self.token)
            .then_some(below)
            .ok_or("open the address that `talktree serve` printed: it has the token")
    }

    fn respond(&self, mut request: Request) {
        let url = request.url().to_owned();
        let (path, query) = url.split_once('?').unwrap_or((&url, ""));
        let query = Query::parse(query);
        let path = match self.path(&request, path) {
            Ok(path) => path,
            Err(why) => {
                let _ = request.respond(json_response(403, &json!({"error": why})));
                return;
            }
        };
        if path == "api/live" {
            // It ends with the connection.
            let _ = self.live(request, &query);
            return;
        }
        let answer = match (request.method(), path) {
            (Method::Get, "") => self.page(),
            (Method::Get, path) => routes::read(self, path, &query),
            (Method::Post, path) => {
                let mut body = Vec::new();
                let read = request.as_reader().take(MAX_BODY + 1).read_to_end(&mut body);
                match read {
                    Ok(bytes) if bytes as u64 <= MAX_BODY => routes::write(self, path, &body),
                    Ok(_) => Err(Refused(413, "the request is too long".to_owned())),
                    Err(error) => Err(Refused(400, error.to_string())),
                }
            }
            _ => Err(Refused(405, "the methods are GET and POST".to_owned())),
        };
        let response = match answer {
            Ok(Answer::Json(value)) => json_response(200, &value),
            Ok(Answer::Page { html, policy }) => {
                with_policy(response(200, "text/html; charset=utf-8", html), &policy)
            }
            Ok(Answer::File { kind, is_shown, bytes }) => {
                let file = with_policy(response(200, &kind, bytes), "sandbox; default-src 'none'");
                let disposition = if is_shown { "inline" } else { "attachment" };
                let disposition = header("Content-Disposition", disposition);
                disposition.into_iter().fold(file, Response::with_header)
            }
            Err(Refused(status, why)) => json_response(status, &json!({"error": why})),
        };
        let _ = request.respond(response);
    }

    fn page(&self) -> routes::Result<Answer> {
        let nonce = random().map_err(|error| Refused(500, error.to_string()))?;
        let page = html::Html { nonce: &nonce, data: None };
        Ok(Answer::Page {
            html: page.text(),
            policy: page.policy("frame-ancestors 'none'; connect-src 'self'; img-src 'self'"),
        })
    }

    /// Sends an event when the list of sessions or a session changes, until the page is closed or the server ends.
    fn live(&self, request: Request, query: &Query) -> io::Result<()> {
        let session = query.text("session").map(str::to_owned);
        let mut writer = request.into_writer();
        writer.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
              X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        )?;
        let mut before = Value::Null;
        let mut quiet = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let now = match routes::state(self, session.as_deref()) {
                Ok(now) => now,
                Err(Refused(_, why)) => json!({"error": why}),
            };
            quiet += 1;
            if now != before {
                write!(writer, "data: {now}\n\n")?;
                (before, quiet) = (now, 0);
            } else if quiet % LIVE_PING == 0 {
                writer.write_all(b": still here\n\n")?;
            }
            writer.flush()?;
            std::thread::sleep(LIVE_TICK);
        }
        Ok(())
    }
}
