//! Checks requests against the published rules of each provider.
//!
//! Requests are read as JSON. No code is shared with the conversions, which are tested against these
//! checks. Rules of single models are left out: whether a model accepts images, how many, or whether
//! a conversation may end with an assistant message.

mod ai_sdk;
mod anthropic;
mod fields;
mod openai_chat;
mod openai_responses;

use std::fmt;

use serde_json::Value;

/// An API of a model provider.
///
/// ```
/// use talktree_model::Provider;
///
/// assert_eq!(Provider::OpenAiChat.to_string(), "OpenAI chat completions");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// The Anthropic messages API.
    Anthropic,
    /// The OpenAI chat completions API, which many other servers offer too.
    OpenAiChat,
    /// The OpenAI responses API.
    OpenAiResponses,
    /// The Vercel AI SDK, which sends its `UIMessage` to any provider.
    AiSdk,
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Anthropic => "Anthropic messages",
            Self::OpenAiChat => "OpenAI chat completions",
            Self::OpenAiResponses => "OpenAI responses",
            Self::AiSdk => "AI SDK",
        })
    }
}

/// A place where a request breaks a rule of its provider.
///
/// ```
/// use serde_json::json;
/// use talktree_model::{Provider, validate_for};
///
/// let request = json!([{"role": "user", "content": ""}]);
/// let problem = validate_for(Provider::OpenAiChat, &request).remove(0);
/// assert_eq!(problem.to_string(), "messages[0].content: is empty");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The place, such as `messages[3].content[0].id`.
    pub place: String,
    /// What is wrong there, such as `is empty`.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Returns the places where a request breaks the provider's published rules; empty if there are none.
///
/// Checked are roles and their order, pairs of calls and results, ids, names, empty content, and the
/// types of parts. A request is the provider's request object, or only the list of its messages or
/// input items. Other fields of the object are not checked.
///
/// ```
/// use serde_json::json;
/// use talktree_model::{Provider, validate_for};
///
/// let request = json!({"messages": [
///     {"role": "user", "content": "Is it warm?"},
///     {"role": "assistant", "content": [
///         {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
///     ]},
/// ]});
/// let problems = validate_for(Provider::Anthropic, &request);
/// assert_eq!(problems.len(), 1);
/// assert_eq!(problems[0].place, "messages[1].content[0]");
/// ```
#[must_use]
pub fn validate_for(provider: Provider, request: &Value) -> Vec<Problem> {
    let mut report = Report { problems: Vec::new() };
    match provider {
        Provider::Anthropic => anthropic::check(request, &mut report),
        Provider::OpenAiChat => openai_chat::check(request, &mut report),
        Provider::OpenAiResponses => openai_responses::check(request, &mut report),
        Provider::AiSdk => ai_sdk::check(request, &mut report),
    }
    report.problems
}

struct Report {
    problems: Vec<Problem>,
}

impl Report {
    fn add(&mut self, place: impl Into<String>, what: impl Into<String>) {
        self.problems.push(Problem { place: place.into(), what: what.into() });
    }

    /// Returns the list of messages or items, which must not be missing or empty.
    fn list<'a>(&mut self, request: &'a Value, field: &str) -> &'a [Value] {
        let list = if request.is_array() { request } else { &request[field] };
        let list = list.as_array().map(Vec::as_slice);
        if list.is_none_or(<[Value]>::is_empty) {
            self.add(field, "is not a list, or is empty");
        }
        list.unwrap_or_default()
    }

    /// Checks a text that must not be blank.
    fn text(&mut self, place: &str, text: &Value) {
        match text.as_str() {
            None => self.add(place, "is not a string"),
            Some(text) if text.trim().is_empty() => self.add(place, "is empty"),
            Some(_) => {}
        }
    }

    /// Checks content that must be a text or a list of parts of these kinds. Returns the parts with
    /// their places and kinds.
    fn parts<'a>(
        &mut self,
        place: &str,
        content: &'a Value,
        kinds: &[&str],
    ) -> Vec<(String, &'a str, &'a Value)> {
        let mut found = Vec::new();
        let Some(parts) = content.as_array() else {
            self.text(place, content);
            return found;
        };
        if parts.is_empty() {
            self.add(place, "is empty");
        }
        for (at, part) in parts.iter().enumerate() {
            let place = format!("{place}[{at}]");
            let kind = part["type"].as_str().unwrap_or_default();
            match kinds.contains(&kind) {
                true => found.push((place, kind, part)),
                false => {
                    self.add(format!("{place}.type"), format!("{kind:?} is not accepted here"))
                }
            }
        }
        found
    }

    /// Checks an id or a name: letters, digits, `_` and `-`, at least one, at most `max`.
    fn word(&mut self, place: &str, word: &Value, max: usize) {
        let Some(word) = word.as_str() else { return self.add(place, "is not a string") };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if word.is_empty() || !word.bytes().all(fits) {
            self.add(place, format!("{word:?} does not match ^[a-zA-Z0-9_-]+$"));
        } else if word.len() > max {
            self.add(place, format!("is {} characters long, over the limit of {max}", word.len()));
        }
    }

    /// Checks an `http` or `https` URL, or a `data:` URL in base64 of one of these types; of any type
    /// if none is named.
    fn url(&mut self, place: &str, url: &Value, media: &[&str]) {
        let Some(url) = url.as_str() else { return self.add(place, "is not a string") };
        if url.starts_with("https://") || url.starts_with("http://") {
            return;
        }
        let parts = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
        match parts {
            Some((found, _)) if !media.is_empty() && !media.contains(&found) => {
                self.add(place, format!("has the type {found:?}, which is not accepted"));
            }
            Some((_, data)) => self.base64(place, data),
            None => self.add(place, "is neither an http URL nor a base64 data URL"),
        }
    }

    fn base64(&mut self, place: &str, data: &str) {
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if data.is_empty() || !data.len().is_multiple_of(4) || !data.bytes().all(is_digit) {
            self.add(place, "is not base64");
        }
    }
}

/// The image types that all three providers accept.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
