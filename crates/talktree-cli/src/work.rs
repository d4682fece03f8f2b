//! Long work: it shows its progress, a signal stops it, and what cannot be undone is confirmed first.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use talktree::{Error, Progress, Store};

use crate::failure::{Failure, Result};

/// A progress bar or spinner; dropping it clears it.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Returns a bar that counts bytes.
    pub(crate) fn of_bytes(what: &str) -> Self {
        Self::new(what, "{msg} {wide_bar} {bytes}/{total_bytes} {eta}")
    }

    /// Returns a bar that counts steps.
    pub(crate) fn of_steps(what: &str) -> Self {
        Self::new(what, "{msg} {wide_bar} {human_pos}/{human_len} {eta}")
    }

    /// Returns a spinner with the elapsed time, for work of unknown length.
    pub(crate) fn of_waiting(what: &str) -> Self {
        let bar = Self::new(what, "{spinner} {wide_msg} {elapsed}");
        bar.0.set_draw_target(ProgressDrawTarget::stderr());
        bar.0.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    fn new(what: &str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(crate::text::one_line(what));
        Self(bar)
    }

    /// Shows how far the work is, once its total is known: of nothing the bar would be full.
    pub(crate) fn show(&self, progress: Progress) {
        if progress.total == 0 {
            return;
        }
        let is_first = self.0.length().is_none();
        self.0.set_length(progress.total);
        if is_first {
            // indicatif hides it if stderr is not a terminal.
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_position(progress.done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

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

    /// Runs long work of a store, which a signal interrupts, with a bar that counts its steps.
    pub(crate) fn run<T>(
        &self,
        store: &Store,
        what: &str,
        work: impl FnOnce(&Bar) -> talktree::Result<T>,
    ) -> Result<T> {
        self.interrupt(store);
        let done = work(&Bar::of_steps(what));
        done.map_err(|error| match (error, self.check()) {
            (Error::Interrupted, Err(stopped)) => stopped,
            (error, _) => error.into(),
        })
    }

    /// Fails if a signal arrived.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Stopped(u8::try_from(signal).unwrap_or_default())),
        }
    }
}

/// Asks whether to do something that cannot be undone; fails without a terminal.
///
/// `nothing` is the error if the answer is no.
pub(crate) fn confirm(is_confirmed: bool, to_do: &str, nothing: &str) -> Result<()> {
    if is_confirmed {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("{nothing}: pass --yes to {to_do}")));
    }
    let mut stderr = std::io::stderr();
    let mut question = to_do.to_owned();
    if let Some(first) = question.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    write!(stderr, "{}? [y/N] ", crate::text::escape(&question))?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Usage(nothing.to_owned())),
    }
}
