//! Random conversations with tools, folded by plans, by hand and by a summarizer, on a store and on a plain model of it.
//!
//! What a plan says of itself is checked from the view alone; what a commit does is checked from the model: right, or
//! refused for a reason that is true.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use common::Scratch;
use common::model::{Fold, Item, Model, Node, Refusal, State};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError};
use serde_json::json;
use talktree::testing::MemorySession;
use talktree::{
    BoxError, Compacted, CompactionId, CompactionOptions, CompactionStatus, Error, FoldPlan,
    Folded, HeuristicCounter, Message, MessageId, Part, Place, Plan, Result, Session, Stale,
    SummaryRefused, TokenCounter, WindowUsage,
};

/// Stands for one of the things there are, whatever their number.
type Pick = u16;

/// How the tokens of a session are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Heuristic,
    Bytes,
    /// No whole number, and the same for every message.
    Flat,
}

impl TokenCounter for Count {
    fn name(&self) -> &str {
        match self {
            Self::Heuristic => HeuristicCounter.name(),
            Self::Bytes => "bytes",
            Self::Flat => "flat",
        }
    }

    fn count_text(&self, text: &str) -> f64 {
        match self {
            Self::Heuristic => HeuristicCounter.count_text(text),
            Self::Bytes | Self::Flat => text.len() as f64 / 3.0,
        }
    }

    fn count(&self, message: &Message) -> f64 {
        match self {
            Self::Heuristic => HeuristicCounter.count(message),
            Self::Bytes => 2.5 + self.count_text(&message.text()) + message.parts.len() as f64,
            Self::Flat => 10.5,
        }
    }
}

impl Count {
    fn of(self, message: &Message) -> u64 {
        self.count(message).ceil() as u64
    }

    fn all<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> u64 {
        messages.into_iter().map(|message| self.of(message)).sum()
    }
}

/// What a message does with tools. There are few ids, so they are used again.
#[derive(Debug, Clone)]
enum Tools {
    None,
    Call(u8),
    /// Two in one message.
    Calls(u8, u8),
    Result(u8),
    Results(u8, u8),
    /// The call and its result in one part.
    Both(u8),
}

