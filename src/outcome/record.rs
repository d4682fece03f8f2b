//! What a session consists of, record by record, for its way into a file and back.

use serde::Serialize;

use super::{Label, MessageTag, SessionDetails};
use crate::compaction::Compaction;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;

/// A record of a session: [`Session::records`](crate::Session::records) reads them, [`Store::import`](crate::Store::import)
/// stores them.
///
/// The first record is that of the session itself. Parents come before their children, and what refers to messages follows
/// them. A compaction may start or end at a deleted message, and what a path shows depends on that place. Such a message is a
/// record, too: a *tombstone*, which has a number, from 1. The others name it by that.
///
/// ```
/// use talktree::{Message, Record, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append(Message::user("hello").with_id("m1"))?;
/// let mut records = Vec::new();
/// chat.records(|record| {
///     records.push(record);
///     Ok(())
/// })?;
/// assert!(matches!(&records[1], Record::Message { message, .. } if message.text() == "hello"));
/// assert_eq!(records[2], Record::Head { id: Some("m1".into()) });
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Record {
    /// The session.
    Session {
        /// Its id.
        id: SessionId,
        /// Its details, with its times.
        #[serde(flatten)]
        details: SessionDetails,
    },
    /// A message; its parent is the nearest one above that is not deleted.
    Message {
        /// The tombstone between it and its parent.
        #[serde(skip_serializing_if = "Option::is_none")]
        below: Option<u64>,
        /// The message.
        message: Message,
        /// The name under which an import remembers it; `None`: its id.
        #[serde(skip)]
        name: Option<String>,
    },
    /// A deleted message at which a compaction starts or ends.
    Tombstone {
        /// Its number.
        number: u64,
        /// The nearest message above.
        parent: Option<MessageId>,
        /// The tombstone between it and that message.
        #[serde(skip_serializing_if = "Option::is_none")]
        below: Option<u64>,
        /// The compactions that start here.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        starts: Vec<CompactionId>,
        /// The compactions that end here.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        ends: Vec<CompactionId>,
    },
    /// A compaction.
    Compaction {
        /// The compaction.
        #[serde(flatten)]
        compaction: Compaction,
        /// The tombstone that it starts at.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_tombstone: Option<u64>,
        /// The tombstone that it ends at.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_tombstone: Option<u64>,
    },
    /// A marker that replaces the result of a tool call when a history is read.
    Elision {
        /// The message with the result.
        message: MessageId,
        /// The id of the call.
        call: String,
        /// The marker.
        marker: String,
    },
    /// A label.
    Label(Label),
    /// A tag of a message.
    Tag(MessageTag),
    /// The head.
    Head {
        /// The message or summary that the head is at; `None`: before the first message.
        id: Option<MessageId>,
    },
    /// A name that an import remembers, for [`Session::is_imported`](crate::Session::is_imported). No session tells it.
    Imported {
        /// The name.
        name: String,
    },
}
