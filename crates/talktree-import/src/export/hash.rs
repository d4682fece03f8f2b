//! Hashes that compare the content of sessions and stores.

use talktree::{Error, Json, Record, Result, Session, SessionId, Store};
use uuid::Uuid;

/// Returns a hash of the content of every session of a store that is not in the trash.
///
/// Two stores with equal content have equal hashes: ids, trees, messages, heads, labels, tags, compactions in order with their
/// places, elisions, and session details, with JSON compared by value. Stores with equal hashes show the same history on
/// every path. Addresses, the log of the head, the time of the last write, the token counts of compactions, and the items of
/// inboxes, which are work that waits, are not included. So an export that is imported into another store keeps the hash. It
/// is the hash of a snapshot: what others write meanwhile is not in it.
///
/// ```
/// use std::io::Cursor;
/// use talktree::{Message, Store};
/// use talktree_import::export::{content_hash, export_jsonl};
/// use talktree_import::{ImportOptions, import_reader};
///
/// let store = Store::open_in_memory()?;
/// store.session("s")?.append(Message::user("hi"))?;
/// let mut file = Vec::new();
/// export_jsonl(&store, &mut file)?;
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
    store.export(&mut std::io::sink(), |store, _| {
        let mut sessions: Vec<SessionId> =
            store.sessions()?.into_iter().map(|session| session.id).collect();
        sessions.sort();
        let mut hash = Uuid::nil();
        for id in sessions {
            hash = Uuid::new_v5(&hash, hash_of(&store.session(id)?)?.as_bytes());
        }
        Ok(hash.to_string())
    })
}

/// Returns a hash of the content of one session, as [`content_hash`] does; one that was never written to has one, too.
///
/// ```
/// use talktree::{Message, Store};
/// use talktree_import::export::session_hash;
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
    session.export(&mut std::io::sink(), |session, _| hash_of(session))
}

/// Returns the hash of a session that is of a snapshot, or that nobody writes.
pub(crate) fn hash_of(session: &Session) -> Result<String> {
    let mut hash = Uuid::nil();
    let hashed = session.records(|mut record| {
        match &mut record {
            // The time of the last write is not content: a change that is undone leaves the same content and a later time.
            Record::Session { details, .. } => details.updated_at = None,
            Record::Compaction { compaction, first_tombstone, last_tombstone } => {
                (compaction.tokens_before, compaction.tokens_after) = (0, 0);
                compaction.nested.clear();
                // Where it ends then is known by the tombstone.
                if first_tombstone.is_some() {
                    compaction.first = "".into();
                }
                if last_tombstone.is_some() {
                    compaction.last = "".into();
                }
            }
            _ => {}
        }
        let text = serde_json::to_string(&record)
            .map_err(|source| Error::Json { what: "content", source })?;
        hash = Uuid::new_v5(&hash, Json::parse(&text)?.canonical().as_bytes());
        Ok(())
    });
    match hashed {
        Ok(()) | Err(Error::UnknownSession { .. }) => Ok(hash.to_string()),
        Err(error) => Err(error),
    }
}
