//! A session in memory: the verbs of a session, over a tree.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tree::{Item, MemoryTree, Node, Span};
use crate::compaction::{Compaction, CompactionStatus};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{Appended, Deleted, Updated};
use crate::search::{Found, Hit, Matched, Query, Scope, SearchRequest, Snippet};
use crate::storage::SessionProvider;
use crate::view::{ExpectedHead, Parent};

/// The maximum size of a message, in bytes of JSON.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A session in memory.
///
/// It implements the required methods of [`SessionProvider`], and `head`, `checkout` and `expand` of the optional ones.
///
/// ```
/// use talktree::testing::MemorySession;
/// use talktree::{Message, Session};
///
/// let chat = Session::over(MemorySession::new("s".into()));
/// chat.append(Message::user("hello"))?;
/// assert_eq!(chat.history()?.len(), 1);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug)]
pub struct MemorySession {
    id: SessionId,
    /// Tells it from others of the same id.
    serial: u64,
    tree: Mutex<MemoryTree>,
}

/// The serial of the next session.
static SERIALS: AtomicU64 = AtomicU64::new(0);

impl MemorySession {
    /// Returns an empty session.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        Self { id, serial: SERIALS.fetch_add(1, Ordering::Relaxed), tree: Mutex::default() }
    }

    fn tree(&self) -> MutexGuard<'_, MemoryTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require(&self, tree: &MemoryTree, id: &MessageId) -> Result<usize> {
        let unknown = || Error::UnknownMessage { session: self.id.clone(), id: id.clone() };
        tree.find(id).ok_or_else(unknown)
    }

    /// Returns an end of a new compaction: a message, or the same end of a summary.
    fn end(
        &self,
        tree: &MemoryTree,
        id: &MessageId,
        end: impl Fn(&Span) -> (usize, MessageId),
    ) -> Result<(usize, MessageId)> {
        let Some(summary) = CompactionId::from_message(id) else {
            return Ok((self.require(tree, id)?, id.clone()));
        };
        let span = tree.spans.iter().find(|span| span.compaction.id == summary);
        let unknown = || Error::UnknownCompaction { session: self.id.clone(), id: summary.clone() };
        span.map(end).ok_or_else(unknown)
    }

    /// Returns the index of a compaction.
    fn span(&self, tree: &MemoryTree, id: &CompactionId) -> Result<usize> {
        let unknown = || Error::UnknownCompaction { session: self.id.clone(), id: id.clone() };
        tree.spans.iter().position(|span| span.compaction.id == *id).ok_or_else(unknown)
    }

    /// Returns the node of the place that an id names: of the message, or of the last message of a summary.
    fn place(&self, tree: &MemoryTree, id: &MessageId) -> Result<usize> {
        let Some(summary) = CompactionId::from_message(id) else { return self.require(tree, id) };
        let span = tree.spans.iter().find(|span| span.compaction.id == summary);
        let unknown = || Error::UnknownMessage { session: self.id.clone(), id: id.clone() };
        span.map(|span| span.last).ok_or_else(unknown)
    }

    /// Returns an error unless the head is where the caller saw it.
    fn check_head(&self, tree: &MemoryTree, expected: &ExpectedHead) -> Result<()> {
        let ExpectedHead::At(expected) = expected else { return Ok(()) };
        let found = tree.id_of_place(tree.head);
        // A summary may name the head, too.
        let place = expected.as_ref().filter(|id| CompactionId::from_message(id).is_some());
        let place = place.and_then(|id| self.place(tree, id).ok());
        if found == *expected || (place.is_some() && place == tree.head) {
            return Ok(());
        }
        Err(Error::HeadMoved { expected: expected.clone(), found })
    }

    fn leaf(&self, tree: &MemoryTree, leaf: Option<&MessageId>) -> Result<Option<usize>> {
        leaf.map_or(Ok(tree.head), |id| self.place(tree, id).map(Some))
    }
}

