//! The note of an item: how far its handling came, so that it continues there after a kill.

use serde::{Deserialize, Serialize};
use talktree::{Inbox, InboxItem, MessageId, SessionId};

use super::turn::Failure;
use crate::{Done, Step};

/// Where a message goes in its session. Decided once, before it is stored: afterwards the head is another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Target {
    /// After the newest message.
    Head,
    /// After the newest message, with a quote of one that is not in the session.
    Quoting,
    /// After this message: a branch.
    After(MessageId),
    /// Beside this message, whose place it takes: a branch.
    Instead(MessageId),
    /// Into this message.
    Into(MessageId),
}

/// How far the handling of an item came. What it names was decided or done, and is not decided again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Note {
    /// In how many starts of the program the handling began.
    pub(crate) tries: u32,
    /// The start of the program that handles it: its time, in microseconds.
    pub(crate) run: i64,
    /// The session in which it is handled, even if the chat has another one by now.
    pub(crate) session: Option<SessionId>,
    /// Where the message goes.
    pub(crate) target: Option<Target>,
    /// What the command does.
    pub(crate) step: Option<Step>,
    /// The outcome of the command, without its file. The command is not run again.
    pub(crate) ran: Option<Done>,
    /// The id of the reply in the session.
    pub(crate) answer: Option<MessageId>,
    /// The messages of Telegram that show the reply, in order.
    pub(crate) parts: Vec<i32>,
    /// Whether the file of the command was sent, or may have been.
    pub(crate) sent_file: bool,
}

impl Note {
    /// Returns the note of an item; an empty one if it has none that this version can read.
    pub(crate) fn of(item: &InboxItem) -> Self {
        let note = item.note.as_deref().map(serde_json::from_str);
        match note {
            Some(Ok(note)) => note,
            Some(Err(error)) => {
                tracing::warn!(update = item.id, %error, "a note cannot be read");
                Self::default()
            }
            None => Self::default(),
        }
    }

    /// Stores the note; [`Failure::Erased`] if the item was erased meanwhile, with its owner: no restart continues it.
    pub(crate) fn store(&self, inbox: &Inbox, item: &str) -> Result<(), Failure> {
        // Cannot fail: a note has only texts and numbers.
        let note = serde_json::to_string(self).unwrap_or_default();
        if inbox.note(item, &note)? { Ok(()) } else { Err(Failure::Erased) }
    }
}

#[cfg(test)]
mod tests {
    use talktree::{InboxItem, Store};

    use super::*;

    fn item(note: Option<&str>) -> (Inbox, InboxItem) {
        let inbox = Store::open_in_memory().unwrap().inbox("telegram");
        inbox.receive(&[InboxItem::new("1", "k", "{}")], None).unwrap();
        if let Some(note) = note {
            inbox.note("1", note).unwrap();
        }
        let item = inbox.next("k").unwrap().unwrap();
        (inbox, item)
    }

    #[test]
    fn a_note_is_read_as_it_was_stored() {
        let note = Note {
            tries: 2,
            run: 1,
            session: Some("s".into()),
            target: Some(Target::After("telegram:7:1".into())),
            step: Some(Step::End("s".into())),
            ran: Some(Done { text: "Done.".to_owned(), file: None, then_reply: true }),
            answer: Some("telegram:7:2".into()),
            parts: vec![2, 3],
            sent_file: true,
        };
        let (inbox, _) = item(None);
        note.store(&inbox, "1").unwrap();
        assert_eq!(Note::of(&inbox.next("k").unwrap().unwrap()), note);
    }

    #[test]
    fn a_note_that_cannot_be_read_is_an_empty_one() {
        for text in ["", "{", r#"{"parts": "x"}"#] {
            assert_eq!(Note::of(&item(Some(text)).1), Note::default(), "{text}");
        }
        let (_, item) = item(Some(r#"{"tries": 3, "of_another_version": 1}"#));
        assert_eq!(Note::of(&item).tries, 3);
    }

    #[test]
    fn an_item_that_was_erased_has_no_note() {
        let (inbox, _) = item(None);
        inbox.done("1").unwrap();
        assert!(matches!(Note::default().store(&inbox, "1"), Err(Failure::Erased)));
        assert_eq!(inbox.next("k").unwrap(), None);
    }
}
