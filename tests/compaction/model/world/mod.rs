//! A store and its model; every operation runs on both.

mod commit;
mod compare;
mod verbs;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use talktree::{
    BoxError, CompactionId, CompactionOptions, Message, MessageId, Parent, Part, Result, Session,
};

use crate::common::model::{Item, Model, Node, State};
use crate::common::{self, Scratch};
use crate::model::count::Count;
use crate::model::op::{Line, Op, Pick, Where};
use commit::KeptPlan;

/// The session's summarizer: each summary differs, and `words` sets its length.
#[derive(Clone, Default)]
struct Summarizer {
    count: Arc<AtomicUsize>,
    words: Arc<AtomicU8>,
}

impl Summarizer {
    fn summary(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        summary_text(&format!("automatic {number}"), self.words.load(Ordering::SeqCst))
    }

    fn function(
        &self,
    ) -> impl Fn(&str) -> std::result::Result<String, BoxError> + Send + Sync + use<> {
        let summarizer = self.clone();
        move |_| Ok(summarizer.summary())
    }
}

/// Returns a text that contains a unique name.
fn marked(name: &str, words: u8) -> String {
    format!("<{name}>{}", " word".repeat(words.into()))
}

fn summary_text(name: &str, words: u8) -> String {
    if words == 0 { " \u{200B}\n".to_owned() } else { marked(name, words) }
}

/// The figures of a compaction.
#[derive(Debug, Clone, PartialEq)]
struct Figures {
    before: u64,
    after: u64,
    nested: Vec<CompactionId>,
    model: Option<String>,
}

/// The content of an item: id, role, parts.
type Content = (MessageId, String, Vec<Part>);

fn content(message: &Message) -> Content {
    (message.id.clone(), message.role.to_string(), message.parts.clone())
}

fn contents(messages: &[Message]) -> Vec<Content> {
    messages.iter().map(content).collect()
}

/// Two handles of a session: of two stores over one file, or clones of one session in memory.
struct Handles {
    pair: [Session; 2],
    turn: usize,
}

/// A store and its model.
pub(super) struct World {
    scratch: Scratch,
    handles: Handles,
    summarizer: Summarizer,
    count: Count,
    /// Whether the counter was ever changed: then given summaries use the stored counts of any counter.
    is_recounted: bool,
    models: Vec<Model>,
    /// By the text of a node, which is unique.
    parts: HashMap<String, Vec<Part>>,
    figures: Vec<HashMap<String, Figures>>,
    plans: Vec<Vec<KeptPlan>>,
    /// The current session.
    at: usize,
    /// The number of names so far; it makes ids and texts unique.
    number: u32,
}

/// The options of the session's summarizer.
fn session_options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(60).min_summary_tokens(10)
}

impl World {
    pub(super) fn in_file() -> Result<Self> {
        let (scratch, summarizer) = (Scratch::new()?, Summarizer::default());
        let handles = open(&scratch, 0, Count::Heuristic, &summarizer)?;
        Ok(Self::over(scratch, handles, summarizer))
    }

    fn over(scratch: Scratch, handles: Handles, summarizer: Summarizer) -> Self {
        Self {
            scratch,
            handles,
            summarizer,
            count: Count::Heuristic,
            is_recounted: false,
            models: vec![Model::new()],
            parts: HashMap::new(),
            figures: vec![HashMap::new()],
            plans: vec![Vec::new()],
            at: 0,
            number: 0,
        }
    }

    /// Returns the handle of the current turn.
    fn chat(&self) -> &Session {
        &self.handles.pair[self.handles.turn]
    }

    fn model(&mut self) -> &mut Model {
        &mut self.models[self.at]
    }

    /// Returns a living message; `None` if there is none.
    fn pick(&self, pick: Pick) -> Option<usize> {
        let living: Vec<usize> = self.models[self.at].living().collect();
        living.get(usize::from(pick) % living.len().max(1)).copied()
    }

    /// Returns a living message, or the one at the head.
    fn leaf(&self, pick: Option<Pick>) -> Option<usize> {
        let model = &self.models[self.at];
        pick.map_or_else(|| model.nearest(model.head), |pick| self.pick(pick))
    }

    fn id(&self, at: usize) -> MessageId {
        MessageId::from(self.models[self.at].nodes[at].id.as_str())
    }

    fn new_name(&mut self) -> String {
        self.number += 1;
        self.number.to_string()
    }

    fn new_node(&mut self, line: &Line) -> Node {
        let name = self.new_name();
        let text = marked(&name, line.words);
        self.parts.insert(text.clone(), line.tools.parts());
        Node {
            id: format!("m{name}"),
            parent: None,
            role: if self.number.is_multiple_of(2) { "user" } else { "assistant" },
            text,
            is_hidden: line.is_hidden,
            state: State::Living,
        }
    }

    fn to_message(&self, node: &Node) -> Message {
        let mut parts = vec![Part::text(node.text.as_str())];
        parts.extend(self.parts.get(&node.text).into_iter().flatten().cloned());
        let message = Message::new(node.role, parts).with_id(node.id.as_str());
        if node.is_hidden { message.hidden() } else { message }
    }

    fn node_content(&self, at: usize) -> Content {
        content(&self.to_message(&self.models[self.at].nodes[at]))
    }

    fn item_content(&self, item: &Item) -> Content {
        match item {
            Item::Node(at) => self.node_content(*at),
            Item::Compaction(compaction) => {
                let compaction = &self.models[self.at].compactions[*compaction];
                let id = CompactionId::from(compaction.id.as_str()).as_message();
                (id, "assistant".to_owned(), vec![Part::text(compaction.summary.as_str())])
            }
        }
    }

