//! The context of a session, with the prompt and the tools made from it, and the usage of its model.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Path, Session};
use crate::context::{BlockInfo, Context, Drift};
use crate::error::Result;
use crate::id::MessageId;
use crate::message::{Message, Pairing, Part, ToolPairs};
use crate::outcome::Appended;
use crate::storage::sqlite;
use crate::tools;
use crate::tools::Tools;
use crate::usage::{Usage, UsageTotal};

impl Session {
    /// Returns the context: blocks, their prompt, documents, versions.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// chat.context().append("memory", "Likes coffee.")?;
    /// assert_eq!(chat.context().versions("memory", None)?.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the context block of this label with its current content; as [`Context::block`].
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
    /// assert_eq!(chat.block("soul")?.unwrap().content, "Be brief.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::block`].
    pub fn block(&self, label: &str) -> Result<Option<BlockInfo>> {
        self.context.block(label)
    }

    /// Returns all context blocks with their current contents; as [`Context::blocks`].
    ///
    /// # Errors
    /// As [`Context::block`].
    pub fn blocks(&self) -> Result<Vec<BlockInfo>> {
        self.context.blocks()
    }

    /// Returns the system prompt; as [`Context::prompt`].
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
    /// assert!(chat.prompt()?.ends_with("\nBe brief."));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Context::prompt`].
    pub fn prompt(&self) -> Result<String> {
        self.context.prompt().inspect(|prompt| self.note_prompt(prompt))
    }

    /// Renders the system prompt again; as [`Context::refresh_prompt`].
    ///
    /// # Errors
    /// As [`Context::refresh_prompt`].
    pub fn refresh_prompt(&self) -> Result<String> {
        self.context.refresh_prompt().inspect(|prompt| self.note_prompt(prompt))
    }

    /// Returns the blocks that differ from the frozen prompt; as [`Context::drift`].
    ///
    /// # Errors
    /// As [`Context::drift`].
    pub fn drift(&self) -> Result<Vec<Drift>> {
        self.context.drift()
    }

    /// Returns what to tell the model beside the frozen prompt; as [`Context::reminder`].
    ///
    /// # Errors
    /// As [`Context::reminder`].
    pub fn reminder(&self) -> Result<Option<String>> {
        self.context.reminder()
    }

    /// Returns the tools for the context; as [`Context::tools`], and [`Tools::answer`] runs the calls of a message.
    ///
    /// [`Tools`] has an example.
    pub fn tools(&self) -> Tools {
        self.context.tools().of(std::sync::Arc::new(self.clone()))
    }
}

impl tools::Conversation for Session {
    fn append_if_head(&self, head: Option<&MessageId>, message: Message) -> Result<Appended> {
        Self::append_if_head(self, head, message)
    }
}

/// How often a tool was called.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Part, Role, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let call = Part::tool_call("clock", "c1", json!({}));
/// chat.append(Message::new(Role::Assistant, vec![call]))?;
/// let stats = chat.tool_stats()?;
/// assert_eq!((stats["clock"].calls, stats["clock"].errors), (1, 0));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// The calls.
    pub calls: u64,
    /// The calls that failed.
    pub errors: u64,
    /// The calls without a result.
    pub unanswered: u64,
}

struct Call {
    name: String,
    is_answered: bool,
    is_error: bool,
}

impl Session {
    /// Adds usage to the ledger: of a message, whose usage it replaces, or of none, such as of a call that left no message.
    ///
    /// A message that is appended with its usage (an answer of a provider,
    /// [`Message::with_usage`](crate::Message::with_usage), an import) is in the ledger already.
    ///
    /// [`UsageTotal`] has an example.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage); [`Error::InvalidValue`](crate::Error::InvalidValue) for a number
    /// of tokens over 1 000 000 000, or a price over a million; as every write.
    pub fn add_usage(&self, message: Option<&MessageId>, usage: &Usage) -> Result<()> {
        usage.check()?;
        self.storage.write_short(|conn, name| {
            sqlite::usage::add_to(conn, name.find_or_create(conn)?.key, name, message, usage)
        })
    }

    /// Returns what all answers of the session took, deleted ones included. What a fork copied counts where it was
    /// written.
    ///
    /// # Errors
    /// As every read.
    pub fn usage(&self) -> Result<UsageTotal> {
        self.storage.read(|conn, session| sqlite::usage::of_session(conn, session.key))
    }

    /// Returns how often each tool was called on all branches, by name. Reads all messages.
    ///
    /// [`ToolStats`] has an example.
    ///
    /// # Errors
    /// As every read.
    pub fn tool_stats(&self) -> Result<BTreeMap<String, ToolStats>> {
        let mut pairing = ToolPairs::default();
        let mut calls: Vec<Call> = Vec::new();
        for (at, message) in self.all_messages().enumerate() {
            for tool in message?.parts.iter().filter_map(Part::tool) {
                let is_error =
                    tool.error_text.is_some() || tool.state.as_deref() == Some("output-error");
                let call = |is_answered| Call { name: tool.name.clone(), is_answered, is_error };
                match pairing.take(at, &tool, calls.len()) {
                    Pairing::Started | Pairing::Call => calls.push(call(false)),
                    Pairing::Complete => calls.push(call(true)),
                    Pairing::Answers(number) => {
                        calls[number].is_answered = true;
                        calls[number].is_error = is_error;
                    }
                    Pairing::Repeats(_) | Pairing::Stray => {}
                }
            }
        }
        let mut stats: BTreeMap<String, ToolStats> = BTreeMap::new();
        for call in calls {
            let of_tool = stats.entry(call.name).or_default();
            of_tool.calls += 1;
            of_tool.errors += u64::from(call.is_error);
            of_tool.unanswered += u64::from(!call.is_answered);
        }
        Ok(stats)
    }
}

impl Path {
    /// Returns what the answers on this path took that were not deleted. In a fork that includes those of its origin.
    ///
    /// ```
    /// use talktree::{Message, Store, Usage};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let usage = Usage { output: 20, ..Usage::default() };
    /// let answer = chat.append(Message::assistant("4").with_usage(&usage))?.id;
    ///
    /// let fork = chat.fork(&answer, "What if")?;
    /// assert_eq!(fork.usage()?.output, 0); // it was paid for once
    /// assert_eq!(fork.path().usage()?.output, 20);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage); as every read.
    pub fn usage(&self) -> Result<UsageTotal> {
        self.session().storage.read_path(self.leaf(), |conn, session, leaf| {
            sqlite::usage::of_path(conn, session.key, leaf)
        })
    }
}
