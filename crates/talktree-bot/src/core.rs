//! The core: from a place to its session, from a question to its answer.
//!
//! Invariant: every call is idempotent for the same ids. So a front end can repeat the handling of a message after a crash.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use talktree::{
    Author, Block, BoxError, Message, MessageId, Part, Session, SessionDetails, SessionManager,
    Store, Summary, ToolCall,
};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::files::{KNOWLEDGE, Knowledge, skills, system_text};
use crate::lock::lock;
use crate::models::{Flow, Model, Turn};

/// The label of the block with the memory of an owner.
pub const MEMORY: &str = "memory";

/// The labels of the blocks from files. If one of them changes, the frozen prompt is rendered again.
const FROM_FILES: [&str; 3] = ["soul", "skills", KNOWLEDGE];

/// The text that is shown in place of an answer that failed.
pub(crate) const APOLOGY: &str = "I could not answer that. /retry asks again.";

/// How many summaries are written at once. The threads only wait for the model, so there are more than cores.
const COMPACTION_WORKERS: usize = 16;

/// Where someone writes, and who.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The outside key of the conversation: `telegram:4711`, `telegram:4711/12` for a topic, `terminal`.
    pub key: String,
    /// The owner of the memory and the past conversations: `user:42`; in a group `chat:4711`.
    pub owner: Option<String>,
    /// Whether several people write here.
    pub is_group: bool,
    /// Who writes now. In a group, `/forget` erases the messages with this id.
    pub person: Author,
}

/// The bot: a store, the sessions in it, and a model. Cloning it is cheap.
#[derive(Debug, Clone)]
pub struct Bot {
    sessions: SessionManager,
    model: Arc<dyn Model>,
    knowledge: Option<Arc<Knowledge>>,
    is_resuming: bool,
    expire_after: Duration,
    max_turns: u32,
    compact_after: u64,
}

impl Bot {
    /// Returns a bot on this store, with this model.
    ///
    /// # Errors
    /// [`Error::Store`] if a file or folder of the configuration cannot be read; as every write. [`Error::System`] if a thread
    /// cannot be started.
    pub fn new(config: &Config, store: Store, model: Arc<dyn Model>) -> Result<Self> {
        let agent = &config.agent;
        // quote: sessions
        let summarizer = Arc::clone(&model);
        let mut sessions = SessionManager::builder(&store)
            .block("soul", system_text(&agent.system_file)?) // a file that is watched
            .block(
                MEMORY,
                Block::stored().per_owner().describe("About the person").max_tokens(1_100).remind(),
            )
            .searchable_history("past conversations") // of the same owner
            .cached_prompt()
            .summarizer(move |prompt: &str| -> Result<Summary, BoxError> {
                Ok(Summary::new(summarizer.summarize(prompt)?).by(summarizer.name()))
            })
            .compact_after(agent.compact_after)
            .compact_on(compaction_workers()?) // no reply waits for a summary
            .on_error(|error| tracing::warn!(%error, "not compacted"));
        // quote end
        if !agent.skills_dir.as_os_str().is_empty() {
            sessions = sessions.block("skills", skills(&agent.skills_dir)?);
        }
        let mut knowledge = None;
        if !agent.knowledge_dir.as_os_str().is_empty() {
            knowledge = Some(Arc::new(Knowledge::open(&store, &agent.knowledge_dir)?));
            let block = Block::knowledge().across_sessions().read_only();
            sessions = sessions.block(KNOWLEDGE, block.describe("What you can look up"));
        }
        Ok(Self {
            sessions: sessions.build()?,
            model,
            knowledge,
            is_resuming: agent.session.enabled,
            expire_after: Duration::from_secs(agent.session.expire_seconds),
            max_turns: agent.max_turns,
            compact_after: agent.compact_after,
        })
    }

