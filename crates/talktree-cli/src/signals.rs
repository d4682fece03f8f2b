//! Ctrl-C and SIGTERM, for commands that clean up before they stop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use talktree::Store;

use crate::failure::{Failure, Result};

/// How often the signal is looked at while a store works.
const TICK: Duration = Duration::from_millis(20);

/// The signal that arrived, if one did. From its creation on a signal no longer ends talktree by itself.
#[derive(Clone)]
pub(crate) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let arrived = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM] {
            let flag = Arc::clone(&arrived);
            signal_hook::flag::register_usize(number, flag, number.unsigned_abs() as usize)?;
        }
        Ok(Self(arrived))
    }

    /// Interrupts the long work of a store when a signal arrives: a backup, a check.
    pub(crate) fn interrupt(&self, store: &Store) {
        let (signals, handle) = (self.clone(), store.interrupt_handle());
        // The thread ends with the command. It interrupts again and again: work that begins after an interrupt knows nothing
        // of it.
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(TICK);
                if signals.check().is_err() {
                    handle.interrupt();
                }
            }
        });
    }

    /// Fails if a signal arrived.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Stopped(u8::try_from(signal).unwrap_or_default())),
        }
    }
}
