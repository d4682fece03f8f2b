//! A session in memory: messages in a list, each with the place of its parent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::Message;
use crate::outcome::{Appended, Deleted, Updated};
use crate::search::{Found, Hit, Matched, Query, Scope, SearchRequest, Snippet};
use crate::storage::SessionProvider;
use crate::view::Place;

/// The largest message, in bytes of JSON.
const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// A session in memory: the required verbs of [`SessionProvider`], and of the others the two that
/// only the keeper of the tree can answer for: its head, and what lies under a summary.
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
    tree: Mutex<MemoryTree>,
}

#[derive(Debug, Default)]
struct MemoryTree {
    nodes: Vec<Node>,
    head: Option<usize>,
    folds: Vec<Fold>,
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    /// `None` for a tombstone, and for a place that is empty.
    message: Option<Message>,
    is_removed: bool,
}

#[derive(Debug)]
struct Fold {
    first: usize,
    last: usize,
    compaction: Compaction,
}

/// One item of a view.
enum Item {
    Node(usize),
    /// The place of the fold in `folds`.
    Fold(usize),
}

impl MemorySession {
    /// Returns an empty session.
    #[must_use]
    pub fn new(id: SessionId) -> Self {
        Self { id, tree: Mutex::default() }
    }

    fn tree(&self) -> MutexGuard<'_, MemoryTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn require(&self, tree: &MemoryTree, id: &MessageId) -> Result<usize> {
        let unknown = || Error::UnknownMessage { session: self.id.clone(), id: id.clone() };
        tree.find(id).ok_or_else(unknown)
    }

    /// Returns the place of an end of a compaction: a message, or that end of a summary.
    fn end(
        &self,
        tree: &MemoryTree,
        id: &MessageId,
        end: impl Fn(&Fold) -> (usize, MessageId),
    ) -> Result<(usize, MessageId)> {
        let Some(summary) = CompactionId::from_message(id) else {
            return Ok((self.require(tree, id)?, id.clone()));
        };
        let fold = tree.folds.iter().find(|fold| fold.compaction.id == summary);
        let unknown = || Error::UnknownCompaction { session: self.id.clone(), id: summary.clone() };
        fold.map(end).ok_or_else(unknown)
    }

    /// Returns the place of a fold.
    fn fold(&self, tree: &MemoryTree, id: &CompactionId) -> Result<usize> {
        let unknown = || Error::UnknownCompaction { session: self.id.clone(), id: id.clone() };
        tree.folds.iter().position(|fold| fold.compaction.id == *id).ok_or_else(unknown)
    }

    fn leaf(&self, tree: &MemoryTree, leaf: Option<&MessageId>) -> Result<Option<usize>> {
        leaf.map_or(Ok(tree.head), |id| self.require(tree, id).map(Some))
    }
}

impl MemoryTree {
    fn find(&self, id: &MessageId) -> Option<usize> {
        self.nodes.iter().position(|node| node.message.as_ref().is_some_and(|m| m.id == *id))
    }

    /// Returns the path to a node, newest first, with tombstones.
    fn path(&self, leaf: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(leaf, |at| self.nodes[*at].parent)
    }

    fn nearest(&self, at: Option<usize>) -> Option<&MessageId> {
        self.path(at).find_map(|at| self.nodes[at].message.as_ref().map(|message| &message.id))
    }

    /// Returns the message of a node with what it follows; `None` for a tombstone.
    fn read(&self, at: usize) -> Option<Message> {
        let node = &self.nodes[at];
        let mut message = node.message.clone()?;
        message.parent = self.nearest(node.parent).cloned();
        Some(message)
    }

    /// Returns the view at a node, newest first.
    fn items(&self, leaf: Option<usize>) -> Vec<Item> {
        self.items_with(leaf, |_| true)
    }