    /// Returns the sessions.
    #[must_use]
    pub fn sessions(&self) -> &SessionManager {
        &self.sessions
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Returns the number of tokens over which a conversation is compacted.
    #[must_use]
    pub fn compact_after(&self) -> u64 {
        self.compact_after
    }

    /// Returns the session of a place, for the message with this id. The message need not be stored yet.
    ///
    /// If `[agent.session] enabled` is false, the message has a session of its own, whose key is this id. So it is found again
    /// after a restart.
    ///
    /// # Errors
    /// As [`Resume::open`](talktree::Resume::open).
    // quote: chat
    pub fn chat(&self, place: &Place, message: &MessageId) -> Result<Session> {
        let key = if self.is_resuming { &place.key } else { message.as_str() };
        let source = place.key.split(':').next().map(str::to_owned);
        let mut resume = self
            .sessions
            .resume(key)
            .expire_after(self.expire_after)
            .details(SessionDetails { source, ..SessionDetails::default() });
        if let Some(owner) = &place.owner {
            resume = resume.owner(owner);
        }
        let resumed = resume.run()?;
        if let Some((session, why)) = &resumed.former {
            tracing::info!(%session, ?why, new = %resumed.session.id(), "a new session");
        }
        let chat = resumed.session;
        if let Some(Err(error)) = self.knowledge.as_ref().map(|it| it.refresh()) {
            tracing::warn!(%error, "the knowledge is not up to date");
        }
        // A file changed: the prompt is frozen again, with its new text.
        if chat.drift()?.iter().any(|drift| FROM_FILES.contains(&drift.label.as_str())) {
            chat.refresh_prompt()?;
        }
        Ok(chat)
    }
    // quote end

    /// Returns the answer to the message at the head, stored under this id with this field in its metadata.
    ///
    /// The tools that the model calls are run, and the model is asked again, until it answers. If an answer with this id is
    /// stored already, it becomes the head and is returned; the model is not asked.
    ///
    /// `on_text` gets the whole text so far before the model is asked, each time that the text grows, and in between: it
    /// decides whether to go on. If a request is repeated, the text begins again.
    ///
    /// # Errors
    /// [`Error::Model`]; [`Error::TooManyTurns`]; [`Error::Stopped`] if `on_text` returned [`Flow::Stop`]; as every write.
    // quote: reply
    pub fn reply(
        &self,
        chat: &Session,
        id: &MessageId,
        field: Option<(&str, Value)>,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Message> {
        if let Some(answer) = chat.message(id)? {
            if chat.head()?.as_ref() != Some(id) {
                chat.checkout(id)?;
            }
            return Ok(answer);
        }
        // Calls whose results were lost in a crash are run now; those with a result are not.
        if let Some(head) = chat.head()?
            && let Some(head) = chat.message(&head)?
        {
            chat.tools().answer(&head, no_tool)?;
        }
        for _ in 0..self.max_turns {
            self.hold_back(chat, on_text)?;
            let answer = self.model.answer(Turn { chat, sessions: &self.sessions }, on_text)?;
            if !calls(&answer) {
                let mut answer = answer.with_id(id.clone());
                if let Some((name, value)) = field {
                    answer = answer.with_field(name, value);
                }
                chat.append(answer.clone())?;
                return Ok(answer);
            }
            chat.append(answer.clone())?;
            chat.tools().answer(&answer, no_tool)?; // memory, skills, knowledge, past conversations
        }
        Err(Error::TooManyTurns { max: self.max_turns })
    }
    // quote end

    /// Compacts now, if the conversation is over the threshold by more than a quarter.
    ///
    /// Under load the summaries in the background fall behind. Without this, requests would grow without a limit. `on_text` is
    /// called before a summary is asked for.
    fn hold_back(&self, chat: &Session, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<()> {
        let most = self.compact_after.saturating_add(self.compact_after / 4);
        let is_over = chat.request_tokens()?.total > most;
        if is_over
            && on_text("") == Flow::Continue
            && let Err(error) = chat.compact()
        {
            tracing::warn!(%error, "not compacted before a request"); // the next append tries again
        }
        Ok(())
    }

    /// Stores an apology in place of the answer, and returns it.
    ///
    /// It is hidden, so no model sees it; the field `broken` of its metadata has the reason. `/retry` asks again.
    ///
    /// # Errors
    /// As every write.
    pub fn give_up(&self, chat: &Session, id: &MessageId, why: &Error) -> Result<Message> {
        let broken = Message::assistant(APOLOGY).with_metadata(json!({"broken": why.to_string()}));
        let broken = broken.with_id(id.clone()).hidden();
        chat.append(broken.clone())?;
        Ok(broken)
    }
}

/// Refuses a call. All tools of the bot are those of its context blocks, and the library runs them.
fn no_tool(call: &ToolCall) -> Result<Value, BoxError> {
    Err(format!("there is no tool {:?}", call.name).into())
}

/// Returns whether an answer calls a tool.
fn calls(answer: &Message) -> bool {
    answer.parts.iter().any(|part| matches!(part.typed().as_ref(), Part::Tool(_)))
}

/// Starts the threads that write summaries, and returns the function that gives them jobs. They end when it is dropped.
fn compaction_workers() -> Result<impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static> {
    let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..COMPACTION_WORKERS {
        let jobs = Arc::clone(&jobs);
        let work = move || {
            loop {
                // A statement of its own, so that the lock is not held while the job runs.
                let job = lock(&jobs).recv();
                let Ok(job) = job else { break };
                job();
            }
        };
        let what = "a thread that writes summaries";
        let thread = thread::Builder::new().name("compaction".to_owned()).spawn(work);
        thread.map_err(|source| Error::System { what, source })?;
    }
    Ok(move |job| drop(queue.send(job)))
}
