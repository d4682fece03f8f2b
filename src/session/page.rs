//! Parts of a history: pages, the newest messages within a budget, and streams.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use super::{Path, Session};
use crate::error::Result;
use crate::id::{CompactionId, MessageId, check_given};
use crate::message::{Message, stored_bytes};
use crate::outcome::{Page, Recent};
use crate::storage::sqlite::Cursor;
use crate::tree::Cut;
use crate::view::{Budget, Order, View};

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

    fn cursor(&self, view: &View, order: Order) -> Result<Cursor> {
        self.path.session.storage.cursor(view, order)
    }

    /// Opens a cursor over what comes before a message or summary.
    fn cursor_before(&self, id: &MessageId) -> Result<Option<Cursor>> {
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

    fn run_before(&self, cursor: Option<Cursor>, has_after: bool) -> Result<Page> {
        let (mut messages, has_before) = match cursor {
            Some(mut cursor) => fill(self.limit, &self.filter()?, |count| cursor.next(count))?,
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
        let (messages, has_after) = fill(self.limit, &self.filter()?, |count| cursor.next(count))?;
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
fn fill(
    limit: usize,
    filter: &Filter,
    mut next: impl FnMut(usize) -> Result<Vec<Message>>,
) -> Result<(Vec<Message>, bool)> {
    let asked = limit.saturating_add(1);
    let mut messages = Vec::new();
    while messages.len() < asked {
        let left = asked - messages.len();
        let batch = next(if filter.shows_all() { left } else { left.max(FILTERED_BATCH) })?;
        if batch.is_empty() {
            break;
        }
        messages.extend(batch.into_iter().filter(|message| filter.shows(message)));
    }
    let has_more = messages.len() > limit;
    messages.truncate(limit);
    Ok((messages, has_more))
}

/// How many messages are read at a time.
const BATCH: usize = 32;
/// How many are read at a time at most, when others delete messages meanwhile.
const MAX_BATCH: usize = 1 << 16;

impl Session {
    /// Returns the newest messages of the history that fit a budget.
    ///
    /// They never begin between a tool call and its result. The newest message is always
    /// returned, even over the budget; so is a summary directly before the returned messages. Only the
    /// returned messages are read; the others are counted, not read.
    ///
    /// ```
    /// use talktree::{Budget, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=100).map(|n| Message::user(format!("message {n}"))))?;
    ///
    /// let recent = chat.recent(Budget::messages(10))?;
    /// assert_eq!((recent.messages.len(), recent.left_out), (10, 90));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As every read.
    pub fn recent(&self, budget: Budget) -> Result<Recent> {
        self.path().recent(budget)
    }

    fn cost(&self, message: &Message, budget: Budget) -> Result<u64> {
        match budget {
            Budget::Tokens(_) => Ok(self.compaction.counter.message(message)),
            Budget::Bytes(_) => stored_bytes(message),
            Budget::Messages(_) => Ok(1),
        }
    }
}

impl Path {
    /// Returns the newest messages of this path that fit a budget, as [`Session::recent`] does.
    ///
    /// ```
    /// use talktree::{Budget, Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=9).map(|n| Message::user(n.to_string()).with_id(n.to_string())))?;
    ///
    /// let recent = chat.at(&"6".into()).recent(Budget::messages(2))?;
    /// assert_eq!(recent.messages.iter().map(Message::text).collect::<String>(), "56");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownMessage`](crate::Error::UnknownMessage) if the leaf is not in this session; as
    /// every read.
    pub fn recent(&self, budget: Budget) -> Result<Recent> {
        let mut batch = BATCH;
        loop {
            let (recent, is_whole) = self.read_recent(budget, batch)?;
            if is_whole || batch >= MAX_BATCH {
                return Ok(recent);
            }
            // Others deleted messages between two batches. A larger batch leaves them less time.
            batch *= 4;
        }
    }

    /// Returns the newest messages, and whether the path was still whole when its end was reached.
    fn read_recent(&self, budget: Budget, batch: usize) -> Result<(Recent, bool)> {
        let (Budget::Tokens(max) | Budget::Bytes(max) | Budget::Messages(max)) = budget;
        // What fits into the first batch is of the same state as the total.
        let mut cursor = self.session.storage.newest(&self.view, batch)?;
        let total = cursor.total()?;
        let mut cut = Cut::new(max);
        let (mut seen, mut is_whole) = (0, true);
        'reading: loop {
            let messages = cursor.next(batch)?;
            if messages.is_empty() {
                is_whole = seen == total;
                break;
            }
            for message in messages {
                seen += 1;
                let cost = self.session.cost(&message, budget)?;
                let is_summary = CompactionId::from_message(&message.id).is_some();
                if !cut.offer(message, cost, is_summary) {
                    break 'reading;
                }
            }
        }
        let messages = cut.finish();
        let left_out = total.saturating_sub(messages.len() as u64);
        Ok((Recent { messages, left_out }, is_whole))
    }
}

/// The number of messages in a stream's first batch. Each later one is twice as large, up to [`LAST_BATCH`].
const FIRST_BATCH: usize = 16;
/// The maximum number of messages in a batch.
const LAST_BATCH: usize = 512;

impl Session {
    /// Returns the history as a stream, oldest first.
    ///
    /// What it covers is fixed when it is opened, by this call; messages deleted since are skipped.
    /// It holds nothing open between messages, so it may be kept as long as you like. An error is the
    /// last item.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=1000).map(|n| Message::user(n.to_string())))?;
    ///
    /// let mut tokens = 0;
    /// for message in chat.iter() {
    ///     tokens += message?.tokens();
    /// }
    /// assert_eq!(tokens, chat.row_stats()?.iter().map(|stat| stat.tokens).sum::<u64>());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Messages {
        self.path().iter()
    }

    /// Returns the history as a stream, newest first; what is not taken is not read.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// chat.append_all((1..=1000).map(|n| Message::user(format!("{n}"))))?;
    /// let newest: Vec<Message> = chat.iter_rev().take(2).collect::<Result<_, _>>()?;
    /// assert_eq!(newest[1].text(), "999");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter_rev(&self) -> Messages {
        self.path().iter_rev()
    }

    /// Returns every stored message, all branches, as a stream in order of creation.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    /// chat.append_to(&question, Message::assistant("cyan"))?;
    ///
    /// let all: Vec<Message> = chat.all_messages().collect::<Result<_, _>>()?;
    /// let texts: Vec<String> = all.iter().map(Message::text).collect();
    /// assert_eq!(texts, ["Name a colour", "red", "cyan"]);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn all_messages(&self) -> Messages {
        Messages::new(self.storage.all_messages())
    }
}

