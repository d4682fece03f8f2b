//! Random operations leave a store and a plain model of it equal.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::model::{Compaction, Gone, Item, Line, Model, Node, Refusal, State};
use crate::common::{Scratch, random};
use chrono::DateTime;
use proptest::prelude::*;
use talktree::{
    Budget, CompactionId, Deleted, Error, Message, MessageId, Parent, Path, Result, Session,
};

/// Selects one of the existing things, however many there are.
type Pick = u16;

#[derive(Debug, Clone)]
pub(crate) enum Where {
    Head,
    Root,
    To(Pick),
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Append {
        at: Where,
        count: u8,
        is_hidden: bool,
    },
    AppendOver {
        known: Pick,
    },
    AppendForeign,
    Import {
        parent: Option<Pick>,
        is_hidden: bool,
    },
    ImportAgain(Pick),
    Update {
        target: Pick,
        is_same: bool,
    },
    Upsert(Option<Pick>),
    Delete(Vec<Pick>),
    DeleteNewest,
    DeleteUnknown(Pick),
    DeleteBranch(Pick),
    Clear,
    Checkout(Option<Pick>),
    Undo,
    Redo,
    Label(u8, Pick),
    Unlabel(u8),
    /// Adds a compaction between any two messages.
    Compact(Pick, Pick),
    /// Adds a compaction between two items of the view at a message; items may be compactions.
    CompactItems {
        leaf: Option<Pick>,
        ends: (Pick, Pick),
    },
    RemoveCompaction(Pick),
    Fork(Pick),
    Switch(Pick),
    Reopen,
}

fn parent() -> impl Strategy<Value = Where> {
    prop_oneof![
        6 => Just(Where::Head),
        1 => Just(Where::Root),
        4 => any::<Pick>().prop_map(Where::To),
    ]
}

fn append() -> impl Strategy<Value = Op> {
    (parent(), 1..4_u8, prop::bool::weighted(0.15)).prop_map(|(at, count, is_hidden)| Op::Append {
        at,
        count,
        is_hidden,
    })
}

fn compaction() -> impl Strategy<Value = Op> {
    (prop::option::of(any::<Pick>()), any::<(Pick, Pick)>())
        .prop_map(|(leaf, ends)| Op::CompactItems { leaf, ends })
}

pub(crate) fn any_op() -> impl Strategy<Value = Op> {
    let import = (prop::option::weighted(0.9, any::<Pick>()), prop::bool::weighted(0.2))
        .prop_map(|(parent, is_hidden)| Op::Import { parent, is_hidden });
    let update = any::<(Pick, bool)>().prop_map(|(target, is_same)| Op::Update { target, is_same });
    prop_oneof![
        14 => append(),
        2 => any::<Pick>().prop_map(|known| Op::AppendOver { known }),
        1 => Just(Op::AppendForeign),
        3 => import,
        1 => any::<Pick>().prop_map(Op::ImportAgain),
        3 => update,
        1 => any::<Option<Pick>>().prop_map(Op::Upsert),
        4 => prop::collection::vec(any::<Pick>(), 0..4).prop_map(Op::Delete),
        2 => Just(Op::DeleteNewest),
        1 => any::<Pick>().prop_map(Op::DeleteUnknown),
        1 => any::<Pick>().prop_map(Op::DeleteBranch),
        4 => prop::option::weighted(0.9, any::<Pick>()).prop_map(Op::Checkout),
        3 => Just(Op::Undo),
        2 => Just(Op::Redo),
        2 => (0..4_u8, any::<Pick>()).prop_map(|(name, at)| Op::Label(name, at)),
        1 => (0..4_u8).prop_map(Op::Unlabel),
        2 => any::<(Pick, Pick)>().prop_map(|(first, last)| Op::Compact(first, last)),
        5 => compaction(),
        2 => any::<Pick>().prop_map(Op::RemoveCompaction),
        1 => any::<Pick>().prop_map(Op::Fork),
        1 => any::<Pick>().prop_map(Op::Switch),
        1 => Just(Op::Reopen),
    ]
}

/// Mostly branches, compactions and deletions.
pub(crate) fn knotty_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => append(),
        10 => compaction(),
        3 => any::<Pick>().prop_map(Op::RemoveCompaction),
        6 => prop::collection::vec(any::<Pick>(), 1..5).prop_map(Op::Delete),
        2 => Just(Op::DeleteNewest),
        1 => any::<Pick>().prop_map(Op::DeleteBranch),
        3 => any::<Pick>().prop_map(|at| Op::Checkout(Some(at))),
        1 => Just(Op::Undo),
        1 => any::<Pick>().prop_map(Op::Fork),
        1 => any::<Pick>().prop_map(Op::Switch),
    ]
}

