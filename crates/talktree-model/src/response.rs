//! A response of any provider as a message.

use std::borrow::Borrow;

use serde_json::Value;
use talktree::{Error, Message, Result, Session};
use talktree_text::foreign::short_line;

use crate::{from_anthropic, from_openai_chat, from_openai_responses};

/// How many characters of a provider's error are shown.
pub(super) const MAX_CHARS: usize = 300;

/// Returns the message of a response of the Anthropic messages API, or of OpenAI's chat completions or responses API.
///
/// The form of the response says which of them it is: `content`, `choices` or `output`. As [`from_anthropic`],
/// [`from_openai_chat`] and [`from_openai_responses`], but what holds no answer is an error. An answer that was cut off
/// is an answer.
///
/// ```
/// use serde_json::json;
/// use talktree_model::from_response;
///
/// let answer = from_response(&json!({"choices": [{"message": {"content": "4"}}]}))?;
/// assert_eq!(answer.text(), "4");
///
/// let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
/// let error = from_response(&error).unwrap_err();
/// assert_eq!(error.to_string(), "the response holds no answer of a model: Overloaded");
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoAnswer`] if the response is an error, is not complete, or is of another form.
pub fn from_response(response: &Value) -> Result<Message> {
    let no_answer = |why: &str| Err(Error::NoAnswer { why: short_line(why, MAX_CHARS) });
    if let Some(why) = error_of(response) {
        return no_answer(&why);
    }
    match (&response["choices"], &response["output"], &response["content"]) {
        (Value::Array(choices), _, _) => match choices.first() {
            None => no_answer("it has no choices"),
            Some(choice) => match error_of(choice) {
                Some(why) => no_answer(&why),
                None => Ok(from_openai_chat(response)),
            },
        },
        (_, Value::Array(_), _) => match response["status"].as_str() {
            Some(status @ ("failed" | "cancelled" | "queued" | "in_progress")) => {
                no_answer(&format!("its status is {status}"))
            }
            _ => Ok(from_openai_responses(response)),
        },
        (_, _, Value::Array(_)) => Ok(from_anthropic(response)),
        _ => no_answer("it has none of the fields content, choices and output"),
    }
}

/// Appends the answer of a provider's response to the head, and returns it.
///
/// The response is that of the Anthropic messages API, of OpenAI's chat completions or responses API, or of a server
/// that speaks one of them. The message keeps the numbers of tokens that came with it:
/// [`Usage::of`](talktree::Usage::of) reads them. [`from_response`] only reads the message, for a
/// program that appends it itself, by [`Session::append_if_head`] for example.
///
/// Each call appends another message, because not every server gives its responses ids that differ.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Store, Usage};
/// use talktree_model::append_answer;
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("2 + 2?"))?;
/// let response = json!({
///     "type": "message", "role": "assistant", "model": "large", "stop_reason": "end_turn",
///     "content": [{"type": "text", "text": "4"}],
///     "usage": {"input_tokens": 12, "output_tokens": 3},
/// });
/// let answer = append_answer(&chat, response)?;
/// assert_eq!(answer.text(), "4");
/// assert_eq!(Usage::of(&answer).unwrap().output, 3);
/// assert_eq!(chat.head()?, Some(answer.id));
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::NoAnswer`] if the response is an error of the provider or of another form; as
/// [`Session::append`].
pub fn append_answer(chat: &Session, response: impl Borrow<Value>) -> Result<Message> {
    let answer = from_response(response.borrow())?;
    chat.append(answer.clone())?;
    Ok(answer)
}

/// Returns what an error says; `None` if the value has none.
pub(super) fn error_of(value: &Value) -> Option<String> {
    let error = &value["error"];
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => Some(text.clone()),
        error => Some(error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_form_of_a_response_says_whose_it_is() {
        for (response, provider) in [
            (json!({"content": [{"type": "text", "text": "4"}]}), "anthropic"),
            (json!({"choices": [{"message": {"content": "4"}}], "error": null}), "openai"),
            (
                json!({"status": "incomplete", "error": null, "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": "4"}]},
                ]}),
                "openai",
            ),
        ] {
            let message = from_response(&response).unwrap();
            assert_eq!(message.text(), "4");
            assert_eq!(message.metadata.unwrap().value()["provider"], provider);
        }
    }

    #[test]
    fn a_response_without_an_answer_is_an_error() {
        let long = "x".repeat(1_000);
        for (response, expected) in [
            (json!(null), "it has none of the fields content, choices and output"),
            (json!("4"), "it has none of the fields content, choices and output"),
            (json!({"content": "4"}), "it has none of the fields content, choices and output"),
            (json!({"choices": []}), "it has no choices"),
            (json!({"choices": [{"error": {"message": "no\nluck"}}]}), "no luck"),
            (json!({"error": "model not found"}), "model not found"),
            (json!({"error": {"code": 5}}), r#"{"code":5}"#),
            (json!({"output": [], "status": "in_progress"}), "its status is in_progress"),
            (
                json!({"output": [], "status": "failed", "error": {"message": "too long"}}),
                "too long",
            ),
            (json!({"error": {"message": long}}), &format!("{}…", "x".repeat(299))),
        ] {
            match from_response(&response) {
                Err(Error::NoAnswer { why }) => assert_eq!(why, expected),
                other => panic!("{response}: {other:?}"),
            }
        }
    }
}
