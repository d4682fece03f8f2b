//! Hashes that compare the content of sessions and stores.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::jsonl::session_record;
use super::records::{Record, each_record};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::canonical;
use crate::outcome::SessionInfo;
use crate::session::Session;
use crate::store::Store;

/// Returns a hash of the content of every session of a store that is not in the trash.
///
/// Two stores with equal content have equal hashes: ids, trees, messages, heads, labels, tags, compactions in order with their
/// places, elisions, and session details, with JSON compared by value. Stores with equal hashes show the same history on
/// every path. Addresses, the log of the head, the time of the last write and the items of inboxes, which are work that
/// waits, are not included. So an export that is imported into another store keeps the hash. It is the hash of a snapshot:
/// what others write meanwhile is not in it.
///
/// ```
/// use std::io::Cursor;
/// use talktree::{Message, Store, export::content_hash};
/// use talktree_import::{ImportOptions, import_reader};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("hi"))?;
/// let mut file = Vec::new();
/// store.export_jsonl(&mut file)?;
///
/// let copy = Store::open_in_memory()?;
/// import_reader(&copy, "export.jsonl", Cursor::new(file), &ImportOptions::default(), |_| {})?;
/// assert_eq!(content_hash(&copy)?, content_hash(&store)?);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::Interrupted`], and those of every read.
pub fn content_hash(store: &Store) -> Result<String> {
    let store = store.snapshot()?;
    let mut sessions: Vec<SessionId> =
        store.sessions()?.into_iter().map(|session| session.id).collect();
    sessions.sort();
    let mut hash = Uuid::nil();
    for id in sessions {
        hash = Uuid::new_v5(&hash, hash_of(&store.session(id)?)?.as_bytes());
    }
    Ok(hash.to_string())
}

/// Returns a hash of the content of one session.
///
/// It is the hash of a snapshot, as that of a store.
///
/// ```
/// use talktree::{Message, Store, export::session_hash};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// let before = session_hash(&chat)?;
/// chat.append(Message::user("hi"))?;
/// assert_ne!(session_hash(&chat)?, before);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As [`content_hash`].
pub fn session_hash(session: &Session) -> Result<String> {
    hash_of(&session.snapshot()?)
}

fn hash_of(session: &Session) -> Result<String> {
    let mut hash = Uuid::nil();
    let mut add = |value: &dyn erased::Json| -> Result<()> {
        hash = Uuid::new_v5(&hash, canonical(&value.text()?).as_bytes());
        Ok(())
    };
    // The time of the last write is not content: a change that is undone leaves the same content and a later time.
    let info = session.info()?.map(|info| SessionInfo { updated_at: info.created_at, ..info });
    add(&info.as_ref().map(session_record))?;
    each_record(session, &mut |record| match record {
        Record::Tombstone { number, parent, below, .. } => {
            add(&json!(["tombstone", number, parent, below]))
        }
        Record::Message { message, below } => {
            add(message)?;
            below.map_or(Ok(()), |below| add(&json!(["below", below])))
        }
        Record::Compaction { compaction, first, last } => add(&json!([
            "compaction",
            compaction.id,
            first.map_or_else(|| json!(compaction.first), |number| json!(number)),
            last.map_or_else(|| json!(compaction.last), |number| json!(number)),
            compaction.count,
            compaction.summary,
            compaction.details.as_ref().map(|details| canonical(details.as_str())),
            compaction.created_at,
        ])),
        Record::Elision(elision) => add(&json!(["elision", elision])),
        Record::Label(label) => add(&json!(["label", label.name, label.id])),
        Record::Tag(tag) => add(&json!(["tag", tag.message, tag.tag])),
        Record::Head(head) => add(&json!(["head", head])),
    })?;
    Ok(hash.to_string())
}

mod erased {
    use super::{Error, Result, Serialize};

    /// A value that serializes to JSON; object safe.
    pub(super) trait Json {
        fn text(&self) -> Result<String>;
    }

    impl<T: Serialize> Json for T {
        fn text(&self) -> Result<String> {
            serde_json::to_string(self).map_err(|source| Error::Json { what: "content", source })
        }
    }
}
