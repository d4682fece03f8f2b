//! The doorway to storage: what a session asks of whatever keeps its messages.
//!
//! [`SessionProvider`] is one session's storage. Thirteen verbs are required; everything else is
//! built on them, dearer, or answers [`Error::Unsupported`]. Each verb is atomic: all of it is done,
//! or nothing. The conformance suite in `talktree::testing` holds a provider to this contract.

mod commit;
pub(crate) mod context;
mod cursor;
pub(crate) mod sqlite;

use std::sync::Arc;

use crate::compaction::{Compaction, CompactionStatus, Seen};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{
    Appended, CountedAppend, Deleted, HeadEntry, ImportRecord, Imported, Label, RowStat,
    SessionDetails, SessionInfo, Updated, Upserted,
};
use crate::search::{Found, SearchRequest};
use crate::tokens::TokenCounter;
use crate::tree::Tree;
use crate::view::{ExpectedHead, Order, Parent, View};

pub use cursor::Cursor;
pub(crate) use cursor::VecCursor;

/// The storage of one session.
///
/// Shared by threads; calls may come at the same time. A session that was never written to reads as
/// empty. An id that is asked for and not there is [`Error::UnknownMessage`], except in
/// [`message`](Self::message).
///
/// ```
/// use talktree::{ExpectedHead, Message, Parent, SessionProvider, Store};
///
/// /// Whatever keeps the messages: SQLite here, or a storage of your own.
/// fn greet(provider: &dyn SessionProvider) -> talktree::Result<usize> {
///     provider.append(&Parent::Head, &ExpectedHead::Any, &[Message::user("hello")])?;
///     Ok(provider.history(None)?.len())
/// }
/// let chat = Store::open_in_memory()?.session("s")?;
/// assert_eq!(greet(&*chat.provider())?, 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub trait SessionProvider: Send + Sync {
    /// Returns the session's id.
    fn id(&self) -> &SessionId;

    /// Returns the message under this id, with `parent` its nearest living ancestor.
    fn message(&self, id: &MessageId) -> Result<Option<Message>>;

    /// Returns the path to `leaf` (`None`: the head), oldest first, as a model should see it:
    /// summaries in place of what they cover, hidden left out.
    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns the stored messages of the path to `leaf` (`None`: the head), oldest first.
    fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns the newest message; it has no children.
    fn latest_leaf(&self) -> Result<Option<Message>>;

    /// Returns the children of a message in order of creation, those of its deleted children in
    /// their place; the roots for `None`.
    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns how many messages the path to `leaf` (`None`: the head) holds, hidden included.
    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64>;

    /// Attaches messages one below the other, moves the head to the last new one, and answers for
    /// each. An id that stands already is left as it is, and the chain goes on from it.
    fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>>;

    /// Replaces the content of the message of the same id: role, parts, metadata, further fields.
    /// Its place, time and hidden flag stay.
    fn update(&self, message: &Message) -> Result<Updated>;

    /// Deletes messages; the tree keeps the places of those that have children.
    fn delete(&self, ids: &[MessageId]) -> Result<Deleted>;

    /// Deletes all messages, compactions, labels and the head's log.
    fn clear(&self) -> Result<()>;

    /// Lays a summary over the stretch `first ..= last`; it must compact whole items of the view at
    /// `last`. The id of a summary that stands for its first or last message will do as an end. One
    /// of an id that stands is left as it is.
    fn add_compaction(&self, compaction: &Compaction) -> Result<()>;

    /// Returns all compactions, in the order they were made.
    fn compactions(&self) -> Result<Vec<Compaction>>;

    /// Searches within the request's scope.
    fn search(&self, request: &SearchRequest) -> Result<Found>;

    // What follows is built on the verbs above or not supported unless it is overridden.

    /// Returns what is known of the session; `None` before its first write.
    fn info(&self) -> Result<Option<SessionInfo>> {
        Err(Error::Unsupported { what: "session info" })
    }

    /// Sets what is known of the session, which comes into being if it is not there.
    fn set_details(&self, details: &SessionDetails) -> Result<()> {
        let _ = details;
        Err(Error::Unsupported { what: "session details" })
    }

    /// Appends as [`append`](Self::append) does, and says what a model sees at the head since, if
    /// that is known without counting.
    fn append_counted(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<CountedAppend> {
        let appended = self.append(parent, expected, messages)?;
        Ok(CountedAppend { appended, visible_tokens: None })
    }

    /// Returns how many tokens a model sees on the path to the head; `None` if the storage keeps no
    /// count of its own.
    fn visible_tokens(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns this session's storage with its messages counted by another counter; `None` if it
    /// keeps no counts.
    fn counted_by(&self, counter: &Arc<dyn TokenCounter>) -> Option<Arc<dyn SessionProvider>> {
        let _ = counter;
        None
    }

    /// Opens a stream over a view.
    fn cursor(&self, view: &View, order: Order) -> Result<Box<dyn Cursor>> {
        let mut messages = match view.is_raw() {
            true => self.raw_history(view.leaf())?,
            false => self.history(view.leaf())?,
        };
        if order == Order::NewestFirst {
            messages.reverse();
        }
        Ok(Box::new(VecCursor::new(messages)))
    }

    /// Opens a stream over every stored message, all branches, in order of creation.
    fn all_messages(&self) -> Result<Box<dyn Cursor>> {
        Err(Error::Unsupported { what: "a stream over all branches" })
    }

    /// Returns the figures of each stored message of the path to `leaf`, oldest first.
    fn row_stats(&self, leaf: Option<&MessageId>) -> Result<Vec<RowStat>> {
        let stat = |message: &Message| -> Result<RowStat> {
            Ok(RowStat {
                id: message.id.clone(),
                role: message.role.clone(),
                bytes: crate::message::stored_bytes(message)?,
                tokens: message.tokens(),
            })
        };
        self.raw_history(leaf)?.iter().map(stat).collect()
    }

    /// Replaces the content of a message, or appends it at the head if no message of its id stands.
    fn upsert(&self, message: &Message) -> Result<Upserted> {
        // Two steps: whichever of two racing upserts appends second finds the id and updates.
        let appended =
            self.append(&Parent::Head, &ExpectedHead::Any, std::slice::from_ref(message))?;
        match appended.into_iter().next() {
            Some(appended) if appended.is_new => Ok(Upserted::Appended(appended)),
            _ => self.update(message).map(Upserted::Updated),
        }
    }

    /// Returns whether the path to `leaf` (`None`: the head) holds the message.
    fn is_on_path(&self, id: &MessageId, leaf: Option<&MessageId>) -> Result<bool> {
        if self.message(id)?.is_none() {
            return Err(Error::UnknownMessage { session: self.id().clone(), id: id.clone() });
        }
        Ok(self.raw_history(leaf)?.iter().any(|message| message.id == *id))
    }

    /// Returns the message the head stands on; if that one was deleted, its nearest living ancestor.
    ///
    /// A storage that keeps no head of its own appends at the newest message, which this then is.
    fn head(&self) -> Result<Option<MessageId>> {
        Ok(self.latest_leaf()?.map(|message| message.id))
    }

    /// Moves the head to a message, or before the first with `None`.
    fn checkout(&self, id: Option<&MessageId>) -> Result<()> {
        let _ = id;
        Err(Error::Unsupported { what: "checkout" })
    }

    /// Moves the head back to where it stood before its last move; `false` if there is no such place.
    fn undo_head(&self) -> Result<bool> {
        Err(Error::Unsupported { what: "undo_head" })
    }

    /// Takes back an undo; `false` if there is none.
    fn redo_head(&self) -> Result<bool> {
        Err(Error::Unsupported { what: "redo_head" })
    }

    /// Returns where the head has stood, oldest first.
    fn head_log(&self) -> Result<Vec<HeadEntry>> {
        Err(Error::Unsupported { what: "head_log" })
    }

    /// Points a label at a message, moving it if it stands; `None` takes it away.
    fn label(&self, name: &str, id: Option<&MessageId>) -> Result<()> {
        let _ = (name, id);
        Err(Error::Unsupported { what: "labels" })
    }

    /// Returns all labels, by name.
    fn labels(&self) -> Result<Vec<Label>> {
        Err(Error::Unsupported { what: "labels" })
    }

    /// Returns the messages without children, in order of creation.
    fn leaves(&self) -> Result<Vec<MessageId>> {
        Err(Error::Unsupported { what: "leaves" })
    }

    /// Returns the outline of the whole tree.
    fn tree(&self) -> Result<Tree> {
        Err(Error::Unsupported { what: "tree" })
    }

    /// Deletes a message and everything below it.
    fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        let _ = id;
        Err(Error::Unsupported { what: "delete_branch" })
    }

    /// Takes a summary off; what was under it shows again.
    fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        let _ = id;
        Err(Error::Unsupported { what: "remove_compaction" })
    }

    /// Returns the compaction of this id.
    fn compaction(&self, id: &CompactionId) -> Result<Option<Compaction>> {
        Ok(self.compactions()?.into_iter().find(|compaction| compaction.id == *id))
    }

    /// Returns a summary as it reads in a history; its parent is the nearest living message before
    /// what it covers.
    fn summary(&self, id: &CompactionId) -> Result<Option<Message>> {
        let Some(compaction) = self.compaction(id)? else { return Ok(None) };
        let first = self.expand_raw(id)?.into_iter().next();
        Ok(Some(compaction.to_message(first.and_then(|first| first.parent))))
    }

    /// Lays a summary over a stretch of the path to `leaf`, if that shows just what was seen of it;
    /// else [`Error::Stale`]. Where the head's path holds `leaf`, the view at the head counts; where
    /// `leaf` is gone, the head's if it holds the stretch, else that at the end of the stretch.
    /// Returns whether the summary shows at the head.
    fn commit_compaction(
        &self,
        compaction: &Compaction,
        leaf: &MessageId,
        seen: &Seen,
    ) -> Result<bool> {
        commit::by_ids(self, compaction, leaf, seen)
    }

    /// Returns what shows in place of a summary once it is taken off, oldest first: messages, and
    /// the summaries it took in.
    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let _ = id;
        Err(Error::Unsupported { what: "looking under a summary" })
    }

    /// Returns the stored messages under a summary, oldest first.
    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let unknown = || Error::UnknownCompaction { session: self.id().clone(), id: id.clone() };
        let compaction = self.compaction(id)?.ok_or_else(unknown)?;
        let path = self.raw_history(Some(&compaction.last))?;
        // Where the first message was deleted only the storage knows its place.
        let lost =
            || Error::UnknownMessage { session: self.id().clone(), id: compaction.first.clone() };
        let first = path.iter().position(|message| message.id == compaction.first);
        Ok(path.into_iter().skip(first.ok_or_else(lost)?).collect())
    }

    /// Returns what has become of a compaction, as seen from the head.
    fn compaction_status(&self, id: &CompactionId) -> Result<CompactionStatus> {
        let covered = self.expand_raw(id)?;
        let Some(last) = covered.last() else { return Ok(CompactionStatus::OffPath) };
        if !self.is_on_path(&last.id, None)? {
            return Ok(CompactionStatus::OffPath);
        }
        for item in self.history(None)? {
            let Some(shown) = CompactionId::from_message(&item.id) else { continue };
            if shown == *id {
                return Ok(CompactionStatus::Shown);
            }
            if self.expand_raw(&shown)?.iter().any(|message| message.id == last.id) {
                return Ok(CompactionStatus::Under { id: shown });
            }
        }
        Ok(CompactionStatus::OffPath)
    }

    /// Stores historical messages as they are, in one transaction, and answers for each.
    ///
    /// The head follows a message that is attached where it stands, and moves nowhere else.
    fn import(&self, records: &[ImportRecord]) -> Result<Vec<Imported>> {
        let _ = records;
        Err(Error::Unsupported { what: "import" })
    }

    /// Returns whether a record of this name was imported.
    fn is_imported(&self, record: &str) -> Result<bool> {
        let _ = record;
        Err(Error::Unsupported { what: "import" })
    }

    /// Makes a session of its own from the path to `at`: messages, compactions and labels on it.
    fn fork(
        &self,
        at: &MessageId,
        id: &SessionId,
        details: &SessionDetails,
    ) -> Result<Arc<dyn SessionProvider>> {
        let _ = (at, id, details);
        Err(Error::Unsupported { what: "fork" })
    }

    /// Ends this session with a reason, and makes the one it goes on in, opened by one message.
    fn split(
        &self,
        id: &SessionId,
        opening: &Message,
        end_reason: &str,
    ) -> Result<Arc<dyn SessionProvider>> {
        let _ = (id, opening, end_reason);
        Err(Error::Unsupported { what: "going on in another session" })
    }
}
