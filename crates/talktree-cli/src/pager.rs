//! A pager for output that is longer than the screen.

use std::io::{self, Write};
use std::mem;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use signal_hook::consts::SIGINT;

/// Standard output, to a terminal. What one screen holds is written at the end; what is longer goes to a pager.
pub(crate) struct Paged {
    /// What was written while it fits the screen.
    held: Vec<u8>,
    /// How many more rows fit.
    rows_left: usize,
    columns: usize,
    to: To,
}

enum To {
    Held,
    Screen,
    Pager(Child),
}

impl Paged {
    /// Returns an output to a terminal; `None` if no terminal is known, or its user wants no pager.
    pub(crate) fn new() -> Option<Self> {
        let (columns, rows) = terminal_size::terminal_size()?;
        // The last row is the prompt's.
        let (columns, rows_left) = (usize::from(columns.0), usize::from(rows.0).checked_sub(1)?);
        let is_wanted = columns > 0 && !words().is_empty();
        is_wanted.then_some(Self { held: Vec::new(), rows_left, columns, to: To::Held })
    }

    fn hold(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        let lines = bytes.split(|byte| *byte == b'\n');
        // The rest after the last line end begins a row.
        let rows: usize = lines.map(|line| 1 + line.len() / self.columns).sum();
        match self.rows_left.checked_sub(rows.saturating_sub(1)) {
            Some(left) => self.rows_left = left,
            None => self.show()?,
        }
        Ok(())
    }

    /// Starts the pager; without one the output goes to the screen.
    fn show(&mut self) -> io::Result<()> {
        self.to = start().map_or(To::Screen, To::Pager);
        let held = mem::take(&mut self.held);
        self.write_all(&held)
    }

    /// Writes what is held, or waits until the user leaves the pager.
    fn finish(&mut self) -> io::Result<()> {
        if let To::Pager(mut pager) = mem::replace(&mut self.to, To::Screen) {
            drop(pager.stdin.take());
            pager.wait()?;
        }
        let held = mem::take(&mut self.held);
        self.write_all(&held)?;
        io::stdout().flush()
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            To::Held => self.hold(bytes)?,
            To::Screen => return io::stdout().write(bytes),
            To::Pager(pager) => return pager.stdin.as_mut().map_or(Ok(0), |it| it.write(bytes)),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.finish()
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        // A failure to write was reported.
        let _ = self.finish();
    }
}

/// Returns the words of the command, by default `less`; none if the output is not paged.
fn words() -> Vec<String> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let words = pager.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if words.first().is_some_and(|word| word == "cat") { Vec::new() } else { words }
}

fn start() -> Option<Child> {
    let words = words();
    let mut command = Command::new(words.first()?);
    command.args(&words[1..]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // It shows colours, leaves the text on the screen, and ends at once if one screen holds it.
        command.env("LESS", "FRX");
    }
    let pager = command.spawn().ok()?;
    // Ctrl-C is for the pager, whose user would get the prompt beside it. Without a handler it only ends talktree.
    let _ = signal_hook::flag::register(SIGINT, Arc::default());
    Some(pager)
}