    /// Returns the view at a node, newest first, with only some of the folds.
    fn items_with(&self, leaf: Option<usize>, counts: impl Fn(usize) -> bool) -> Vec<Item> {
        let (mut items, mut at) = (Vec::new(), leaf);
        while let Some(node) = at {
            let ending = (0..self.folds.len())
                .filter(|fold| self.folds[*fold].last == node && counts(*fold));
            // The furthest-reaching, of equals the newest.
            match ending.min_by_key(|fold| (self.folds[*fold].first, std::cmp::Reverse(*fold))) {
                Some(fold) => {
                    at = self.nodes[self.folds[fold].first].parent;
                    items.push(Item::Fold(fold));
                }
                None => {
                    at = self.nodes[node].parent;
                    items.push(Item::Node(node));
                }
            }
        }
        items
    }

    fn show(&self, item: &Item) -> Option<Message> {
        match item {
            Item::Node(at) => self.read(*at).filter(|message| !message.is_aside),
            Item::Fold(fold) => {
                let Fold { first, compaction, .. } = &self.folds[*fold];
                let parent = self.nearest(self.nodes[*first].parent);
                Some(compaction.to_message(parent.cloned()))
            }
        }
    }

    /// Returns how many messages lie in `first ..= last`, where `first` is on the path to `last`.
    fn count(&self, first: usize, last: usize) -> usize {
        let stretch = self.path(Some(last)).take_while(|at| *at >= first);
        stretch.filter(|at| self.nodes[*at].message.is_some()).count()
    }

    /// Returns whether a model would see any message of the stretch.
    fn shows_something(&self, first: usize, last: usize) -> bool {
        let mut stretch = self.path(Some(last)).take_while(|at| *at >= first);
        stretch.any(|at| self.nodes[at].message.as_ref().is_some_and(|m| !m.is_aside))
    }

    fn covering(&self, at: usize) -> impl Iterator<Item = &Fold> {
        let covers = move |fold: &&Fold| {
            fold.first <= at && self.path(Some(fold.last)).any(|on_path| on_path == at)
        };
        self.folds.iter().filter(covers)
    }

    /// Removes tombstones that nothing hangs from, newest first, so that chains go whole.
    fn prune(&mut self) {
        let mut children = vec![0; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| !node.is_removed) {
            if let Some(parent) = node.parent {
                children[parent] += 1;
            }
        }
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            if node.message.is_none() && !node.is_removed && children[at] == 0 {
                node.is_removed = true;
                if let Some(parent) = node.parent {
                    children[parent] -= 1;
                }
            }
        }
    }

    /// Returns the node, or the nearest above it that was not removed.
    fn survivor(&self, at: Option<usize>) -> Option<usize> {
        self.path(at).find(|at| !self.nodes[*at].is_removed)
    }
}

impl SessionProvider for MemorySession {
    fn id(&self) -> &SessionId {
        &self.id
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
        if let Some(id) = id {
            self.require(&tree, id)?;
        }
        let all = (0..tree.nodes.len()).filter_map(|at| tree.read(at));
        Ok(all.filter(|message| message.parent.as_ref() == id).collect())
    }

    fn path_length(&self, leaf: Option<&MessageId>) -> Result<u64> {
        let tree = self.tree();
        let leaf = self.leaf(&tree, leaf)?;
        Ok(tree.path(leaf).filter(|at| tree.nodes[*at].message.is_some()).count() as u64)
    }

