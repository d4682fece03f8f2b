//! A store beside its model: what is done to the one is done to the other.

mod by_hand;
mod commit;
mod compare;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use talktree::testing::MemorySession;
use talktree::{
    BoxError, CompactionId, CompactionOptions, Message, MessageId, Parent, Part, Result, Session,
};

use crate::common::model::{Item, Model, Node, State};
use crate::common::{self, Scratch};
use crate::count::Count;
use crate::op::{Line, Op, Pick, Where};
use commit::Kept;

/// What the session's own summarizer answers: each summary another, of a length that is told.
#[derive(Clone, Default)]
struct Voice {
    count: Arc<AtomicUsize>,
    words: Arc<AtomicU8>,
}

impl Voice {
    fn say(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        summary_text(&format!("by itself {number}"), self.words.load(Ordering::SeqCst))
    }

    fn ask(&self) -> impl Fn(&str) -> std::result::Result<String, BoxError> + Send + Sync + use<> {
        let voice = self.clone();
        move |_| Ok(voice.say())
    }
}

/// A text that no other contains.
fn marked(name: &str, words: u8) -> String {
    format!("<{name}>{}", " word".repeat(words.into()))
}

fn summary_text(name: &str, words: u8) -> String {
    if words == 0 { " \u{200B}\n".to_owned() } else { marked(name, words) }
}

/// What is known of a compaction beside its place.
#[derive(Debug, Clone, PartialEq)]
struct Figures {
    before: u64,
    after: u64,
    nested: Vec<CompactionId>,
    model: Option<String>,
}

/// What an item of a view says: id, role, parts.
type Said = (MessageId, String, Vec<Part>);

fn said(message: &Message) -> Said {
    (message.id.clone(), message.role.to_string(), message.parts.clone())
}

fn all_said(messages: &[Message]) -> Vec<Said> {
    messages.iter().map(said).collect()
}

/// Two handles of a session: of two stores over one file, or clones of one session in memory.
struct Handles {
    pair: [Session; 2],
    turn: usize,
}

/// Where the sessions are kept.
enum Home {
    File(Scratch),
    Memory,
}

/// A store beside its model.
pub(super) struct World {
    home: Home,
    handles: Handles,
    voice: Voice,
    count: Count,
    /// Whether it was ever another counter: what is compacted by hand goes by the stamps there are, whoever made them.
    is_recounted: bool,
    models: Vec<Model>,
    /// By the text of a node: texts are never the same.
    parts: HashMap<String, Vec<Part>>,
    figures: Vec<HashMap<String, Figures>>,
    plans: Vec<Vec<Kept>>,
    /// Which session the operations are about.
    at: usize,
    /// So that every id and text is another.
    number: u32,
}

/// What the session's own summarizer compacts by.
fn own_options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(60).min_summary_tokens(10)
}

impl World {
    pub(super) fn in_file() -> Result<Self> {
        let (scratch, voice) = (Scratch::new()?, Voice::default());
        let handles = open(&scratch, 0, Count::Heuristic, &voice)?;
        Ok(Self::over(Home::File(scratch), handles, voice))
    }

    pub(super) fn in_memory() -> Result<Self> {
        let voice = Voice::default();
        let builder = Session::builder(MemorySession::new("0".into())).summarizer(voice.ask());
        let chat = builder.compaction_options(own_options()).open()?;
        let handles = Handles { pair: [chat.clone(), chat], turn: 0 };
        Ok(Self::over(Home::Memory, handles, voice))
    }