/// What ids and labels end with: names that have broken programs, and some that others may take for each other.
const ENDS: [&str; 8] = ["", " ", "\0", "\0b", "'", "\u{202E}", "e\u{301}", "\u{e9}"];

fn label(name: u8) -> String {
    format!("{name}{}", ENDS[usize::from(name) % ENDS.len()])
}

/// What the texts have for searches.
const WORDS: [&str; 5] =
    ["fox den", "owl 北京", "red foxes in 北京", "deploy-2 config.rs", "den of a fox"];

/// A store and its model.
pub(crate) struct World {
    pub(crate) scratch: Scratch,
    session: Session,
    models: Vec<Model>,
    /// The current session.
    at: usize,
    /// The number of names so far; it makes ids and texts unique.
    count: u32,
}

impl World {
    pub(crate) fn over(scratch: Scratch) -> Result<Self> {
        let session = scratch.store.session("0")?;
        Ok(Self { scratch, session, models: vec![Model::new()], at: 0, count: 0 })
    }

    fn model(&mut self) -> &mut Model {
        &mut self.models[self.at]
    }

    /// Returns a living message; `None` if there is none.
    fn pick(&self, pick: Pick) -> Option<usize> {
        let living: Vec<usize> = self.models[self.at].living().collect();
        living.get(usize::from(pick) % living.len().max(1)).copied()
    }

    fn id(&self, at: usize) -> MessageId {
        MessageId::from(self.models[self.at].nodes[at].id.as_str())
    }

    fn new_node(&mut self, is_hidden: bool) -> (Node, Message) {
        self.count += 1;
        let end = ENDS[self.count as usize % ENDS.len()];
        let node = Node {
            id: format!("m{}{end}", self.count / ENDS.len() as u32),
            parent: None,
            role: if self.count.is_multiple_of(2) { "user" } else { "assistant" },
            text: format!("text {} {}", self.count, WORDS[self.count as usize % WORDS.len()]),
            is_hidden,
            state: State::Living,
        };
        let message = to_message(&node);
        (node, message)
    }

    /// Returns, now and then, the id of a message that was deleted, which is free again.
    fn free_id(&self) -> Option<String> {
        let model = &self.models[self.at];
        let mut dead = model.nodes.iter().filter(|node| node.state != State::Living);
        let free = dead.find(|node| model.find(&node.id).is_none());
        free.filter(|_| self.count.is_multiple_of(3)).map(|node| node.id.clone())
    }

    fn switch(&mut self, at: usize) -> Result<()> {
        self.at = at;
        self.session = self.scratch.store.session(at.to_string())?;
        Ok(())
    }

