//! Pages: stable pieces of a conversation.
//!
//! A page is bounded by a message, not by a number, so it does not shift while others append. A page before a message
//! follows that message's own path, so it stays the same while the head moves.

use std::collections::HashSet;

use super::{Path, Session};
use crate::error::Result;
use crate::id::{CompactionId, MessageId, check_given};
use crate::message::Message;
use crate::outcome::Page;
use crate::storage::Cursor;
use crate::view::{Order, View};

/// How many messages a page holds when no limit is given.
const DEFAULT_LIMIT: usize = 50;

impl Session {
    /// Returns a builder of one page of the history.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user(format!("{n}"))))?;
    ///
    /// let last = chat.page().limit(4).run()?;
    /// let earlier = chat.page().before(last.before.as_ref().unwrap()).limit(4).run()?;
    /// assert_eq!(earlier.messages.iter().map(Message::text).collect::<String>(), "2345");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn page(&self) -> PageBuilder {
        self.path().page()
    }
}

impl Path {
    /// Returns a builder of one page of this path.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// assert_eq!(chat.at(&question).page().run()?.messages.len(), 1);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn page(&self) -> PageBuilder {
        PageBuilder {
            path: self.clone(),
            from: From::End,
            limit: DEFAULT_LIMIT,
            author: None,
            tag: None,
        }
    }
}

/// A page to read: the newest messages, or those before or after a message.
///
/// ```
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
///
/// let page = chat.page().after(&"3".into()).limit(2).run()?;
/// assert_eq!(page.messages.iter().map(Message::text).collect::<String>(), "45");
/// assert_eq!(page.after, Some("5".into()));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a page is read by `run`"]
pub struct PageBuilder {
    path: Path,
    from: From,
    limit: usize,
    author: Option<String>,
    tag: Option<String>,
}

#[derive(Debug, Clone)]
enum From {
    End,
    Before(MessageId),
    After(MessageId),
}

impl PageBuilder {
    /// Reads the messages before this message or summary.
    pub fn before(mut self, id: &MessageId) -> Self {
        self.from = From::Before(id.clone());
        self
    }

    /// Reads the messages after this message or summary, towards the leaf.
    pub fn after(mut self, id: &MessageId) -> Self {
        self.from = From::After(id.clone());
        self
    }

    /// Reads at most this many messages; 50 if it is not called. A page of 0 does not say whether
    /// messages come before or after it.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Reads only what a person wrote, named by [`Author::key`](crate::Author::key). Summaries have no author.
    ///
    /// ```
    /// use talktree::{Author, Message, Store};
    ///
    /// let group = Store::open_in_memory()?.session("group")?;
    /// for id in ["41", "42", "41"] {
    ///     group.append(Message::user("hello").from(&Author::new(id)))?;
    /// }
    /// assert_eq!(group.page().author("41").run()?.messages.len(), 2);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn author(mut self, author: impl Into<String>) -> Self {
        self.author = Some(author.into());
        self
    }

    /// Reads only messages with a tag. Summaries have none.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let bad = chat.append(Message::user("Buy now!"))?.id;
    /// chat.append(Message::assistant("No."))?;
    /// chat.tag(&bad, "spam")?;
    /// assert_eq!(chat.page().tag("spam").run()?.messages[0].id, bad);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Returns the page.
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the message given is not in this
    /// session or, for [`after`](Self::after), not on the path; [`Error::InvalidValue`](crate::Error::InvalidValue) if the
    /// author or the tag is empty.
    pub fn run(self) -> Result<Page> {
        check_given([("author", &self.author), ("tag", &self.tag)])?;
        match &self.from {
            From::End => {
                let cursor = self.cursor(&self.path.view, Order::NewestFirst)?;
                self.run_before(Some(cursor), false)
            }
            From::Before(id) => self.run_before(self.cursor_before(id)?, true),
            From::After(id) => self.run_after(id),
        }
    }

    fn filter(&self) -> Result<Filter> {
        let session = &self.path.session;
        let tagged = |tag: &String| -> Result<HashSet<MessageId>> {
            let all = session.all_tags()?.into_iter();
            Ok(all.filter(|found| found.tag == *tag).map(|found| found.message).collect())
        };
        Ok(Filter {
            author: self.author.clone(),
            tagged: self.tag.as_ref().map(tagged).transpose()?,
        })
    }

    fn cursor(&self, view: &View, order: Order) -> Result<Box<dyn Cursor>> {
        self.path.session.storage.cursor(view, order)
    }

    /// Opens a cursor over what comes before a message or summary.
    fn cursor_before(&self, id: &MessageId) -> Result<Option<Box<dyn Cursor>>> {
        let session = &self.path.session;
        let message = session.message(id)?.ok_or_else(|| session.unknown(id))?;
        let at = |leaf: &MessageId| match self.path.view.is_raw() {
            true => View::at(leaf).raw(),
            false => View::at(leaf),
        };
        // A summary has no path of its own: it is on this path, or its parent's path holds what
        // comes before it.
        let own = match CompactionId::from_message(id) {
            None => at(id),
            Some(_) => self.path.view.clone(),
        };
        let mut cursor = self.cursor(&own, Order::NewestFirst)?;
        if cursor.skip_past(id)? {
            return Ok(Some(cursor));
        }
        let parent = message.parent.map(|parent| at(&parent));
        parent.map(|view| self.cursor(&view, Order::NewestFirst)).transpose()
    }

    fn run_before(&self, cursor: Option<Box<dyn Cursor>>, has_after: bool) -> Result<Page> {
        let (mut messages, has_before) = match cursor {
            Some(mut cursor) => fill(&mut *cursor, self.limit, &self.filter()?)?,
            None => (Vec::new(), false),
        };
        messages.reverse();
        Ok(Page {
            before: messages.first().filter(|_| has_before).map(|message| message.id.clone()),
            after: messages.last().filter(|_| has_after).map(|message| message.id.clone()),
            messages,
        })
    }

    fn run_after(&self, id: &MessageId) -> Result<Page> {
        let mut cursor = self.cursor(&self.path.view, Order::OldestFirst)?;
        if !cursor.skip_past(id)? {
            return Err(self.path.session.unknown(id));
        }
        let (messages, has_after) = fill(&mut *cursor, self.limit, &self.filter()?)?;
        Ok(Page {
            before: messages.first().map(|message| message.id.clone()),
            after: messages.last().filter(|_| has_after).map(|message| message.id.clone()),
            messages,
        })
    }
}