    /// Returns the view at a node according to the model, oldest first.
    fn view(&self, at: Option<usize>) -> Vec<Item> {
        let model = &self.models[self.at];
        let mut items = model.items(at);
        items.retain(|item| model.is_shown(item));
        items.reverse();
        items
    }

    fn switch(&mut self, at: usize) -> Result<()> {
        self.at = at;
        let turn = self.handles.turn;
        self.handles = Handles { turn, ..open(&self.scratch, at, self.count, &self.summarizer)? };
        Ok(())
    }

    pub(super) fn run(&mut self, op: &Op) -> Result<()> {
        self.handles.turn = 1 - self.handles.turn;
        match op {
            Op::Append { at, lines } => self.append(at, lines),
            Op::Update { target, line } => {
                let Some(target) = self.pick(*target) else { return Ok(()) };
                let fresh = self.new_node(line);
                let node = &mut self.models[self.at].nodes[target];
                (node.text, node.role) = (fresh.text, fresh.role);
                let message = self.to_message(&self.models[self.at].nodes[target]);
                assert!(self.chat().update(message)?.is_changed);
                Ok(())
            }
            Op::Delete(picks) => {
                let targets: Vec<usize> =
                    picks.iter().filter_map(|pick| self.pick(*pick)).collect();
                let ids: Vec<MessageId> = targets.iter().map(|at| self.id(*at)).collect();
                self.chat().delete(&ids)?;
                self.model().delete(&targets);
                Ok(())
            }
            Op::Clear => {
                self.chat().clear()?;
                self.model().clear();
                Ok(())
            }
            Op::Plan { leaf, options } => self.plan(*leaf, options),
            Op::Commit { plan, words } => self.commit(*plan, *words),
            Op::Compact(leaf) => self.compact(*leaf),
            Op::CompactItems { leaf, ends } => self.compaction(*leaf, *ends),
            Op::BranchSummary { to, by_summarizer } => self.branch_summary(*to, *by_summarizer),
            Op::Counter(count) => {
                self.is_recounted |= self.count != *count;
                self.count = *count;
                self.switch(self.at)
            }
            op => self.run_other(op),
        }
    }

    fn run_other(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::DeleteBranch(pick) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                self.chat().delete_branch(&self.id(target))?;
                let targets = self.model().subtree(target);
                self.model().delete(&targets);
            }
            Op::Checkout(None) => {
                self.chat().checkout_start()?;
                self.model().move_head(None);
            }
            Op::Checkout(Some(pick)) => {
                let Some(target) = self.pick(*pick) else { return Ok(()) };
                self.chat().checkout(&self.id(target))?;
                self.model().move_head(Some(target));
            }
            Op::Undo => {
                let is_moved = self.chat().undo_head()?;
                assert_eq!(is_moved, self.model().step_head(-1));
            }
            Op::RemoveCompaction(pick) => self.remove_compaction(*pick)?,
            Op::Split => self.split()?,
            Op::Fork(pick) => {
                let Some(at) = self.pick(*pick) else { return Ok(()) };
                let name = self.models.len();
                self.chat().fork_as(&name.to_string().into(), &self.id(at), "fork")?;
                let forked = self.models[self.at].fork(at);
                let is_kept =
                    |id: &String| forked.compactions.iter().any(|compaction| compaction.id == *id);
                let figures = self.figures[self.at].iter().filter(|(id, _)| is_kept(id));
                let figures = figures.map(|(id, it)| (id.clone(), it.clone())).collect();
                self.add_model(forked, figures);
            }
            Op::Switch(pick) => self.switch(usize::from(*pick) % self.models.len())?,
            Op::Reopen => {
                self.scratch.reopen()?;
                self.switch(self.at)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn add_model(&mut self, model: Model, figures: HashMap<String, Figures>) {
        self.models.push(model);
        self.figures.push(figures);
        self.plans.push(Vec::new());
    }

    fn append(&mut self, at: &Where, lines: &[Line]) -> Result<()> {
        let nodes: Vec<Node> = lines.iter().map(|line| self.new_node(line)).collect();
        let messages: Vec<Message> = nodes.iter().map(|node| self.to_message(node)).collect();
        let (parent, target) = match at {
            Where::Head => (self.model().head, Parent::Head),
            Where::Root => (None, Parent::Root),
            Where::To(pick) => match self.pick(*pick) {
                None => return Ok(()),
                Some(at) => (Some(at), Parent::Message(self.id(at))),
            },
        };
        self.chat().append_all_to(&target, messages)?;
        self.model().append(parent, nodes);
        Ok(())
    }

    fn every_raw(&self) -> Result<Vec<Vec<Message>>> {
        let leaves = self.models[self.at].leaves();
        leaves.iter().map(|at| self.chat().at(&self.id(*at)).raw_history()).collect()
    }

    /// Returns the histories at every message.
    fn every_view(&self) -> Result<Vec<Vec<Message>>> {
        let living = self.models[self.at].living();
        living.map(|at| self.chat().at(&self.id(at)).history()).collect()
    }

    /// Checks that no history has more tokens after a commit, if plan and summary had the same counter.
    fn no_view_grew(&self, before: &[Vec<Message>], planned_by: Count) -> Result<()> {
        if planned_by == self.count {
            for (before, after) in before.iter().zip(self.every_view()?) {
                assert!(self.count.all(&after) <= self.count.all(before), "a view grew");
            }
        }
        Ok(())
    }
}

fn open(scratch: &Scratch, at: usize, count: Count, summarizer: &Summarizer) -> Result<Handles> {
    let open = |store: &talktree::Store| {
        let builder = store.session_builder(at.to_string()).summarizer(summarizer.function());
        builder.compaction_options(session_options()).token_counter(count).open()
    };
    let other = common::open(&scratch.folder)?;
    Ok(Handles { pair: [open(&scratch.store)?, open(&other)?], turn: 0 })
}