impl SessionProvider for MemorySession {
    fn id(&self) -> &SessionId {
        &self.id
    }

    fn identity(&self) -> Result<String> {
        Ok(format!("memory session {}", self.serial))
    }

    fn message(&self, id: &MessageId) -> Result<Option<Message>> {
        let tree = self.tree();
        Ok(tree.find(id).and_then(|at| tree.read(at)))
    }

    fn history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        let tree = self.tree();
        let items = tree.items(self.leaf(&tree, leaf)?);
        Ok(items.iter().rev().filter_map(|item| tree.show(item)).collect())
    }

    fn raw_history(&self, leaf: Option<&MessageId>) -> Result<Vec<Message>> {
        let tree = self.tree();
        let leaf = self.leaf(&tree, leaf)?;
        let mut path: Vec<Message> = tree.path(leaf).filter_map(|at| tree.read(at)).collect();
        path.reverse();
        Ok(path)
    }

    fn latest_leaf(&self) -> Result<Option<Message>> {
        let tree = self.tree();
        Ok((0..tree.nodes.len()).rev().find_map(|at| tree.read(at)))
    }

    fn branches(&self, id: Option<&MessageId>) -> Result<Vec<Message>> {
        let tree = self.tree();
        let parent = id.map(|id| self.place(&tree, id)).transpose()?;
        let children = (0..tree.nodes.len()).filter(|at| tree.is_child(*at, parent));
        Ok(children.filter_map(|at| tree.read(at)).collect())
    }

    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        let tree = self.tree();
        let leaf = self.leaf(&tree, leaf)?;
        Ok(tree.path(leaf).filter(|at| tree.nodes[*at].message.is_some()).count() as u64)
    }

    fn append(
        &self,
        parent: &Parent,
        expected: &ExpectedHead,
        messages: &[Message],
    ) -> Result<Vec<Appended>> {
        let mut tree = self.tree();
        let mut parent = match parent {
            Parent::Head => tree.head,
            Parent::Root => None,
            Parent::Message(id) => Some(self.place(&tree, id)?),
            Parent::SiblingOf(id) => tree.nodes[self.require(&tree, id)?].parent,
        };
        // A retry after a lost answer is a no-op, although the head has moved.
        let is_retry = messages.iter().all(|m| tree.find(&m.id).is_some());
        if !is_retry {
            self.check_head(&tree, expected)?;
        }
        for message in messages {
            check_size(message)?;
        }
        let mut appended = Vec::new();
        for message in messages {
            if let Some(at) = tree.find(&message.id) {
                let stored = tree.nodes[at].message.as_ref();
                let differs = !stored.is_some_and(|stored| stored.says_the_same(message));
                appended.push(Appended::known(message.id.clone(), differs));
                parent = Some(at);
                continue;
            }
            tree.nodes.push(Node { parent, message: Some(message.clone()), is_removed: false });
            parent = Some(tree.nodes.len() - 1);
            tree.head = parent;
            appended.push(Appended::new(message.id.clone()));
        }
        Ok(appended)
    }

    fn update(&self, message: &Message) -> Result<Updated> {
        let mut tree = self.tree();
        let at = self.require(&tree, &message.id)?;
        check_size(message)?;
        let covered_by = tree.covering(at).map(|span| span.compaction.id.clone()).collect();
        let Some(stored) = &mut tree.nodes[at].message else {
            return Ok(Updated::default());
        };
        let mut updated = message.clone();
        updated.is_hidden = stored.is_hidden;
        updated.created_at = stored.created_at;
        let is_changed = !stored.says_the_same(&updated);
        *stored = updated;
        Ok(Updated { is_changed, covered_by })
    }

    fn delete(&self, ids: &[MessageId]) -> Result<Deleted> {
        let mut tree = self.tree();
        let mut places = Vec::new();
        for id in ids {
            let at = self.require(&tree, id)?;
            if !places.contains(&at) {
                places.push(at);
            }
        }
        let covering = places.iter().flat_map(|at| tree.covering(*at));
        let touched: Vec<CompactionId> = covering.map(|span| span.compaction.id.clone()).collect();
        let mut deleted = Deleted::default();
        for at in places {
            deleted.messages.extend(tree.nodes[at].message.take().map(|message| message.id));
        }
        tree.prune();
        let spans = std::mem::take(&mut tree.spans);
        let (kept, gone): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(|span| {
            !tree.nodes[span.last].is_removed && tree.has_visible(span.first, span.last)
        });
        tree.spans = kept;
        let kept = tree.spans.iter().map(|span| &span.compaction.id);
        deleted.covered_by = kept.filter(|id| touched.contains(id)).cloned().collect();
        for span in gone {
            for item in tree.items(tree.survivor(Some(span.last))) {
                match item {
                    Item::Node(at) if at > span.first => {}
                    Item::Span(at) if tree.spans[at].first >= span.first => {
                        let back = tree.spans[at].compaction.id.clone();
                        if !deleted.compactions_back.contains(&back) {
                            deleted.compactions_back.push(back);
                        }
                    }
                    _ => break,
                }
            }
            deleted.compactions_gone.push(span.compaction.id);
        }
        tree.head = tree.survivor(tree.head);
        Ok(deleted)
    }

    fn clear(&self) -> Result<()> {
        *self.tree() = MemoryTree::default();
        Ok(())
    }

    fn add_compaction(&self, compaction: &Compaction) -> Result<CompactionStatus> {
        let mut tree = self.tree();
        let known = tree.spans.iter().position(|span| span.compaction.id == compaction.id);
        if let Some(known) = known {
            return Ok(tree.status(known));
        }
        let mut compaction = compaction.clone();
        let (first, first_id) =
            self.end(&tree, &compaction.first, |span| (span.first, span.compaction.first.clone()))?;
        let (last, last_id) =
            self.end(&tree, &compaction.last, |span| (span.last, span.compaction.last.clone()))?;
        (compaction.first, compaction.last) = (first_id, last_id);
        if !tree.path(Some(last)).any(|at| at == first) {
            return Err(Error::NotAncestor { first: compaction.first, last: compaction.last });
        }
        let (mut is_shown, mut before, mut spans) = (false, 0, Vec::new());
        for item in tree.items(Some(last)) {
            if let Some(shown) = tree.show(&item) {
                is_shown = true;
                before += shown.tokens();
                spans.extend(CompactionId::from_message(&shown.id));
            }
            let start = match item {
                Item::Node(at) => at,
                Item::Span(span) => tree.spans[span].first,
            };
            if let Item::Span(span) = item
                && start < first
            {
                let inside = tree.spans[span].compaction.id.clone();
                return Err(Error::InsideSummary {
                    id: compaction.first.clone(),
                    compaction: inside,
                });
            }
            if start == first {
                break;
            }
        }
        if !is_shown {
            return Err(Error::NothingVisible { first: compaction.first, last: compaction.last });
        }
        if compaction.count == 0 {
            compaction.count = tree.count(first, last) as u64;
            compaction.nested = spans.into_iter().rev().collect();
        }
        if compaction.tokens_before == 0 {
            compaction.tokens_before = before;
        }
        if compaction.tokens_after == 0 {
            compaction.tokens_after = compaction.to_message(None).tokens();
        }
        tree.spans.push(Span { first, last, compaction });
        Ok(tree.status(tree.spans.len() - 1))
    }

    fn head(&self) -> Result<Option<MessageId>> {
        let tree = self.tree();
        Ok(tree.id_of_place(tree.head))
    }

    fn checkout(&self, id: Option<&MessageId>) -> Result<()> {
        self.checkout_if_head(&ExpectedHead::Any, id)
    }

    fn checkout_if_head(&self, expected: &ExpectedHead, id: Option<&MessageId>) -> Result<()> {
        let mut tree = self.tree();
        self.check_head(&tree, expected)?;
        tree.head = id.map(|id| self.place(&tree, id)).transpose()?;
        Ok(())
    }

    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let tree = self.tree();
        let over = self.span(&tree, id)?;
        let Span { first, last, .. } = tree.spans[over];
        // Of compactions with the same range only the older ones, so that repeated expansion ends.
        let is_inside = |span: usize| {
            let inner = &tree.spans[span];
            inner.first >= first && (inner.first > first || inner.last < last || span < over)
        };
        let items = tree.items_with(Some(last), is_inside);
        let starts = |item: &Item| match item {
            Item::Node(at) => *at,
            Item::Span(span) => tree.spans[*span].first,
        };
        let within = items.iter().filter(|item| starts(item) >= first);
        let mut shown: Vec<Message> = within.filter_map(|item| tree.show(item)).collect();
        shown.reverse();
        Ok(shown)
    }

    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let tree = self.tree();
        let span = &tree.spans[self.span(&tree, id)?];
        let range = tree.path(Some(span.last)).take_while(|at| *at >= span.first);
        let mut messages: Vec<Message> = range.filter_map(|at| tree.read(at)).collect();
        messages.reverse();
        Ok(messages)
    }

    fn compactions(&self) -> Result<Vec<Compaction>> {
        Ok(self.tree().spans.iter().map(|span| span.compaction.clone()).collect())
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        let tree = self.tree();
        let leaf = match &request.scope {
            Scope::Path(id, leaf) if *id == self.id => Some(self.leaf(&tree, leaf.as_ref())?),
            Scope::Sessions(ids) if ids.is_empty() => {
                return Ok(Found::new(Vec::new(), Matched::All));
            }
            Scope::Sessions(ids) if ids.iter().all(|id| *id == self.id) => None,
            _ => return Err(Error::Unsupported { what: "a search outside the session" }),
        };
        let scope: Vec<usize> = match leaf {
            Some(leaf) => tree.path(leaf).collect(),
            None => (0..tree.nodes.len()).rev().collect(),
        };
        let head: Vec<usize> = tree.path(tree.head).collect();
        let under = |at: usize| {
            let shown = tree.items(tree.head).into_iter().find_map(|item| match item {
                Item::Span(span) if head.contains(&at) => {
                    let span = &tree.spans[span];
                    (span.first <= at && at <= span.last).then_some(span)
                }
                _ => None,
            });
            shown.map(|span| span.compaction.id.clone())
        };
        let words = words_of(request.query());
        let matches = scope.into_iter().filter_map(|at| {
            let message = tree.read(at)?;
            if request.omits_hidden && message.is_hidden {
                return None;
            }
            let text = message.text();
            let lower = text.to_lowercase();
            let is_match = !words.is_empty() && words.iter().all(|word| lower.contains(word));
            is_match.then(|| Hit {
                session: self.id.clone(),
                id: message.id,
                role: message.role,
                created_at: message.created_at,
                snippet: Snippet { text, marks: Vec::new() },
                words: Vec::new(),
                score: 1.0,
                matched: Matched::All,
                on_path: head.contains(&at),
                under: under(at),
                sessions: vec![self.id.clone()],
            })
        });
        let hits = matches.skip(request.offset).take(request.limit).collect();
        Ok(Found::new(hits, Matched::All))
    }
}

/// Returns the words of a query in lower case: one of each clause, without filters and excluded terms.
pub(super) fn words_of(query: Query) -> Vec<String> {
    let terms = query.clauses.into_iter().filter_map(|clause| clause.into_iter().next());
    terms.flat_map(|term| term.tokens).map(|token| token.to_lowercase()).collect()
}

fn check_size(message: &Message) -> Result<()> {
    let bytes = usize::try_from(crate::message::stored_bytes(message)?).unwrap_or(usize::MAX);
    if bytes > MAX_MESSAGE_BYTES {
        let id = message.id.clone();
        return Err(Error::MessageTooLarge { id, bytes, max: MAX_MESSAGE_BYTES });
    }
    Ok(())
}
