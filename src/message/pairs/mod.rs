//! Tool calls and their results: which part is which, and which result belongs to which call.
//!
//! [`Tool::call_input`] and [`Tool::has_result`] say whether a tool part is a call, a result, or both. The rules of pairing:
//!
//! - A call waits until its first result. A result belongs to the nearest earlier call of its id
//!   that waits, so an id may be used again.
//! - Several calls of one message may wait under one id; results answer them in order.
//! - A part with both input and result is the result of an earlier call if a call with the same id, tool and input waits
//!   in an earlier message. Otherwise it is complete: it does not wait, and it answers no other call.
//! - A part without input and result, or in the state `input-streaming`, is a call whose input is incomplete. It does not
//!   wait.
//! - If no call of its id waits, a result repeats the nearest earlier call of that id. If there is
//!   no earlier call of that id, the result is stray.
//!
//! [`ToolPairs`] pairs each result while messages are read from the start. [`NewestFirst`] reads
//! from the end: it holds only the results whose calls it has not met, not the messages.
//!
//! Invariant: `NewestFirst` lacks a call exactly if `ToolPairs` finds a stray result in the same
//! messages, up to [`NewestFirst::REACH`].

mod side;

use std::collections::{HashMap, HashSet};

use super::{Json, Message, Part, Tool};

/// What a tool part is to the parts before it; `C` is how the caller of [`ToolPairs`] refers to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing<C> {
    /// A call whose input has not come.
    Started,
    /// A call that waits for its result.
    Call,
    /// A call with its result, unless it repeats a call that waits.
    Complete,
    /// The result of this call, which waited for it.
    Answers(C),
    /// A result of this call, which does not wait: it has its result already, or no input yet.
    Repeats(C),
    /// A result without an earlier call.
    Stray,
}

/// Pairs tool calls with their results, oldest part first.
///
/// A result belongs to the nearest earlier call of its id that has none, since many providers number the calls of each turn
/// from one. A part that repeats a waiting call of an earlier message, and has a result, is its result.
///
/// ```
/// use serde_json::json;
/// use talktree::{Pairing, Part, ToolPairs};
///
/// let call = Part::tool_call("add", "c1", json!({"a": 2}));
/// let result = Part::tool_result("add", "c1", json!(4));
/// let mut pairs = ToolPairs::default();
/// assert_eq!(pairs.take(0, &call.tool().unwrap(), "the call"), Pairing::Call);
/// assert!(pairs.is_waiting());
/// assert_eq!(pairs.take(1, &result.tool().unwrap(), "the result"), Pairing::Answers("the call"));
/// assert_eq!(pairs.waiting().count(), 0);
/// ```
#[derive(Debug)]
pub struct ToolPairs<C> {
    calls: HashMap<String, Calls<C>>,
    /// How many calls wait, over all ids.
    waiting: usize,
}

/// The calls of one id.
#[derive(Debug)]
struct Calls<C> {
    waiting: Vec<Waiting<C>>,
    newest: C,
}

/// A call that waits for its result.
#[derive(Debug)]
struct Waiting<C> {
    /// The number of its message.
    message: usize,
    call: C,
    name: String,
    input: Json,
}

impl<C> Default for ToolPairs<C> {
    fn default() -> Self {
        Self { calls: HashMap::new(), waiting: 0 }
    }
}

impl<C: Copy> ToolPairs<C> {
    /// Takes the next part and pairs it with those before it.
    ///
    /// `message` grows from message to message. `here` refers to the part if it is a call.
    pub fn take(&mut self, message: usize, tool: &Tool, here: C) -> Pairing<C> {
        match (tool.call_input(), tool.has_result()) {
            (None, true) => self.take_result(&tool.call_id),
            (None, false) => {
                self.calls_of(&tool.call_id, here);
                Pairing::Started
            }
            (Some(input), true) => {
                let repeats = |waiting: &Waiting<C>| {
                    waiting.message < message
                        && waiting.name == tool.name
                        && waiting.input == *input
                };
                if let Some(call) = self.answer(&tool.call_id, repeats) {
                    return Pairing::Answers(call);
                }
                self.calls_of(&tool.call_id, here);
                Pairing::Complete
            }
            (Some(input), false) => {
                let (name, input) = (tool.name.clone(), input.clone());
                let waiting = Waiting { message, call: here, name, input };
                self.calls_of(&tool.call_id, here).waiting.push(waiting);
                self.waiting += 1;
                Pairing::Call
            }
        }
    }

