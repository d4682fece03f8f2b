//! A small HTTP/1.1 server on loopback, a thread for each connection.
//!
//! It can do what a broken network does: end a connection before an answer, or in the middle of one.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;

/// The longest body of a request.
const MAX_BODY: usize = 64 << 20;

/// The most header lines of a request.
const MAX_HEADERS: usize = 64;

/// A connection needs little; a bot may have hundreds.
const STACK: usize = 512 << 10;

/// How long a server waits for the end of its thread.
const ENDING: Duration = Duration::from_secs(5);

/// A request, completely read.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Incoming {
    /// Returns the value of a header; `name` is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }
}

/// The answer to a request: either whole, or begun and written in chunks. An error ends the connection.
#[derive(Debug)]
pub(crate) struct Reply<'a>(&'a TcpStream);

impl Reply<'_> {
    /// Writes a whole answer in JSON.
    pub(crate) fn json(
        &mut self,
        status: u16,
        extra: &[(&str, String)],
        body: &str,
    ) -> io::Result<()> {
        let answer = whole(status, extra, body);
        self.0.write_all(answer.as_bytes())
    }

    /// Writes half of an answer and ends the connection.
    pub(crate) fn half(&mut self, status: u16, body: &str) -> io::Result<()> {
        let answer = whole(status, &[], body);
        let half = answer.len() - body.len().div_ceil(2);
        self.0.write_all(&answer.as_bytes()[..half])?;
        cut()
    }

    /// Begins an answer of server-sent events.
    pub(crate) fn begin_events(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
        self.0.write_all(head.as_bytes())
    }

    /// Writes a piece of an answer that was begun.
    pub(crate) fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }

    /// Ends an answer that was begun.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }
}

/// Ends a connection without a further byte.
pub(crate) fn cut<T>() -> io::Result<T> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn whole(status: u16, extra: &[(&str, String)], body: &str) -> String {
    let mut head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        reason(status),
        body.len()
    );
    for (name, value) in extra {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head + "\r\n" + body
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        429 => "Too Many Requests",
        502 => "Bad Gateway",
        529 => "Overloaded",
        _ => "Internal Server Error",
    }
}

type Handler = dyn Fn(&Incoming, &mut Reply<'_>) -> io::Result<()> + Send + Sync;

struct Shared {
    is_closed: AtomicBool,
    open: Mutex<HashMap<u64, Arc<TcpStream>>>,
    handler: Box<Handler>,
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<TcpStream>>> {
        lock(&self.open)
    }
}

/// A running server; it ends when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server on a free port.
    pub(crate) fn start(
        handler: impl Fn(&Incoming, &mut Reply<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            is_closed: AtomicBool::new(false),
            open: Mutex::default(),
            handler: Box::new(handler),
        });
        let serving = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &serving));
        Ok(Self { address, shared, accepting })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + ENDING;
        // A connection wakes the thread that accepts. It may fail, if there are too many; then the thread is left behind.
        while !self.accepting.is_finished() && Instant::now() < until {
            let _ = TcpStream::connect_timeout(&self.address, ENDING / 10);
            std::thread::sleep(Duration::from_millis(1));
        }
        for stream in self.shared.open().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for number in 0.. {
        let accepted = listener.accept();
        if shared.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // There are too many open files, for example.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let stream = Arc::new(stream);
        shared.open().insert(number, Arc::clone(&stream));
        let serving = Arc::clone(shared);
        let spawned = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            // An error is the end of the connection: the client left, or it was cut.
            let _ = serve(&stream, &serving);
            let _ = stream.shutdown(Shutdown::Both);
            serving.open().remove(&number);
        });
        if spawned.is_err() {
            shared.open().remove(&number);
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Bytes { stream, buffer: Vec::new() };
    while let Some(incoming) = bytes.request()? {
        (shared.handler)(&incoming, &mut Reply(stream))?;
        if incoming.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            break;
        }
    }
    Ok(())
}

/// What arrives on a connection.
struct Bytes<'a> {
    stream: &'a TcpStream,
    buffer: Vec<u8>,
}

impl Bytes<'_> {
    /// Reads more; returns false at the end.
    fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; 16 << 10];
        let count = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count > 0)
    }

    /// Takes this many bytes.
    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        if count > MAX_BODY {
            return Err(invalid(format!("a body of {count} bytes, over the limit of {MAX_BODY}")));
        }
        while self.buffer.len() < count {
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Takes a line with its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                return self.take(at + 2);
            }
            if self.buffer.len() > MAX_HEAD || !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the next request; `None` at the end of the connection.
    fn request(&mut self) -> io::Result<Option<Incoming>> {
        let (mut incoming, length) = loop {
            if let Some((incoming, length)) = head(&self.buffer)? {
                break (incoming, length);
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(invalid(format!("a head over the limit of {MAX_HEAD} bytes")));
            }
            if !self.more()? {
                return Ok(None);
            }
        };
        self.take(length)?;
        if incoming.header("expect").is_some() {
            (&mut &*self.stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        incoming.body = match incoming.header("content-length") {
            Some(length) => self.take(length.trim().parse().map_err(invalid)?)?,
            None if incoming.header("transfer-encoding").is_some() => self.chunks()?,
            None => Vec::new(),
        };
        Ok(Some(incoming))
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = String::from_utf8_lossy(&line);
            let size = size.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(invalid)?;
            if size.saturating_add(body.len()) > MAX_BODY {
                return Err(invalid(format!("a body over the limit of {MAX_BODY} bytes")));
            }
            body.extend(self.take(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}

/// Parses a head, if all of it is there, and returns its length.
fn head(bytes: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(bytes).map_err(invalid)? else {
        return Ok(None);
    };
    let path = request.path.unwrap_or_default().to_owned();
    let text = |value| String::from_utf8_lossy(value).into_owned();
    let headers = request.headers.iter();
    let headers = headers.map(|header| (header.name.to_lowercase(), text(header.value))).collect();
    Ok(Some((Incoming { path, headers, body: Vec::new() }, length)))
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