    pub(crate) fn run(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Append { at, count, is_hidden } => {
                let mut made: Vec<_> = (0..*count).map(|_| self.new_node(*is_hidden)).collect();
                if let Some(id) = self.free_id() {
                    made[0].0.id = id;
                    made[0].1 = to_message(&made[0].0);
                }
                let (nodes, messages): (Vec<Node>, Vec<Message>) = made.into_iter().unzip();
                let (parent, target) = match at {
                    Where::Head => (self.model().head, Parent::Head),
                    Where::Root => (None, Parent::Root),
                    Where::To(pick) => match self.pick(*pick) {
                        None => return Ok(()),
                        Some(at) => (Some(at), Parent::Message(self.id(at))),
                    },
                };
                append_at(&self.session, &target, messages)?;
                self.model().append(parent, nodes);
            }
            Op::AppendOver { known } => {
                let Some(known) = self.pick(*known) else { return Ok(()) };
                let old = self.models[self.at].nodes[known].clone();
                let (before, first) = self.new_node(false);
                let (after, last) = self.new_node(false);
                let answers = self.session.append_all([
                    first,
                    to_message(&Node { text: "other".to_owned(), ..old.clone() }),
                    last,
                ])?;
                assert_eq!(
                    answers.iter().map(|a| a.is_new).collect::<Vec<_>>(),
                    [true, false, true]
                );
                assert!(answers[1].differs);
                let head = self.model().head;
                self.model().append(head, vec![before, old, after]);
            }
            Op::AppendForeign => {
                let (_, message) = self.new_node(false);
                let answer = self.session.append_to(&"nobody".into(), message);
                assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
            }
            Op::Import { parent, is_hidden } => {
                let parent = parent.and_then(|pick| self.pick(pick));
                let (node, message) = self.new_node(*is_hidden);
                let id = parent.map(|at| self.id(at));
                assert!(self.session.import_message(id.as_ref(), message)?.is_new);
                self.model().import(parent, node);
            }
            Op::ImportAgain(pick) => {
                // The imported message may have been deleted since.
                let imported: Vec<String> = self.model().imported.iter().cloned().collect();
                if let Some(id) = imported.get(usize::from(*pick) % imported.len().max(1)) {
                    let again = Message::user("again").with_id(id.as_str());
                    let known = self.session.import_message(None, again)?;
                    let is_there = self.session.message(&id.as_str().into())?.is_some();
                    assert_eq!((known.is_new, known.differs), (false, is_there));
                }
            }
            Op::Update { target, is_same } => {
                let Some(target) = self.pick(*target) else { return Ok(()) };
                self.count += 1;
                let text = format!("updated {}", self.count);
                let node = &mut self.models[self.at].nodes[target];
                if !is_same {
                    node.text = text;
                }
                let message = to_message(node);
                let updated = self.session.update(message)?;
                assert_eq!(updated.is_changed, !is_same);
                let covered: BTreeSet<String> =
                    updated.covered_by.iter().map(ToString::to_string).collect();
                assert_eq!(covered, self.model().covered_by(target));
            }
            Op::Upsert(pick) => match pick.and_then(|pick| self.pick(pick)) {
                Some(target) => {
                    self.count += 1;
                    let text = format!("upserted {}", self.count);
                    self.models[self.at].nodes[target].text = text;
                    let message = to_message(&self.models[self.at].nodes[target]);
                    assert!(!self.session.upsert(message)?.is_new);
                }
                None => {
                    let (node, message) = self.new_node(false);
                    assert!(self.session.upsert(message)?.is_new);
                    let head = self.model().head;
                    self.model().append(head, vec![node]);
                }
            },
            Op::Delete(picks) => {
                let targets: Vec<usize> =
                    picks.iter().filter_map(|pick| self.pick(*pick)).collect();
                let ids: Vec<MessageId> = targets.iter().map(|at| self.id(*at)).collect();
                let deleted = self.session.delete(&ids)?;
                assert_eq!(gone(&deleted), self.model().delete(&targets));
            }
            Op::DeleteNewest => {
                let Some(newest) = self.model().living().last() else { return Ok(()) };
                let deleted = self.session.delete([&self.id(newest)])?;
                assert_eq!(gone(&deleted), self.model().delete(&[newest]));
            }
            Op::DeleteUnknown(pick) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                let answer = self.session.delete([&self.id(target), &"nobody".into()]);
                assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
            }
            Op::DeleteBranch(pick) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                let deleted = self.session.delete_branch(&self.id(target))?;
                let targets = self.model().subtree(target);
                assert_eq!(gone(&deleted), self.model().delete(&targets));
            }
            Op::Clear => {
                self.session.clear()?;
                self.model().clear();
            }
            Op::Checkout(None) => {
                self.session.checkout_start()?;
                self.model().move_head(None);
            }
            Op::Checkout(Some(pick)) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                self.session.checkout(&self.id(target))?;
                self.model().move_head(Some(target));
            }
            Op::Undo => assert_eq!(self.session.undo_head()?, self.model().step_head(-1)),
            Op::Redo => assert_eq!(self.session.redo_head()?, self.model().step_head(1)),
            Op::Label(name, pick) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                self.session.label(&label(*name), &self.id(target))?;
                self.model().labels.insert(label(*name), target);
            }
            Op::Unlabel(name) => {
                self.session.unlabel(&label(*name))?;
                self.model().labels.remove(&label(*name));
            }
            Op::Compact(first, last) => {
                let (Some(first), Some(last)) = (self.pick(*first), self.pick(*last)) else {
                    return Ok(());
                };
                self.compact(first, last, self.id(first), self.id(last))?;
            }
            Op::CompactItems { leaf, ends } => {
                let leaf = match leaf {
                    Some(pick) => self.pick(*pick),
                    None => self.model().head,
                };
                let model = &self.models[self.at];
                let is_named = |item: &Item| match item {
                    Item::Node(at) => model.nodes[*at].state == State::Living,
                    Item::Compaction(_) => true,
                };
                let items: Vec<Item> = model.items(leaf).into_iter().filter(is_named).collect();
                let end = |pick: Pick| items.get(usize::from(pick) % items.len().max(1));
                let (Some(a), Some(b)) = (end(ends.0), end(ends.1)) else { return Ok(()) };
                let name = |item: &Item, is_first: bool| match item {
                    Item::Node(at) => (*at, self.id(*at)),
                    Item::Compaction(compaction) => {
                        let compaction = &model.compactions[*compaction];
                        let at = if is_first { compaction.first } else { compaction.last };
                        (at, CompactionId::from(compaction.id.as_str()).as_message())
                    }
                };
                let (first, first_id) = name(a, true);
                let (last, last_id) = name(b, false);
                self.compact(first, last, first_id, last_id)?;
            }
            Op::RemoveCompaction(pick) => {
                let count = self.model().compactions.len();
                if count == 0 {
                    return Ok(());
                }
                let compaction = self.model().compactions.remove(usize::from(*pick) % count);
                let raw = self.every_raw()?;
                self.session.remove_compaction(&CompactionId::from(compaction.id))?;
                assert_eq!(self.every_raw()?, raw);
            }
            Op::Fork(pick) => {
                let Some(target) = self.pick(*pick).filter(|_| self.models.len() < 5) else {
                    return Ok(());
                };
                let id = self.models.len().to_string();
                let before = self.session.at(&self.id(target)).history()?;
                let fork = self.session.fork_as(&id.as_str().into(), &self.id(target), "f")?;
                assert_eq!(fork.history()?, before);
                let info = fork.info()?.ok_or_else(|| fork_is_lost(&id))?;
                assert_eq!(info.parent_session.as_ref(), Some(self.session.id()));
                assert_eq!(info.fork_point, Some(self.id(target)));
                let forked = self.model().fork(target);
                self.models.push(forked);
            }
            Op::Switch(pick) => self.switch(usize::from(*pick) % self.models.len())?,
            Op::Reopen => {
                self.scratch.reopen()?;
                self.switch(self.at)?;
            }
        }
        Ok(())
    }

    fn compact(
        &mut self,
        first: usize,
        last: usize,
        first_id: MessageId,
        last_id: MessageId,
    ) -> Result<()> {
        // The id of a compaction stands for its ends even if the messages there were deleted.
        let expected = self.models[self.at].check_compaction(first, last);
        self.count += 1;
        let summary = format!("summary {}", self.count);
        let raw = self.every_raw()?;
        let lengths = self.every_length()?;
        let answer = self.session.add_compaction(summary.as_str(), &first_id, &last_id);
        assert_eq!(self.every_raw()?, raw, "a compaction changes nothing that is stored");
        match (answer, expected) {
            (Ok(added), Ok(())) => {
                let model = &mut self.models[self.at];
                model.compactions.push(Compaction {
                    id: added.id.to_string(),
                    first,
                    last,
                    first_id: model.nodes[first].id.clone(),
                    last_id: model.nodes[last].id.clone(),
                    count: model.under(first, last).len() as u64,
                    summary,
                });
                for (before, after) in lengths.iter().zip(self.every_length()?) {
                    assert!(after <= *before, "a compaction made a history longer");
                }
            }
            (Err(Error::NotAncestor { .. }), Err(Refusal::NotAncestor))
            | (Err(Error::NothingVisible { .. }), Err(Refusal::Nothing)) => {}
            (Err(Error::InsideSummary { compaction, .. }), Err(Refusal::Inside(id))) => {
                assert_eq!(compaction.as_str(), id);
            }
            (answer, expected) => panic!("{answer:?} where {expected:?} was expected"),
        }
        Ok(())
    }

    fn every_raw(&self) -> Result<Vec<Message>> {
        self.session.all_messages().collect()
    }

    /// Returns the lengths of the histories at every message.
    fn every_length(&self) -> Result<Vec<usize>> {
        let living = self.models[self.at].living();
        living.map(|at| Ok(self.session.at(&self.id(at)).history()?.len())).collect()
    }

    /// Compares the most common reads of the current session.
    fn compare(&self) -> Result<()> {
        let (chat, model) = (&self.session, &self.models[self.at]);
        assert_eq!(lines(&chat.raw_history()?), model.raw(model.head));
        assert_eq!(lines(&chat.history()?), model.history(model.head));
        let head = chat.head()?;
        assert_eq!(head.as_ref().map(ToString::to_string), model.id_of_place(model.head));
        if let Some(head) = head {
            assert_eq!(chat.at(&head).history()?, chat.history()?);
            assert_eq!(chat.at(&head).raw().history()?, chat.raw_history()?);
        }
        for parent in [None, head_message(chat)?] {
            let all = match &parent {
                Some(parent) => chat.branches(parent)?,
                None => chat.roots()?,
            };
            let mut paged: Vec<Message> = Vec::new();
            loop {
                let after = paged.last().map(|message| message.id.clone());
                let page = chat.branches_page(parent.as_ref(), after.as_ref(), 2)?;
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, all);
        }
        let log =
            chat.head_log()?.into_iter().map(|e| (e.id.map(|id| id.to_string()), e.is_present));
        let log = log.collect::<Vec<_>>();
        let places = model.log.iter().enumerate();
        let expected: Vec<_> =
            places.map(|(at, place)| (model.id_of_place(*place), at == model.position)).collect();
        if model.exists {
            assert_eq!(log, expected);
        }
        let labels: Vec<_> =
            chat.labels()?.into_iter().map(|label| (label.name, label.id.to_string())).collect();
        let expected =
            model.labels.iter().map(|(name, at)| (name.clone(), model.nodes[*at].id.clone()));
        assert_eq!(labels, expected.collect::<Vec<_>>());
        let compactions = chat.compactions()?.into_iter().map(|c| {
            (c.id.to_string(), c.first.to_string(), c.last.to_string(), c.count, c.summary)
        });
        let compactions = compactions.collect::<Vec<_>>();
        let expected: Vec<_> = model
            .compactions
            .iter()
            .cloned()
            .map(|f| (f.id, f.first_id, f.last_id, f.count, f.summary))
            .collect();
        assert_eq!(compactions, expected);
        Ok(())
    }

    /// Compares everything in every session.
    fn compare_all(&mut self) -> Result<()> {
        let at = self.at;
        for session in 0..self.models.len() {
            self.switch(session)?;
            self.compare()?;
            self.compare_tree()?;
            let has_head = self.model().head.is_some();
            self.compare_streams(&self.session.path(), has_head)?;
            self.compare_search()?;
        }
        self.compare_stats()?;
        self.switch(at)
    }

    fn compare_tree(&self) -> Result<()> {
        let (chat, model) = (&self.session, &self.models[self.at]);
        let ids =
            |nodes: Vec<usize>| nodes.into_iter().map(|at| model.line(at)).collect::<Vec<_>>();
        assert_eq!(lines(&self.every_raw()?), ids(model.living().collect()));
        assert_eq!(lines(&chat.roots()?), ids(model.children(None)));
        let leaves: Vec<String> = chat.leaves()?.iter().map(ToString::to_string).collect();
        let expected = model.leaves().into_iter().map(|at| model.nodes[at].id.clone());
        assert_eq!(leaves, expected.collect::<Vec<_>>());
        let latest = chat.latest_leaf()?;
        assert_eq!(lines(latest.as_slice()), ids(model.living().last().into_iter().collect()));
        for at in model.living() {
            let id = self.id(at);
            let raw = chat.at(&id).raw_history()?;
            assert_eq!(lines(&raw), model.raw(Some(at)));
            assert_eq!(lines(&chat.at(&id).history()?), model.history(Some(at)));
            assert_eq!(chat.at(&id).path_length()?, raw.len() as u64);
            assert_eq!(chat.message(&id)?.as_ref(), raw.last());
            assert_eq!(lines(&chat.branches(&id)?), ids(model.children(Some(at))));
            let parent = model.nearest(model.nodes[at].parent);
            assert_eq!(lines(&chat.siblings(&id)?), ids(model.children(parent)));
            let stats = chat.at(&id).row_stats()?;
            assert_eq!(stats.len(), raw.len());
            for (stat, message) in stats.iter().zip(&raw) {
                assert_eq!((&stat.id, &stat.role), (&message.id, &message.role));
                assert_eq!(stat.tokens, message.tokens());
                let parts = serde_json::to_string(&message.parts).map_or(0, |text| text.len());
                assert_eq!(stat.bytes, parts as u64);
            }
            if let Some(head) = model.head {
                assert_eq!(chat.is_on_path(&id)?, model.path(Some(head)).contains(&at));
            }
            self.compare_streams(&chat.at(&id), true)?;
        }
        for (at, compaction) in model.compactions.iter().enumerate() {
            let id = CompactionId::from(compaction.id.as_str());
            let under = model.under(compaction.first, compaction.last);
            assert_eq!(lines(&chat.expand_raw(&id)?), ids(under));
            assert_eq!(lines(&chat.expand(&id)?), model.lines(&model.below(at)));
        }
        Ok(())
    }

    /// Compares every way of reading a path with the whole path.
    fn compare_streams(&self, path: &Path, has_leaf: bool) -> Result<()> {
        let chat = &self.session;
        let histories =
            [(path.clone(), path.history()?), (path.clone().raw(), path.raw_history()?)];
        for (path, mut whole) in histories {
            assert_eq!(path.history()?, whole);
            let forth: Vec<Message> = path.iter().collect::<Result<_>>()?;
            assert_eq!(forth, whole);
            let mut back: Vec<Message> = path.iter_rev().collect::<Result<_>>()?;
            back.reverse();
            assert_eq!(back, whole);
            for message in &whole {
                assert_eq!(chat.message(&message.id)?.as_ref(), Some(message));
            }
            let recent = path.recent(Budget::messages(3))?;
            assert_eq!(recent.left_out as usize + recent.messages.len(), whole.len());
            assert!(whole.ends_with(&recent.messages));
            assert!(recent.messages.len() >= whole.len().min(3));
            if has_leaf {
                assert_eq!(pages_back(&path)?, whole);
                assert_eq!(pages_forth(&path, &whole)?, whole.split_off(1.min(whole.len())));
            }
        }
        Ok(())
    }

    /// Compares the hits of a search, and their positions, with the model.
    fn compare_search(&self) -> Result<()> {
        let (chat, model) = (&self.session, &self.models[self.at]);
        let found = chat.search("text OR updated OR upserted").limit(10_000).run()?;
        let hits: BTreeMap<String, (bool, Option<String>)> = found
            .hits
            .into_iter()
            .map(|hit| (hit.id.to_string(), (hit.on_path, hit.under.map(|id| id.to_string()))))
            .collect();
        let path = model.path(model.head);
        let items = model.items(model.head);
        let under = |at: usize| {
            let compactions = items.iter().filter_map(|item| match item {
                Item::Compaction(compaction) => Some(&model.compactions[*compaction]),
                Item::Node(_) => None,
            });
            let mut covering =
                compactions.filter(|compaction| compaction.first <= at && at <= compaction.last);
            covering.next().filter(|_| path.contains(&at)).map(|compaction| compaction.id.clone())
        };
        let expected: BTreeMap<String, (bool, Option<String>)> = model
            .living()
            .map(|at| (model.nodes[at].id.clone(), (path.contains(&at), under(at))))
            .collect();
        assert_eq!(hits, expected);
        let on_path = chat.search("text OR updated OR upserted").on_path().limit(10_000).run()?;
        let on_path: BTreeSet<String> = on_path.hits.iter().map(|hit| hit.id.to_string()).collect();
        let expected = path.iter().filter(|at| model.nodes[**at].state == State::Living);
        assert_eq!(on_path, expected.map(|at| model.nodes[*at].id.clone()).collect());
        Ok(())
    }

    fn compare_stats(&self) -> Result<()> {
        let stats = self.scratch.store.stats()?;
        let all = || self.models.iter();
        let count = |is_hidden: bool| -> u64 {
            let hidden = |model: &Model| {
                model.living().filter(|at| model.nodes[*at].is_hidden == is_hidden).count() as u64
            };
            all().map(hidden).sum()
        };
        let fans: Vec<u64> = all()
            .flat_map(|model| model.living().map(|at| model.children(Some(at)).len() as u64))
            .collect();
        let depths = all().flat_map(|model| model.living().map(|at| model.raw(Some(at)).len()));
        assert_eq!(stats.sessions, all().filter(|model| model.exists).count() as u64);
        assert_eq!((stats.messages, stats.hidden), (count(false), count(true)));
        assert_eq!(stats.branching_messages, fans.iter().filter(|fan| **fan > 1).count() as u64);
        assert_eq!(stats.max_children, fans.iter().copied().max().unwrap_or(0));
        assert_eq!(stats.max_depth, depths.max().unwrap_or(0) as u64);
        assert_eq!(
            stats.compactions,
            all().map(|model| model.compactions.len() as u64).sum::<u64>()
        );
        Ok(())
    }
}

