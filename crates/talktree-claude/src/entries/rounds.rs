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

use super::called;
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
    pub(super) fn of(kind: &str, entry: &Fields) -> Self {
        let message = || entry.object("message");
        match kind {
            "assistant" => {
                let mut calls = ToolNames::new();
                blocks::collect_names(called(entry).as_ref(), &mut calls);
                match message().and_then(|message| message.text("id")).filter(|id| !id.is_empty()) {
                    Some(answer) => Self::Part(answer, calls.into_keys().collect()),
                    None => Self::Next,
                }
            }
            "user" => {
                let content = message().and_then(|message| message.get("content").cloned());
                match blocks::answered(content.as_ref()) {
                    answered if answered.is_empty() => Self::Next,
                    answered => Self::Results(answered.into_iter().collect()),
                }
            }
            _ => Self::Notice,
        }
    }
}

/// The rounds of a session. It is given every message, parents first and otherwise in the order of the entries.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    rounds: Vec<Round>,
    members: HashMap<MessageId, Member>,
    /// The newest round of each answer, in side chains and out of them.
    answers: HashMap<(bool, String), usize>,
    /// The round that made a call; none if several did.
    calls: HashMap<(bool, String), Option<usize>>,
    /// Second results, and what they follow.
    forks: HashMap<MessageId, Option<MessageId>>,
}

#[derive(Debug, Clone)]
struct Round {
    is_side: bool,
    /// The parent of its first entry.
    parent: Option<MessageId>,
    last: MessageId,
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
    /// Returns the rounds of messages, in the order of their entries, which name these parents, and whether the parents form
    /// a cycle. `place` returns that of a message: of a repeated entry, the first one.
    pub fn of<T>(
        nodes: &[Node<T>],
        named: &[Option<MessageId>],
        place: impl Fn(&MessageId) -> Option<u32>,
    ) -> (Self, bool) {
        let mut parents: Vec<_> = named.iter().map(|id| place(id.as_ref()?)).collect();
        let mut rounds = Self::default();
        let (order, broken) = arrange(&mut parents);
        for at in order {
            let node = &nodes[at as usize];
            if place(&node.id) == Some(at) {
                rounds.take(node, named[at as usize].as_ref());
            }
        }
        (rounds, !broken.is_empty())
    }

    /// Takes the next message, whose entry names this parent. Returns whether messages from before follow another one now.
    pub fn take<T>(&mut self, node: &Node<T>, parent: Option<&MessageId>) -> bool {
        let above = self.round_of(node.is_side, parent);
        let joined = match &node.share {
            Share::Part(answer, calls) => {
                return self.take_part(node, parent, above, answer, calls);
            }
            Share::Results(answered) => self.answered_in(node, above, answered),
            Share::Notice => above.filter(|round| !self.rounds[*round].is_followed),
            Share::Next => None,
        };
        match joined {
            Some(round) => self.join(round, &node.id),
            None => {
                if let Some(above) = above.filter(|_| !self.forks.contains_key(&node.id)) {
                    self.rounds[above].is_followed = true;
                }
                false
            }
        }
    }

    /// Returns what a message follows whose entry names this parent.
    pub fn parent_of<T>(&self, node: &Node<T>, parent: Option<MessageId>) -> Option<MessageId> {
        if let Some(fork) = self.forks.get(&node.id) {
            return fork.clone();
        }
        if let Some(before) = self.members.get(&node.id).and_then(|member| member.before.clone()) {
            return Some(before);
        }
        match self.round_of(node.is_side, parent.as_ref()) {
            Some(round) => Some(self.rounds[round].last.clone()),
            None => parent,
        }
    }

    fn round_of(&self, is_side: bool, id: Option<&MessageId>) -> Option<usize> {
        let round = self.members.get(id?)?.round;
        (self.rounds[round].is_side == is_side).then_some(round)
    }

    fn take_part<T>(
        &mut self,
        node: &Node<T>,
        parent: Option<&MessageId>,
        above: Option<usize>,
        answer: &str,
        calls: &[String],
    ) -> bool {
        let key = (node.is_side, answer.to_owned());
        let is_beside =
            |round: usize| parent.is_some() && self.rounds[round].parent.as_ref() == parent;
        let known = self.answers.get(&key).copied();
        let (round, moves) = match known.filter(|it| above == Some(*it) || is_beside(*it)) {
            Some(round) => (round, self.join(round, &node.id)),
            None => {
                if let Some(above) = above {
                    self.rounds[above].is_followed = true;
                }
                let round = self.rounds.len();
                self.rounds.push(Round {
                    is_side: node.is_side,
                    parent: parent.cloned(),
                    last: node.id.clone(),
                    calls: HashMap::new(),
                    is_followed: false,
                });
                self.members.insert(node.id.clone(), Member { round, before: None });
                self.answers.insert(key, round);
                (round, false)
            }
        };
        for call in calls {
            let owner = self.calls.entry((node.is_side, call.clone())).or_insert(Some(round));
            *owner = owner.filter(|owner| *owner == round);
            self.rounds[round].calls.entry(call.clone()).or_default();
        }
        moves
    }

    /// Returns the round whose calls these results answer: that of the parent, or the one that made such a call.
    fn answered_in<T>(
        &mut self,
        node: &Node<T>,
        above: Option<usize>,
        answered: &[String],
    ) -> Option<usize> {
        let holds = |round: &usize| {
            answered.iter().any(|call| self.rounds[*round].calls.contains_key(call))
        };
        let called = |call: &String| self.calls.get(&(node.is_side, call.clone())).copied()?;
        let round = above.filter(holds).or_else(|| answered.iter().find_map(called))?;
        let Round { calls, last, .. } = &mut self.rounds[round];
        let is_open = |call: &&String| calls.get(*call).is_some_and(Option::is_none);
        let open: Vec<&String> = answered.iter().filter(is_open).collect();
        if open.is_empty() {
            if above == Some(round) {
                let first = answered.iter().find_map(|call| calls.get(call).cloned());
                self.forks.insert(node.id.clone(), first.flatten());
            }
            return None;
        }
        for call in open {
            calls.insert(call.clone(), Some(last.clone()));
        }
        Some(round)
    }

    fn join(&mut self, round: usize, id: &MessageId) -> bool {
        let Round { last, is_followed, .. } = &mut self.rounds[round];
        let before = Some(std::mem::replace(last, id.clone()));
        self.members.insert(id.clone(), Member { round, before });
        *is_followed
    }
}
