//! A limit for a test, so that one which hangs fails.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::process::kill_all;

/// The status of a program whose test took too long.
const TOO_LONG: i32 = 124;

/// Ends the program, and the [processes](crate::Process) that it started, unless this is dropped in time.
///
/// The waits of a test have their own limits, which say more. This one is for a wait that nobody thought of.
///
/// ```
/// use std::time::Duration;
/// use talktree_bot_rig::Limit;
///
/// let _limit = Limit::new(Duration::from_secs(60));
/// ```
#[derive(Debug)]
#[must_use]
pub struct Limit(#[expect(dead_code, reason = "its drop ends the thread")] Sender<()>);

impl Limit {
    /// Begins now.
    pub fn new(limit: Duration) -> Self {
        let (sender, is_dropped) = mpsc::channel();
        let name = thread::current().name().unwrap_or("a test").to_owned();
        thread::spawn(move || {
            if is_dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name} has not ended after {limit:?}; the program is ended");
                kill_all();
                process::exit(TOO_LONG);
            }
        });
        Self(sender)
    }
}