/// Reads a path page by page, from its end.
fn pages_back(path: &Path) -> Result<Vec<Message>> {
    let mut page = path.page().limit(3).run()?;
    let mut read = page.messages;
    while let Some(before) = page.before {
        page = path.page().before(&before).limit(3).run()?;
        read.splice(0..0, page.messages);
    }
    Ok(read)
}

/// Reads a path page by page, from after its first item.
fn pages_forth(path: &Path, whole: &[Message]) -> Result<Vec<Message>> {
    let mut read = Vec::new();
    let mut after = whole.first().map(|message| message.id.clone());
    while let Some(id) = after {
        let page = path.page().after(&id).limit(3).run()?;
        read.extend(page.messages);
        after = page.after;
    }
    Ok(read)
}

/// Appends by the verb for one message or by the one for several.
fn append_at(chat: &Session, parent: &Parent, mut messages: Vec<Message>) -> Result<()> {
    match (parent, messages.len()) {
        (Parent::Head, 1) => chat.append(messages.remove(0))?,
        (Parent::Root, 1) => chat.append_root(messages.remove(0))?,
        (Parent::Message(id), 1) => chat.append_to(id, messages.remove(0))?,
        _ => return chat.append_all_to(parent, messages).map(|_| ()),
    };
    Ok(())
}