    /// Returns the calls of the id, of which `newest` is now the newest.
    fn calls_of(&mut self, id: &str, newest: C) -> &mut Calls<C> {
        let calls = self
            .calls
            .entry(id.to_owned())
            .or_insert_with(|| Calls { waiting: Vec::new(), newest });
        calls.newest = newest;
        calls
    }

    fn take_result(&mut self, id: &str) -> Pairing<C> {
        if let Some(call) = self.answer(id, |_| true) {
            return Pairing::Answers(call);
        }
        match self.calls.get(id) {
            Some(calls) => Pairing::Repeats(calls.newest),
            None => Pairing::Stray,
        }
    }

    /// Takes the call that a result of this id belongs to from those that wait and fit.
    fn answer(&mut self, id: &str, fits: impl Fn(&Waiting<C>) -> bool) -> Option<C> {
        let waiting = &mut self.calls.get_mut(id)?.waiting;
        let nearest = waiting.iter().rev().find(|call| fits(call))?.message;
        let first = waiting.iter().position(|call| call.message == nearest && fits(call))?;
        self.waiting -= 1;
        Some(waiting.remove(first).call)
    }

    /// Returns whether a call waits for its result.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Returns the calls that wait, in no order.
    pub fn waiting(&self) -> impl Iterator<Item = C> {
        self.calls.values().flat_map(|calls| calls.waiting.iter().map(|waiting| waiting.call))
    }

    /// Forgets all calls, so that later results are stray.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.waiting = 0;
    }
}

/// Returns the places of each call and of each result of it in another message; in the order of
/// the calls, each pair of places once.
///
/// A result that repeats a call belongs to it, too.
pub(crate) fn pairs_across<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
) -> Vec<(usize, usize)> {
    let mut matcher = ToolPairs::default();
    let mut pairs = Vec::new();
    for (at, message) in messages.into_iter().enumerate() {
        for tool in message.parts.iter().filter_map(Part::tool) {
            if let Pairing::Answers(call) | Pairing::Repeats(call) = matcher.take(at, &tool, at)
                && call < at
            {
                pairs.push((call, at));
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Finds the calls of results, newest message first.
#[derive(Debug, Default)]
pub(crate) struct NewestFirst {
    taken: usize,
    /// The results without a call so far, by id.
    results: HashMap<String, Unanswered>,
    strays: Strays,
}

/// Results of one id without a call so far: how many messages came before the newest of them, and before the oldest.
#[derive(Debug)]
struct Unanswered {
    newest: usize,
    oldest: usize,
}

/// The results whose calls were not found: by id, and by how many messages came before the newest of them.
#[derive(Debug, Default)]
pub(crate) struct Strays(HashSet<(String, usize)>);

impl NewestFirst {
    /// How many messages back the call of a result is looked for.
    ///
    /// Real transcripts have results without a call; a search without an end would read all of them.
    pub(crate) const REACH: usize = 64;

    /// Takes the next older message.
    ///
    /// A call is found for all newer results of its id. That an older call waits for one of them
    /// cannot be known yet.
    pub(crate) fn take(&mut self, message: &Message) {
        for tool in message.parts.iter().rev().filter_map(Part::tool) {
            if tool.is_call() {
                self.results.remove(&tool.call_id);
            } else {
                let (newest, oldest) = (self.taken, self.taken);
                let results = self.results.entry(tool.call_id.clone());
                results.or_insert(Unanswered { newest, oldest }).oldest = oldest;
            }
        }
        self.taken += 1;
        let is_out_of_reach =
            |_: &String, results: &mut Unanswered| results.oldest + Self::REACH <= self.taken;
        let given_up = self.results.extract_if(is_out_of_reach);
        self.strays.0.extend(given_up.map(|(id, results)| (id, results.newest)));
    }

    /// Returns whether a result was taken whose call was not.
    pub(crate) fn lacks_call(&self) -> bool {
        !self.results.is_empty()
    }

    /// Does the same without results that are known to be stray.
    pub(crate) fn lacks_call_besides(&self, strays: &Strays) -> bool {
        self.results.iter().any(|(id, results)| !strays.0.contains(&(id.clone(), results.newest)))
    }

    /// Stops looking for the calls of the results taken so far.
    pub(crate) fn clear(&mut self) {
        self.results.clear();
    }

    /// Returns the results whose calls were not found, once nothing more is taken.
    pub(crate) fn into_strays(mut self) -> Strays {
        self.strays.0.extend(self.results.into_iter().map(|(id, results)| (id, results.newest)));
        self.strays
    }
}

#[cfg(test)]
mod tests;
