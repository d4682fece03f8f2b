//! Tools: a model itself writes, loads and searches its context, and reads its history and other sessions.
//!
//! A [`definition`] has the name, the description and the input of a tool. All else is made from it: the schema of the
//! input, the form for each provider, and the check of a [`call`](mod@call). An [`answer`] is text, also after a failed
//! call: the model can correct its call, the host cannot. [`loaded_skills`] reads from a conversation which skills the
//! model has loaded.
//!
//! A *round* are the calls of an answer, run, and their results, stored. It is read from the stored conversation: from the
//! message with the calls to the head. So calls whose results are stored are not run again after a crash, and two processes
//! that answer one message store each result once.
//!
//! Invariant: a call refuses what its schema refuses, and beyond that only what no schema of these few keywords can say: a
//! blank key, the metadata of a document for a block without documents.

mod answer;
mod call;
mod definition;
mod loaded_skills;
mod run;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use definition::ToolDefinition;

use crate::callback;
use crate::context::{Context, ToolOptions};
use crate::error::{BoxError, Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::{Message, Pairing, Part, Role, Tool, ToolPairs};
use crate::outcome::Appended;
use crate::storage::sqlite::SqliteSession;
use crate::view::{Order, View};

use call::Fields;

/// How many messages are read at once on the way back to the calls.
const BATCH: usize = 16;

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
    /// Failures of the store itself, such as [`Error::Busy`] or
    /// [`Error::DiskFull`], which the program has to handle. No input of a model leads to an error.
    pub fn call(&self, name: &str, input: impl Borrow<Value>) -> Result<String> {
        let max_tokens = self.options.max_answer_tokens.unwrap_or(answer::MAX_TOKENS);
        let text = match Fields::of(name, input.borrow(), &self.context.kinds(), self.options) {
            Ok((tool, fields)) => run::run(&self.context, tool, &fields, max_tokens)?,
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
        self.rendered(definition::anthropic)
    }

    /// Returns the list that OpenAI's Chat Completions API takes as `tools`.
    ///
    /// In strict mode if its limits allow it; there an optional field is `null` if it is left out.
    #[must_use]
    pub fn openai_chat(&self) -> Value {
        self.rendered(definition::openai_chat)
    }

    /// Returns the list that OpenAI's Responses API takes as `tools`, in strict mode as in
    /// [`openai_chat`](Self::openai_chat).
    #[must_use]
    pub fn openai_responses(&self) -> Value {
        self.rendered(definition::openai_responses)
    }

    /// Returns the list with which a server of the Model Context Protocol answers `tools/list`.
    #[must_use]
    pub fn mcp(&self) -> Value {
        self.rendered(definition::mcp)
    }

    fn rendered(&self, render: impl Fn(&ToolDefinition) -> Value) -> Value {
        self.definitions.iter().map(render).collect()
    }
}

/// Where results are appended: a session, with its events and its automatic compaction.
pub(crate) trait Conversation: fmt::Debug + Send + Sync {
    /// Appends a message to the head if it is where the caller saw it.
    fn append_if_head(&self, head: Option<&MessageId>, message: Message) -> Result<Appended>;
}

/// A call of one of the program's own tools, given to the function of [`Tools::answer`].
///
/// ```
/// use serde_json::{Value, json};
/// use talktree::{BoxError, ToolCall};
///
/// fn run(call: &ToolCall) -> Result<Value, BoxError> {
///     match call.name.as_str() {
///         "weather" => Ok(json!({"city": call.input["city"], "celsius": 21})),
///         other => Err(format!("there is no tool {other:?}").into()),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that pairs the call with its result.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// What the model calls it with: an object, unless the model wrote something else.
    pub input: Value,
}

