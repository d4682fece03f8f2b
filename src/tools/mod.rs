//! Tools: a model itself writes, loads and searches its context, and reads its history and other sessions.
//!
//! A [`definition`] has the name, the description and the input of a tool. All else is made from it: the [`schema`] of the
//! input, the form for each provider ([`wire`]), and the check of a [`call`]. An [`answer`] is text, also after a failed
//! call: the model can correct its call, the host cannot. [`round`] runs all calls of a message and stores the results.
//! [`loaded_skills`] reads from a conversation which skills the
//! model has loaded.
//!
//! Invariant: a call refuses what its schema refuses, and beyond that only what no schema of these few keywords can say: a
//! blank key, the metadata of a document for a block without documents.

mod answer;
mod call;
mod definition;
mod loaded_skills;
mod nearest;
mod options;
mod round;
mod run;
mod schema;
mod wire;

use std::borrow::Borrow;
use std::sync::Arc;

use serde_json::Value;

pub use definition::ToolDefinition;
pub(crate) use round::Conversation;
pub use round::ToolCall;

use crate::context::{Context, ToolOptions};
use crate::error::Result;

use call::Call;

/// The tools that a context offers to a model; also runs the calls of the model.
///
/// A tool is offered only if it can do something: without a writable block there is no `set_context`. Each provider has
/// its own form of the list, to be passed as the `tools` of a request.
///
/// ```
/// use serde_json::json;
/// use talktree::{Block, Store};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").block("memory", Block::stored().max_tokens(1_100)).open()?;
/// let tools = chat.tools();
/// assert_eq!(tools.anthropic()[0]["name"], "set_context");
///
/// // A call is answered with text, also if it makes no sense.
/// let done = tools.call("set_context", json!({"label": "memory", "content": "Likes coffee."}))?;
/// assert_eq!(done, r#"Written to "memory": 0% (4/1100 tokens)"#);
/// let wrong = tools.call("set_context", json!({"label": "memry", "content": "Likes tea."}))?;
/// assert!(wrong.starts_with("Error: ") && wrong.contains("memory"));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Tools {
    definitions: Vec<ToolDefinition>,
    options: ToolOptions,
    context: Context,
    /// Where the results of calls are appended; a context alone has no conversation.
    conversation: Option<Arc<dyn Conversation>>,
}

impl Context {
    /// Returns the tools for these blocks, and those that the builder asked for.
    ///
    /// [`Tools`] has an example.
    pub fn tools(&self) -> Tools {
        let options = self.tool_options();
        let definitions = definition::definitions(&self.kinds(), options);
        Tools { definitions, options, context: self.clone(), conversation: None }
    }
}

impl Tools {
    /// Runs a call, given the name of the tool and the input, and returns a text for the model.
    ///
    /// The input is a JSON object, or a string that holds one. If the call makes no sense or fails, the text begins with
    /// `Error: ` and says how to correct the call. A long answer is cut, and says so.
    ///
    /// # Errors
    /// Failures of the store itself, such as [`Error::Busy`](crate::Error::Busy) or
    /// [`Error::DiskFull`](crate::Error::DiskFull), which the program has to handle. No input of a model leads to an error.
    pub fn call(&self, name: &str, input: impl Borrow<Value>) -> Result<String> {
        let max_tokens = self.options.max_answer_tokens.unwrap_or(answer::MAX_TOKENS);
        let text = match Call::parse(name, input.borrow(), &self.context.kinds(), self.options) {
            Ok(call) => run::run(&self.context, call, max_tokens)?,
            Err(what) => answer::error(what),
        };
        Ok(answer::cut(&text, max_tokens))
    }

    /// Returns the definitions, for a provider whose form is not among those here.
    #[must_use]
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the list that Anthropic's Messages API takes as `tools`.
    #[must_use]
    pub fn anthropic(&self) -> Value {
        self.rendered(wire::anthropic)
    }

    /// Returns the list that OpenAI's Chat Completions API takes as `tools`.
    ///
    /// In strict mode if its limits allow it; there an optional field is `null` if it is left out.
    #[must_use]
    pub fn openai_chat(&self) -> Value {
        self.rendered(wire::openai_chat)
    }

    /// Returns the list that OpenAI's Responses API takes as `tools`, in strict mode as in
    /// [`openai_chat`](Self::openai_chat).
    #[must_use]
    pub fn openai_responses(&self) -> Value {
        self.rendered(wire::openai_responses)
    }

    /// Returns the list with which a server of the Model Context Protocol answers `tools/list`.
    #[must_use]
    pub fn mcp(&self) -> Value {
        self.rendered(wire::mcp)
    }

    fn rendered(&self, render: impl Fn(&ToolDefinition) -> Value) -> Value {
        self.definitions.iter().map(render).collect()
    }
}

#[cfg(test)]
mod fixture {
    use std::sync::Arc;

    use crate::context::{Backing, Block, BlockInfo, Context, ToolOptions};
    use crate::storage::context::BlockScope;
    use crate::storage::sqlite::{Config, Database, SqliteSession};

    use super::{Tools, definition};

    /// One block of each kind.
    pub(crate) fn blocks() -> Vec<BlockInfo> {
        let info = |block: Block, label| block.info(label, "text".to_owned());
        vec![
            info(Block::text("You are helpful."), "soul"),
            info(Block::stored(), "memory"),
            info(Block::shared(), "house rules"),
            info(Block::stored_skills(), "skills"),
            info(Block::knowledge(), "knowledge"),
            info(Block::history(), "history"),
        ]
    }

    pub(crate) const ALL: ToolOptions = ToolOptions {
        sessions: Some(BlockScope::Shared),
        has_history: true,
        max_answer_tokens: None,
    };

    pub(crate) fn tools() -> Tools {
        of(&blocks(), ALL)
    }

    /// Tools without blocks behind them: they can be listed, not called.
    pub(crate) fn of(blocks: &[BlockInfo], options: ToolOptions) -> Tools {
        let definitions = definition::definitions(blocks, options);
        let database = Database::open_in_memory(Config::default()).expect("a store in memory");
        let session = SqliteSession::new(Arc::new(database), "s".into());
        let context = Context::empty(Backing::of(Arc::new(session)));
        Tools { definitions, options, context, conversation: None }
    }
}