    fn append(&self, place: &Place, messages: &[Message]) -> Result<Vec<Appended>> {
        let mut tree = self.tree();
        let mut parent = match place {
            Place::Head => tree.head,
            Place::Root => None,
            Place::To(id) => Some(self.require(&tree, id)?),
            Place::HeadAt(_) => tree.head,
            Place::Leaving { to, .. } => Some(self.require(&tree, to)?),
        };
        let expected = match place {
            Place::HeadAt(expected) => Some(expected.clone()),
            Place::Leaving { from, .. } => Some(Some(from.clone())),
            _ => None,
        };
        if let Some(expected) = expected {
            let found = tree.nearest(tree.head).cloned();
            // A retry after a lost answer finds its own message as the head: no refusal.
            let is_retry = messages.iter().all(|m| tree.find(&m.id).is_some());
            if found != expected && !is_retry {
                return Err(Error::HeadMoved { expected, found });
            }
        }
        for message in messages {
            check_size(message)?;
        }
        let mut answers = Vec::new();
        for message in messages {
            if let Some(at) = tree.find(&message.id) {
                let stored = tree.nodes[at].message.as_ref();
                let differs = !stored.is_some_and(|stored| stored.says_the_same(message));
                answers.push(Appended::known(message.id.clone(), differs));
                parent = Some(at);
                continue;
            }
            tree.nodes.push(Node { parent, message: Some(message.clone()), is_removed: false });
            parent = Some(tree.nodes.len() - 1);
            tree.head = parent;
            answers.push(Appended::new(message.id.clone()));
        }
        Ok(answers)
    }

    fn update(&self, message: &Message) -> Result<Updated> {
        let mut tree = self.tree();
        let at = self.require(&tree, &message.id)?;
        check_size(message)?;
        let covered_by = tree.covering(at).map(|fold| fold.compaction.id.clone()).collect();
        let Some(stored) = &mut tree.nodes[at].message else {
            return Ok(Updated::default());
        };
        let mut updated = message.clone();
        updated.is_aside = stored.is_aside;
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
        let touched: Vec<CompactionId> = covering.map(|fold| fold.compaction.id.clone()).collect();
        let mut deleted = Deleted::default();
        for at in places {
            deleted.messages.extend(tree.nodes[at].message.take().map(|message| message.id));
        }
        tree.prune();
        let folds = std::mem::take(&mut tree.folds);
        let (kept, gone): (Vec<Fold>, Vec<Fold>) = folds.into_iter().partition(|fold| {
            !tree.nodes[fold.last].is_removed && tree.shows_something(fold.first, fold.last)
        });
        tree.folds = kept;
        let kept = tree.folds.iter().map(|fold| &fold.compaction.id);
        deleted.covered_by = kept.filter(|id| touched.contains(id)).cloned().collect();
        for fold in gone {
            for item in tree.items(tree.survivor(Some(fold.last))) {
                match item {
                    Item::Node(at) if at > fold.first => {}
                    Item::Fold(at) if tree.folds[at].first >= fold.first => {
                        let back = tree.folds[at].compaction.id.clone();
                        if !deleted.compactions_back.contains(&back) {
                            deleted.compactions_back.push(back);
                        }
                    }
                    _ => break,
                }
            }
            deleted.compactions_gone.push(fold.compaction.id);
        }
        tree.head = tree.survivor(tree.head);
        Ok(deleted)
    }

    fn clear(&self) -> Result<()> {
        *self.tree() = MemoryTree::default();
        Ok(())
    }

