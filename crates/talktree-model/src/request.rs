//! Whole requests: prompt, messages and tools of a conversation, for each provider.
//!
//! A request lacks only the name of the model, and for Anthropic `max_tokens`. It is JSON, so the program can add any other
//! field of its provider.
//!
//! Invariant: a request ends with the model's own message only if the program asked for it, or if the turn has paused.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use talktree::{
    AuthorLine, Message, Path, ProviderSession, Result, Role, Session, SessionProvider,
};

use crate::seen::{FIELD, Record};
use crate::{
    Provider, TruncateOptions, name_authors, sanitize, to_anthropic, to_openai_chat,
    to_openai_responses, truncate,
};

/// The last message of a request whose history ends with the model's own.
const GO_ON: &str = "[Go on.]";

/// What a request is made of: a [`Session`], a [`Path`], or a conversation of your own.
///
/// ```
/// use serde_json::{Value, json};
/// use talktree_model::{Conversation, Provider, anthropic_request};
/// use talktree::{Message, Result};
///
/// struct Fixed(Vec<Message>);
///
/// impl Conversation for Fixed {
///     fn prompt(&self) -> Result<String> {
///         Ok("Be brief.".to_owned())
///     }
///
///     fn history(&self) -> Result<Vec<Message>> {
///         Ok(self.0.clone())
///     }
/// }
/// let request = anthropic_request(&Fixed(vec![Message::user("2 + 2?")]))?;
/// assert_eq!(request["system"][0]["text"], "Be brief.");
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait Conversation {
    /// Returns the system prompt; an empty text for none.
    fn prompt(&self) -> Result<String>;

    /// Returns when this prompt was frozen; `None` if it is not the frozen one.
    fn frozen_at(&self, prompt: &str) -> Result<Option<DateTime<Utc>>> {
        let _ = prompt;
        Ok(None)
    }

    /// Returns what to tell the model beside the prompt.
    fn reminder(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the messages as a model should see them, oldest first.
    fn history(&self) -> Result<Vec<Message>>;

    /// Returns the list that the provider takes as `tools`; null or an empty list for none.
    fn tools(&self, provider: Provider) -> Result<Value> {
        let _ = provider;
        Ok(Value::Null)
    }
}

impl Conversation for Session {
    fn prompt(&self) -> Result<String> {
        Self::prompt(self)
    }

    fn frozen_at(&self, prompt: &str) -> Result<Option<DateTime<Utc>>> {
        let context = self.context();
        // The time first: if another prompt is frozen in between, its text is another one, or the time is not its own.
        let frozen = context.frozen_at()?.zip(context.frozen_prompt()?);
        Ok(frozen.filter(|(_, text)| text == prompt).map(|(at, _)| at))
    }

    fn reminder(&self) -> Result<Option<String>> {
        Self::reminder(self)
    }

    fn history(&self) -> Result<Vec<Message>> {
        Self::history(self)
    }

    fn tools(&self, provider: Provider) -> Result<Value> {
        let tools = Self::tools(self);
        Ok(match provider {
            Provider::Anthropic => tools.anthropic(),
            Provider::OpenAiChat => tools.openai_chat(),
            Provider::OpenAiResponses => tools.openai_responses(),
            Provider::AiSdk => tools.mcp(),
        })
    }
}

/// With the prompt and the tools of the session.
impl Conversation for Path {
    fn prompt(&self) -> Result<String> {
        self.session().prompt()
    }

    fn frozen_at(&self, prompt: &str) -> Result<Option<DateTime<Utc>>> {
        self.session().frozen_at(prompt)
    }

    fn reminder(&self) -> Result<Option<String>> {
        self.session().reminder()
    }

    fn history(&self) -> Result<Vec<Message>> {
        Self::history(self)
    }

    fn tools(&self, provider: Provider) -> Result<Value> {
        Conversation::tools(self.session(), provider)
    }
}

/// Without a prompt: there are no blocks.
impl<P: SessionProvider> Conversation for ProviderSession<P> {
    fn prompt(&self) -> Result<String> {
        Ok(String::new())
    }

    fn history(&self) -> Result<Vec<Message>> {
        Self::history(self)
    }
}

/// Returns a request of the Anthropic messages API; without `model` and `max_tokens`.
///
/// As [`Request::anthropic`] without options.
///
/// ```
/// use serde_json::json;
/// use talktree::{Block, Message, Store};
/// use talktree_model::anthropic_request;
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session_builder("s").block("soul", Block::text("Be brief.")).open()?;
/// chat.append(Message::user("2 + 2?"))?;
///
/// let mut request = anthropic_request(&chat)?;
/// request["model"] = json!("large");
/// request["max_tokens"] = json!(1024);
/// assert_eq!(request["messages"][0]["content"][0]["text"], "2 + 2?");
/// assert_eq!(request["system"][0]["cache_control"]["type"], "ephemeral");
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As reads of the prompt and of the history.
pub fn anthropic_request(conversation: &impl Conversation) -> Result<Value> {
    Request::of(conversation).anthropic()
}

/// Returns a request of OpenAI's chat completions API, which many servers offer; without `model`.
///
/// As [`Request::openai_chat`] without options.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Store};
/// use talktree_model::openai_chat_request;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// let request = openai_chat_request(&chat)?;
/// assert_eq!(request, json!({"messages": [{"role": "user", "content": "2 + 2?"}]}));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As reads of the prompt and of the history.
pub fn openai_chat_request(conversation: &impl Conversation) -> Result<Value> {
    Request::of(conversation).openai_chat()
}

/// Returns a request of OpenAI's responses API; without `model`.
///
/// As [`Request::openai_responses`] without options.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Store};
/// use talktree_model::openai_responses_request;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// let request = openai_responses_request(&chat)?;
/// let item = json!({"type": "message", "role": "user", "content": "2 + 2?"});
/// assert_eq!(request, json!({"input": [item]}));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As reads of the prompt and of the history.
pub fn openai_responses_request(conversation: &impl Conversation) -> Result<Value> {
    Request::of(conversation).openai_responses()
}

/// A request to a model, with options.
///
/// It holds the prompt, the history, repaired by [`sanitize()`], and the tools. Prompt, history and tools are read one after
/// the other; what is written meanwhile may be in one and not in the other.
///
/// If the history ends with an answer of the model, many models refuse the request or answer nothing. So a user message
/// `[Go on.]` follows, except after a turn that the provider paused (`pause_turn`), and with [`prefill`](Self::prefill).
///
/// ```
/// use serde_json::json;
/// use talktree::{Author, AuthorLine, Message, Store};
/// use talktree_model::Request;
///
/// let chat = Store::open_in_memory()?.session("group")?;
/// chat.append(Message::user("Is it warm?").from(&Author::new("42").named("Ada")))?;
///
/// let weather = json!({"name": "weather", "input_schema": {"type": "object"}});
/// let request = Request::of(&chat).tools([weather]).authors(AuthorLine::Name).anthropic()?;
/// assert_eq!(request["messages"][0]["content"][0]["text"], "[from Ada (id 42)]");
/// assert_eq!(request["tools"][0]["name"], "weather");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Request<'a> {
    conversation: &'a dyn Conversation,
    tools: Vec<Value>,
    truncated: Option<TruncateOptions>,
    authors: Option<AuthorLine>,
    has_cached_history: bool,
    is_prefilled: bool,
    /// What the last request showed.
    record: RefCell<Option<Record>>,
}