impl Path {
    /// Returns this path as a stream, oldest first, as [`Session::iter`] does.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let hello = chat.append(Message::user("hello"))?.id;
    /// chat.add_compaction("A greeting.", &hello, &hello)?;
    ///
    /// assert_eq!(chat.path().iter().next().unwrap()?.text(), "A greeting.");
    /// assert_eq!(chat.path().raw().iter().next().unwrap()?.text(), "hello");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter(&self) -> Messages {
        Messages::new(self.session.storage.cursor(&self.view, Order::OldestFirst))
    }

    /// Returns this path as a stream, newest first; what is not taken is not read.
    ///
    /// ```
    /// use talktree::{Message, Store};
    ///
    /// let chat = Store::open_in_memory()?.session("s")?;
    /// let question = chat.append(Message::user("Name a colour"))?.id;
    /// chat.append(Message::assistant("red"))?;
    ///
    /// let newest = chat.at(&question).iter_rev().next().unwrap()?;
    /// assert_eq!(newest.id, question);
    /// assert!(chat.at(&"other".into()).iter_rev().next().unwrap().is_err());
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn iter_rev(&self) -> Messages {
        Messages::new(self.session.storage.cursor(&self.view, Order::NewestFirst))
    }
}

/// A stream of messages.
///
/// ```
/// use talktree::{Message, Messages, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all([Message::user("hello"), Message::assistant("hi")])?;
///
/// let mut messages: Messages = chat.iter();
/// assert_eq!(messages.next().unwrap()?.text(), "hello");
/// assert_eq!(messages.count(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
pub struct Messages {
    /// `None` after an error, which ends the stream.
    cursor: Option<Result<Cursor>>,
    batch: VecDeque<Message>,
    batch_size: usize,
}

impl Messages {
    fn new(cursor: Result<Cursor>) -> Self {
        Self { cursor: Some(cursor), batch: VecDeque::new(), batch_size: FIRST_BATCH }
    }

    fn read(&mut self) -> Result<()> {
        match self.cursor.take() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(mut cursor)) => {
                self.batch = cursor.next(self.batch_size)?.into();
                self.batch_size = LAST_BATCH.min(self.batch_size * 2);
                if !self.batch.is_empty() {
                    self.cursor = Some(Ok(cursor));
                }
                Ok(())
            }
        }
    }
}

impl Iterator for Messages {
    type Item = Result<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty()
            && let Err(error) = self.read()
        {
            return Some(Err(error));
        }
        self.batch.pop_front().map(Ok)
    }
}

impl std::iter::FusedIterator for Messages {}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("read_ahead", &self.batch.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the page of a path of `stored` messages: how many it has, whether there are more, and the batches read.
    fn filled(stored: usize, limit: usize) -> Result<(usize, bool, usize)> {
        let (mut left, mut batches) = (stored, 0);
        let (messages, has_more) = fill(limit, &Filter::default(), |limit| {
            batches += 1;
            let count = left.min(limit);
            left -= count;
            Ok((0..count).map(|_| Message::user("")).collect())
        })?;
        Ok((messages.len(), has_more, batches))
    }

    #[test]
    fn a_page_that_is_not_the_last_is_one_batch() -> Result<()> {
        assert_eq!(filled(51, 50)?, (50, true, 1));
        assert_eq!(filled(50, 50)?, (50, false, 2));
        assert_eq!(filled(3, usize::MAX)?.0, 3);
        Ok(())
    }
}
