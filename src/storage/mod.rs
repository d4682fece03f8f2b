//! The doorway to storage: what a session asks of its backend.
//!
//! [`SessionProvider`] is one session's storage. Thirteen verbs are required. The others have a slower default built
//! on those, or return [`Error::Unsupported`]. Each verb is atomic: all of it is done, or nothing. The conformance
//! suite in `talktree::testing` checks this contract.

mod commit;
pub(crate) mod context;
mod cursor;
pub(crate) mod owner_data;
pub(crate) mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use crate::compaction::{
    Compaction, CompactionStatus, Place, PlacedCompaction, PlacedCompactions, Seen,
};
use crate::erasure::Erased;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{
    Appended, CountedAppend, Deleted, HeadEntry, ImportRecord, Imported, Label, MessageTag,
    RowStat, SessionDetails, SessionInfo, Updated, Upserted,
};
use crate::search::{Found, HITS_PER_SESSION, SearchRequest, SessionHit, SessionsFound};
use crate::tokens::TokenCounter;
use crate::tree::Tree;
use crate::usage::{Usage, UsageTotal};
use crate::view::{ExpectedHead, Order, Parent, View};

pub use cursor::Cursor;
pub(crate) use cursor::VecCursor;

/// How long a write waits for other writers, unless a store or a storage says otherwise.
pub(crate) const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The storage of one session.
///
/// Threads share it and may call it at the same time. A session that was never written to reads as empty. An unknown
/// id is [`Error::UnknownMessage`], except in [`message`](Self::message). If sessions can be removed, a provider that has
/// read or written its session reads as empty after the removal, and its writes are [`Error::SessionRemoved`]; a provider
/// that is made for the same id then begins a new session.
///
/// Where an id names a place (a parent, a leaf, a fork point, the target of a checkout or a label), the id of a summary
/// means the last message of its compaction, even if that message was deleted: what is appended there follows the
/// summary. Where an id names content ([`update`](Self::update), [`delete`](Self::delete),
/// [`delete_branch`](Self::delete_branch), [`Parent::SiblingOf`]), it is unknown.
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

    /// Returns the message with this id; its `parent` is the nearest ancestor that is not deleted.
    fn message(&self, id: &MessageId) -> Result<Option<Message>>;

    /// Returns the path to `leaf` (`None`: the head), oldest first, as a model should see it: each compacted range is
    /// its summary, hidden messages are left out.
    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns the stored messages of the path to `leaf` (`None`: the head), oldest first.
    fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns the newest message, which never has children.
    fn latest_leaf(&self) -> Result<Option<Message>>;

    /// Returns the children of a message, or the roots for `None`, in order of creation. A deleted child is replaced
    /// by its own children.
    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>>;

    /// Returns how many messages are on the path to `leaf` (`None`: the head), hidden ones included.
    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64>;

    /// Appends messages, each the child of the one before, and moves the head to the last new one. Returns one result
    /// per message. A known id is a no-op, and the chain continues from it.
    fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>>;

    /// Replaces the content of the message with this id: role, parts, metadata, extra fields. Its parent, time and
    /// hidden flag do not change.
    fn update(&self, message: &Message) -> Result<Updated>;

    /// Deletes messages; a message with children becomes a tombstone, so the tree keeps its shape.
    fn delete(&self, ids: &[MessageId]) -> Result<Deleted>;

    /// Deletes all messages, compactions, labels and the head's log.
    fn clear(&self) -> Result<()>;

    /// Adds a summary that replaces the range `first ..= last`. The range must be made of whole items of the view at
    /// `last`; as an end, a summary's id means its first or last message. A known compaction id is a no-op. Returns the status as
    /// seen from the head.
    fn add_compaction(&self, compaction: &Compaction) -> Result<CompactionStatus>;

    /// Returns all compactions, oldest first.
    fn compactions(&self) -> Result<Vec<Compaction>>;

    /// Searches within the request's scope.
    fn search(&self, request: &SearchRequest) -> Result<Found>;

    // The verbs below have a default built on those above, or are unsupported unless overridden.

    /// Returns what tells this session from every other one: of another id, of another storage, and of one of this id
    /// that was removed before. Two providers of one session return the same. A plan is committed only where it was
    /// made.
    ///
    /// The default is the id: enough if there is one storage and nothing is removed from it.
    fn identity(&self) -> Result<String> {
        Ok(self.id().to_string())
    }

    /// Returns the details of the session; `None` before its first write.
    fn info(&self) -> Result<Option<SessionInfo>> {
        Err(Error::Unsupported { what: "session info" })
    }

    /// Sets details of the session, creating it if it does not exist.
    fn set_details(&self, details: &SessionDetails) -> Result<()> {
        let _ = details;
        Err(Error::Unsupported { what: "session details" })
    }

    /// Returns at most `limit` of the messages that [`branches`](Self::branches) returns: the first ones, or those created
    /// after `after`, which is a message of the session.
    fn branches_page(
        &self,
        id: Option<&MessageId>,
        after: Option<&MessageId>,
        limit: usize,
    ) -> Result<Vec<Message>> {
        let branches = self.branches(id)?;
        let start = match after {
            None => 0,
            Some(after) => match branches.iter().position(|branch| branch.id == *after) {
                Some(at) => at + 1,
                None => {
                    let (session, id) = (self.id().clone(), after.clone());
                    return Err(Error::UnknownMessage { session, id });
                }
            },
        };
        Ok(branches.into_iter().skip(start).take(limit).collect())
    }

    /// Appends as [`append`](Self::append) does, and returns how many tokens a model then sees at the head, if that
    /// is known without counting.
    fn append_counted(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<CountedAppend> {
        let appended = self.append(parent, expected, messages)?;
        Ok(CountedAppend { appended, visible_tokens: None })
    }

    /// Appends the summary of a branch as [`append_counted`](Self::append_counted) does, if the messages and summaries that
    /// it was made from still read as they were seen; otherwise [`Error::Stale`].
    ///
    /// The default compares first and appends then, so another writer may come between.
    fn append_summary(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        summary: &Message,
        seen: &Seen,
    ) -> Result<CountedAppend> {
        let view = match expected {
            ExpectedHead::At(Some(leaf)) => self.history(Some(leaf))?,
            _ => self.history(None)?,
        };
        // A summary may have replaced an item in the view since.
        seen.check_each(|id| {
            match (view.iter().find(|item| item.id == *id), CompactionId::from_message(id)) {
                (Some(item), _) => Ok::<_, Error>(Some(item.clone())),
                (None, Some(summary)) => self.summary(&summary),
                (None, None) => self.message(id),
            }
        })?;
        self.append_counted(parent, expected, std::slice::from_ref(summary))
    }

    /// Returns how many tokens a model sees on the path to the head; `None` if the storage keeps no count.
    fn visible_tokens(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns this session's storage with another token counter; `None` if the storage keeps no counts.
    fn counted_by(&self, counter: &Arc<dyn TokenCounter>) -> Option<Arc<dyn SessionProvider>> {
        let _ = counter;
        None
    }

    /// Searches within the request's scope for whole sessions: this one, if it has a hit.
    fn search_sessions(&self, request: &SearchRequest) -> Result<SessionsFound> {
        let best = SearchRequest { limit: HITS_PER_SESSION, offset: 0, ..request.clone() };
        let Found { hits, matched, steps, notices, is_partial } = self.search(&best)?;
        let mut sessions = Vec::new();
        if let Some(score) = hits.first().map(|hit| hit.score) {
            let name = match self.info() {
                Ok(info) => info.and_then(|info| info.name),
                Err(Error::Unsupported { .. }) => None,
                Err(error) => return Err(error),
            };
            sessions.push(SessionHit { session: self.id().clone(), name, score, hits });
        }
        sessions = sessions.into_iter().skip(request.offset).take(request.limit).collect();
        Ok(SessionsFound { sessions, matched, steps, notices, is_partial })
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

    /// Opens a stream over a view, newest first, that knows its [total](Cursor::total) and its first `count` messages.
    ///
    /// Both are of one state, the one in which it was opened.
    fn newest(&self, view: &View, count: usize) -> Result<Box<dyn Cursor>> {
        let _ = count;
        self.cursor(view, Order::NewestFirst)
    }

    /// Opens a stream over every stored message of all branches, in order of creation.
    fn all_messages(&self) -> Result<Box<dyn Cursor>> {
        Err(Error::Unsupported { what: "a stream over all branches" })
    }

    /// Returns size and tokens of each stored message on the path to `leaf`, oldest first.
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

    /// Replaces the content of a message, or appends the message at the head if its id is unknown.
    fn upsert(&self, message: &Message) -> Result<Upserted> {
        // Two steps are enough: of two racing upserts the later append finds the id and updates.
        let appended =
            self.append(&Parent::Head, &ExpectedHead::Any, std::slice::from_ref(message))?;
        match appended.into_iter().next() {
            Some(appended) if appended.is_new => Ok(Upserted::Appended(appended)),
            _ => self.update(message).map(Upserted::Updated),
        }
    }

    /// Returns the [unfinished](Message::unfinished) messages, in order of creation.
    fn unfinished(&self) -> Result<Vec<Message>> {
        Err(Error::Unsupported { what: "unfinished messages" })
    }

    /// Replaces the content of an unfinished message, in one transaction; it is shown from then on, unless the new content is
    /// unfinished, too. Without content the message is deleted.
    ///
    /// # Errors
    /// [`Error::Finished`] if the message is not unfinished.
    fn settle(&self, id: &MessageId, content: Option<&Message>) -> Result<()> {
        let _ = (id, content);
        Err(Error::Unsupported { what: "unfinished messages" })
    }

    /// Returns whether a message is on the path to `leaf` (`None`: the head).
    fn is_on_path(&self, id: &MessageId, leaf: Option<&MessageId>) -> Result<bool> {
        let unknown = || Error::UnknownMessage { session: self.id().clone(), id: id.clone() };
        let message = match CompactionId::from_message(id) {
            None => self.message(id)?,
            Some(summary) => match self.expand_raw(&summary) {
                Err(Error::UnknownCompaction { .. }) => None,
                covered => covered?.pop(),
            },
        };
        let message = message.ok_or_else(unknown)?;
        Ok(self.raw_history(leaf)?.iter().any(|on_path| on_path.id == message.id))
    }

    /// Returns the head. If that message was deleted, it is the item that the history ends with: the nearest ancestor
    /// that was not deleted, or the summary that covers it.
    ///
    /// The default is for a storage without a head of its own, which appends at the newest message.
    fn head(&self) -> Result<Option<MessageId>> {
        Ok(self.latest_leaf()?.map(|message| message.id))
    }

    /// Moves the head to a message; `None` is the place before the first message.
    fn checkout(&self, id: Option<&MessageId>) -> Result<()> {
        let _ = id;
        Err(Error::Unsupported { what: "checkout" })
    }

    /// Moves the head to a message if it is where the caller saw it, else answers [`Error::HeadMoved`].
    ///
    /// The default compares first and moves then, so another writer may come between.
    fn checkout_if_head(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
        if let ExpectedHead::At(expected) = expected {
            let found = self.head()?;
            if found != *expected {
                return Err(Error::HeadMoved { expected: expected.clone(), found });
            }
        }
        self.checkout(id)
    }

    /// Moves the head back to its place before the last move; `false` if there is none.
    fn undo_head(&self) -> Result<bool> {
        Err(Error::Unsupported { what: "undo_head" })
    }

    /// Reverts an undo; `false` if there is none.
    fn redo_head(&self) -> Result<bool> {
        Err(Error::Unsupported { what: "redo_head" })
    }

    /// Returns the places of the head, oldest first.
    fn head_log(&self) -> Result<Vec<HeadEntry>> {
        Err(Error::Unsupported { what: "head_log" })
    }

    /// Sets a label on a message, moving it if it exists; `None` removes it.
    fn label(&self, name: &str, id: Option<&MessageId>) -> Result<()> {
        let _ = (name, id);
        Err(Error::Unsupported { what: "labels" })
    }

    /// Returns all labels, sorted by name.
    fn labels(&self) -> Result<Vec<Label>> {
        Err(Error::Unsupported { what: "labels" })
    }

    /// Returns the message that a label names.
    fn labelled(&self, name: &str) -> Result<Option<MessageId>> {
        let labels = self.labels()?;
        Ok(labels.into_iter().find(|label| label.name == name).map(|label| label.id))
    }

    /// Adds a tag to a message; one that it has is a no-op.
    fn tag(&self, id: &MessageId, tag: &str) -> Result<()> {
        let _ = (id, tag);
        Err(Error::Unsupported { what: "tags of messages" })
    }

    /// Removes a tag of a message; one that it does not have is a no-op.
    fn untag(&self, id: &MessageId, tag: &str) -> Result<()> {
        let _ = (id, tag);
        Err(Error::Unsupported { what: "tags of messages" })
    }

    /// Returns the tags of a message, or of all messages in the order in which they were appended; those of one message are
    /// sorted.
    fn tags(&self, id: Option<&MessageId>) -> Result<Vec<MessageTag>> {
        let _ = id;
        Ok(Vec::new())
    }

    /// Returns the messages without children, in order of creation.
    fn leaves(&self) -> Result<Vec<MessageId>> {
        Err(Error::Unsupported { what: "leaves" })
    }

    /// Returns the outline of the whole tree.
    fn tree(&self) -> Result<Tree> {
        Err(Error::Unsupported { what: "tree" })
    }

    /// Deletes a message and all its descendants.
    fn delete_branch(&self, id: &MessageId) -> Result<Deleted> {
        let _ = id;
        Err(Error::Unsupported { what: "delete_branch" })
    }

    /// Erases messages: no byte of them is left in the storage, as [`Store::erase`](crate::Store::erase) describes.
    fn erase(&self, ids: &[MessageId]) -> Result<Erased> {
        let _ = ids;
        Err(Error::Unsupported { what: "erasure" })
    }

    /// Removes a compaction; the items it replaced are visible again.
    fn remove_compaction(&self, id: &CompactionId) -> Result<()> {
        let _ = id;
        Err(Error::Unsupported { what: "remove_compaction" })
    }

    /// Returns the compaction with this id.
    fn compaction(&self, id: &CompactionId) -> Result<Option<Compaction>> {
        Ok(self.compactions()?.into_iter().find(|compaction| compaction.id == *id))
    }

    /// Returns the compactions with the places where they start and end. A copy of the session needs these places.
    ///
    /// The default is for a storage that cannot tell: an end that was deleted is the nearest message of the range.
    fn placed_compactions(&self) -> Result<PlacedCompactions> {
        let mut placed = PlacedCompactions::default();
        for compaction in self.compactions()? {
            let covered = self.expand_raw(&compaction.id)?;
            let (Some(first), Some(last)) = (covered.first(), covered.last()) else { continue };
            let (first, last) = (Place::Message(first.id.clone()), Place::Message(last.id.clone()));
            placed.compactions.push(PlacedCompaction { compaction, first, last });
        }
        Ok(placed)
    }

    /// Adds a compaction as it was in another storage, with its figures, over the range between two places, each named as
    /// an end of [`add_compaction`](Self::add_compaction). Unlike there, a shown summary may cover one end: a later one
    /// that was removed since hid it when the compaction was added.
    ///
    /// The default adds it as a new one.
    fn restore_compaction(
        &self,
        compaction: &Compaction,
        first: &MessageId,
        last: &MessageId,
    ) -> Result<()> {
        let (first, last) = (first.clone(), last.clone());
        self.add_compaction(&Compaction { first, last, ..compaction.clone() }).map(drop)
    }

    /// Returns a summary as it reads in a history. Its parent is the nearest message before its range that is not
    /// deleted.
    fn summary(&self, id: &CompactionId) -> Result<Option<Message>> {
        let Some(compaction) = self.compaction(id)? else { return Ok(None) };
        let first = self.expand_raw(id)?.into_iter().next();
        Ok(Some(compaction.to_message(first.and_then(|first| first.parent))))
    }

    /// Adds a compaction if the view of its range is still what was seen; otherwise [`Error::Stale`]. The view is
    /// that at the head if the head's path contains `leaf`. If `leaf` was deleted, it is the head's if that contains
    /// the range, and otherwise the one at the range's end. Returns whether the summary is visible at the head.
    fn commit_compaction(
        &self,
        compaction: &Compaction,
        leaf: &MessageId,
        seen: &Seen,
    ) -> Result<bool> {
        commit::by_ids(self, compaction, leaf, seen)
    }

    /// Returns the items that a summary replaces, oldest first: messages and nested summaries.
    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let _ = id;
        Err(Error::Unsupported { what: "expanding a summary" })
    }

    /// Returns the stored messages in the range of a compaction, oldest first.
    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let unknown = || Error::UnknownCompaction { session: self.id().clone(), id: id.clone() };
        let compaction = self.compaction(id)?.ok_or_else(unknown)?;
        let path = self.raw_history(Some(&compaction.last))?;
        // If the first message was deleted, only the storage knows its place.
        let lost =
            || Error::UnknownMessage { session: self.id().clone(), id: compaction.first.clone() };
        let first = path.iter().position(|message| message.id == compaction.first);
        Ok(path.into_iter().skip(first.ok_or_else(lost)?).collect())
    }

    /// Returns the status of a compaction as seen from the head.
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

    /// Adds usage of a message, replacing what was known, or of none.
    fn add_usage(&self, message: Option<&MessageId>, usage: &Usage) -> Result<()> {
        let _ = (message, usage);
        Err(Error::Unsupported { what: "usage" })
    }

    /// Returns what all answers of the session took, deleted ones and those of no message included, and those that a fork
    /// copied left out.
    fn usage(&self) -> Result<UsageTotal> {
        Err(Error::Unsupported { what: "usage" })
    }

    /// Returns what the answers on the path to `leaf` (`None`: the head) took that were not deleted.
    fn path_usage(&self, leaf: Option<&MessageId>) -> Result<UsageTotal> {
        let _ = leaf;
        Err(Error::Unsupported { what: "usage" })
    }

    /// Stores historical messages as they are, in one transaction; returns one result per record.
    ///
    /// The head moves only to a message whose parent is the head.
    fn import(&self, records: &[ImportRecord]) -> Result<Vec<Imported>> {
        let _ = records;
        Err(Error::Unsupported { what: "import" })
    }

    /// Returns whether a record was imported.
    fn is_imported(&self, record: &str) -> Result<bool> {
        let _ = record;
        Err(Error::Unsupported { what: "import" })
    }

    /// Creates a new session from the path to `at`, with its messages, compactions and labels.
    fn fork(
        &self,
        at: &MessageId,
        id: &SessionId,
        details: &SessionDetails,
    ) -> Result<Arc<dyn SessionProvider>> {
        let _ = (at, id, details);
        Err(Error::Unsupported { what: "fork" })
    }

    /// Ends this session with a reason and creates the one that continues it, starting with one message.
    ///
    /// In this order: [`Error::SessionExists`] if the id of the new one is taken; [`Error::InvalidValue`] if this session is
    /// ended with this reason, so that it has one continuation, whoever splits it at the same time.
    fn split(
        &self,
        id: &SessionId,
        opening: &Message,
        end_reason: &str,
    ) -> Result<Arc<dyn SessionProvider>> {
        let _ = (id, opening, end_reason);
        Err(Error::Unsupported { what: "splitting a session" })
    }
}
