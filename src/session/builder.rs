//! The builder of a session: context blocks, prompt, tools, compaction, token counter.

use std::fmt;
use std::sync::Arc;

use super::Session;
use super::compact::CompactionSettingsBuilder;
use crate::compaction::policy::{CompactionOptions, CompactionPolicy, Summarizer};
use crate::context::{Backing, Block, Context, Options};
use crate::error::{Error, Result};
use crate::event::Events;
use crate::id::SessionId;
use crate::storage::context::BlockScope;
use crate::storage::sqlite::{Database, SqliteSession};
use crate::tokens::TokenCounter;

/// A builder of a session with context blocks, a frozen prompt, tools and compaction.
///
/// The order of calls does not matter, except that blocks render in the order they were added.
///
/// ```
/// use talktree::{Block, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store
///     .session_builder("telegram:4711")
///     .block("soul", Block::text("You are a helpful assistant."))
///     .block("memory", Block::stored().describe("Learned facts about the user").max_tokens(1_100))
///     .cached_prompt()
///     .open()?;
///
/// let system = chat.prompt()?; // the same bytes until `refresh_prompt`
/// let input = serde_json::json!({"label": "memory", "content": "Likes coffee."});
/// assert_eq!(chat.tools().call("set_context", &input)?, r#"Written to "memory": 0% (4/1100 tokens)"#);
/// assert_eq!(chat.block("memory")?.unwrap().content, "Likes coffee.");
/// assert_eq!(chat.prompt()?, system);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// [`SessionManager::builder`](crate::SessionManager::builder) returns the same builder for all sessions of a store.
#[derive(Clone)]
#[must_use]
pub struct SessionBuilder<Of = SessionId> {
    of: Of,
    database: Arc<Database>,
    events: Events,
    blocks: Vec<(String, Block)>,
    context: Options,
    compaction: CompactionSettingsBuilder,
}

impl<Of> SessionBuilder<Of> {
    pub(crate) fn of(of: Of, database: Arc<Database>, events: Events) -> Self {
        let (context, compaction) = (Options::default(), CompactionSettingsBuilder::default());
        Self { of, database, events, blocks: Vec::new(), context, compaction }
    }

    pub(crate) fn target(&self) -> &Of {
        &self.of
    }

    /// Returns a builder of one session with the same settings.
    pub(crate) fn for_session(&self, id: SessionId) -> SessionBuilder {
        SessionBuilder {
            of: id,
            database: Arc::clone(&self.database),
            events: self.events.clone(),
            blocks: self.blocks.clone(),
            context: self.context,
            compaction: self.compaction.clone(),
        }
    }

