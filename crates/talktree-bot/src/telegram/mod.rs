//! The front end for Telegram: it loses no message and answers none twice.
//!
//! One thread polls and stores the updates in the inbox (`intake`). For each chat that has some, a thread takes them from the
//! inbox (`turns`), handles one after the other (`turn`) and shows the replies in messages of Telegram (`delivery`).
//!
//! Invariant: inbox and session always say where to go on after a `kill -9`.

mod delivery;
mod intake;
mod note;
mod turn;
mod turns;
mod update;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use chrono::Utc;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use talktree::Store;
use talktree_telegram::{CallError, Client, Event, Permits, Settings, Stop, Workers};

use self::turn::Front;
use crate::Bot;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::health::{self, Health};
use crate::metrics::Metrics;
use crate::models::Model;

/// How long running replies may go on when the program ends.
const GRACE: Duration = Duration::from_secs(8);

/// How often the flag of the signals is read: a signal handler may not wake a thread.
const TICK: Duration = Duration::from_millis(50);

/// How often the inbox is searched for pending updates that no thread handles: after an error a thread may have missed some.
const LOOK: Duration = Duration::from_secs(30);

/// How many turns per core work at once before their replies begin: while one waits for the disk, another one uses the core.
const PERMITS_PER_CORE: usize = 2;

/// Runs the bot on Telegram until SIGINT or SIGTERM; a second signal ends the program at once.
///
/// # Errors
/// As [`run_until`].
pub fn run(config: &Config, store: Store, model: Arc<dyn Model>) -> Result<()> {
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let second = flag::register_conditional_shutdown(signal, 1, Arc::clone(&end));
        second
            .and_then(|_| flag::register(signal, Arc::clone(&end)))
            .map_err(|source| Error::System { what: "the handler of signals", source })?;
    }
    run_until(config, store, model, end)
}

/// Runs the bot on Telegram until `end` is true. Running replies then have eight seconds; the next start finishes the others.
///
/// # Errors
/// [`Error::Config`] if there is no token, or Telegram refuses it; as [`Bot::new`] and [`health::serve`].
pub fn run_until(
    config: &Config,
    store: Store,
    model: Arc<dyn Model>,
    end: Arc<AtomicBool>,
) -> Result<()> {
    if config.telegram.token.is_empty() {
        let text = "[telegram] token is empty, and TELEGRAM_TOKEN is not set";
        return Err(Error::Config(text.to_owned()));
    }
    // It becomes a part of the address: with a line break, which files often end with, every call would fail for ever.
    let is_usual = |it: char| it.is_ascii_alphanumeric() || matches!(it, ':' | '_' | '-');
    if !config.telegram.token.reveal().chars().all(is_usual) {
        let text = "[telegram] token, or TELEGRAM_TOKEN, has a character that is in no token, such as a line break";
        return Err(Error::Config(text.to_owned()));
    }
    let metrics = Metrics::new()?;
    let inbox = store.inbox("telegram");
    let health = Arc::new(Health::new(Duration::from_secs(config.telegram.poll_seconds)));
    health::serve(&config.http.listen, Arc::clone(&health), metrics.clone(), inbox.clone())?;
    let bot = Bot::new(config, store, metrics.measure(model))?;
    let stop = Arc::new(Stop::default());
    let ending = Arc::clone(&stop);
    spawn("end", move || {
        while !end.load(Ordering::Relaxed) {
            thread::sleep(TICK);
        }
        ending.end();
        ending.wait(GRACE);
        ending.over();
    })?;
    let telegram = &config.telegram;
    let settings = Settings {
        url: telegram.api_url.clone(),
        token: telegram.token.reveal().to_owned(),
        calls_per_second: telegram.calls_per_second,
        connections: telegram.max_parallel,
    };
    let counts = metrics.clone();
    let client = Client::new(settings, Arc::clone(&stop), move |event| match event {
        Event::Edited => counts.edits.inc(),
        Event::TooMany => counts.too_many.inc(),
        Event::Again => counts.retries.inc(),
    });
    let (sender, answered) = mpsc::channel();
    spawn("start", move || drop(sender.send((client.me(), client))))?;
    let failed = |source| Error::System { what: "the first call of Telegram", source };
    let (me, client) = loop {
        match answered.recv_timeout(TICK) {
            Ok(answered) => break answered,
            Err(RecvTimeoutError::Timeout) if !stop.is_ending() => {}
            // The call may take longer than a shutdown may. Nothing else is running yet.
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(std::io::Error::other("its thread panicked")));
            }
        }
    };
    let me = match me {
        Err(CallError::Stopped) => return Ok(()),
        Err(error) if error.is_about_token() => {
            let text = "Telegram refuses the token, or [telegram] api_url is no Bot API";
            return Err(Error::Config(format!("{text}: {error}")));
        }
        Err(error) => return Err(failed(std::io::Error::other(error))),
        Ok(me) => me,
    };
    tracing::info!(bot = me.name, pending = inbox.pending()?, "the bot is running");
    let run = Utc::now().timestamp_micros();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let permits = Permits::new(PERMITS_PER_CORE * cores);
    let config = config.clone();
    let front = Front { bot, client, inbox, me, config, metrics, stop, permits, run };
    let front = Arc::new(front);
    let (working, polling) = (Arc::clone(&front), Arc::clone(&front));
    let workers = Workers::new(telegram.max_parallel, Arc::clone(&front.stop), move |key| {
        working.work_on(key);
    });
    let waking = workers.clone();
    spawn("poll", move || intake::run(&polling, &waking, &health))?;
    loop {
        match front.inbox.keys() {
            Ok(keys) => workers.wake(keys),
            Err(error) => tracing::warn!(%error, "the inbox cannot be read"),
        }
        if !front.stop.wait_idle(LOOK) {
            break;
        }
    }
    tracing::info!("the bot ends; running replies are finished");
    workers.wait(GRACE + TICK);
    tracing::info!(pending = front.inbox.pending()?, "the bot has ended");
    Ok(())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|source| Error::System { what: "a thread of the bot", source })
}