impl<'a> Request<'a> {
    /// Returns a request of a session, of a path, or of a conversation of your own.
    pub fn of(conversation: &'a impl Conversation) -> Self {
        Self {
            conversation,
            tools: Vec::new(),
            truncated: None,
            authors: None,
            has_cached_history: false,
            is_prefilled: false,
            record: RefCell::default(),
        }
    }

    /// Adds tools of the program, in the form of the provider. They come before those of the conversation.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Value>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Shortens old messages, as [`truncate()`] does.
    pub fn truncated(mut self, options: TruncateOptions) -> Self {
        self.truncated = Some(options);
        self
    }

    /// Puts a line with the author before each user message that has one, as [`name_authors`] does. Without this a model
    /// sees no authors.
    pub fn authors(mut self, line: AuthorLine) -> Self {
        self.authors = Some(line);
        self
    }

    /// Adds a cache breakpoint at the end of the messages, for the next request of the same conversation.
    ///
    /// Only Anthropic's requests have breakpoints; OpenAI caches by itself. Without this they have one after the tools and
    /// one after the prompt.
    pub fn cached_history(mut self) -> Self {
        self.has_cached_history = true;
        self
    }

    /// Lets the request end with the model's own message, for models that continue it.
    pub fn prefill(mut self) -> Self {
        self.is_prefilled = true;
        self
    }

