//! Summaries, as a model is told them.
//!
//! A history shows a summary as words of the assistant. Sent like that it would read as an answer to
//! whatever comes before it, said by the model itself; so it is told as a user's words, below a line
//! that says what it is and by which id more of it can be asked for.

use std::borrow::Cow;

use crate::id::CompactionId;
use crate::message::{Message, Part, Role};

/// Returns a message as a model is told it: one that is a summary says so.
pub(super) fn told(message: &Message) -> Cow<'_, Message> {
    let Some(line) = line(message) else { return Cow::Borrowed(message) };
    let mut told = Message { role: Role::User, ..message.clone() };
    told.parts.insert(0, Part::text(line));
    Cow::Owned(told)
}

/// Returns what a summary is, in a line; `None` for any other message.
fn line(message: &Message) -> Option<String> {
    if message.role != Role::Assistant {
        return None;
    }
    let about = message.metadata.as_ref().map(|metadata| metadata.value()).unwrap_or_default();
    if CompactionId::from_message(&message.id).is_some() {
        let id = &message.id;
        return Some(match about["compaction"]["count"].as_u64() {
            Some(count) => format!("[summary of {count} earlier messages, id {id}]"),
            None => format!("[summary of earlier messages, id {id}]"),
        });
    }
    if about["branch_summary"].is_object() {
        return Some("[summary of what was tried from here and left]".to_owned());
    }
    about["split"].is_object().then(|| "[summary of the conversation so far]".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compaction::Compaction;
    use crate::model::{to_anthropic, to_openai_chat};

    #[test]
    fn a_summary_is_no_answer_of_the_models() {
        let compaction = Compaction::new("They like figs.", "a".into(), "b".into());
        let compaction = Compaction { id: "c1".into(), count: 37, ..compaction };
        let view = [
            Message::user("Are eggs vegan?"),
            compaction.to_message(None),
            Message::user("And figs?"),
        ];
        let line = "[summary of 37 earlier messages, id compaction_c1]";
        let texts = json!([
            {"type": "text", "text": "Are eggs vegan?"},
            {"type": "text", "text": line},
            {"type": "text", "text": "They like figs."},
            {"type": "text", "text": "And figs?"},
        ]);
        assert_eq!(to_anthropic(&view)["messages"], json!([{"role": "user", "content": texts}]));
        let chat = to_openai_chat(&view);
        assert_eq!(chat[1], json!({"role": "user", "content": format!("{line}\nThey like figs.")}));
    }

    #[test]
    fn what_opens_a_session_or_a_branch_says_what_it_is() {
        for (metadata, line) in [
            (json!({"branch_summary": {}}), "[summary of what was tried from here and left]"),
            (json!({"split": {}}), "[summary of the conversation so far]"),
        ] {
            let message = Message::assistant("so far").with_metadata(metadata);
            assert_eq!(told(&message).text(), format!("{line}\nso far"));
        }
        let plain = Message::assistant("so far").with_metadata(json!({"split": 1}));
        assert_eq!(told(&plain).as_ref(), &plain);
    }
}
