//! How full a model's window is: the tokens of the prompt and the history.

use super::{Path, Session};
use crate::callback::caught;
use crate::compaction::policy::{Item, WindowUsage};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};

impl Session {
    /// Returns how the tokens of the history are spread over the window: prompt, head, summaries,
    /// middle and tail, as the session's [`CompactionOptions`](crate::CompactionOptions) divide it.
    ///
    /// ```
    /// use talktree::{CompactionOptions, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let options = CompactionOptions::default().protect_head(1).keep_recent_tokens(20);
    /// let chat = store.session_builder("s").compaction_options(options).open()?;
    /// chat.append_all((1..=9).map(|_| Message::user("Hello world")))?;
    ///
    /// let usage = chat.window_usage()?;
    /// assert_eq!((usage.head, usage.middle, usage.tail, usage.total), (7, 42, 14, 63));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Provider`] if a block of the prompt cannot be read; as every
    /// read.
    pub fn window_usage(&self) -> Result<WindowUsage> {
        self.path().window_usage()
    }

    /// Returns how many tokens a model sees of the history, without the system prompt.
    ///
    /// A store keeps the figure with the session, so this reads no message. It is counted again only
    /// after something other than an append changed the history.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append(Message::user("Hello world"))?;
    /// assert_eq!(chat.visible_tokens()?, 7);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read; as every write where a new figure must be stored.
    pub fn visible_tokens(&self) -> Result<u64> {
        match self.provider.visible_tokens()? {
            Some(tokens) => Ok(tokens),
            None => {
                let counter = self.compaction.counter();
                Ok(self.provider.history(None)?.iter().map(|item| counter.message(item)).sum())
            }
        }
    }

    /// Tells subscribers of a change that is no append, and how large the window is after it.
    pub(in crate::session) fn emit_changed(&self, change: impl FnOnce() -> Change) {
        self.compaction.note_change();
        self.emit(change);
        self.emit_window();
    }

    /// Tells subscribers the size of the window, if the session has a threshold.
    pub(super) fn emit_window(&self) {
        if self.compaction.threshold().is_some() {
            self.emit_window_in(Phase::Idle);
        }
    }

    /// Tells subscribers the size of the window.
    pub(super) fn emit_window_in(&self, phase: Phase) {
        if !self.events.has_listeners() {
            return;
        }
        // Nothing that the caller asked for depends on this figure.
        if let Ok(Ok(tokens)) = caught(|| self.window_tokens()) {
            self.emit(|| self.window(phase, tokens));
        }
    }

    pub(super) fn emit_failure(&self, error: &Error) {
        // The text of an error may be the program's own.
        let why = caught(|| error.to_string()).unwrap_or_else(|failed| failed.to_string());
        self.emit(|| Change::CompactionFailed { why });
    }

    pub(super) fn window(&self, phase: Phase, tokens: u64) -> Change {
        Change::Window { phase, tokens, threshold: self.compaction.threshold() }
    }

    /// Returns the tokens of the prompt and the history.
    fn window_tokens(&self) -> Result<u64> {
        let prompt = self.compaction.noted_prompt().map_or_else(|| self.prompt_tokens(), Ok)?;
        Ok(self.visible_tokens()?.saturating_add(prompt))
    }

    /// Remembers the size of the prompt that the program is about to send.
    pub(in crate::session) fn note_prompt(&self, prompt: &str) {
        if self.compaction.threshold().is_some() {
            self.compaction.note_prompt(self.compaction.counter().text(prompt));
        }
    }

    /// Returns the tokens of the prompt as it would read now, without freezing it.
    pub(super) fn prompt_tokens(&self) -> Result<u64> {
        let tokens = self.compaction.counter().text(&self.context.current_prompt()?);
        self.compaction.note_prompt(tokens);
        Ok(tokens)
    }
}

impl Path {
    /// Returns how the tokens of this path are spread over the window, as
    /// [`Session::window_usage`] does.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user("Hello world").with_id(n.to_string())))?;
    /// assert_eq!(chat.at(&"4".into()).window_usage()?.total, 28);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the leaf is not in this session; as
    /// [`Session::window_usage`].
    pub fn window_usage(&self) -> Result<WindowUsage> {
        let session = &self.session;
        let view = session.provider.history(self.leaf())?;
        let counter = session.compaction.counter();
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        Ok(WindowUsage::of(&items, session.prompt_tokens()?, session.compaction.options()))
    }
}