    /// Adds a context block under a label.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
    /// assert_eq!(chat.blocks()?[0].label, "soul");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn block(mut self, label: impl Into<String>, block: Block) -> Self {
        self.blocks.push((label.into(), block));
        self
    }

    /// Freezes the prompt when it is first read: the same bytes, also after a restart, until it is refreshed,
    /// or the conversation is compacted or cleared.
    pub fn cached_prompt(mut self) -> Self {
        self.context.is_cached = true;
        self
    }

    /// Offers the tools with which a model reads its own conversation: `history_search`, `history_expand` (the messages
    /// behind a summary) and `history_branches`.
    pub fn history_tools(mut self) -> Self {
        self.context.tools.has_history = true;
        self
    }

    /// Offers `session_search`, which searches all sessions of the store. Offer it only where whoever talks to the model
    /// may read all of them.
    pub fn session_search(mut self) -> Self {
        self.context.tools.sessions = Some(BlockScope::Shared);
        self
    }

    /// Offers `session_search` over the sessions of this session's owner. In a session without an owner it searches that
    /// session alone.
    pub fn session_search_of_owner(mut self) -> Self {
        self.context.tools.sessions = Some(BlockScope::Owner);
        self
    }

    /// Adds a block in which the model searches what was said in the sessions of the same owner, and the tool
    /// `session_search` over the same sessions. In a session without an owner both search that session alone.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Message, SessionManager, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let bot = SessionManager::builder(&store).searchable_history("past conversations").build()?;
    /// let old = bot.resume("telegram:1").owner("user:42").open()?;
    /// old.append(Message::user("My cat is called Mozart."))?;
    /// bot.resume("telegram:2").owner("user:7").open()?.append(Message::user("My cat is Bach."))?;
    ///
    /// let chat = bot.resume("discord:1").owner("user:42").open()?;
    /// let answer = chat.tools().call("session_search", &json!({"query": "cat"}))?;
    /// assert!(answer.contains("Mozart") && !answer.contains("Bach"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn searchable_history(self, label: impl Into<String>) -> Self {
        self.block(label, Block::history().per_owner()).session_search_of_owner()
    }

    /// Adds the block and the tool of [`searchable_history`](Self::searchable_history) over all sessions. Offer it only where
    /// whoever talks to the model may read all of them.
    pub fn searchable_history_of_all(self, label: impl Into<String>) -> Self {
        self.block(label, Block::history().across_sessions()).session_search()
    }

    /// Cuts the answers of tools to this size, in estimated tokens. The default is 10 000.
    pub fn max_answer_tokens(mut self, tokens: u64) -> Self {
        self.context.tools.max_answer_tokens = Some(tokens);
        self
    }

    /// Sets the session's [`Summarizer`].
    ///
    /// ```
    /// use talktree::{BoxError, CompactionOptions, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("s")
    ///     .summarizer(|prompt: &str| -> Result<String, BoxError> {
    ///         Ok(format!("They said {} lines.", prompt.matches("word").count()))
    ///     })
    ///     .compaction_options(CompactionOptions::default().keep_recent_tokens(0))
    ///     .open()?;
    /// chat.append_all((1..=9).map(|_| Message::user("word ".repeat(50))))?;
    ///
    /// assert!(matches!(chat.compact()?, Ok(_)));
    /// assert_eq!(chat.history()?[3].text(), "They said 200 lines.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn summarizer(mut self, summarizer: impl Summarizer + 'static) -> Self {
        self.compaction.summarizer = Some(Arc::new(summarizer));
        self
    }

    /// Sets the session's [`CompactionPolicy`], which chooses the range and writes its summary.
    ///
    /// [`Session::compact`] and automatic compaction ask it instead of the summarizer. Automatic compaction asks it again
    /// until the window is within its threshold or the policy declines. The summarizer still writes the summaries of
    /// [`checkout_summarized`](Session::checkout_summarized).
    ///
    /// [`CompactionPolicy`] has an example.
    pub fn compaction_policy(mut self, policy: impl CompactionPolicy + 'static) -> Self {
        self.compaction.policy = Some(Arc::new(policy));
        self
    }

    /// Compacts the history automatically when an append takes the request over this many tokens: the prompt, the tools
    /// of the context, and the history.
    ///
    /// [`compact_after_history`](Self::compact_after_history) leaves out prompt and tools. Tools of the program's own are not known: lower the
    /// threshold by their size.
    ///
    /// The compaction runs in the thread that appended, after its commit, so such an append takes as
    /// long as the summarizer; [`compact_on`](Self::compact_on) runs it elsewhere. Other threads go on and do not ask the
    /// summarizer again. (Another process
    /// may; of two summaries of one range the later commit is refused.) A failure never fails the
    /// append: [`on_error`](Self::on_error) receives it. Unless
    /// [`compaction_options`](Self::compaction_options) set something else, the last 20 000 tokens are
    /// kept, or half the threshold if that is less. The prompt counts as it was when it was last read
    /// through this session. If the protected messages nearly fill the threshold, the summarizer
    /// runs at nearly every append. If head, tail and prompt alone exceed the threshold,
    /// subscribers receive [`Change::CannotShorten`](crate::Change::CannotShorten) once, and the next
    /// attempt waits until a change of the history or the prompt could make a difference.
    ///
    /// The threshold belongs to this handle and its clones: what other handles append is compacted with
    /// the next append through one of these. Updates never start a compaction.
    ///
    /// ```
    /// use talktree::{BoxError, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("telegram:4711")
    ///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
    ///     .compact_after(1_000)
    ///     .open()?;
    /// for _ in 0..100 {
    ///     chat.append(Message::user("word ".repeat(50)))?;
    ///     assert!(chat.visible_tokens()? <= 1_000);
    /// }
    /// assert_eq!(chat.raw_history()?.len(), 100);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn compact_after(mut self, tokens: u64) -> Self {
        (self.compaction.threshold, self.compaction.is_of_history) = (Some(tokens), false);
        self
    }

    /// Compacts the history automatically when it alone has more than this many tokens; otherwise as
    /// [`compact_after`](Self::compact_after), which also counts the prompt and the tools.
    ///
    /// ```
    /// use talktree::{Block, BoxError, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("s")
    ///     .block("rules", Block::text("rule ".repeat(1_000))) // more than the threshold
    ///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
    ///     .compact_after_history(1_000)
    ///     .open()?;
    /// for _ in 0..9 {
    ///     chat.append(Message::user("word ".repeat(50)))?;
    /// }
    /// assert_eq!(chat.compactions()?.len(), 0); // the messages have 621 tokens
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn compact_after_history(mut self, tokens: u64) -> Self {
        (self.compaction.threshold, self.compaction.is_of_history) = (Some(tokens), true);
        self
    }

    /// Runs automatic compactions on this executor, so that no append waits for a summarizer.
    ///
    /// The executor is called in the thread that appended, after the commit, and may run the job in any thread and at any
    /// time. The job reads the history when it runs, and asks the summarizer or the policy; messages appended from then on
    /// are not in the summary. Until it has run or is dropped, no other automatic compaction of this session begins in this
    /// process, through any handle. [`on_error`](Self::on_error) and subscribers hear a failure in the thread of the job,
    /// and the next attempt waits as after a failure in place. An executor that panics or drops a job is such a failure, too.
    ///
    /// A job holds a handle of the session: the file stays open until the job has run or is dropped, even if the store
    /// was dropped before. If the session was removed, the job does nothing, or its commit is refused.
    /// Without [`compact_after`](Self::compact_after) no job is made: [`Session::compact`] waits for its summary.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use talktree::{BoxError, Message, Store};
    ///
    /// let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    /// let store = Store::open_in_memory()?;
    /// let chat = store
    ///     .session_builder("s")
    ///     .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
    ///     .compact_after(500)
    ///     .compact_on(move |job| { let _ = queue.send(job); })
    ///     .open()?;
    /// for _ in 0..20 {
    ///     chat.append(Message::user("word ".repeat(50)))?; // waits for no summary
    /// }
    /// assert_eq!(chat.history()?.len(), 20);
    ///
    /// jobs.try_iter().for_each(|job| job()); // as a worker thread would
    /// assert!(chat.visible_tokens()? <= 500);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// With a thread for each job it is `.compact_on(|job| { std::thread::spawn(job); })`.
    pub fn compact_on(
        mut self,
        executor: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.compaction.executor = Some(Arc::new(executor));
        self
    }

    /// Sets what is compacted and how long a summary may be, for [`Session::compact`] and for automatic
    /// compaction.
    ///
    /// A [`compaction_policy`](Self::compaction_policy) may then not compact the messages that the options protect.
    pub fn compaction_options(mut self, options: CompactionOptions) -> Self {
        self.compaction.options = Some(options);
        self
    }

    /// Calls `handler` with each failure that no verb returns: of an automatic compaction (its
    /// summarizer, policy, executor, commit or storage), of the token counter, of a listener. Such a failure does not
    /// change the result of the verb.
    ///
    /// The handler may use the library: no lock is held. Its own panic is caught and not reported.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use talktree::{BoxError, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let (sender, heard) = mpsc::channel();
    /// let chat = store
    ///     .session_builder("s")
    ///     .summarizer(|_: &str| -> Result<String, BoxError> { Err("out of credit".into()) })
    ///     .compact_after(300)
    ///     .on_error(move |error| { let _ = sender.send(error.to_string()); })
    ///     .open()?;
    /// chat.append_all((1..=9).map(|_| Message::user("word ".repeat(50))))?;
    /// assert_eq!(heard.try_recv().as_deref(), Ok("the summarizer failed: out of credit"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn on_error(mut self, handler: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.compaction.on_error = Some(Arc::new(handler));
        self
    }

    /// Sets the counter of tokens. It decides when and what to compact, and its figures are stored with
    /// the messages.
    ///
    /// [`TokenCounter`] has an example.
    pub fn token_counter(mut self, counter: impl TokenCounter + 'static) -> Self {
        self.compaction.counter = Some(Arc::new(counter));
        self
    }
}

impl SessionBuilder {
    /// Returns the session; its first write creates it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the id or the counter's name is empty or too long, or if a label is blank, longer than 80
    /// characters or more than one line; [`Error::BlockExists`] if one is given twice; [`Error::TokenCounter`] if the counter
    /// panics when it is asked for its name; [`Error::NoSummarizer`] if
    /// [`compact_after`](Self::compact_after) is set without a summarizer or a policy.
    pub fn open(self) -> Result<Session> {
        let has_model = self.compaction.summarizer.is_some() || self.compaction.policy.is_some();
        if self.compaction.threshold.is_some() && !has_model {
            return Err(Error::NoSummarizer { session: self.of });
        }
        let storage = Arc::new(SqliteSession::new(self.database, self.of));
        let context = Context::open(Backing::of(Arc::clone(&storage)), self.blocks, self.context)?;
        let compaction = self.compaction.build()?;
        let storage = match compaction.counter.of_the_program() {
            Some(counter) => Arc::new(storage.counted_by(&counter)),
            None => storage,
        };
        Ok(Session { storage, events: self.events, context, compaction })
    }
}

impl<Of: fmt::Debug> fmt::Debug for SessionBuilder<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("of", &self.of)
            .field("blocks", &self.blocks)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
