//! The short forms of the torture tests, one at a time: they take over what their process has once, such as the calls that
//! SQLite makes to the system, and the limit of its memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod callbacks;
mod commits;
mod contend;
mod damage;
mod erasures;
mod faults;
mod grow;
mod hostile;
#[cfg(feature = "postgres")]
mod hosts;
mod imports;
mod kill;
mod neighbours;
mod power;
mod scarce;
mod soak;

/// Waits until no other test of this process runs.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
