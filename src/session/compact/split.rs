//! Splitting: a session ends, and its child begins with the summary.

use serde_json::json;

use super::Session;
use crate::compaction::{Summary, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::event::Change;
use crate::id::SessionId;
use crate::message::Message;

/// The end reason of a session that was split.
const END_REASON: &str = "compaction";

impl Session {
    /// Ends this session with the reason `compaction`, and returns its child, which begins with the
    /// summary as one `assistant` message. One transaction.
    ///
    /// The child has the name, model and source of this session, records it as its parent, and gets
    /// copies of its own context blocks. This session can still be read, searched and appended to,
    /// but not split again: of several threads or processes that split it at once, one succeeds.
    /// After [`SessionChange::Reopen`](crate::SessionChange::Reopen) it can be split again.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("telegram:4711")?;
    /// let last = chat.append(Message::user("Until tomorrow!"))?.id;
    ///
    /// let next = chat.compact_and_split("They said goodbye.")?;
    /// assert_eq!(next.history()?[0].text(), "They said goodbye.");
    /// let info = next.info()?.unwrap();
    /// assert_eq!((info.parent_session, info.fork_point), (Some("telegram:4711".into()), Some(last)));
    /// assert_eq!(chat.info()?.unwrap().end_reason.as_deref(), Some("compaction"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SummaryRefused`] if the summary is blank; [`Error::UnknownSession`] if this
    /// session was never written to; [`Error::InvalidValue`] if it was split before; as every write.
    pub fn compact_and_split(&self, summary: impl Into<Summary>) -> Result<Self> {
        self.compact_and_split_as(&SessionId::new(), summary)
    }

    /// Splits as [`compact_and_split`](Self::compact_and_split) does; the child has the given id.
    ///
    /// ```
    /// use talktree::{Error, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s/1")?;
    /// chat.append(Message::user("hello"))?;
    /// chat.compact_and_split_as(&"s/2".into(), "They greeted.")?;
    /// let again = chat.compact_and_split_as(&"s/2".into(), "They greeted.");
    /// assert!(matches!(again, Err(Error::SessionExists { .. })));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SessionExists`] if the id is taken; as [`compact_and_split`](Self::compact_and_split).
    pub fn compact_and_split_as(
        &self,
        id: &SessionId,
        summary: impl Into<Summary>,
    ) -> Result<Self> {
        id.check()?;
        let Summary { text, model, details } = summary.into();
        if is_blank(&text) {
            return Err(Error::SummaryRefused { why: SummaryRefused::Blank });
        }
        let details = details.map(|details| details.value());
        let about = json!({"split": {"session": self.id(), "model": model, "details": details}});
        let opening = Message::assistant(text).with_metadata(about);
        let (messages, tokens_before) = match self.events.has_listeners() {
            true => (self.storage.path_length(None)?, self.visible_tokens()?),
            false => (0, 0),
        };
        let child = self.of_another(self.storage.split(id, &opening, END_REASON)?);
        child.emit(|| Change::Append { ids: vec![opening.id.clone()] });
        self.emit(|| Change::Split {
            child: child.id().clone(),
            messages,
            tokens_before,
            tokens_after: self.compaction.counter().message(&opening),
        });
        child.emit_window();
        Ok(child)
    }
}
