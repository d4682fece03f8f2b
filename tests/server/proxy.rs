//! A proxy before a server, which cuts a connection, holds a commit back, or counts round trips.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// When a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// At the first request: the server has not seen it.
    First,
    /// Never: from the first request on nobody answers.
    Silent,
    /// When the commit is sent: the server has not seen it.
    Commit,
    /// When the commit is on its way: the server may be in the middle of it.
    During,
    /// When the server has committed: the answer is lost.
    Answer,
    /// When the client has the answer.
    After,
    /// Never: the commit waits before it is sent.
    Held,
}

pub(crate) struct Proxy {
    /// The URL of the store behind the proxy, and of the same one without it.
    pub(crate) url: String,
    pub(crate) direct: String,
    plan: Arc<Plan>,
    _folder: tempfile::TempDir,
}

/// What happens to the next connection that comes so far, and what happened to all.
#[derive(Debug, Default)]
struct Plan {
    cut: Mutex<Option<Cut>>,
    /// Locked as long as a commit is held back.
    gate: Mutex<()>,
    /// How long each answer waits.
    delay: Mutex<Duration>,
    trips: AtomicU64,
    /// How many bytes the server has sent.
    sent: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy before the server of a store; `None` without one, or if it has no socket.
    pub(crate) fn start(direct: Option<String>) -> std::io::Result<Option<Self>> {
        let Some(direct) = direct else { return Ok(None) };
        let host = direct.split(['?', '&']).find_map(|part| part.strip_prefix("host="));
        let host = host.filter(|host| host.starts_with('/')).map(str::to_owned);
        let Some(host) = host else { return Ok(None) };
        let port = direct.split('/').nth(2).and_then(|it| it.rsplit(':').next()?.parse().ok());
        let socket = format!(".s.PGSQL.{}", port.unwrap_or(5_432_u16));
        // Not below TMPDIR: the path of a socket has at most 107 bytes.
        let folder = tempfile::tempdir_in("/tmp")?;
        let url = direct.replace(&host, &folder.path().to_string_lossy());
        let listener = UnixListener::bind(folder.path().join(&socket))?;
        let plan = Arc::default();
        let (shared, server) = (Arc::clone(&plan), PathBuf::from(host).join(socket));
        // They end with the process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = UnixStream::connect(&server) {
                    let _ = serve(client, server, Arc::clone(&shared));
                }
            }
        });
        Ok(Some(Self { url, direct, plan, _folder: folder }))
    }

    /// Cuts the next connection that comes so far.
    pub(crate) fn cut(&self, at: Cut) {
        *locked(&self.plan.cut) = Some(at);
    }

    /// Holds the next commit back for as long as the answer lives.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        let gate = locked(&self.plan.gate);
        self.cut(Cut::Held);
        gate
    }

    /// Delays each answer: all that is sent without waiting has then arrived before the first one.
    pub(crate) fn delay(&self, answers: Duration) {
        *locked(&self.plan.delay) = answers;
    }

    /// Returns how often a client has waited for an answer.
    pub(crate) fn trips(&self) -> u64 {
        self.plan.trips.load(Ordering::SeqCst)
    }

    /// Returns how many bytes the server has sent since this was asked.
    pub(crate) fn sent(&self) -> usize {
        self.plan.sent.swap(0, Ordering::Relaxed)
    }

    /// Lets everything through.
    pub(crate) fn clear(&self) {
        *locked(&self.plan.cut) = None;
    }

    /// Returns whether what was planned has happened.
    pub(crate) fn is_done(&self) -> bool {
        locked(&self.plan.cut).is_none()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with it")
}

/// Starts to copy requests and answers.
fn serve(mut client: UnixStream, mut server: UnixStream, plan: Arc<Plan>) -> std::io::Result<()> {
    // What the answers to come are cut at.
    let answers = Arc::new(Mutex::new(None));
    let (mut to_client, mut from_server) = (client.try_clone()?, server.try_clone()?);
    let cut_answers = Arc::clone(&answers);
    let is_answered = Arc::new(AtomicBool::new(true));
    let (answered, counted) = (Arc::clone(&is_answered), Arc::clone(&plan));
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = from_server.read(&mut buffer).unwrap_or(0);
            counted.sent.fetch_add(count, Ordering::Relaxed);
            let at = *locked(&cut_answers);
            if count == 0 || at == Some(Cut::Answer) {
                break;
            }
            let delay = *locked(&counted.delay);
            thread::sleep(delay);
            answered.store(true, Ordering::SeqCst);
            if to_client.write_all(&buffer[..count]).is_err() || at == Some(Cut::After) {
                break;
            }
        }
        close(&to_client, &from_server);
    });
    thread::spawn(move || {
        let (mut is_started, mut is_read) = (false, false);
        while let Ok(request) = request(&mut client, is_started) {
            let is_trip = is_answered.swap(false, Ordering::SeqCst);
            plan.trips.fetch_add(u64::from(is_trip), Ordering::SeqCst);
            let has = |words: &[u8]| request.windows(words.len()).any(|window| window == words);
            if has(b"BEGIN") {
                is_read = has(b"READ ONLY");
            }
            let is_commit = has(b"COMMIT") && !is_read;
            let mut planned = locked(&plan.cut);
            // A question about a commit is no write.
            let is_first = |at| is_started && matches!(at, Cut::First | Cut::Silent);
            let at = planned.filter(|at| is_commit || is_first(*at));
            if at.is_some() {
                *planned = None;
            }
            drop(planned);
            // Before it starts, a client may ask whether there is encryption.
            is_started |= request.len() > 8;
            if matches!(at, Some(Cut::First | Cut::Commit)) {
                break;
            }
            while at == Some(Cut::Silent) {
                thread::park();
            }
            if at == Some(Cut::Held) {
                drop(locked(&plan.gate));
            }
            *locked(&answers) = at;
            if server.write_all(&request).is_err() {
                break;
            }
            if at == Some(Cut::During) {
                thread::sleep(Duration::from_micros(200));
                break;
            }
        }
        close(&client, &server);
    });
    Ok(())
}

fn close(client: &UnixStream, server: &UnixStream) {
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

/// Reads a message of PostgreSQL's protocol; the first one has no kind.
fn request(client: &mut UnixStream, has_kind: bool) -> std::io::Result<Vec<u8>> {
    let head = if has_kind { 5 } else { 4 };
    let mut message = vec![0; head];
    client.read_exact(&mut message)?;
    let length: [u8; 4] = message[head - 4..].try_into().expect("four bytes");
    message.resize(head + u32::from_be_bytes(length) as usize - 4, 0);
    client.read_exact(&mut message[head..])?;
    Ok(message)
}

/// Runs work with a connection to the server of a store.
pub(crate) fn client<T>(url: &str, work: impl AsyncFnOnce(tokio_postgres::Client) -> T) -> T {
    let server = url.split("schema=").next().unwrap_or(url);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let connected = tokio_postgres::connect(server, tokio_postgres::NoTls).await;
        let (client, connection) = connected.expect("a connection");
        tokio::spawn(connection);
        work(client).await
    })
}
