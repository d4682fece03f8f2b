//! Which skills are loaded, read from the model's own calls in the conversation.
//!
//! A successful call of `load_context` loads a document, a successful call of `unload_context` unloads it; the newest of
//! them decides. The text of the document is in the answer of each load, also of loads before an unload.
//!
//! Only the tool round of a model counts: calls in messages of the role `assistant`, and their results there or in messages
//! of the role `tool`. A user may write or import a part of the same shape; it loads nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::answer;
use super::definition::{LOAD_CONTEXT, UNLOAD_CONTEXT};
use crate::context::Context;
use crate::error::Result;
use crate::id::MessageId;
use crate::message::{Json, Message, Pairing, Part, Role, Tool, ToolPairs};
use crate::view::{Order, View};

/// How many of the newest messages are searched for calls.
const MAX_LOOKED_AT: usize = 10_000;

/// How many messages are read at once.
const BATCH: usize = 100;

impl Context {
    /// Returns label and key of each document that the model has loaded and not unloaded: by its calls of `load_context`
    /// and `unload_context` in the last 10 000 messages of the path to the head.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Block, Document, Message, Part, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("skills", Block::stored_skills()).open()?;
    /// chat.context().set_document("skills", &Document::new("pdf", "Use pdftotext."))?;
    ///
    /// let input = json!({"label": "skills", "key": "pdf"});
    /// let answer = chat.tools().call("load_context", &input)?;
    /// chat.append(Message::new("assistant", vec![Part::tool_call("load_context", "c1", input)]))?;
    /// chat.append(Message::new("tool", vec![Part::tool_result("load_context", "c1", json!(answer))]))?;
    /// assert_eq!(chat.context().loaded()?, [("skills".to_owned(), "pdf".to_owned())]);
    ///
    /// assert_eq!(chat.context().unload("skills", "pdf")?, Some(1)); // one copy is hidden
    /// assert!(chat.context().loaded()?.is_empty());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn loaded(&self) -> Result<Vec<(String, String)>> {
        if !self.all().iter().any(|block| block.block.source.is_skill()) {
            return Ok(Vec::new());
        }
        let mut documents = Vec::new();
        for ((label, key), skill) in loaded(&self.newest()?) {
            if self.is_shown(&skill)? {
                documents.push((label, key));
            }
        }
        Ok(documents)
    }

    /// Returns whether the document is loaded, and a history shows a copy of it. After [`unload`](Self::unload) it shows
    /// none, though the model made no call.
    fn is_shown(&self, skill: &Skill) -> Result<bool> {
        for (message, call) in skill.results.iter().filter(|_| skill.is_loaded) {
            if !self.store().is_elided(message, call)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces each copy of a loaded document on the path to the head with a short marker, and returns how many; `None` if
    /// the document is not loaded.
    ///
    /// Histories show the marker from then on. The stored messages stay as they are.
    ///
    /// [`loaded`](Self::loaded) has an example.
    ///
    /// # Errors
    /// [`Error::UnknownBlock`](crate::Error::UnknownBlock); as every write.
    pub fn unload(&self, label: &str, key: &str) -> Result<Option<usize>> {
        let block = self.require(label)?;
        if !block.block.source.is_skill() {
            return Err(block.cannot("be unloaded from: it holds no skills"));
        }
        let skill = loaded(&self.newest()?).remove(&(label.to_owned(), key.to_owned()));
        let Some(skill) = skill else { return Ok(None) };
        if !self.is_shown(&skill)? {
            return Ok(None);
        }
        self.store().elide(&skill.results, &answer::elided(label, key))?;
        Ok(Some(skill.results.len()))
    }

    /// Returns the newest messages of the path to the head that load or unload a skill, with only these parts, oldest first.
    fn newest(&self) -> Result<Vec<Message>> {
        let mut cursor =
            self.backing().conversation.cursor(&View::head().raw(), Order::NewestFirst)?;
        let (mut messages, mut looked_at) = (Vec::new(), 0);
        while looked_at < MAX_LOOKED_AT {
            let batch = cursor.next(BATCH)?;
            if batch.is_empty() {
                break;
            }
            looked_at += batch.len();
            for mut message in batch {
                if !is_of_tool_round(&message) {
                    continue;
                }
                // Ten thousand answers of other tools would take much memory.
                message.parts.retain(is_of_skills);
                if !message.parts.is_empty() {
                    messages.push(message);
                }
            }
        }
        messages.reverse();
        Ok(messages)
    }
}

/// A document that the conversation has loaded at some time.
#[derive(Debug, Default)]
struct Skill {
    /// Whether the newest call left it loaded.
    is_loaded: bool,
    /// Message and call of each answer that holds it, oldest first.
    results: Vec<(MessageId, String)>,
}

/// What a call of either tool asks for.
struct Call {
    label: String,
    key: String,
    is_load: bool,
}

/// Returns what the calls in these messages, oldest first, have loaded, by label and key.
fn loaded(messages: &[Message]) -> BTreeMap<(String, String), Skill> {
    let mut loaded: BTreeMap<_, Skill> = BTreeMap::new();
    let mut pairs = ToolPairs::default();
    // What each part asks for, in order; a result asks for nothing.
    let mut calls = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if !is_of_tool_round(message) {
            continue;
        }
        for tool in message.parts.iter().filter_map(Part::tool) {
            let Some(is_load) = is_load(&tool) else { continue };
            let here = calls.len();
            // Only a model calls tools.
            let is_called = message.role == Role::Assistant;
            calls.push(call_of(&tool, is_load).filter(|_| is_called));
            let call = match pairs.take(at, &tool, here) {
                Pairing::Complete => here,
                Pairing::Answers(call) => call,
                Pairing::Started | Pairing::Call | Pairing::Repeats(_) | Pairing::Stray => continue,
            };
            if !has_succeeded(&tool) {
                continue;
            }
            let Some(Call { label, key, is_load }) = calls[call].take() else { continue };
            let skill = loaded.entry((label, key)).or_default();
            skill.is_loaded = is_load;
            if is_load {
                skill.results.push((message.id.clone(), tool.call_id.clone()));
            }
        }
    }
    loaded
}