/// Which messages a page shows.
#[derive(Default)]
struct Filter {
    author: Option<String>,
    /// The messages with the tag.
    tagged: Option<HashSet<MessageId>>,
}

impl Filter {
    fn shows(&self, message: &Message) -> bool {
        self.author.as_ref().is_none_or(|author| message.is_written_by(author))
            && self.tagged.as_ref().is_none_or(|tagged| tagged.contains(&message.id))
    }

    fn shows_all(&self) -> bool {
        self.author.is_none() && self.tagged.is_none()
    }
}

/// How many messages are read at a time if a page shows some of them only.
const FILTERED_BATCH: usize = 256;

/// Reads until the page is full, and returns whether more would follow.
///
/// A batch of a cursor may be shorter than asked for. One message more is read, because to read that one alone would be
/// another transaction.
fn fill(cursor: &mut dyn Cursor, limit: usize, filter: &Filter) -> Result<(Vec<Message>, bool)> {
    let asked = limit.saturating_add(1);
    let mut messages = Vec::new();
    while messages.len() < asked {
        let left = asked - messages.len();
        let batch =
            cursor.next(if filter.shows_all() { left } else { left.max(FILTERED_BATCH) })?;
        if batch.is_empty() {
            break;
        }
        messages.extend(batch.into_iter().filter(|message| filter.shows(message)));
    }
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    Ok((messages, has_more))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the batches that are read.
    struct Counted {
        left: usize,
        batches: usize,
    }

    impl Cursor for Counted {
        fn next(&mut self, limit: usize) -> Result<Vec<Message>> {
            self.batches += 1;
            let count = self.left.min(limit);
            self.left -= count;
            Ok((0..count).map(|_| Message::user("")).collect())
        }

        fn skip_past(&mut self, _: &MessageId) -> Result<bool> {
            Ok(false)
        }

        fn total(&mut self) -> Result<u64> {
            Ok(0)
        }
    }

    /// Whether more would follow was a read of its own, which is a transaction of its own.
    #[test]
    fn a_page_that_is_not_the_last_is_one_batch() -> Result<()> {
        let mut cursor = Counted { left: 51, batches: 0 };
        let (messages, has_more) = fill(&mut cursor, 50, &Filter::default())?;
        assert_eq!((messages.len(), has_more, cursor.batches), (50, true, 1));
        let (messages, has_more) =
            fill(&mut Counted { left: 50, batches: 0 }, 50, &Filter::default())?;
        assert_eq!((messages.len(), has_more), (50, false));
        assert_eq!(
            fill(&mut Counted { left: 3, batches: 0 }, usize::MAX, &Filter::default())?.0.len(),
            3
        );
        Ok(())
    }
}