    fn over(home: Home, handles: Handles, voice: Voice) -> Self {
        Self {
            home,
            handles,
            voice,
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

    /// Returns the handle whose turn it is.
    fn chat(&self) -> &Session {
        &self.handles.pair[self.handles.turn]
    }

    fn model(&mut self) -> &mut Model {
        &mut self.models[self.at]
    }

    fn is_small(&self) -> bool {
        matches!(self.home, Home::Memory)
    }

    /// A living message; `None` if there is none.
    fn pick(&self, pick: Pick) -> Option<usize> {
        let living: Vec<usize> = self.models[self.at].living().collect();
        living.get(usize::from(pick) % living.len().max(1)).copied()
    }

    /// A living message, or the nearest one to the head.
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

    fn node_said(&self, at: usize) -> Said {
        said(&self.to_message(&self.models[self.at].nodes[at]))
    }

    fn item_said(&self, item: &Item) -> Said {
        match item {
            Item::Node(at) => self.node_said(*at),
            Item::Span(span) => {
                let span = &self.models[self.at].spans[*span];
                let id = CompactionId::from(span.id.as_str()).as_message();
                (id, "assistant".to_owned(), vec![Part::text(span.summary.as_str())])
            }
        }
    }

    /// What a model sees on the path to a node, as the model has it; oldest first.
    fn view(&self, at: Option<usize>) -> Vec<Item> {
        let model = &self.models[self.at];
        let mut items = model.items(at);
        items.retain(|item| model.is_shown(item));
        items.reverse();
        items
    }

    fn switch(&mut self, at: usize) -> Result<()> {
        self.at = at;
        if let Home::File(scratch) = &self.home {
            let turn = self.handles.turn;
            self.handles = Handles { turn, ..open(scratch, at, self.count, &self.voice)? };
        }
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
            Op::CompactItems { leaf, ends } => self.span(*leaf, *ends),
            Op::Leave { to, is_asked } if !self.is_small() => self.leave(*to, *is_asked),
            Op::Counter(count) if !self.is_small() => {
                self.is_recounted |= self.count != *count;
                self.count = *count;
                self.switch(self.at)
            }
            op if !self.is_small() => self.run_in_store(op),
            _ => Ok(()),
        }
    }

    /// What a session over a small provider cannot do.
    fn run_in_store(&mut self, op: &Op) -> Result<()> {
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
                let is_kept = |id: &String| forked.spans.iter().any(|span| span.id == *id);
                let figures = self.figures[self.at].iter().filter(|(id, _)| is_kept(id));
                let figures = figures.map(|(id, it)| (id.clone(), it.clone())).collect();
                self.add_model(forked, figures);
            }
            Op::Switch(pick) => self.switch(usize::from(*pick) % self.models.len())?,
            Op::Reopen => {
                if let Home::File(scratch) = &mut self.home {
                    scratch.reopen()?;
                }
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
        let (parent, place) = match at {
            Where::Head => (self.model().head, Parent::Head),
            Where::Root => (None, Parent::Root),
            Where::To(pick) => match self.pick(*pick) {
                None => return Ok(()),
                Some(at) => (Some(at), Parent::Message(self.id(at))),
            },
        };
        self.chat().append_all_to(&place, messages)?;
        self.model().append(parent, nodes);
        Ok(())
    }

    fn every_raw(&self) -> Result<Vec<Vec<Message>>> {
        let leaves = self.models[self.at].leaves();
        leaves.iter().map(|at| self.chat().at(&self.id(*at)).raw_history()).collect()
    }

    /// The histories at every message.
    fn every_view(&self) -> Result<Vec<Vec<Message>>> {
        let living = self.models[self.at].living();
        living.map(|at| self.chat().at(&self.id(at)).history()).collect()
    }

    /// After a commit no model sees more anywhere, by the counter that both plan and summary were counted by.
    fn no_view_grew(&self, before: &[Vec<Message>], planned_by: Count) -> Result<()> {
        if planned_by == self.count {
            for (before, after) in before.iter().zip(self.every_view()?) {
                assert!(self.count.all(&after) <= self.count.all(before), "a view grew");
            }
        }
        Ok(())
    }
}

fn open(scratch: &Scratch, at: usize, count: Count, voice: &Voice) -> Result<Handles> {
    let open = |store: &talktree::Store| {
        let builder = store.session_builder(at.to_string()).summarizer(voice.ask());
        builder.compaction_options(own_options()).token_counter(count).open()
    };
    let other = common::open(&scratch.folder)?;
    Ok(Handles { pair: [open(&scratch.store)?, open(&other)?], turn: 0 })
}