fn to_message(node: &Node) -> Message {
    let message = match node.role {
        "user" => Message::user(node.text.as_str()),
        _ => Message::assistant(node.text.as_str()),
    };
    // Times in no order: none of a read depends on them.
    let seconds = node.id.bytes().fold(0, |sum, byte| sum * 31 + i64::from(byte)) % 1_000_000_007;
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let message = message.with_id(node.id.as_str()).at(time);
    if node.is_hidden { message.hidden() } else { message }
}

fn lines(messages: &[Message]) -> Vec<Line> {
    let line = |message: &Message| Line {
        id: message.id.to_string(),
        parent: message.parent.as_ref().map(ToString::to_string),
        role: message.role.to_string(),
        text: message.text(),
        is_hidden: message.is_hidden,
    };
    messages.iter().map(line).collect()
}

fn gone(deleted: &Deleted) -> Gone {
    let ids = |ids: &[CompactionId]| ids.iter().map(ToString::to_string).collect();
    Gone {
        messages: deleted.messages.iter().map(ToString::to_string).collect(),
        covered_by: ids(&deleted.covered_by),
        gone: ids(&deleted.compactions_gone),
        back: ids(&deleted.compactions_back),
    }
}

fn fork_is_lost(id: &str) -> Error {
    Error::UnknownSession { id: id.into() }
}

