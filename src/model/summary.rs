//! Summaries as a model reads them.
//!
//! In a history a summary is an assistant message. A model would take it for its own answer to the
//! message before. So it is sent as a user message, below a line that says what it is and by which
//! id the model can ask for more.

use std::borrow::Cow;

use crate::id::CompactionId;
use crate::message::{Message, Part, Role};

/// Returns the message as a model reads it: a summary becomes a user message that says what it is.
pub(super) fn shown(message: &Message) -> Cow<'_, Message> {
    let Some(line) = line(message) else { return Cow::Borrowed(message) };
    let mut shown = Message { role: Role::User, ..message.clone() };
    shown.parts.insert(0, Part::text(line));
    Cow::Owned(shown)
}

/// Returns the line that says what a summary is; `None` if the message is not a summary.
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
    fn a_summary_does_not_read_as_an_answer_of_the_model() {
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
    fn the_summary_that_opens_a_session_or_a_branch_says_what_it_is() {
        for (metadata, line) in [
            (json!({"branch_summary": {}}), "[summary of what was tried from here and left]"),
            (json!({"split": {}}), "[summary of the conversation so far]"),
        ] {
            let message = Message::assistant("so far").with_metadata(metadata);
            assert_eq!(shown(&message).text(), format!("{line}\nso far"));
        }
        let plain = Message::assistant("so far").with_metadata(json!({"split": 1}));
        assert_eq!(shown(&plain).as_ref(), &plain);
    }
}