impl Tools {
    /// Runs the calls of an answer that have no result yet, and appends the results to the conversation as one message;
    /// `None` if the answer calls nothing.
    ///
    /// The tools of the context run by themselves; all other calls are given to `run`, in order, one after another. What
    /// `run` returns is the result. An error or a panic of `run` is an error result, whose text the model reads, so an
    /// unknown tool needs only an error. Only [`Error::Interrupted`] is no result: it ends the round. No lock is held
    /// while a tool runs.
    ///
    /// The message is of the role `tool`, with a part for each result ([`Part::tool_result`], [`Part::tool_error`]):
    /// every conversion to a provider's format takes them from there. If all results are stored already, the newest
    /// message that holds one is returned, so a program that continues after a crash calls the model next.
    ///
    /// Only calls in a stored message of the role `assistant` on the path to the head are run. Left alone are calls that
    /// wait for the approval of a person (state `approval-requested`) or that the provider runs itself
    /// (`providerExecuted`); if there are no others, the answer is `None`.
    ///
    /// ```
    /// use serde_json::{Value, json};
    /// use talktree::{Block, BoxError, Message, Part, Role, Store, ToolCall};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let answer = Message::new(Role::Assistant, vec![
    ///     Part::tool_call("set_context", "c1", json!({"label": "memory", "content": "Lives in Jena."})),
    ///     Part::tool_call("weather", "c2", json!({"city": "Jena"})),
    /// ]);
    /// chat.append(answer.clone())?;
    ///
    /// let run = |call: &ToolCall| -> Result<Value, BoxError> { Ok(json!({"celsius": 21})) };
    /// let results = chat.tools().answer(&answer, run)?.unwrap();
    /// assert_eq!(results.parts.len(), 2);
    /// assert_eq!(chat.block("memory")?.unwrap().content, "Lives in Jena.");
    /// assert!(chat.tools().answer(&Message::assistant("21 degrees."), run)?.is_none());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`] if the message has calls and is not stored: append it first, because results without
    /// their calls would be lost. [`Error::HeadMoved`] if it is not on the path to the head, or no longer: results are
    /// not stored then. [`Error::Unsupported`] for tools of a context without a session. If a tool of the context fails
    /// because the store does, or `run` returns [`Error::Interrupted`], the results until then are stored, and the next
    /// call runs the rest. As every write.
    pub fn answer(
        &self,
        message: &Message,
        mut run: impl FnMut(&ToolCall) -> Result<Value, BoxError>,
    ) -> Result<Option<Message>> {
        if calls_of(message).next().is_none() {
            return Ok(None);
        }
        let conversation = self.conversation.as_deref();
        let what = "an answer to calls without a session";
        let conversation = conversation.ok_or(Error::Unsupported { what })?;
        let storage = &*self.context.backing().conversation;

        let round = Round::read(storage, &message.id)?;
        if round.waiting.is_empty() {
            return Ok(round.newest);
        }
        let mut results = Vec::with_capacity(round.waiting.len());
        let mut failure = None;
        for (place, call) in round.waiting {
            match self.run(&call, &mut run) {
                Ok(result) => results.push((place, result)),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let stored = store(conversation, storage, &message.id, results);
        match failure {
            // Of two failures of the store the first is the cause.
            Some(error) => Err(error),
            None => stored,
        }
    }

    /// Returns the tools of a session, to whose conversation results are appended.
    pub(crate) fn of(self, conversation: Arc<dyn Conversation>) -> Self {
        Self { conversation: Some(conversation), ..self }
    }

    fn run(
        &self,
        call: &ToolCall,
        run: &mut impl FnMut(&ToolCall) -> Result<Value, BoxError>,
    ) -> Result<Part> {
        let (name, id) = (call.name.as_str(), call.id.as_str());
        if self.definitions.iter().any(|tool| tool.name == name) {
            let text = self.call(name, &call.input)?;
            return Ok(Part::tool_result(name, id, Value::from(text)));
        }
        Ok(match callback::call(|| run(call)) {
            Ok(Ok(output)) => Part::tool_result(name, id, output),
            Ok(Err(error)) => match error.downcast_ref() {
                Some(Error::Interrupted) => return Err(Error::Interrupted),
                _ => Part::tool_error(name, id, error.to_string()),
            },
            Err(failed) => Part::tool_error(name, id, format!("the tool failed: {failed}")),
        })
    }
}

/// A message with calls, and what has become of them.
struct Round {
    head: Option<MessageId>,
    /// The calls without a result, by the place of their part.
    waiting: Vec<(usize, ToolCall)>,
    /// The newest message with a result of one of its calls.
    newest: Option<Message>,
}

impl Round {
    /// Reads the message with the calls, and all after it up to the head.
    fn read(storage: &SqliteSession, id: &MessageId) -> Result<Self> {
        let unknown = || Error::UnknownMessage { session: storage.id().clone(), id: id.clone() };
        // A summary calls nothing.
        if CompactionId::from_message(id).is_some() || storage.message(id)?.is_none() {
            return Err(unknown());
        }
        let head = storage.head()?;
        let elsewhere = || Error::HeadMoved { expected: Some(id.clone()), found: head.clone() };
        let leaf = head.as_ref().ok_or_else(elsewhere)?;
        if !storage.is_on_path(id, Some(leaf))? {
            return Err(elsewhere());
        }
        let mut cursor = storage.cursor(&View::at(leaf).raw(), Order::NewestFirst)?;
        let mut messages = Vec::new();
        while messages.last().is_none_or(|message: &Message| message.id != *id) {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                return Err(unknown());
            }
            for message in batch {
                let is_it = message.id == *id;
                messages.push(message);
                if is_it {
                    break;
                }
            }
        }
        messages.reverse();
        let (waiting, newest) = unanswered(&messages);
        let waiting = waiting.into_iter().map(|(place, tool)| (place, call(tool))).collect();
        Ok(Self { newest: newest.map(|at| messages[at].clone()), head, waiting })
    }
}

/// Returns the calls of the first message without a result in these messages, and which message has the newest result.
fn unanswered(messages: &[Message]) -> (Vec<(usize, Tool)>, Option<usize>) {
    let Some(first) = messages.first() else { return Default::default() };
    let mut waiting: Vec<(usize, Tool)> = calls_of(first).collect();
    let (mut newest, mut pairs) = (None, ToolPairs::default());
    for (at, message) in messages.iter().enumerate() {
        for (place, part) in message.parts.iter().enumerate() {
            let Some(tool) = part.tool() else { continue };
            if let Pairing::Answers((0, call)) = pairs.take(at, &tool, (at, place)) {
                waiting.retain(|(place, _)| *place != call);
                newest = Some(at);
            }
        }
    }
    (waiting, newest)
}

/// Returns the calls of a model's message that the program has to run, with the places of their parts.
fn calls_of(message: &Message) -> impl Iterator<Item = (usize, Tool)> {
    let parts = message.parts.iter().enumerate().filter(|_| message.role == Role::Assistant);
    parts.filter_map(|(place, part)| {
        let tool = part.tool()?;
        let is_of_provider =
            tool.extra.get("providerExecuted").is_some_and(|json| json.as_str() == "true");
        let waits_for_person = tool.state.as_deref() == Some("approval-requested");
        let is_left = is_of_provider || waits_for_person;
        (tool.call_input().is_some() && !tool.has_result() && !is_left)
            .then(|| (place, tool.into_owned()))
    })
}

fn call(tool: Tool) -> ToolCall {
    let input = tool.effective_input().map(|input| input.value()).unwrap_or_default();
    ToolCall { id: tool.call_id, name: tool.name, input }
}

/// Appends the results that nobody else has stored meanwhile, as one message.
fn store(
    conversation: &dyn Conversation,
    storage: &SqliteSession,
    answered: &MessageId,
    mut results: Vec<(usize, Part)>,
) -> Result<Option<Message>> {
    let mut message = Message::new(Role::Tool, Vec::new());
    loop {
        let round = Round::read(storage, answered)?;
        results.retain(|(place, _)| round.waiting.iter().any(|(waits, _)| waits == place));
        if results.is_empty() {
            return Ok(round.newest);
        }
        message.parts = results.iter().map(|(_, part)| part.clone()).collect();
        match conversation.append_if_head(round.head.as_ref(), message.clone()) {
            // Another writer appended after the head was read. It may have answered the same calls.
            Err(Error::HeadMoved { .. }) => {}
            appended => return appended.map(|_| Some(message)),
        }
    }
}
