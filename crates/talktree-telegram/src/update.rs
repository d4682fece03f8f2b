//! Updates: what Telegram sends, as far as a bot reads it.
//!
//! Unknown kinds of updates and unknown fields of messages are ignored, so an addition to the API breaks nothing.

use frankenstein::types::{Chat, ChatType, MessageEntity, MessageEntityType, User};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::Me;

/// An update.
///
/// ```
/// use talktree_telegram::Update;
///
/// let text = r#"{"update_id": 1, "message": {"message_id": 5, "date": 1700000000, "text": "hello",
///     "chat": {"id": 7, "type": "private"}, "from": {"id": 7, "is_bot": false, "first_name": "Ada"},
///     "brand_new": {}}}"#;
/// let update: Update = serde_json::from_str(text)?;
/// assert_eq!(update.message.unwrap().text(), Some("hello"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct Update {
    /// A message that someone wrote.
    pub message: Option<Incoming>,
    /// A message that someone edited.
    pub edited_message: Option<Incoming>,
}

#[derive(Deserialize)]
struct Numbered {
    update_id: i64,
}

/// A message, or one that was edited.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Incoming {
    /// Its number in the chat.
    pub message_id: i32,
    message_thread_id: Option<i32>,
    is_topic_message: Option<bool>,
    date: i64,
    /// When it was edited, in seconds since 1970.
    pub edit_date: Option<i64>,
    /// Where it was written.
    pub chat: Chat,
    /// Who wrote it.
    pub from: Option<User>,
    sender_chat: Option<Chat>,
    reply_to_message: Option<Box<Incoming>>,
    text: Option<String>,
    caption: Option<String>,
    entities: Option<Vec<MessageEntity>>,
    caption_entities: Option<Vec<MessageEntity>>,
}

/// Returns the number of an update; `None` if it has none.
#[must_use]
pub fn number(update: &RawValue) -> Option<i64> {
    serde_json::from_str::<Numbered>(update.get()).ok().map(|update| update.update_id)
}

impl Incoming {
    /// Returns the message without the time of an edit.
    #[must_use]
    pub fn written(self) -> Self {
        Self { edit_date: None, ..self }
    }

    /// Returns the message with the time of an edit: its own time if Telegram sent none.
    #[must_use]
    pub fn edited(self) -> Self {
        Self { edit_date: self.edit_date.or(Some(self.date)), ..self }
    }

    /// Returns the topic that it was written in. A thread of replies has a number, too, but is no topic.
    #[must_use]
    pub fn topic(&self) -> Option<i32> {
        self.message_thread_id.filter(|_| self.is_topic_message == Some(true))
    }

    /// Returns whether it was written in a group or a channel.
    #[must_use]
    pub fn is_group(&self) -> bool {
        self.chat.type_field != ChatType::Private
    }

    /// Returns who wrote it, by kind, number and name: a `user`, or a `chat` that an administrator writes for.
    #[must_use]
    pub fn sender(&self) -> Option<(&'static str, i64, String)> {
        if let Some(chat) = &self.sender_chat {
            return Some(("chat", chat.id, chat.title.clone().unwrap_or_default()));
        }
        let user = self.from.as_ref()?;
        let name = [Some(user.first_name.as_str()), user.last_name.as_deref()];
        let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
        Some(("user", i64::try_from(user.id).ok()?, name))
    }

    /// Returns whether a bot wrote it. An administrator who writes in the name of the group is none.
    #[must_use]
    pub fn is_by_bot(&self) -> bool {
        self.sender_chat.is_none() && self.from.as_ref().is_none_or(|user| user.is_bot)
    }

    /// Returns its text, or the caption of its picture or file; `None` if it is blank.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let text = self.text.as_deref().or(self.caption.as_deref())?;
        (!text.trim().is_empty()).then_some(text)
    }

    /// Returns when it was written or edited, in seconds since 1970.
    #[must_use]
    pub fn time(&self) -> i64 {
        self.edit_date.unwrap_or(self.date)
    }

    /// Returns the message that this one replies to. In a topic that is not one, the message that opened the topic.
    #[must_use]
    pub fn reply_to(&self) -> Option<&Self> {
        let replied = self.reply_to_message.as_deref()?;
        (self.topic() != Some(replied.message_id)).then_some(replied)
    }

    /// Returns whether it is for the bot: in private always, in a group if it names the bot or replies to it.
    #[must_use]
    pub fn is_for(&self, me: &Me) -> bool {
        let is_reply = || {
            let replied = self.reply_to().and_then(|replied| replied.from.as_ref());
            replied.is_some_and(|user| user.id == me.id)
        };
        !self.is_group() || self.mentions(me) || is_reply()
    }

    /// Returns whether the bot is named: by its name, or by a command for it.
    #[must_use]
    pub fn mentions(&self, me: &Me) -> bool {
        let (text, entities) = match &self.text {
            Some(text) => (Some(text), &self.entities),
            None => (self.caption.as_ref(), &self.caption_entities),
        };
        let Some(text) = text else { return false };
        entities.iter().flatten().any(|entity| match entity.type_field {
            MessageEntityType::Mention | MessageEntityType::BotCommand => {
                let named = slice(text, entity.offset.into(), entity.length.into());
                let name = named.and_then(|named| named.split_once('@')).map(|(_, name)| name);
                name.is_some_and(|name| name.eq_ignore_ascii_case(&me.name))
            }
            MessageEntityType::TextMention => {
                entity.user.as_ref().is_some_and(|user| user.id == me.id)
            }
            _ => false,
        })
    }
}

