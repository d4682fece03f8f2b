//! Updates in the words of the library: the place, the owner, and the ids of messages in a session.

use chrono::{DateTime, Utc};
use serde_json::value::RawValue;
use talktree::{Author, InboxItem, Message, MessageId};
use talktree_telegram::{Incoming, Me, Update};

use crate::{Command, Place};

/// The key of updates that belong to no chat.
const NO_CHAT: &str = "telegram:other";

/// Returns the item of an update: its JSON as it was received, its chat and its owner.
///
/// That of `/forget yes` has no owner: it must outlive the erasure of all data of the owner, because its answer comes after it.
pub(crate) fn item(number: i64, update: &RawValue, me: &Me) -> InboxItem {
    let body = update.get();
    let incoming = serde_json::from_str::<Update>(body).ok();
    let incoming = incoming.and_then(|update| update.message.or(update.edited_message));
    let Some(incoming) = incoming else { return InboxItem::new(number.to_string(), NO_CHAT, body) };
    let place = place(&incoming);
    let item = InboxItem::new(number.to_string(), place.key, body);
    match place.owner {
        Some(owner) if command(&incoming, me) != Some(Command::Forget) => item.owner(owner),
        _ => item,
    }
}

/// Returns where a message was written, and by whom. A topic has a conversation of its own.
pub(crate) fn place(incoming: &Incoming) -> Place {
    let (chat, is_group) = (incoming.chat.id, incoming.is_group());
    let sender = incoming.sender();
    let person = sender.map(|(kind, id, name)| Author::new(format!("{kind}:{id}")).named(name));
    let person = person.unwrap_or_default();
    let topic = incoming.topic().map(|topic| format!("/{topic}")).unwrap_or_default();
    Place {
        key: format!("telegram:{chat}{topic}"),
        owner: if is_group { Some(format!("chat:{chat}")) } else { person.id.clone() },
        is_group,
        person,
    }
}

/// Returns the command of a message; `None` if it is none, or is for another bot of the group.
pub(crate) fn command(incoming: &Incoming, me: &Me) -> Option<Command> {
    let command = Command::parse(incoming.text()?, Some(&me.name))?;
    let is_foreign = incoming.is_group() && matches!(command, Command::Unknown(_));
    (!is_foreign || incoming.mentions(me)).then_some(command)
}

/// Returns the id in the session of a message of Telegram.
pub(crate) fn message_id(chat: i64, message: i32) -> MessageId {
    format!("telegram:{chat}:{message}").into()
}

/// Returns the message of the session. Each version of an edited message has an id of its own, which ends with the time of
/// the edit and the number of the update: a message may be edited twice in one second.
pub(crate) fn message(incoming: &Incoming, update: &str, text: String, author: &Author) -> Message {
    let id = message_id(incoming.chat.id, incoming.message_id);
    let id = match incoming.edit_date {
        Some(date) => format!("{id}:e{date}-{update}").into(),
        None => id,
    };
    let time = DateTime::from_timestamp(incoming.time(), 0).unwrap_or_else(Utc::now);
    Message::user(text).with_id(id).from(author).at(time)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn update(fields: Value) -> Value {
        let mut message = json!({
            "message_id": 5, "date": 1_700_000_000,
            "chat": {"id": -100, "type": "supergroup", "title": "Team"},
            "from": {"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L"},
        });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "update_id": 7, "message": message })
    }

    fn incoming(fields: Value) -> Incoming {
        serde_json::from_value::<Update>(update(fields)).unwrap().message.unwrap()
    }

    fn stored(update: &Value) -> InboxItem {
        let me = Me { id: 99, name: "talk_bot".to_owned() };
        item(7, &RawValue::from_string(update.to_string()).unwrap(), &me)
    }

    #[test]
    fn a_group_owns_what_is_said_in_it_and_remembers_who_said_it() {
        let group = place(&incoming(json!({"text": "hi"})));
        assert_eq!(group.owner.as_deref(), Some("chat:-100"));
        assert_eq!(group.person, Author::new("user:42").named("Ada L"));
        let topic = json!({"message_thread_id": 7, "is_topic_message": true});
        assert_eq!(place(&incoming(topic)).key, "telegram:-100/7");
        let private = place(&incoming(json!({"chat": {"id": 42, "type": "private"}})));
        assert_eq!(
            (private.key.as_str(), private.owner.as_deref()),
            ("telegram:42", Some("user:42"))
        );
    }

    #[test]
    fn each_version_of_a_message_has_an_id() {
        let stored = |fields| message(&incoming(fields), "7", "hi".to_owned(), &Author::default());
        assert_eq!(stored(json!({})).id.as_str(), "telegram:-100:5");
        let edited = stored(json!({"edit_date": 1_700_000_009}));
        assert_eq!(edited.id.as_str(), "telegram:-100:5:e1700000009-7");
        assert_eq!(edited.created_at.timestamp(), 1_700_000_009);
    }

    #[test]
    fn what_is_not_understood_is_stored_as_it_came() {
        for update in [
            json!({"update_id": 7, "brand_new_kind": {"x": 1.5}}),
            json!({"update_id": 7, "message": {"message_id": "not a number"}}),
            json!({"update_id": 7}),
        ] {
            let item = stored(&update);
            assert_eq!((item.key.as_str(), item.owner.as_deref()), (NO_CHAT, None));
            assert_eq!(item.body, update.to_string());
        }
    }

    #[test]
    fn the_answer_to_forget_is_not_erased() {
        let private = json!({"chat": {"id": 42, "type": "private"}, "text": "/forget yes"});
        assert_eq!(stored(&update(private)).owner, None);
        let private = json!({"chat": {"id": 42, "type": "private"}, "text": "forget it"});
        assert_eq!(stored(&update(private)).owner.as_deref(), Some("user:42"));
    }
}
