//! The messages that each chat shows.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The longest text of a message, in UTF-16 code units.
pub(super) const MAX_TEXT: usize = 4096;

/// A message as a chat shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shown {
    /// Its number in the chat.
    pub id: i64,
    /// Whether the bot wrote it.
    pub is_bots: bool,
    /// Its text, or the caption of its file.
    pub text: String,
    /// The topic of the group that it is in.
    pub topic: Option<i64>,
    /// The message that it replies to.
    pub reply_to: Option<i64>,
    /// How often it was edited.
    pub edits: u32,
    /// The name and the bytes of its file.
    pub file: Option<(String, Vec<u8>)>,
}

#[derive(Debug)]
struct Message {
    shown: Shown,
    /// As the API shows it.
    json: Value,
}

/// A private chat or a group.
#[derive(Debug, Default)]
pub(super) struct Chat {
    id: i64,
    /// The name of the person of a private chat.
    person: String,
    last: i64,
    messages: BTreeMap<i64, Message>,
}

/// A message to add.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub(super) from: Value,
    pub(super) text: &'a str,
    pub(super) topic: Option<i64>,
    pub(super) reply_to: Option<i64>,
    pub(super) file: Option<(String, Vec<u8>)>,
    pub(super) entities: Vec<Value>,
}

impl Chat {
    pub(super) fn new(id: i64) -> Self {
        Self { id, ..Self::default() }
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = &Shown> {
        self.messages.values().map(|message| &message.shown)
    }

    pub(super) fn get(&self, id: i64) -> Option<&Shown> {
        self.messages.get(&id).map(|message| &message.shown)
    }

    pub(super) fn remove(&mut self, id: i64) -> bool {
        self.messages.remove(&id).is_some()
    }

    /// Adds a message and returns it as the API shows it.
    pub(super) fn add(&mut self, draft: Draft<'_>) -> Value {
        self.last += 1;
        let id = self.last;
        if draft.from["is_bot"] != true {
            self.person = draft.from["first_name"].as_str().unwrap_or_default().to_owned();
        }
        let mut json = json!({
            "message_id": id,
            "from": draft.from,
            "chat": self.json(),
            "date": now(),
        });
        if draft.file.is_none() {
            json["text"] = draft.text.into();
        } else if !draft.text.is_empty() {
            json["caption"] = draft.text.into();
        }
        if let Some((name, bytes)) = &draft.file {
            let file = format!("file-{}-{id}", self.id);
            json["document"] = json!({"file_id": file, "file_unique_id": file,
                "file_name": name, "file_size": bytes.len()});
        }
        if !draft.entities.is_empty() {
            json["entities"] = draft.entities.into();
        }
        if let Some(topic) = draft.topic {
            json["message_thread_id"] = topic.into();
            json["is_topic_message"] = true.into();
        }
        if let Some(reply) = draft.reply_to.and_then(|id| self.messages.get(&id)) {
            // The API shows one level only.
            let mut reply = reply.json.clone();
            if let Some(reply) = reply.as_object_mut() {
                reply.remove("reply_to_message");
            }
            json["reply_to_message"] = reply;
        }
        let shown = Shown {
            id,
            is_bots: draft.from["is_bot"] == true,
            text: draft.text.to_owned(),
            topic: draft.topic,
            reply_to: draft.reply_to,
            edits: 0,
            file: draft.file,
        };
        self.messages.insert(id, Message { shown, json: json.clone() });
        json
    }

    /// Changes a text and returns the message as the API shows it; `None` if there is no such message.
    pub(super) fn edit(&mut self, id: i64, text: &str, entities: Vec<Value>) -> Option<Value> {
        let message = self.messages.get_mut(&id)?;
        message.shown.text = text.to_owned();
        message.shown.edits += 1;
        message.json["text"] = text.into();
        message.json["edit_date"] = now().into();
        if entities.is_empty() {
            message.json.as_object_mut().map(|json| json.remove("entities"));
        } else {
            message.json["entities"] = entities.into();
        }
        Some(message.json.clone())
    }

    fn json(&self) -> Value {
        match self.id {
            ..0 => {
                json!({"id": self.id, "type": "supergroup", "title": format!("Group {}", -self.id)})
            }
            _ => json!({"id": self.id, "type": "private", "first_name": self.person}),
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Returns the commands and mentions of a text, as the API shows them.
pub(super) fn entities(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let (mut offset, mut is_start) = (0, true);
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end().trim_end_matches([',', '.', ':', '?', '!']);
        let kind = match bare.chars().next() {
            Some('/') if is_start && bare.len() > 1 => Some("bot_command"),
            Some('@') if bare.len() > 1 => Some("mention"),
            _ => None,
        };
        if let Some(kind) = kind {
            let length = bare.encode_utf16().count();
            found.push(json!({"type": kind, "offset": offset, "length": length}));
        }
        offset += word.encode_utf16().count();
        is_start = false;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_counted_in_utf16() {
        let found = entities("/tell@rig 🙂 @rig, why?");
        assert_eq!(found[0], json!({"type": "bot_command", "offset": 0, "length": 9}));
        assert_eq!(found[1], json!({"type": "mention", "offset": 13, "length": 4}));
        assert_eq!(found.len(), 2);
    }
}