    /// Returns a request of the Anthropic messages API; without `model` and `max_tokens`.
    ///
    /// `system` has the prompt, then the reminder, then the system messages of the history: the API takes none between
    /// other messages. Cache breakpoints are after the tools and after the prompt, which seldom change.
    ///
    /// # Errors
    /// As reads of the prompt and of the history.
    pub fn anthropic(&self) -> Result<Value> {
        let history = self.history()?;
        let is_paused = history.last().is_some_and(is_paused);
        let (mut request, goes_on) = self.ended(&history, is_paused, to_anthropic);
        let mut system = Vec::new();
        if let Some(prompt) = not_blank(self.prompt()?) {
            let mut block = json!({"type": "text", "text": prompt});
            mark(&mut block);
            system.push(block);
        }
        if let Some(reminder) = self.reminder()? {
            system.push(json!({"type": "text", "text": reminder}));
        }
        if let Value::Array(later) = request["system"].take() {
            system.extend(later);
        }
        match request.as_object_mut() {
            Some(fields) if system.is_empty() => drop(fields.remove("system")),
            _ => request["system"] = system.into(),
        }
        // The next request does not have the words with which this one ends.
        if self.has_cached_history
            && let Some(messages) = request["messages"].as_array_mut()
            && let Some(last) = messages.iter_mut().rev().nth(usize::from(goes_on))
            && let Some(block) = last_of(&mut last["content"])
            && matches!(block["type"].as_str(), Some(kind) if CACHEABLE.contains(&kind))
        {
            mark(block);
        }
        let mut tools = self.all_tools(Provider::Anthropic)?;
        if let Some(last) = tools.last_mut().filter(|tool| tool.is_object()) {
            mark(last);
        }
        Ok(with_tools(request, tools))
    }

    /// Returns a request of OpenAI's chat completions API; without `model`.
    ///
    /// The prompt and the reminder are its first message, of the role `system`; the system messages of the history keep
    /// their place.
    ///
    /// # Errors
    /// As reads of the prompt and of the history.
    pub fn openai_chat(&self) -> Result<Value> {
        let history = self.history()?;
        let (mut messages, _) = self.ended(&history, false, to_openai_chat);
        if let (Some(prompt), Value::Array(messages)) = (self.instructions()?, &mut messages) {
            messages.insert(0, json!({"role": "system", "content": prompt}));
        }
        let tools = self.all_tools(Provider::OpenAiChat)?;
        Ok(with_tools(json!({"messages": messages}), tools))
    }

    /// Returns a request of OpenAI's responses API; without `model`.
    ///
    /// The prompt and the reminder are its `instructions`; the system messages of the history keep their place. With
    /// `store: false` add `"include": ["reasoning.encrypted_content"]`.
    ///
    /// # Errors
    /// As reads of the prompt and of the history.
    pub fn openai_responses(&self) -> Result<Value> {
        let history = self.history()?;
        let (input, _) = self.ended(&history, false, to_openai_responses);
        let mut request = json!({"input": input});
        if let Some(prompt) = self.instructions()? {
            request["instructions"] = prompt.into();
        }
        let tools = self.all_tools(Provider::OpenAiResponses)?;
        Ok(with_tools(request, tools))
    }

    /// Returns an answer to the last request that was made, with a record of what that showed in its metadata, in some hundred bytes:
    /// [`seen`](crate::seen()) reads it, and has an example. The record has hashes of ids, names of tools, and the time when the prompt
    /// was frozen. It has no text and no hash of one, so an erasure leaves nothing there.
    ///
    /// Store the answer yourself, by [`Session::append`] for example; [`append_answer`](crate::append_answer) records nothing.
    #[must_use]
    pub fn recorded(&self, answer: Message) -> Message {
        match &*self.record.borrow() {
            Some(record) => answer.with_field(FIELD, json!(record)),
            None => answer,
        }
    }

