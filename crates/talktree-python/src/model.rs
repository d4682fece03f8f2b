//! Requests to models, their answers, and single messages.

use pyo3::prelude::*;
use serde_json::{Value, json};
use talktree::{AuthorLine, MessageId, Result};
use talktree_model::{self as model, Conversation, Provider, Request, TruncateOptions};

use crate::call::detached;
use crate::error::exception;
use crate::json;
use crate::read::path;
use crate::session::Session;

parts! {
    /// How messages are shortened, as Python passes it; what is missing has its default.
    struct TruncateParts {
        keep_whole: Option<usize>,
        max_text_chars: Option<usize>,
        max_output_chars: Option<usize>,
        step: Option<usize>,
    }
}

fn truncate_options(parts: &TruncateParts) -> TruncateOptions {
    let default = TruncateOptions::default();
    TruncateOptions {
        keep_whole: parts.keep_whole.unwrap_or(default.keep_whole),
        max_text_chars: parts.max_text_chars.unwrap_or(default.max_text_chars),
        max_output_chars: parts.max_output_chars.unwrap_or(default.max_output_chars),
        step: parts.step.unwrap_or(default.step),
    }
}

parts! {
    /// The options of a request, as Python passes them.
    struct RequestParts {
        tools: Option<String>,
        truncated: Option<TruncateParts>,
        authors: Option<String>,
        cached_history: bool,
        prefill: bool,
    }
}

fn author_line(name: &str) -> AuthorLine {
    match name {
        "name_and_time" => AuthorLine::NameAndTime,
        _ => AuthorLine::Name,
    }
}

fn request(of: &impl Conversation, format: &str, parts: &RequestParts) -> Result<Value> {
    let mut request = Request::of(of);
    if let Some(tools) = &parts.tools {
        let Value::Array(tools) = json::value(tools)? else { return Ok(Value::Null) };
        request = request.tools(tools);
    }
    if let Some(truncated) = &parts.truncated {
        request = request.truncated(truncate_options(truncated));
    }
    if let Some(line) = &parts.authors {
        request = request.authors(author_line(line));
    }
    if parts.cached_history {
        request = request.cached_history();
    }
    if parts.prefill {
        request = request.prefill();
    }
    match format {
        "anthropic" => request.anthropic(),
        "openai_chat" => request.openai_chat(),
        _ => request.openai_responses(),
    }
}

#[pymethods]
impl Session {
    /// Returns a whole request in the format of a provider.
    fn request(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        is_raw: bool,
        format: &str,
        parts: RequestParts,
    ) -> PyResult<String> {
        self.handle
            .call(py, |chat| Ok(request(&path(chat, leaf, is_raw), format, &parts)?.to_string()))
    }
}

/// Runs a pure function without the interpreter's lock.
fn pure<T: Send>(py: Python<'_>, call: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    detached(py, call).map_err(|error| exception(py, &error))
}

/// Returns messages in the format of a provider.
#[pyfunction]
pub(crate) fn to_model(py: Python<'_>, messages: &str, format: &str) -> PyResult<String> {
    pure(py, || {
        let messages = json::messages(messages)?;
        Ok(match format {
            "anthropic" => model::to_anthropic(&messages),
            "openai_chat" => model::to_openai_chat(&messages),
            "openai_responses" => model::to_openai_responses(&messages),
            _ => model::to_ai_sdk(&messages),
        }
        .to_string())
    })
}

/// Returns a provider's response as a message; if no format is given, it is detected.
#[pyfunction]
pub(crate) fn from_response(
    py: Python<'_>,
    response: &str,
    format: Option<&str>,
) -> PyResult<String> {
    pure(py, || {
        let response = json::value(response)?;
        json::text(&match format {
            None => model::from_response(&response)?,
            Some("anthropic") => model::from_anthropic(&response),
            Some("openai_chat") => model::from_openai_chat(&response),
            Some(_) => model::from_openai_responses(&response),
        })
    })
}

/// Returns messages with pairs of call and result completed.
#[pyfunction]
pub(crate) fn sanitize(py: Python<'_>, messages: &str) -> PyResult<String> {
    pure(py, || json::text(&*model::sanitize(&json::messages(messages)?)))
}

/// Returns messages with the old ones shortened.
#[pyfunction]
pub(crate) fn truncate(py: Python<'_>, messages: &str, parts: TruncateParts) -> PyResult<String> {
    pure(py, || {
        json::text(&*model::truncate(&json::messages(messages)?, &truncate_options(&parts)))
    })
}

/// Returns messages with lines that name who wrote them.
#[pyfunction]
pub(crate) fn name_authors(py: Python<'_>, messages: &str, line: &str) -> PyResult<String> {
    pure(py, || json::text(&*model::name_authors(&json::messages(messages)?, author_line(line))))
}

/// Returns what a provider would refuse in a request.
#[pyfunction]
pub(crate) fn validate_for(py: Python<'_>, format: &str, request: &str) -> PyResult<String> {
    let provider = match format {
        "anthropic" => Provider::Anthropic,
        "openai_chat" => Provider::OpenAiChat,
        "openai_responses" => Provider::OpenAiResponses,
        _ => Provider::AiSdk,
    };
    pure(py, || {
        let problems = model::validate_for(provider, &json::value(request)?);
        let problems = problems.iter().map(|it| json!({"place": it.place, "what": it.what}));
        Ok(Value::Array(problems.collect()).to_string())
    })
}

/// Returns a new id, as a message that is made in Rust gets one.
#[pyfunction]
pub(crate) fn new_id() -> String {
    MessageId::new().to_string()
}