/// Returns a part of a text by its place in UTF-16 units; `None` if it is not within the text or cuts a character.
fn slice(text: &str, offset: usize, length: usize) -> Option<&str> {
    let byte_at = |unit: usize| {
        let mut units = 0;
        let mut places = text.char_indices().map(|(at, c)| (at, c.len_utf16()));
        let found = places.find_map(|(at, len)| {
            let here = units;
            units += len;
            (here >= unit).then_some((at, here))
        });
        let (at, here) = found.unwrap_or((text.len(), units));
        (here == unit).then_some(at)
    };
    text.get(byte_at(offset)?..byte_at(offset + length)?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn me() -> Me {
        Me { id: 99, name: "talk_bot".to_owned() }
    }

    fn incoming(fields: Value) -> Incoming {
        let mut message = json!({
            "message_id": 5, "date": 1_700_000_000,
            "chat": {"id": -100, "type": "supergroup", "title": "Team"},
            "from": {"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L"},
        });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(message).unwrap()
    }

    fn raw(value: &Value) -> Box<RawValue> {
        RawValue::from_string(value.to_string()).unwrap()
    }

    #[test]
    fn entities_count_utf16_units() {
        let text = "😀 né @Talk_Bot";
        assert_eq!(slice(text, 6, 9), Some("@Talk_Bot"));
        assert_eq!(slice(text, 0, 2), Some("😀"));
        assert_eq!(slice(text, 1, 2), None); // inside a pair
        assert_eq!(slice(text, 6, 10), None); // too long
        assert_eq!(slice(text, 15, 0), Some(""));

        let mention = |offset: usize, kind: &str| {
            let entities = json!([{"type": kind, "offset": offset, "length": 9}]);
            incoming(json!({"text": text, "entities": entities})).is_for(&me())
        };
        assert!(mention(6, "mention"));
        assert!(!mention(5, "mention"));
        assert!(!mention(6, "bold"));
        assert!(!mention(60_000, "mention"));
        let by_id = json!([{"type": "text_mention", "offset": 0, "length": 2,
            "user": {"id": 99, "is_bot": true, "first_name": "Talk"}}]);
        assert!(incoming(json!({"text": text, "entities": by_id})).is_for(&me()));
        let caption = json!([{"type": "mention", "offset": 0, "length": 9}]);
        let picture = json!({"caption": "@talk_bot?", "caption_entities": caption, "photo": "new"});
        assert!(incoming(picture).is_for(&me()));
    }

    #[test]
    fn a_reply_in_a_topic_is_not_one_to_the_message_that_opened_it() {
        let replied = |id: i32, from: u64| {
            json!({"message_id": id, "date": 1, "chat": {"id": -100, "type": "supergroup"},
                "from": {"id": from, "is_bot": true, "first_name": "Talk"}, "text": "Yes?"})
        };
        let topic = json!({"text": "and?", "message_thread_id": 7, "is_topic_message": true,
            "reply_to_message": replied(7, 99)});
        assert!(!incoming(topic.clone()).is_for(&me()));
        assert_eq!(incoming(topic).topic(), Some(7));

        let reply =
            json!({"text": "and?", "message_thread_id": 7, "reply_to_message": replied(6, 99)});
        assert!(incoming(reply.clone()).is_for(&me()));
        assert_eq!(incoming(reply).topic(), None); // a thread of replies is no topic
        let other = json!({"text": "and?", "reply_to_message": replied(6, 98)});
        assert!(!incoming(other).is_for(&me()));
    }

    #[test]
    fn a_sender_is_a_person_or_a_group() {
        let person = incoming(json!({"text": "hi"}));
        assert_eq!(person.sender(), Some(("user", 42, "Ada L".to_owned())));
        let group =
            incoming(json!({"text": "hi", "from": {"id": 1, "is_bot": true, "first_name": "G"},
            "sender_chat": {"id": -100, "type": "supergroup", "title": "Team"}}));
        assert_eq!(group.sender(), Some(("chat", -100, "Team".to_owned())));
        assert!(!group.is_by_bot());
    }

    #[test]
    fn an_update_of_a_new_kind_has_a_number() {
        assert_eq!(number(&raw(&json!({"update_id": 7, "brand_new_kind": {}}))), Some(7));
        assert_eq!(number(&raw(&json!({"message": 1}))), None);
    }
}