    fn prompt(&self) -> Result<String> {
        let prompt = self.conversation.prompt()?;
        if let Some(record) = &mut *self.record.borrow_mut() {
            record.frozen_at = self.conversation.frozen_at(&prompt)?;
        }
        Ok(prompt)
    }

    fn history(&self) -> Result<Vec<Message>> {
        let history = self.conversation.history()?;
        self.record.replace(Some(Record::of(&history)));
        Ok(history)
    }

    fn view<'m>(&self, history: &'m [Message]) -> Cow<'m, [Message]> {
        let mut view = sanitize(history);
        if let Some(options) = &self.truncated {
            view = changed(view, |view| truncate(view, options));
        }
        if let Some(line) = self.authors {
            view = changed(view, |view| name_authors(view, line));
        }
        view
    }

    fn reminder(&self) -> Result<Option<String>> {
        Ok(self.conversation.reminder()?.and_then(not_blank))
    }

    /// Returns the prompt and the reminder as one text.
    fn instructions(&self) -> Result<Option<String>> {
        let texts = [not_blank(self.prompt()?), self.reminder()?];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        Ok(Some(texts.join("\n\n")).filter(|text| !text.is_empty()))
    }

    fn all_tools(&self, provider: Provider) -> Result<Vec<Value>> {
        let mut tools = self.tools.clone();
        if let Value::Array(more) = self.conversation.tools(provider)? {
            tools.extend(more);
        }
        if let Some(record) = &mut *self.record.borrow_mut() {
            let name = |tool: &Value| {
                Some(
                    [tool, &tool["function"]].iter().find_map(|it| it["name"].as_str())?.to_owned(),
                )
            };
            record.tools = tools.iter().filter_map(name).collect();
        }
        Ok(tools)
    }

    /// Returns the request of a history, and whether a user message was added because the last one is the model's own. It is
    /// added to the view: what may end a request and what may come before a user's words are not the same.
    fn ended(
        &self,
        history: &[Message],
        is_paused: bool,
        to_provider: fn(&[Message]) -> Value,
    ) -> (Value, bool) {
        let view = self.view(history);
        let request = to_provider(&view);
        let is_open = !self.is_prefilled
            && !is_paused
            && request
                .get("messages")
                .unwrap_or(&request)
                .as_array()
                .and_then(|all| all.last())
                .is_some_and(is_of_model);
        if !is_open {
            return (request, false);
        }
        let mut view = view.into_owned();
        view.push(Message::user(GO_ON));
        (to_provider(&view), true)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("tools", &self.tools)
            .field("truncated", &self.truncated)
            .field("authors", &self.authors)
            .field("has_cached_history", &self.has_cached_history)
            .field("is_prefilled", &self.is_prefilled)
            .finish_non_exhaustive()
    }
}

/// The blocks that may have a breakpoint; reasoning may not.
const CACHEABLE: [&str; 5] = ["text", "image", "document", "tool_use", "tool_result"];

/// Sets a cache breakpoint.
fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

fn with_tools(mut request: Value, tools: Vec<Value>) -> Value {
    if !tools.is_empty() {
        request["tools"] = tools.into();
    }
    request
}

/// Returns the text unless it is blank: providers refuse that.
fn not_blank(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty())
}

fn last_of(list: &mut Value) -> Option<&mut Value> {
    list.as_array_mut()?.last_mut()
}

/// Returns whether a message or an item of a request is the model's own, and no result of a tool.
fn is_of_model(item: &Value) -> bool {
    let is_result = item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    match item["role"].as_str() {
        Some(role) => role == "assistant",
        None => !is_result,
    }
}

/// Returns whether the provider paused the turn: then it goes on if its message is sent back as it is.
fn is_paused(message: &Message) -> bool {
    let metadata = message.metadata.as_ref().filter(|json| json.as_str().contains("pause_turn"));
    message.role == Role::Assistant
        && metadata.is_some_and(|metadata| metadata.value()["stop_reason"] == "pause_turn")
}

/// Applies a step to a view, whether it is borrowed or not.
fn changed<'m>(
    view: Cow<'m, [Message]>,
    step: impl for<'v> FnOnce(&'v [Message]) -> Cow<'v, [Message]>,
) -> Cow<'m, [Message]> {
    match view {
        Cow::Borrowed(view) => step(view),
        Cow::Owned(view) => Cow::Owned(step(&view).into_owned()),
    }
}