fn check(ops: &[Op], is_cleared_at_half: bool) -> Result<()> {
    let mut world = World::over(Scratch::new()?)?;
    for (step, op) in ops.iter().enumerate() {
        world.run(op)?;
        world.compare()?;
        if step % 16 == 15 {
            world.compare_all()?;
        }
        if is_cleared_at_half && step == ops.len() / 2 {
            world.run(&Op::Clear)?;
        }
    }
    world.compare_all()?;
    world.run(&Op::Reopen)?;
    world.compare_all()?;
    let verified = world.scratch.store.verify(|_| {})?;
    assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    Ok(())
}

fn run(ops: impl Strategy<Value = Vec<Op>>, cases: u32) -> std::result::Result<(), String> {
    let strategy = (ops, prop::bool::weighted(0.1));
    random::check_all(random::cases(cases), &strategy, |(ops, is_cleared_at_half)| {
        check(&ops, is_cleared_at_half)
    })
}

#[test]
fn any_operations_leave_the_store_equal_to_the_model() -> std::result::Result<(), String> {
    run(prop::collection::vec(any_op(), 1..60), 64)
}

#[test]
fn branches_compactions_and_deletions_leave_the_store_equal_to_the_model()
-> std::result::Result<(), String> {
    run(prop::collection::vec(knotty_op(), 20..60), 48)
}

/// Returns the parent of the head, whose branches are more than one after a checkout.
fn head_message(chat: &Session) -> Result<Option<MessageId>> {
    let head = chat.head()?.map(|head| chat.message(&head)).transpose()?;
    Ok(head.flatten().and_then(|head| head.parent))
}
