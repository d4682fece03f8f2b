//! A client: the model that it asks, and the settings of its requests.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};
use talktree::{AuthorLine, Message};
use talktree_model::{Conversation, Request, Stream};

use crate::http::{Call, Http};
use crate::{Flow, Result};

/// The version of the Anthropic API, a header of each request.
const VERSION: &str = "2023-06-01";

/// The address of `OpenAI`'s own servers.
const OPENAI: &str = "https://api.openai.com/v1";

/// A model behind a server. Cloning it is cheap.
#[derive(Clone)]
#[must_use]
pub struct Client {
    api: Api,
    model: String,
    base_url: String,
    key: String,
    timeout: Duration,
    max_tokens: u32,
    http: Http,
}

/// Which API the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Api {
    /// Anthropic's messages API.
    Messages,
    /// `OpenAI`'s chat completions API.
    Chat,
}

impl Client {
    /// Returns a client for a model of the Anthropic messages API. It needs a [`key`](Self::key).
    pub fn anthropic(model: impl Into<String>) -> Self {
        Self::new(Api::Messages, "https://api.anthropic.com/v1", model.into())
    }

    /// Returns a client for a model of `OpenAI`'s chat completions API. Many other servers speak it, too: set their
    /// [`base_url`](Self::base_url).
    pub fn openai(model: impl Into<String>) -> Self {
        Self::new(Api::Chat, OPENAI, model.into())
    }

    /// Returns a client for a model of an Ollama server on the same computer.
    pub fn ollama(model: impl Into<String>) -> Self {
        Self::new(Api::Chat, "http://127.0.0.1:11434/v1", model.into())
    }

    fn new(api: Api, base_url: &str, model: String) -> Self {
        let (base_url, timeout) = (base_url.to_owned(), Duration::from_secs(60));
        let http = Http::new(timeout);
        Self { api, model, base_url, key: String::new(), timeout, max_tokens: 4_096, http }
    }

    /// Sets the address of the API, without the path of a call: `https://host/v1`.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the key. `Debug` does not show it.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets how long the server may be silent; 60 s by default, a day at most. All tries for an answer may
    /// together take ten times as long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        (self.timeout, self.http) = (timeout, Http::new(timeout));
        self
    }

    /// Sets the maximum length of an answer, in tokens; 4 096 by default. A larger response than 1 MiB and 4 KiB
    /// for each token, or than 64 MiB, is an error.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Returns the name of the model.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the model's answer to a conversation. It is not stored, and may call tools.
    ///
    /// The model sees who wrote each message and when. `on_text` decides whether to go on. It gets the whole text so far before
    /// a request is sent, each time that the text grows, and a few times a second while nothing arrives. If a request is
    /// repeated, the text begins again.
    ///
    /// A request is repeated, at most four times, if the server is overloaded, fails or is silent for too long; at most once
    /// if a part of an answer was shown. Comments and pings that only keep the connection open do not count. The wait is that of
    /// the server's `retry-after`, but at most a minute; without one it is a backoff from half a second on.
    ///
    /// # Errors
    /// [`Error::NoAnswer`](crate::Error::NoAnswer) after all tries, or if the server refuses the request;
    /// [`Error::Stopped`](crate::Error::Stopped) if `on_text` returned [`Flow::Stop`]; [`Error::Store`](crate::Error::Store)
    /// if the conversation or the response cannot be read.
    // quote: answer
    pub fn answer(
        &self,
        chat: &impl Conversation,
        on_text: &mut dyn FnMut(&str) -> Flow,
    ) -> Result<Message> {
        let shown = Request::of(chat).authors(AuthorLine::NameAndTime).cached_history();
        let mut request = match self.api {
            Api::Messages => shown.anthropic()?, // prompt, messages, tools
            Api::Chat => shown.openai_chat()?,
        };
        request["stream"] = json!(true);
        if self.api == Api::Chat {
            request["stream_options"] = json!({"include_usage": true});
        }
        Ok(shown.recorded(self.ask(request, on_text)?))
    }
    // quote end

    /// Returns the text of the model's answer to a prompt, such as the prompt of a summarizer.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn complete(&self, prompt: &str) -> Result<String> {
        let request = json!({"messages": [{"role": "user", "content": prompt}]});
        Ok(self.ask(request, &mut |_| Flow::Continue)?.text())
    }

    fn ask(&self, mut request: Value, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        request["model"] = json!(self.model);
        // OpenAI's newer models refuse the name that all other servers know.
        let limit = if self.base_url == OPENAI { "max_completion_tokens" } else { "max_tokens" };
        request[limit] = json!(self.max_tokens);
        let base = self.base_url.trim_end_matches('/');
        let bearer = format!("Bearer {}", self.key);
        let (path, mut headers) = match self.api {
            Api::Messages => {
                ("messages", vec![("x-api-key", self.key.as_str()), ("anthropic-version", VERSION)])
            }
            Api::Chat => ("chat/completions", vec![("authorization", bearer.as_str())]),
        };
        // A local server may need no key. An empty one is not sent.
        headers.retain(|_| self.api == Api::Messages || !self.key.is_empty());
        let stream = match self.api {
            Api::Messages => Stream::anthropic,
            Api::Chat => Stream::openai_chat,
        };
        let url = format!("{base}/{path}");
        let call = Call {
            model: &self.model,
            url: &url,
            headers: &headers,
            request: request.to_string().into_bytes().into(),
            max_tokens: self.max_tokens,
        };
        self.http.ask(&call, stream, on_text)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api, model, base_url, timeout, max_tokens, .. } = self;
        f.debug_struct("Client")
            .field("api", api)
            .field("model", model)
            .field("base_url", base_url)
            .field("timeout", timeout)
            .field("max_tokens", max_tokens)
            .finish_non_exhaustive()
    }
}
