//! How full a model's window is: the tokens of the prompt, the tools and the history.
//!
//! The history's tokens are stored with the session. Prompt and tools are counted when they are read and have changed. An
//! append takes their last figures, and reads the tools again if a block was added or removed: it adds up three numbers.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Counted, Path, Session};
use crate::callback::caught;
use crate::compaction::policy::{Item, Overhead, RequestTokens, WindowUsage};
use crate::error::{Error, Result};
use crate::event::{Change, Phase};
use crate::tokens::Count;

impl Session {
    /// Returns how the tokens of the history are spread over the window: prompt, tools, head, summaries,
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

    /// Returns how many tokens a request to a model has now: prompt, tools and messages.
    ///
    /// No message is read: a store keeps their tokens with the session. The prompt is read as it would be sent now, and
    /// counted only if it has changed; so are the tools. [`RequestTokens`] has an example.
    ///
    /// # Errors
    /// [`Error::Provider`] if a block of the prompt cannot be read; as [`visible_tokens`](Self::visible_tokens).
    pub fn request_tokens(&self) -> Result<RequestTokens> {
        Ok(RequestTokens::of(self.overhead()?, self.visible_tokens()?))
    }

    /// Returns how many tokens a model sees of the history, without prompt and tools.
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
        match self.storage.visible_tokens()? {
            Some(tokens) => Ok(tokens),
            None => {
                let counter = &self.compaction.counter;
                let history = self.storage.history(None, false)?;
                Ok(history.iter().map(|item| counter.message(item)).sum())
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
        if self.compaction.asked.threshold.is_some() {
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
        Change::Window { phase, tokens, threshold: self.compaction.asked.threshold }
    }

    /// Returns the tokens that are compared with the threshold, with the prompt as it was when it was last read.
    pub(super) fn window_tokens(&self) -> Result<u64> {
        Ok(self.visible_tokens()?.saturating_add(self.noted_overhead()?.total()))
    }

    /// Returns what the threshold counts beside the messages: prompt and tools as they were when they were last read, and as
    /// they are now if they were not read, or if a block was added or removed since.
    pub(super) fn noted_overhead(&self) -> Result<Overhead> {
        if self.compaction.asked.is_of_history {
            return Ok(Overhead::default());
        }
        let (prompt, tools) = {
            let state = self.compaction.state();
            (state.prompt, state.tools)
        };
        let Some(prompt) = prompt else { return self.overhead() };
        let tools = tools.filter(|(revision, _)| *revision == self.context.revision());
        let tools = tools.map_or_else(|| self.tools_tokens(), |(_, counted)| counted.tokens);
        Ok(Overhead { prompt: prompt.tokens, tools })
    }

    /// Returns what the threshold counts beside the messages, with the prompt as it would read now.
    pub(super) fn counted_overhead(&self) -> Result<Overhead> {
        match self.compaction.asked.is_of_history {
            true => Ok(Overhead::default()),
            false => self.overhead(),
        }
    }

    /// Returns the tokens of prompt and tools as they would be sent now, without freezing the prompt.
    pub(super) fn overhead(&self) -> Result<Overhead> {
        let prompt = self.prompt_tokens(&self.context.current_prompt()?);
        Ok(Overhead { prompt, tools: self.tools_tokens() })
    }

    /// Remembers the size of the prompt that the program is about to send.
    pub(in crate::session) fn note_prompt(&self, prompt: &str) {
        if self.compaction.asked.threshold.is_some() {
            self.prompt_tokens(prompt);
        }
    }

    fn prompt_tokens(&self, prompt: &str) -> u64 {
        let last = self.compaction.state().prompt;
        let counted = self.counted(last, prompt);
        let mut state = self.compaction.state();
        if state.prompt.map(|last| last.tokens) != Some(counted.tokens) {
            state.wait.note_change();
        }
        state.prompt = Some(counted);
        counted.tokens
    }

    /// Returns the tokens of the definitions of the tools as they are now; 0 without tools.
    fn tools_tokens(&self) -> u64 {
        // Read before the tools: a block that is added in between is then counted again.
        let revision = self.context.revision();
        let tools = self.context.tools();
        let last = self.compaction.state().tools;
        let counted = match tools.definitions() {
            [] => Counted::default(),
            _ => self.counted(last.map(|(_, counted)| counted), &tools.anthropic().to_string()),
        };
        self.compaction.state().tools = Some((revision, counted));
        counted.tokens
    }

    /// Returns the count of a text, which is counted unless it is the text that was counted last.
    fn counted(&self, last: Option<Counted>, text: &str) -> Counted {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = Some(hasher.finish());
        last.filter(|last| last.hash == hash).unwrap_or_else(|| {
            let Count { tokens, is_estimate } = self.compaction.counter.text(text);
            Counted { tokens, hash: hash.filter(|_| !is_estimate) }
        })
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
        self.usage_beside(|| self.session.overhead())
    }

    /// Returns the usage with what a request has beside the messages.
    pub(super) fn usage_beside(
        &self,
        overhead: impl FnOnce() -> Result<Overhead>,
    ) -> Result<WindowUsage> {
        let session = &self.session;
        let view = session.storage.history(self.leaf(), false)?;
        let counter = &session.compaction.counter;
        let items: Vec<Item<'_>> = view.iter().map(|message| Item::of(message, counter)).collect();
        Ok(WindowUsage::of(&items, overhead()?, &session.compaction.options))
    }
}