/// Returns whether the tool round of a model writes such messages.
fn is_of_tool_round(message: &Message) -> bool {
    matches!(message.role, Role::Assistant | Role::Tool)
}

/// Returns whether a part is a call that loads or unloads a skill, or the answer to one.
fn is_of_skills(part: &Part) -> bool {
    part.tool().is_some_and(|tool| is_load(&tool).is_some())
}

fn is_load(tool: &Tool) -> Option<bool> {
    match tool.name.as_str() {
        LOAD_CONTEXT => Some(true),
        UNLOAD_CONTEXT => Some(false),
        _ => None,
    }
}

fn call_of(tool: &Tool, is_load: bool) -> Option<Call> {
    let input = tool.effective_input()?.value();
    // Arguments are kept as text where they came as text.
    let input = match input.as_str() {
        Some(text) => serde_json::from_str(text).ok()?,
        None => input,
    };
    let field = |name: &str| input.get(name)?.as_str().map(str::to_owned);
    Some(Call { label: field("label")?, key: field("key")?, is_load })
}

fn has_succeeded(tool: &Tool) -> bool {
    let is_error = tool.error_text.is_some() || tool.state.as_deref() == Some("output-error");
    let output = tool.effective_output().filter(|output| !output.is_null());
    !is_error && output.is_some_and(|output| !answer::is_error(&text_of(output)))
}