    fn add_compaction(&self, compaction: &Compaction) -> Result<()> {
        let mut tree = self.tree();
        if tree.folds.iter().any(|fold| fold.compaction.id == compaction.id) {
            return Ok(());
        }
        let mut compaction = compaction.clone();
        let (first, first_id) =
            self.end(&tree, &compaction.first, |fold| (fold.first, fold.compaction.first.clone()))?;
        let (last, last_id) =
            self.end(&tree, &compaction.last, |fold| (fold.last, fold.compaction.last.clone()))?;
        (compaction.first, compaction.last) = (first_id, last_id);
        if !tree.path(Some(last)).any(|at| at == first) {
            return Err(Error::NotAncestor { first: compaction.first, last: compaction.last });
        }
        let (mut is_shown, mut before, mut folds) = (false, 0, Vec::new());
        for item in tree.items(Some(last)) {
            if let Some(shown) = tree.show(&item) {
                is_shown = true;
                before += shown.tokens();
                folds.extend(CompactionId::from_message(&shown.id));
            }
            let start = match item {
                Item::Node(at) => at,
                Item::Fold(fold) => tree.folds[fold].first,
            };
            if let Item::Fold(fold) = item
                && start < first
            {
                let inside = tree.folds[fold].compaction.id.clone();
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
            return Err(Error::NothingToFold { first: compaction.first, last: compaction.last });
        }
        if compaction.count == 0 {
            compaction.count = tree.count(first, last) as u64;
            compaction.folds = folds.into_iter().rev().collect();
        }
        if compaction.tokens_before == 0 {
            compaction.tokens_before = before;
        }
        if compaction.tokens_after == 0 {
            compaction.tokens_after = compaction.to_message(None).tokens();
        }
        tree.folds.push(Fold { first, last, compaction });
        Ok(())
    }

    fn head(&self) -> Result<Option<MessageId>> {
        let tree = self.tree();
        Ok(tree.nearest(tree.head).cloned())
    }

    fn expand(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let tree = self.tree();
        let over = self.fold(&tree, id)?;
        let Fold { first, last, .. } = tree.folds[over];
        // Of those over the very same stretch only older ones, so that going down ends.
        let lies_below = |fold: usize| {
            let inner = &tree.folds[fold];
            inner.first >= first && (inner.first > first || inner.last < last || fold < over)
        };
        let items = tree.items_with(Some(last), lies_below);
        let starts = |item: &Item| match item {
            Item::Node(at) => *at,
            Item::Fold(fold) => tree.folds[*fold].first,
        };
        let within = items.iter().filter(|item| starts(item) >= first);
        let mut shown: Vec<Message> = within.filter_map(|item| tree.show(item)).collect();
        shown.reverse();
        Ok(shown)
    }

    fn expand_raw(&self, id: &CompactionId) -> Result<Vec<Message>> {
        let tree = self.tree();
        let fold = &tree.folds[self.fold(&tree, id)?];
        let stretch = tree.path(Some(fold.last)).take_while(|at| *at >= fold.first);
        let mut messages: Vec<Message> = stretch.filter_map(|at| tree.read(at)).collect();
        messages.reverse();
        Ok(messages)
    }

    fn compactions(&self) -> Result<Vec<Compaction>> {
        Ok(self.tree().folds.iter().map(|fold| fold.compaction.clone()).collect())
    }

    fn search(&self, request: &SearchRequest) -> Result<Found> {
        let tree = self.tree();
        let leaf = match &request.scope {
            Scope::Path(_, leaf) => Some(self.leaf(&tree, leaf.as_ref())?),
            _ => None,
        };
        let scope: Vec<usize> = match leaf {
            Some(leaf) => tree.path(leaf).collect(),
            None => (0..tree.nodes.len()).rev().collect(),
        };
        let head: Vec<usize> = tree.path(tree.head).collect();
        let under = |at: usize| {
            let shown = tree.items(tree.head).into_iter().find_map(|item| match item {
                Item::Fold(fold) if head.contains(&at) => {
                    let fold = &tree.folds[fold];
                    (fold.first <= at && at <= fold.last).then_some(fold)
                }
                _ => None,
            });
            shown.map(|fold| fold.compaction.id.clone())
        };
        let words = words_of(&request.text);
        let matches = scope.into_iter().filter_map(|at| {
            let message = tree.read(at)?;
            let text = message.text();
            let folded = text.to_lowercase();
            let is_match = !words.is_empty() && words.iter().all(|word| folded.contains(word));
            is_match.then(|| Hit {
                session: self.id.clone(),
                id: message.id,
                role: message.role,
                created_at: message.created_at,
                snippet: Snippet { text, marks: Vec::new() },
                score: 1.0,
                matched: Matched::All,
                on_path: head.contains(&at),
                under: under(at),
                sessions: vec![self.id.clone()],
            })
        });
        let hits = matches.skip(request.offset).take(request.limit).collect();
        Ok(Found { hits, matched: Matched::All, notices: Vec::new() })
    }
}

/// Returns the words of a query in lower case: one of each clause, filters and exclusions left out.
fn words_of(text: &str) -> Vec<String> {
    let clauses = Query::parse(text).clauses;
    let terms = clauses.into_iter().filter_map(|clause| clause.into_iter().next());
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
