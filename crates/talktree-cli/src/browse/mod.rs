//! `talktree browse`: sessions, branches and texts on a terminal.
//!
//! The [`app`] turns keys into moves, [`draw`] draws what it holds. [`chat`] is the conversation that is open: a window of its
//! messages, read page by page as one scrolls, and the tree of its branches. [`list`] is what is left of it: the sessions, or
//! the hits of a search.
//!
//! Invariant: every text is escaped where a line is made of it, so nothing in a message controls the terminal.

mod app;
mod chat;
mod draw;
mod lines;
mod list;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind,
};
use ratatui::crossterm::execute;
use signal_hook::consts::{SIGHUP, SIGTERM};
use talktree::{Session, Store};

use crate::failure::{Failure, Result};
use app::App;

/// How often a conversation that nobody touches is looked at for new messages, and the signals.
const TICK: Duration = Duration::from_secs(1);

/// What is browsed.
pub(crate) struct Browsed {
    pub(crate) store: Store,
    pub(crate) path: PathBuf,
    /// Whose sessions are shown; those of all without it.
    pub(crate) owner: Option<String>,
    /// The session that is open at first.
    pub(crate) session: Option<Session>,
    pub(crate) can_write: bool,
    pub(crate) is_coloured: bool,
}

/// Browses until `q` is pressed.
pub(crate) fn run(browsed: Browsed) -> Result<()> {
    let ends = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGTERM, Arc::clone(&ends))?;
    // At once, also below `nohup`: crossterm reads a terminal that is gone for ever.
    signal_hook::flag::register_conditional_shutdown(SIGHUP, 129, Arc::new(true.into()))?;
    let mut app = App::new(browsed)?;
    // It restores the terminal when the program panics, too.
    let mut terminal = ratatui::try_init().map_err(Failure::Output)?;
    // Otherwise each letter of a text that is pasted would be a key.
    let pasted = execute!(io::stdout(), EnableBracketedPaste);
    let stops = || ends.load(Ordering::Relaxed);
    let ended = pasted.and_then(|()| turn(&mut app, &mut terminal, &stops));
    let restored = execute!(io::stdout(), DisableBracketedPaste);
    ratatui::restore();
    ended.and(restored).map_err(Failure::Output)
}

fn turn(app: &mut App, terminal: &mut DefaultTerminal, ends: &dyn Fn() -> bool) -> io::Result<()> {
    while !app.is_done && !ends() {
        terminal.draw(|frame| draw::draw(frame, app))?;
        if !event::poll(app.patience().unwrap_or(TICK))? {
            app.idle();
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => app.press(key),
            Event::Paste(text) => app.paste(&text),
            _ => {}
        }
    }
    Ok(())
}
