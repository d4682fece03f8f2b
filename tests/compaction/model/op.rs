//! Random operations.

use proptest::prelude::*;
use serde_json::json;
use talktree::{CompactionOptions, Part};

use crate::model::count::Count;

/// Selects one of the existing things, however many there are.
pub(super) type Pick = u16;

/// The tool calls and results of a message. There are few ids, so ids are reused.
#[derive(Debug, Clone)]
pub(super) enum Tools {
    None,
    Call(u8),
    /// Two calls in one message.
    Calls(u8, u8),
    Result(u8),
    Results(u8, u8),
    /// The call and its result in one part.
    Both(u8),
}

impl Tools {
    pub(super) fn parts(&self) -> Vec<Part> {
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
pub(super) enum Where {
    Head,
    Root,
    To(Pick),
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) words: u8,
    pub(super) tools: Tools,
    pub(super) is_hidden: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Op {
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
    /// Plans at a leaf, or at the head if `None`, and keeps the plan.
    Plan {
        leaf: Option<Pick>,
        options: CompactionOptions,
    },
    /// Commits one of the kept plans, or the newest if `None`, and keeps it for further commits.
    Commit {
        plan: Option<Pick>,
        words: u8,
    },
    /// Compacts by the session's summarizer, at a leaf or at the head if `None`.
    Compact(Option<Pick>),
    /// Adds a compaction between two items of the view at a leaf.
    CompactItems {
        leaf: Option<Pick>,
        ends: (Pick, Pick),
    },
    RemoveCompaction(Pick),
    BranchSummary {
        to: Pick,
        by_summarizer: bool,
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
    (0..50_u8, tools(), prop::bool::weighted(0.05)).prop_map(|(words, tools, is_hidden)| Line {
        words,
        tools,
        is_hidden,
    })
}

fn options() -> impl Strategy<Value = CompactionOptions> {
    let max_step = prop_oneof![3 => Just(100_000_u64), 1 => 0..200_u64];
    (0..4_usize, 0..150_u64, 0..4_usize, max_step, -0.2..1.2_f64, 0..60_u64).prop_map(
        |(head, keep, min_tail, max_step, share, min_summary)| {
            CompactionOptions::default()
                .protect_head(head)
                .keep_recent_tokens(keep)
                .min_tail(min_tail)
                .max_step_tokens(max_step)
                .target_share(share)
                .min_summary_tokens(min_summary)
        },
    )
}

pub(super) fn op() -> impl Strategy<Value = Op> {
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
    let compaction = (prop::option::of(any::<Pick>()), any::<(Pick, Pick)>())
        .prop_map(|(leaf, ends)| Op::CompactItems { leaf, ends });
    let branch_summary = any::<(Pick, bool)>()
        .prop_map(|(to, by_summarizer)| Op::BranchSummary { to, by_summarizer });
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
        2 => compaction,
        2 => any::<Pick>().prop_map(Op::RemoveCompaction),
        2 => branch_summary,
        1 => Just(Op::Split),
        1 => any::<Pick>().prop_map(Op::Fork),
        2 => any::<Pick>().prop_map(Op::Switch),
        2 => prop_oneof![Just(Count::Heuristic), Just(Count::Bytes), Just(Count::Flat)]
            .prop_map(Op::Counter),
        1 => Just(Op::Reopen),
    ]
}