impl Tools {
    fn parts(&self) -> Vec<Part> {
        let call = |id: &u8| Part::tool_call("look", format!("c{id}"), json!({"at": id}));
        let result = |id: &u8| Part::tool_result("look", format!("c{id}"), json!("seen"));
        match self {
            Self::None => vec![],
            Self::Call(id) => vec![call(id)],
            Self::Calls(a, b) => vec![call(a), call(b)],
            Self::Result(id) => vec![result(id)],
            Self::Results(a, b) => vec![result(a), result(b)],
            Self::Both(id) => {
                let part = json!({
                    "type": "tool-look", "toolCallId": format!("c{id}"), "state": "output-available",
                    "input": {"at": id}, "output": "seen",
                });
                vec![serde_json::from_value(part).unwrap()]
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Where {
    Head,
    Root,
    To(Pick),
}

#[derive(Debug, Clone)]
struct Line {
    words: u8,
    tools: Tools,
    is_aside: bool,
}

#[derive(Debug, Clone)]
enum Op {
    Append {
        at: Where,
        lines: Vec<Line>,
    },
    Update {
        target: Pick,
        line: Line,
    },
    Delete(Vec<Pick>),
    DeleteBranch(Pick),
    Clear,
    Checkout(Option<Pick>),
    Undo,
    /// Plans, which are kept; `None` is the head.
    Plan {
        leaf: Option<Pick>,
        options: CompactionOptions,
    },
    /// Commits one of the plans, whenever it was made; `None` is the newest. It stays among them.
    Commit {
        plan: Option<Pick>,
        words: u8,
    },
    /// By the session's own summarizer; `None` is the head.
    Compact(Option<Pick>),
    /// By hand, between two items of the view at a message.
    Fold {
        leaf: Option<Pick>,
        ends: (Pick, Pick),
    },
    Unfold(Pick),
    Leave {
        to: Pick,
        is_asked: bool,
    },
    Split,
    Fork(Pick),
    Switch(Pick),
    Counter(Count),
    Reopen,
}

fn tools() -> impl Strategy<Value = Tools> {
    let id = 0..3_u8;
    prop_oneof![
        6 => Just(Tools::None),
        3 => id.clone().prop_map(Tools::Call),
        2 => (id.clone(), id.clone()).prop_map(|(a, b)| Tools::Calls(a, b)),
        4 => id.clone().prop_map(Tools::Result),
        1 => (id.clone(), id.clone()).prop_map(|(a, b)| Tools::Results(a, b)),
        1 => id.prop_map(Tools::Both),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    (0..50_u8, tools(), prop::bool::weighted(0.05)).prop_map(|(words, tools, is_aside)| Line {
        words,
        tools,
        is_aside,
    })
}

fn options() -> impl Strategy<Value = CompactionOptions> {
    let max_fold = prop_oneof![3 => Just(100_000_u64), 1 => 0..200_u64];
    (0..4_usize, 0..150_u64, 0..4_usize, max_fold, -0.2..1.2_f64, 0..60_u64).prop_map(
        |(head, keep, min_tail, max_fold, share, min_summary)| {
            CompactionOptions::default()
                .protect_head(head)
                .keep_recent_tokens(keep)
                .min_tail(min_tail)
                .max_fold_tokens(max_fold)
                .target_share(share)
                .min_summary_tokens(min_summary)
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let at = prop_oneof![
        12 => Just(Where::Head),
        1 => Just(Where::Root),
        6 => any::<Pick>().prop_map(Where::To),
    ];
    let append =
        (at, prop::collection::vec(line(), 1..6)).prop_map(|(at, lines)| Op::Append { at, lines });
    let update = (any::<Pick>(), line()).prop_map(|(target, line)| Op::Update { target, line });
    let plan = (prop::option::weighted(0.6, any::<Pick>()), options())
        .prop_map(|(leaf, options)| Op::Plan { leaf, options });
    let commit = (prop::option::of(any::<Pick>()), prop_oneof![6 => 1..12_u8, 2 => 0..60_u8])
        .prop_map(|(plan, words)| Op::Commit { plan, words });
    let fold = (prop::option::of(any::<Pick>()), any::<(Pick, Pick)>())
        .prop_map(|(leaf, ends)| Op::Fold { leaf, ends });
    let leave = any::<(Pick, bool)>().prop_map(|(to, is_asked)| Op::Leave { to, is_asked });
    prop_oneof![
        14 => append,
        2 => update,
        2 => prop::collection::vec(any::<Pick>(), 1..3).prop_map(Op::Delete),
        1 => any::<Pick>().prop_map(Op::DeleteBranch),
        4 => prop::option::weighted(0.95, any::<Pick>()).prop_map(Op::Checkout),
        1 => Just(Op::Undo),
        12 => plan,
        12 => commit,
        3 => prop::option::weighted(0.4, any::<Pick>()).prop_map(Op::Compact),
        2 => fold,
        2 => any::<Pick>().prop_map(Op::Unfold),
        2 => leave,
        1 => Just(Op::Split),
        1 => any::<Pick>().prop_map(Op::Fork),
        2 => any::<Pick>().prop_map(Op::Switch),
        2 => prop_oneof![Just(Count::Heuristic), Just(Count::Bytes), Just(Count::Flat)]
            .prop_map(Op::Counter),
        1 => Just(Op::Reopen),
    ]
}

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
    folds: Vec<CompactionId>,
    model: Option<String>,
}

/// A plan, and what the model knew when it was made.
struct Kept {
    plan: FoldPlan,
    leaf: usize,
    ends: (usize, usize),
    seen: Vec<Said>,
    /// The summaries there were.
    folds: BTreeSet<String>,
    count: Count,
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
struct World {
    home: Home,
    handles: Handles,
    voice: Voice,
    count: Count,
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

/// What the session's own summarizer folds by.
fn own_options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(60).min_summary_tokens(10)
}

impl World {
    fn in_file() -> Result<Self> {
        let (scratch, voice) = (Scratch::new()?, Voice::default());
        let handles = open(&scratch, 0, Count::Heuristic, &voice)?;
        Ok(Self::over(Home::File(scratch), handles, voice))
    }

    fn in_memory() -> Result<Self> {
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
            is_aside: line.is_aside,
            state: State::Living,
        }
    }

    fn to_message(&self, node: &Node) -> Message {
        let mut parts = vec![Part::text(node.text.as_str())];
        parts.extend(self.parts.get(&node.text).into_iter().flatten().cloned());
        let message = Message::new(node.role, parts).with_id(node.id.as_str());
        if node.is_aside { message.as_aside() } else { message }
    }

    fn node_said(&self, at: usize) -> Said {
        said(&self.to_message(&self.models[self.at].nodes[at]))
    }

    fn item_said(&self, item: &Item) -> Said {
        match item {
            Item::Node(at) => self.node_said(*at),
            Item::Fold(fold) => {
                let fold = &self.models[self.at].folds[*fold];
                let id = CompactionId::from(fold.id.as_str()).as_message();
                (id, "assistant".to_owned(), vec![Part::text(fold.summary.as_str())])
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

    fn run(&mut self, op: &Op) -> Result<()> {
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
            Op::Fold { leaf, ends } => self.fold(*leaf, *ends),
            Op::Leave { to, is_asked } if !self.is_small() => self.leave(*to, *is_asked),
            Op::Counter(count) if !self.is_small() => {
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
            Op::Unfold(pick) => self.unfold(*pick)?,
            Op::Split => self.split()?,
            Op::Fork(pick) => {
                let Some(at) = self.pick(*pick) else { return Ok(()) };
                let name = self.models.len();
                self.chat().fork_as(&name.to_string().into(), &self.id(at), "fork")?;
                let forked = self.models[self.at].fork(at);
                let is_kept = |id: &String| forked.folds.iter().any(|fold| fold.id == *id);
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
            Where::Head => (self.model().head, Place::Head),
            Where::Root => (None, Place::Root),
            Where::To(pick) => match self.pick(*pick) {
                None => return Ok(()),
                Some(at) => (Some(at), Place::To(self.id(at))),
            },
        };
        self.chat().append_all_at(&place, messages)?;
        self.model().append(parent, nodes);
        Ok(())
    }

    fn plan(&mut self, leaf: Option<Pick>, options: &CompactionOptions) -> Result<()> {
        let (view, plan, leaf) = match leaf.and_then(|pick| self.pick(pick)) {
            Some(at) => {
                let id = self.id(at);
                let plan = self.chat().plan_compaction_at(&id, options)?;
                (self.chat().history_at(&id)?, plan, Some(at))
            }
            None => {
                let head = self.models[self.at].head;
                (self.chat().history()?, self.chat().plan_compaction(options)?, head)
            }
        };
        check_plan(&view, &plan, options, self.count);
        let (Plan::Fold(plan), Some(leaf)) = (plan, leaf) else { return Ok(()) };
        let named = self.models[self.at].nearest(Some(leaf)).map(|at| self.id(at));
        assert_eq!(Some(plan.leaf()), named.as_ref());
        let kept = self.keep(plan, leaf, &view);
        self.plans[self.at].push(kept);
        Ok(())
    }

    fn keep(&self, plan: FoldPlan, leaf: usize, view: &[Message]) -> Kept {
        let stretch = stretch_of(view, &plan);
        let items = self.view(Some(leaf));
        let model = &self.models[self.at];
        let last = match items[stretch.end - 1] {
            Item::Node(at) => at,
            Item::Fold(fold) => model.folds[fold].last,
        };
        let ends = (model.start(&items[stretch.start]), last);
        let folds = model.folds.iter().map(|fold| fold.id.clone()).collect();
        let leaf = model.nearest(Some(leaf)).unwrap_or(leaf);
        Kept { plan, leaf, ends, seen: all_said(&view[stretch]), folds, count: self.count }
    }

    fn commit(&mut self, pick: Option<Pick>, words: u8) -> Result<()> {
        let count = self.plans[self.at].len();
        if count == 0 {
            return Ok(());
        }
        let pick = pick.map_or(count - 1, |pick| usize::from(pick) % count);
        let name = self.new_name();
        let summary = talktree::Summary::new(summary_text(&name, words)).by("voice");
        let plan = self.plans[self.at][pick].plan.clone();
        let before = self.every_view()?;
        let raw = self.every_raw()?;
        let answer = self.chat().commit(plan, summary.clone());
        assert_eq!(self.every_raw()?, raw, "a summary changes nothing that is stored");
        match answer {
            Ok(folded) => {
                self.committed(pick, summary.text(), Some("voice"), &folded)?;
                self.no_view_grew(&before, self.plans[self.at][pick].count)
            }
            Err(refused) => {
                self.check_refusal(pick, summary.text(), &refused);
                assert_eq!(self.every_view()?, before, "what is refused changes nothing");
                Ok(())
            }
        }
    }

    /// Takes over a plan that was committed.
    fn committed(
        &mut self,
        pick: usize,
        summary: &str,
        by: Option<&str>,
        folded: &Folded,
    ) -> Result<()> {
        let kept = &self.plans[self.at][pick];
        assert_eq!(self.seen_now(kept), Ok(kept.seen.clone()), "only what stands is committed");
        let (first, last) = kept.ends;
        let model = &self.models[self.at];
        assert_eq!(model.check_fold(first, last), Ok(()));
        let after = self.count.of(&Message::assistant(summary));
        assert_eq!((folded.tokens_before, folded.tokens_after), (kept.plan.tokens(), after));
        assert!(after < kept.plan.tokens());
        assert_eq!(folded.messages, kept.plan.messages());
        let figures = Figures {
            before: kept.plan.tokens(),
            after,
            folds: kept.plan.summaries().to_vec(),
            model: by.map(str::to_owned),
        };
        self.lay(&folded.id, (first, last), summary, figures);
        let status = self.chat().compaction_status(&folded.id)?;
        assert_eq!(folded.is_shown, status == CompactionStatus::Shown);
        Ok(())
    }

    /// Adds a fold to the model.
    fn lay(&mut self, id: &CompactionId, ends: (usize, usize), summary: &str, figures: Figures) {
        let (first, last) = ends;
        self.figures[self.at].insert(id.to_string(), figures);
        let model = &mut self.models[self.at];
        // An end that was deleted is called what the summary there says it is.
        let name = |at: usize, of: fn(&Fold) -> (usize, &String)| {
            let folds = model.folds.iter().map(of);
            let folded = folds.filter(|(end, _)| *end == at).map(|(_, id)| id.clone()).next();
            match model.nodes[at].state {
                State::Living => model.nodes[at].id.clone(),
                _ => folded.unwrap_or_else(|| panic!("nothing ends at a tombstone")),
            }
        };
        let fold = Fold {
            id: id.to_string(),
            first,
            last,
            first_id: name(first, |fold| (fold.first, &fold.first_id)),
            last_id: name(last, |fold| (fold.last, &fold.last_id)),
            count: model.under(first, last).len() as u64,
            summary: summary.to_owned(),
        };
        model.folds.push(fold);
    }

    /// What a model sees now of the stretch of a plan: on the path it was made for, and on to the head if that has gone on
    /// from there. `Err` if its items do not begin and end there.
    fn seen_now(&self, kept: &Kept) -> std::result::Result<Vec<Said>, ()> {
        let model = &self.models[self.at];
        let (first, last) = kept.ends;
        let holds = |leaf: Option<usize>, at: usize| model.path(leaf).contains(&at);
        let is_leaf_there = model.nodes[kept.leaf].state == State::Living;
        let leaf = match () {
            () if model.nodes[last].state == State::Removed => return Err(()),
            () if is_leaf_there && holds(model.head, kept.leaf) => model.head,
            () if is_leaf_there => Some(kept.leaf),
            () if holds(model.head, last) => model.head,
            () => Some(last),
        };
        let end = |item: &Item| match item {
            Item::Node(at) => *at,
            Item::Fold(fold) => model.folds[*fold].last,
        };
        let mut seen = Vec::new();
        for item in self.view(leaf) {
            let (start, end) = (model.start(&item), end(&item));
            if end < first || start > last {
                continue;
            }
            if start < first || end > last {
                return Err(());
            }
            seen.push(self.item_said(&item));
        }
        Ok(seen)
    }

    /// A refusal says something that is true, and what stands is not refused.
    fn check_refusal(&self, pick: usize, summary: &str, refused: &Error) {
        let kept = &self.plans[self.at][pick];
        let tokens = self.count.of(&Message::assistant(summary));
        let is_blank = summary.starts_with(' ');
        let model = &self.models[self.at];
        let why = match refused {
            Error::SummaryRefused { why: SummaryRefused::Blank } => return assert!(is_blank),
            Error::SummaryRefused { why: SummaryRefused::NotShorter { tokens: t, replaced } } => {
                assert_eq!((*t, *replaced), (tokens, kept.plan.tokens()));
                return assert!(tokens >= *replaced);
            }
            Error::Stale { why } => why,
            other => panic!("refused because {other}"),
        };
        assert!(!is_blank && tokens < kept.plan.tokens());
        assert_ne!(self.seen_now(kept), Ok(kept.seen.clone()), "refused, and stands: {why}");
        let seen: BTreeMap<&MessageId, &Said> = kept.seen.iter().map(|it| (&it.0, it)).collect();
        match why {
            Stale::Deleted { id } => {
                assert!(seen.contains_key(id), "{why}");
                assert_eq!(model.find(id.as_str()), None, "{why}");
            }
            Stale::Updated { id } => {
                let at = model.find(id.as_str()).unwrap_or_else(|| panic!("{why}"));
                assert_ne!(self.node_said(at), *seen[id], "{why}");
            }
            Stale::Folded { by } => {
                assert!(!seen.contains_key(&by.as_message()), "{why}");
                let fold = model.folds.iter().find(|fold| fold.id == by.as_str());
                let fold = fold.unwrap_or_else(|| panic!("{why}"));
                let path = model.path(Some(kept.ends.1.max(fold.last)));
                let is_over = |at: &usize| kept.ends.0 <= *at && *at <= kept.ends.1;
                assert!(path.iter().any(|at| is_over(at) && fold.first <= *at), "{why}");
                // One that there was may have come up where a summary that was not part of it went.
                let is_there =
                    |id: &CompactionId| model.folds.iter().any(|it| it.id == id.as_str());
                let is_new = !kept.folds.contains(by.as_str());
                assert!(is_new || kept.plan.summaries().iter().all(is_there), "{why}");
            }
            Stale::Unfolded { id } => {
                assert!(seen.contains_key(&id.as_message()), "{why}");
                assert!(model.folds.iter().all(|fold| fold.id != id.as_str()), "{why}");
            }
            _ => panic!("{why}"),
        }
    }

    fn compact(&mut self, leaf: Option<Pick>) -> Result<()> {
        let words = (self.number % 30) as u8;
        self.voice.words.store(words, Ordering::SeqCst);
        let asked = self.voice.count.load(Ordering::SeqCst);
        let summary = summary_text(&format!("by itself {asked}"), words);
        let plans = self.plans[self.at].len();
        let target = leaf.and_then(|pick| self.pick(pick));
        self.plan(target.and(leaf), &own_options())?;
        let before = self.every_view()?;
        let answer = match target {
            Some(at) => self.chat().compact_at(&self.id(at)),
            None => self.chat().compact(),
        };
        let has_plan = self.plans[self.at].len() > plans;
        let is_asked = self.voice.count.load(Ordering::SeqCst) > asked;
        assert_eq!(is_asked, has_plan);
        match answer {
            Ok(Compacted::Folded(folded)) => {
                self.committed(plans, &summary, None, &folded)?;
                self.no_view_grew(&before, self.count)
            }
            Ok(Compacted::Nothing(_)) => {
                assert!(!has_plan);
                Ok(())
            }
            Err(refused) => {
                self.check_refusal(plans, &summary, &refused);
                Ok(())
            }
        }
    }

    fn fold(&mut self, leaf: Option<Pick>, ends: (Pick, Pick)) -> Result<()> {
        let view = self.view(self.leaf(leaf));
        let item = |pick: Pick| view.get(usize::from(pick) % view.len().max(1));
        let (Some(a), Some(b)) = (item(ends.0), item(ends.1)) else { return Ok(()) };
        let (first_id, last_id) = (self.item_said(a).0, self.item_said(b).0);
        let model = &self.models[self.at];
        let first = model.start(a);
        let last = match b {
            Item::Node(at) => *at,
            Item::Fold(fold) => model.folds[*fold].last,
        };
        let expected = model.check_fold(first, last);
        let folded: Vec<Item> = if expected.is_ok() {
            let all = self.view(Some(last));
            all.into_iter().filter(|item| self.models[self.at].start(item) >= first).collect()
        } else {
            Vec::new()
        };
        let name = self.new_name();
        let summary = marked(&name, 3);
        match (self.chat().add_compaction(summary.as_str(), &first_id, &last_id), expected) {
            (Ok(id), Ok(())) => {
                let made = self.chat().compaction(&id)?;
                let folds = folded.iter().filter_map(|item| match item {
                    Item::Fold(_) => CompactionId::from_message(&self.item_said(item).0),
                    Item::Node(_) => None,
                });
                let folds: Vec<CompactionId> = folds.collect();
                // What is folded by hand goes by the stamps there are, whoever made them.
                let figures = Figures {
                    before: made.tokens_before,
                    after: made.tokens_after,
                    folds,
                    model: None,
                };
                self.lay(&id, (first, last), &summary, figures);
            }
            (Err(Error::NotAncestor { .. }), Err(Refusal::NotAncestor))
            | (Err(Error::NothingToFold { .. }), Err(Refusal::Nothing))
            | (Err(Error::InsideSummary { .. }), Err(Refusal::Inside(_))) => {}
            (answer, expected) => panic!("{answer:?} where {expected:?} was expected"),
        }
        Ok(())
    }

    /// Takes a summary off: the views below it are as the model has them without it.
    fn unfold(&mut self, pick: Pick) -> Result<()> {
        let count = self.model().folds.len();
        if count == 0 {
            return Ok(());
        }
        let at = usize::from(pick) % count;
        let id = CompactionId::from(self.models[self.at].folds[at].id.as_str());
        let below = all_said(&self.chat().expand(&id)?);
        let before = all_said(&self.chat().history()?);
        self.chat().remove_compaction(&id)?;
        let fold = self.model().folds.remove(at);
        let after = all_said(&self.chat().history()?);
        // Where no other summary lies across its start, what it stood for comes in its place.
        if let Some(place) = before.iter().position(|item| item.0 == id.as_message())
            && !self.models[self.at].folds.iter().any(|other| {
                other.first < fold.first && (fold.first..fold.last).contains(&other.last)
            })
        {
            let expected = [&before[..place], &below, &before[place + 1..]].concat();
            assert_eq!(after, expected, "what a summary stood for comes back");
        }
        Ok(())
    }

    fn leave(&mut self, to: Pick, is_asked: bool) -> Result<()> {
        let Some(to) = self.pick(to) else { return Ok(()) };
        let model = &self.models[self.at];
        let from = model.nearest(model.head);
        let goal = model.path(Some(to));
        let is_shared = |item: &Item| match item {
            Item::Node(at) => goal.contains(at),
            Item::Fold(fold) => {
                let fold = &model.folds[*fold];
                model.under(fold.first, fold.last).last().is_some_and(|last| goal.contains(last))
            }
        };
        let view = self.view(from);
        let left: Vec<&Item> = view.iter().skip_while(|item| is_shared(item)).collect();
        let is_left = !left.is_empty() && from.is_some_and(|from| !goal.contains(&from));
        let name = self.new_name();
        let text = marked(&name, 2);
        let to_id = self.id(to);
        let stored = if is_asked {
            self.voice.words.store(4, Ordering::SeqCst);
            self.chat().checkout_summarized(&to_id)?
        } else {
            let plan = self.chat().plan_leave(&to_id, &own_options())?;
            if let Some(plan) = &plan {
                assert_eq!(plan.messages(), left.len());
                assert_eq!((plan.from(), plan.to()), (&self.id(from.unwrap()), &to_id));
                let tokens = self.chat().history_at(plan.from())?;
                assert_eq!(plan.tokens(), self.count.all(&tokens[tokens.len() - left.len()..]));
            }
            match plan {
                Some(plan) => Some(self.chat().checkout_leaving(plan, text.as_str())?),
                None => self.chat().checkout(&to_id).map(|()| None)?,
            }
        };
        assert_eq!(stored.is_some(), is_left);
        match stored {
            Some(stored) => {
                let message = self.chat().message(&stored.id)?.unwrap();
                assert_eq!(message.parent, Some(to_id));
                let node = Node {
                    id: stored.id.to_string(),
                    parent: None,
                    role: "assistant",
                    text: message.text(),
                    is_aside: false,
                    state: State::Living,
                };
                self.model().append(Some(to), vec![node]);
            }
            None => self.model().move_head(Some(to)),
        }
        Ok(())
    }

    fn split(&mut self) -> Result<()> {
        let name = self.new_name();
        let text = marked(&name, 4);
        let id = self.models.len().to_string();
        match self.chat().compact_and_split_as(&id.as_str().into(), text.as_str()) {
            Ok(child) => {
                assert!(self.model().exists);
                let history = child.history()?;
                assert_eq!(child.visible_tokens()?, self.count.all(&history));
                let node = Node {
                    id: history[0].id.to_string(),
                    parent: None,
                    role: "assistant",
                    text,
                    is_aside: false,
                    state: State::Living,
                };
                let mut model = Model::new();
                model.append(None, vec![node]);
                self.add_model(model, HashMap::new());
            }
            Err(Error::UnknownSession { .. }) => assert!(!self.model().exists),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn every_raw(&self) -> Result<Vec<Vec<Message>>> {
        let leaves = self.models[self.at].leaves();
        leaves.iter().map(|at| self.chat().raw_history_at(&self.id(*at))).collect()
    }

    /// The histories at every message.
    fn every_view(&self) -> Result<Vec<Vec<Message>>> {
        let living = self.models[self.at].living();
        living.map(|at| self.chat().history_at(&self.id(at))).collect()
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

    /// Compares what is read most.
    fn compare(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let living = |at: &usize| model.nodes[*at].state == State::Living;
        let path = model.path(model.head).into_iter().filter(living);
        let raw: Vec<Said> = path.map(|at| self.node_said(at)).collect();
        assert_eq!(all_said(&chat.raw_history()?), raw);
        let history = chat.history()?;
        let view: Vec<Said> =
            self.view(model.head).iter().map(|item| self.item_said(item)).collect();
        assert_eq!(all_said(&history), view);
        let tokens = self.count.all(&history);
        assert_eq!(chat.visible_tokens()?, tokens);
        check_usage(&chat.usage_of_window()?, &history, &own_options(), self.count);
        self.compare_folds()
    }

    fn compare_folds(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        let all = chat.compactions()?;
        assert_eq!(all.len(), model.folds.len());
        for (made, fold) in all.iter().zip(&model.folds) {
            assert_eq!(
                (made.id.as_str(), made.first.as_str(), made.last.as_str(), made.count),
                (fold.id.as_str(), fold.first_id.as_str(), fold.last_id.as_str(), fold.count)
            );
            assert_eq!(made.summary, fold.summary);
            let figures = Figures {
                before: made.tokens_before,
                after: made.tokens_after,
                folds: made.folds.clone(),
                model: made.model.clone(),
            };
            assert_eq!(figures, self.figures[self.at][&fold.id]);
        }
        let shown: BTreeSet<usize> = model
            .items(model.head)
            .iter()
            .filter_map(|item| match item {
                Item::Fold(fold) => Some(*fold),
                Item::Node(_) => None,
            })
            .collect();
        let path = model.path(model.head);
        for (at, fold) in model.folds.iter().enumerate() {
            let id = CompactionId::from(fold.id.as_str());
            let under = |shown: &&usize| {
                let shown = &model.folds[**shown];
                shown.first <= fold.last && fold.last <= shown.last
            };
            let status = match shown.iter().find(under) {
                _ if self.is_small() && !self.is_last_living(fold) => None,
                _ if !path.contains(&fold.last) => Some(CompactionStatus::OffPath),
                Some(shown) if *shown != at => {
                    Some(CompactionStatus::Under { id: model.folds[*shown].id.as_str().into() })
                }
                _ => Some(CompactionStatus::Shown),
            };
            if let Some(status) = status {
                assert_eq!(chat.compaction_status(&id)?, status);
            }
        }
        Ok(())
    }

    /// A small provider knows of a place only by the message there.
    fn is_last_living(&self, fold: &Fold) -> bool {
        self.models[self.at].nodes[fold.last].state == State::Living
    }

    /// Compares everything.
    fn compare_all(&mut self) -> Result<()> {
        let at = self.at;
        for session in 0..self.models.len() {
            self.switch(session)?;
            self.compare()?;
            for at in self.models[session].living().collect::<Vec<_>>() {
                let view: Vec<Said> =
                    self.view(Some(at)).iter().map(|item| self.item_said(item)).collect();
                let history = self.chat().history_at(&self.id(at))?;
                assert_eq!(all_said(&history), view);
            }
            self.compare_expansions()?;
        }
        self.switch(at)
    }

    /// Going down from a summary goes one level at a time, ends, and comes to the stored messages.
    fn compare_expansions(&self) -> Result<()> {
        let (chat, model) = (self.chat(), &self.models[self.at]);
        for (at, fold) in model.folds.iter().enumerate() {
            let id = CompactionId::from(fold.id.as_str());
            let below = model.below(at);
            let below: Vec<Said> = below
                .iter()
                .filter(|item| model.is_shown(item))
                .map(|item| self.item_said(item))
                .collect();
            assert_eq!(all_said(&chat.expand(&id)?), below);
            let raw = chat.expand_raw(&id)?;
            let under: Vec<Said> = model
                .under(fold.first, fold.last)
                .into_iter()
                .map(|at| self.node_said(at))
                .collect();
            assert_eq!(all_said(&raw), under);
            let seen: Vec<Message> = raw.into_iter().filter(|message| !message.is_aside).collect();
            assert_eq!(all_said(&down(chat, &id, model.folds.len())?), all_said(&seen));
        }
        Ok(())
    }
}

/// Returns the messages that are come to by expanding every summary below one.
fn down(chat: &Session, id: &CompactionId, levels: usize) -> Result<Vec<Message>> {
    let mut messages = Vec::new();
    for item in chat.expand(id)? {
        match CompactionId::from_message(&item.id) {
            Some(inner) => {
                assert!(levels > 0, "going down does not end");
                messages.extend(down(chat, &inner, levels - 1)?);
            }
            None => messages.push(item),
        }
    }
    Ok(messages)
}

fn open(scratch: &Scratch, at: usize, count: Count, voice: &Voice) -> Result<Handles> {
    let open = |store: &talktree::Store| {
        let builder = store.session_builder(at.to_string()).summarizer(voice.ask());
        builder.compaction_options(own_options()).token_counter(count).open()
    };
    let other = common::open(&scratch.folder)?;
    Ok(Handles { pair: [open(&scratch.store)?, open(&other)?], turn: 0 })
}

/// Returns where the stretch of a plan stands in the view it was made of.
fn stretch_of(view: &[Message], plan: &FoldPlan) -> Range<usize> {
    let place = |id: &MessageId| view.iter().position(|item| item.id == *id).unwrap();
    place(plan.first())..place(plan.last()) + 1
}

fn is_summary(message: &Message) -> bool {
    CompactionId::from_message(&message.id).is_some()
}

/// Returns the places of calls and of their results, where these differ, found by looking back from each result.
fn pairs(view: &[Message]) -> Vec<(usize, usize)> {
    let mut tools = Vec::new();
    for (at, message) in view.iter().enumerate() {
        for part in &message.parts {
            if let Part::Tool(tool) = part {
                tools.push((at, tool.call_id.as_str(), tool.input.is_some()));
            }
        }
    }
    let mut pairs = Vec::new();
    for (order, (result, id, is_call)) in tools.iter().enumerate() {
        let call = tools[..order].iter().rev().find(|(_, of, is_call)| *is_call && of == id);
        if let Some((call, ..)) = call
            && !is_call
            && call < result
        {
            pairs.push((*call, *result));
        }
    }
    pairs
}

/// Returns where the head ends and where the tail begins.
///
/// `Debug` is how options that were drawn at random can be read.
fn zones(view: &[Message], options: &CompactionOptions, count: Count) -> (usize, usize) {
    let drawn = format!("{options:?}");
    let field = |name: &str| -> u64 {
        let (_, rest) = drawn.split_once(&format!("{name}: ")).unwrap();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let first_summary = view.iter().position(is_summary).unwrap_or(view.len());
    let head = first_summary.min(field("protect_head") as usize);
    let fits = |start: &usize| count.all(&view[*start..]) <= field("keep_recent_tokens");
    let tail = (0..=view.len()).find(fits).unwrap_or(view.len());
    let min_tail = field("min_tail").max(1) as usize;
    (head, tail.min(view.len().saturating_sub(min_tail)))
}

/// Checks all that a plan says, from the view it was made of.
fn check_plan(view: &[Message], plan: &Plan, options: &CompactionOptions, count: Count) {
    let pairs = pairs(view);
    let is_whole = |stretch: &Range<usize>| {
        pairs.iter().all(|(call, result)| stretch.contains(call) == stretch.contains(result))
    };
    let (head, tail) = zones(view, options, count);
    let plan = match plan {
        Plan::Fold(plan) => plan,
        Plan::Nothing(why) => {
            for start in head..tail {
                for end in start + 1..=tail {
                    let has_messages = !view[start..end].iter().all(is_summary);
                    assert!(!has_messages || !is_whole(&(start..end)), "{start}..{end}: {why}");
                }
            }
            return;
        }
    };
    let stretch = stretch_of(view, plan);
    let folded = &view[stretch.clone()];
    assert!(is_whole(&stretch), "{stretch:?} parts a pair of {pairs:?}");
    assert!(head <= stretch.start && stretch.end <= tail, "{stretch:?} in {head}..{tail}");
    let is_across = |place| pairs.iter().any(|(call, result)| *call < place && place <= *result);
    let is_in_one_step = count.all(folded) <= 90_000 && format!("{options:?}").contains("100000");
    if is_in_one_step && !is_across(head) && !is_across(tail) {
        // So the oldest summary that is seen beyond the head is always taken in.
        assert_eq!(stretch, head..tail);
    }
    let summaries: Vec<CompactionId> =
        folded.iter().filter_map(|item| CompactionId::from_message(&item.id)).collect();
    assert_eq!(plan.messages(), folded.len() - summaries.len());
    assert!(plan.messages() > 0);
    assert_eq!(plan.summaries(), summaries);
    assert_eq!(plan.tokens(), count.all(folded));
    assert_eq!(plan.target_tokens(), options.target_tokens(plan.tokens()));
    check_usage(&plan.usage(), view, options, count);
    let kept = count.all(view) - plan.tokens();
    assert_eq!(plan.expected_total(), kept + plan.tokens().min(plan.target_tokens()));
    for (at, item) in view.iter().enumerate() {
        let text = item.text();
        let (mark, _) = text.split_once('>').unwrap();
        let is_quoted = plan.prompt().contains(&format!("{mark}>"));
        assert_eq!(is_quoted, stretch.contains(&at), "{mark}> in {}", plan.prompt());
    }
}

/// There is no prompt: no session of this file has blocks.
fn check_usage(usage: &WindowUsage, view: &[Message], options: &CompactionOptions, count: Count) {
    let (head, tail) = zones(view, options, count);
    let sum = |range: Range<usize>| {
        let range = range.start.min(view.len())..range.end.min(view.len());
        count.all(view[range].iter().filter(|item| !is_summary(item)))
    };
    let expected = [
        0,
        sum(0..head),
        count.all(view.iter().filter(|item| is_summary(item))),
        sum(head..tail.max(head)),
        sum(tail.max(head)..view.len()),
    ];
    let found = [usage.prompt, usage.head, usage.summaries, usage.middle, usage.tail];
    assert_eq!(found, expected, "{usage}");
    assert_eq!(usage.total, expected.iter().sum::<u64>());
}

fn check(mut world: World, ops: &[Op], is_cleared_at_half: bool) -> Result<()> {
    for (step, op) in ops.iter().enumerate() {
        world.run(op)?;
        world.compare()?;
        if step % 12 == 11 {
            world.compare_all()?;
        }
        if is_cleared_at_half && step == ops.len() / 2 {
            world.run(&Op::Clear)?;
        }
    }
    world.compare_all()?;
    world.run(&Op::Reopen)?;
    world.compare_all()?;
    if let Home::File(scratch) = &world.home {
        let verified = scratch.store.verify(|_| {})?;
        assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    }
    Ok(())
}

fn run(world: fn() -> Result<World>, cases: u32) -> std::result::Result<(), String> {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let strategy = (prop::collection::vec(op(), 10..70), prop::bool::weighted(0.1));
    let result = runner.run(&strategy, |(ops, is_cleared_at_half)| {
        let failed = |error: Error| TestCaseError::fail(error.to_string());
        check(world().map_err(failed)?, &ops, is_cleared_at_half).map_err(failed)
    });
    result.map_err(|error| error.to_string())
}

#[test]
fn whatever_is_folded_the_store_is_as_the_model_has_it() -> std::result::Result<(), String> {
    run(World::in_file, 64)
}

#[test]
fn whatever_is_folded_a_small_provider_is_as_the_model_has_it() -> std::result::Result<(), String> {
    run(World::in_memory, 64)
}