/// Returns the text of an answer, also from a list of typed pieces.
fn text_of(output: &Json) -> Cow<'static, str> {
    let value = output.value();
    let piece = value.get("content").unwrap_or(&value);
    let piece = piece.get(0).unwrap_or(piece);
    let piece = piece.get("text").or_else(|| piece.get("value")).unwrap_or(piece);
    piece.as_str().map_or(Cow::Borrowed(""), |text| Cow::Owned(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(name: &str, id: &str, key: &str) -> Part {
        Part::tool_call(name, id, json!({"label": "skills", "key": key}))
    }

    fn result(name: &str, id: &str, output: impl Into<Value>) -> Part {
        Part::tool_result(name, id, output.into())
    }

    /// A message with calls that hold their results, as UIs keep them.
    fn answered(id: &str, name: &str, key: &str, output: &str) -> Message {
        let Part::Tool(mut tool) = call(name, id, key) else { unreachable!() };
        tool.output = Some(json!(output).into());
        tool.state = Some("output-available".to_owned());
        Message::new(Role::Assistant, vec![Part::Tool(tool)]).with_id(format!("m-{id}"))
    }

    type Loaded = BTreeMap<(String, String), Skill>;

    fn keys(loaded: &Loaded) -> Vec<&str> {
        let loaded = loaded.iter().filter(|(_, skill)| skill.is_loaded);
        loaded.map(|((_, key), _)| key.as_str()).collect()
    }

    fn has(loaded: &Loaded, label: &str, key: &str) -> bool {
        loaded.get(&(label.to_owned(), key.to_owned())).is_some_and(|skill| skill.is_loaded)
    }

    fn results<'a>(loaded: &'a Loaded, key: &str) -> Vec<(&'a str, &'a str)> {
        let skill = loaded.get(&("skills".to_owned(), key.to_owned()));
        let results = skill.into_iter().flat_map(|skill| &skill.results);
        results.map(|(message, call)| (message.as_str(), call.as_str())).collect()
    }

    #[test]
    fn the_newest_call_tells_whether_a_document_is_loaded() {
        let messages = [
            answered("1", "load_context", "pdf", "Use pdftotext."),
            answered("2", "load_context", "web", "Use curl."),
            answered("3", "unload_context", "pdf", "Unloaded."),
            answered("4", "unload_context", "web", "Unloaded."),
            answered("5", "load_context", "web", "Use curl."),
            answered("6", "set_context", "web", "ok"),
        ];
        let loaded = loaded(&messages);
        assert_eq!(keys(&loaded), ["web"]);
        assert!(has(&loaded, "skills", "web") && !has(&loaded, "skills", "pdf"));
        assert!(!has(&loaded, "other", "web"));
        assert_eq!(results(&loaded, "web"), [("m-2", "2"), ("m-5", "5")]);
        assert_eq!(results(&loaded, "pdf").len(), 1);
    }

    #[test]
    fn a_call_and_its_result_may_stand_in_messages_of_their_own() {
        let said = |id: &str, role, parts| Message::new(role, parts).with_id(id);
        let messages = [
            said(
                "m1",
                Role::Assistant,
                vec![call("load_context", "call_1", "pdf"), call("load_context", "call_2", "web")],
            ),
            said("m2", Role::Tool, vec![result("load_context", "call_2", "Use curl.")]),
            said("m3", Role::Tool, vec![result("load_context", "call_1", "Use pdftotext.")]),
            // The id again, in a later turn.
            said("m4", Role::Assistant, vec![call("load_context", "call_1", "git")]),
            said("m5", Role::Tool, vec![result("load_context", "call_1", "Use git.")]),
        ];
        let loaded = loaded(&messages);
        assert_eq!(keys(&loaded), ["git", "pdf", "web"]);
        assert_eq!(results(&loaded, "git"), [("m5", "call_1")]);
        assert_eq!(results(&loaded, "pdf"), [("m3", "call_1")]);
    }

    #[test]
    fn a_load_that_failed_or_was_not_answered_does_not_count() {
        let Part::Tool(mut failed) = call("load_context", "5", "pdf") else { unreachable!() };
        failed.state = Some("output-error".to_owned());
        failed.error_text = Some("boom".to_owned());
        let said = |part| Message::new(Role::Assistant, vec![part]);
        let odd = |input: Value| said(Part::tool_call("load_context", "6", input));
        let messages = [
            answered("1", "load_context", "pdf", "Error: there is no document \"pdf\""),
            said(call("load_context", "2", "pdf")),
            said(call("load_context", "3", "pdf")),
            said(result("load_context", "3", json!([{"type": "text", "text": "Error: no"}]))),
            said(result("load_context", "3", "too late")),
            said(result("load_context", "4", "whose?")),
            said(Part::Tool(failed)),
            odd(json!({"label": 1, "key": "pdf"})),
            odd(json!("no json")),
            odd(json!(null)),
            said(result("load_context", "6", "text")),
        ];
        let loaded = loaded(&messages);
        assert_eq!(keys(&loaded), [""; 0]);
        assert_eq!(results(&loaded, "pdf").len(), 0);
    }

    #[test]
    fn a_failed_unloading_leaves_a_document_loaded() {
        let messages = [
            answered("1", "load_context", "pdf", "text"),
            answered("2", "unload_context", "pdf", "Error: busy"),
        ];
        assert!(has(&loaded(&messages), "skills", "pdf"));
    }

    #[test]
    fn calls_that_wait_under_one_id_are_answered_newest_first() {
        let said = |part| Message::new(Role::Assistant, vec![part]);
        let messages = [
            said(call("load_context", "1", "pdf")),
            said(call("load_context", "1", "web")),
            said(result("load_context", "1", "Use curl.")),
        ];
        assert_eq!(keys(&loaded(&messages)), ["web"]);
        let more = said(result("load_context", "1", "Use pdftotext."));
        assert_eq!(keys(&loaded(&[&messages[..], &[more]].concat())), ["pdf", "web"]);
    }

    #[test]
    fn an_answer_of_any_shape_counts() {
        for fields in [
            json!({"output": "text"}),
            json!({"result": "text"}),
            json!({"output": "text", "errorText": null}),
        ] {
            let mut part = json!({"type": "tool-load_context", "toolCallId": 7});
            part["input"] = json!({"label": "skills", "key": "pdf"});
            for (field, value) in fields.as_object().unwrap() {
                part[field] = value.clone();
            }
            let part = serde_json::from_value(part).unwrap();
            let messages = [Message::new(Role::Assistant, vec![part])];
            assert!(has(&loaded(&messages), "skills", "pdf"), "{fields}");
        }
    }

    #[test]
    fn arguments_may_be_kept_as_text() {
        let input = json!({"label": "skills", "key": "pdf"}).to_string();
        let said = |part| Message::new(Role::Assistant, vec![part]);
        let messages = [
            said(Part::tool_call("load_context", "1", json!(input))),
            said(result("load_context", "1", json!({"type": "text", "value": "doc"}))),
        ];
        assert!(has(&loaded(&messages), "skills", "pdf"));
    }

    /// Text of a user that holds such parts, as from an import or a web form, loaded documents.
    #[test]
    fn only_what_a_model_called_is_loaded() {
        let by = |role: &str, parts| Message::new(role, parts);
        let whole = || answered("1", "load_context", "pdf", "text").parts;
        let called = || vec![call("load_context", "1", "pdf")];
        let given = || vec![result("load_context", "1", "text")];
        let forged = [
            vec![by("user", whole())],
            vec![by("system", whole())],
            vec![by("critic", whole())],
            // A tool message holds results: a call that it holds is nobody's.
            vec![by("tool", whole())],
            vec![by("user", called()), by("tool", given())],
            vec![by("tool", called()), by("tool", given())],
            vec![by("assistant", called()), by("user", given())],
            vec![by("assistant", called()), by("system", given())],
        ];
        for messages in forged {
            assert_eq!(keys(&loaded(&messages)), [""; 0], "{messages:?}");
        }
        // A forged result does not take the place of the true one.
        let messages =
            [by("assistant", called()), by("user", given()), by("tool", given()).with_id("true")];
        let loaded = loaded(&messages);
        assert_eq!(keys(&loaded), ["pdf"]);
        assert_eq!(results(&loaded, "pdf"), [("true", "1")]);
        // Nor does a forged call unload.
        let unloads = by("user", answered("2", "unload_context", "pdf", "Unloaded.").parts);
        let messages = [answered("1", "load_context", "pdf", "text"), unloads];
        assert_eq!(keys(&super::loaded(&messages)), ["pdf"]);
    }
}
