//! The answers of a model, each in one piece.
//!
//! An answer is an entry for each part, and each result of a tool is a child of the entry of its call. So an answer with
//! several calls forks, and a path would hold only one of its results. Here an answer is a *round*: its parts, its results
//! and the notices among them follow each other in the order in which they were written, and what goes on after any of them
//! goes on after all. So what is written later is added at the end, and nothing moves.
//!
//! A second result of a call is not of the round. It is a fork of its own, before the first one.

use std::collections::HashMap;

use talktree::MessageId;
use talktree::records::blocks::{self, ToolNames};
use talktree::records::fields::Fields;
use talktree::records::order::arrange;

use super::is_said;
use super::tree::Node;

/// What an entry is to the answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Share {
    /// A part of the answer with this id, and the tool calls in it.
    Part(String, Vec<String>),
    /// The results of these tool calls.
    Results(Vec<String>),
    /// A notice, which is nobody's message: it is a part of the answer that it follows.
    Notice,
    /// What begins something new.
    #[default]
    Next,
}

impl Share {
    /// Returns what an entry is that becomes a message.
    pub(crate) fn of(kind: &str, entry: &Fields, message: &Fields) -> Self {
        let content = message.get("content");
        match kind {
            "assistant" if !is_said(kind, entry) => Self::Notice,
            "assistant" => match message.id("id").filter(|id| !id.is_empty()) {
                Some(answer) => {
                    let mut calls = ToolNames::new();
                    blocks::collect_names(content, &mut calls);
                    Self::Part(answer, calls.into_keys().collect())
                }
                None => Self::Next,
            },
            "user" => match blocks::answered(content) {
                answered if answered.is_empty() => Self::Next,
                answered => Self::Results(answered),
            },
            _ => Self::Notice,
        }
    }
}

/// The rounds of a session. It is given every message, parents first and otherwise in the order of the entries.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    rounds: Vec<Round>,
    members: HashMap<MessageId, Member>,
    /// The newest round of each answer.
    answers: HashMap<String, usize>,
    /// The round that made a call; none if several did.
    calls: HashMap<String, Option<usize>>,
    /// Second results, and what they follow.
    forks: HashMap<MessageId, Option<MessageId>>,
}

#[derive(Debug, Clone, Default)]
struct Round {
    is_side: bool,
    /// The parent of its first entry.
    parent: Option<MessageId>,
    last: Option<MessageId>,
    /// Its calls, and what the result of each follows.
    calls: HashMap<String, Option<MessageId>>,
    /// Whether something goes on after it.
    is_followed: bool,
}

#[derive(Debug, Clone)]
struct Member {
    round: usize,
    /// The entry before it; none for the first one.
    before: Option<MessageId>,
}

impl Rounds {
    /// Takes the next messages, in the order of their entries, which name these parents. `place` returns that of one of them:
    /// of a repeated entry, the first one. Returns whether messages from before follow another one now, and whether the
    /// parents form a cycle.
    pub fn take(
        &mut self,
        nodes: &[Node],
        named: &[Option<MessageId>],
        place: impl Fn(&MessageId) -> Option<u32>,
    ) -> (bool, bool) {
        let mut parents: Vec<_> = named.iter().map(|id| place(id.as_ref()?)).collect();
        let (order, broken) = arrange(&mut parents);
        let mut moves = false;
        for at in order {
            let node = &nodes[at as usize];
            if place(&node.id) == Some(at) {
                moves |= self.add(node, named[at as usize].as_ref());
            }
        }
        (moves, !broken.is_empty())
    }

    /// Returns what a message follows whose entry names this parent.
    pub fn parent_of(&self, node: &Node, parent: Option<MessageId>) -> Option<MessageId> {
        if let Some(fork) = self.forks.get(&node.id) {
            return fork.clone();
        }
        let before = self.members.get(&node.id).and_then(|member| member.before.clone());
        let last = || self.rounds[self.round_of(node.is_side, parent.as_ref())?].last.clone();
        before.or_else(last).or_else(|| parent.clone())
    }

    fn round_of(&self, is_side: bool, id: Option<&MessageId>) -> Option<usize> {
        let round = self.members.get(id?)?.round;
        (self.rounds[round].is_side == is_side).then_some(round)
    }

    /// Adds a message; returns whether others, from before, follow it now.
    fn add(&mut self, node: &Node, parent: Option<&MessageId>) -> bool {
        let above = self.round_of(node.is_side, parent);
        let known = match &node.share {
            Share::Part(answer, _) => self.answers.get(answer).copied().filter(|known| {
                let Round { is_side, parent: begin, .. } = &self.rounds[*known];
                let is_beside = parent.is_some() && begin.as_ref() == parent;
                *is_side == node.is_side && (is_beside || above == Some(*known))
            }),
            Share::Results(answered) => self.answered_in(node, above, answered),
            Share::Notice => above.filter(|round| !self.rounds[*round].is_followed),
            Share::Next => None,
        };
        if known.is_none()
            && let Some(above) = above.filter(|_| !self.forks.contains_key(&node.id))
        {
            self.rounds[above].is_followed = true;
        }
        let round = known.unwrap_or(self.rounds.len());
        if let Share::Part(answer, calls) = &node.share {
            if known.is_none() {
                let (is_side, parent) = (node.is_side, parent.cloned());
                self.rounds.push(Round { is_side, parent, ..Round::default() });
                self.answers.insert(answer.clone(), round);
            }
            for call in calls {
                let owner = self.calls.entry(call.clone()).or_insert(Some(round));
                *owner = owner.filter(|owner| *owner == round);
                self.rounds[round].calls.entry(call.clone()).or_default();
            }
        }
        let Some(Round { last, is_followed, .. }) = self.rounds.get_mut(round) else {
            return false;
        };
        let before = last.replace(node.id.clone());
        self.members.insert(node.id.clone(), Member { round, before });
        *is_followed
    }

    /// Returns the round whose calls these results answer: that of the parent, or the one that made such a call.
    fn answered_in(
        &mut self,
        node: &Node,
        above: Option<usize>,
        answered: &[String],
    ) -> Option<usize> {
        let holds = |round: &usize| {
            answered.iter().any(|call| self.rounds[*round].calls.contains_key(call))
        };
        let called = answered.iter().find_map(|call| *self.calls.get(call)?);
        let called = called.filter(|round| self.rounds[*round].is_side == node.is_side);
        let round = above.filter(holds).or(called)?;
        let Round { calls, last, .. } = &mut self.rounds[round];
        let mut is_open = false;
        for call in answered {
            if let Some(first) = calls.get_mut(call).filter(|first| first.is_none()) {
                first.clone_from(last);
                is_open = true;
            }
        }
        if !is_open && above == Some(round) {
            let first = answered.iter().find_map(|call| calls.get(call).cloned());
            self.forks.insert(node.id.clone(), first.flatten());
        }
        is_open.then_some(round)
    }
}
