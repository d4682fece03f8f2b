//! The conversation in a transcript: from its first message to the leaf that was written last.
//!
//! An entry names its parent; a transcript is a tree, because a session may be rewound. A compaction starts a new root: a
//! boundary and a summary. So the chain from the leaf ends there. One answer of a model is several entries, one
//! for each part. If it called several tools, each result is a child of the entry of its call, and only one of them is on
//! the chain: the others are put back behind the answer.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::entry::{Kind, Link};
use super::{subagent, text};
use crate::message::{Json, Role};

/// A message of a session, as the agent SDK returns it.
///
/// A lone surrogate in a text is U+FFFD; `message` is as it was stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TranscriptMessage {
    /// [`Role::User`] or [`Role::Assistant`].
    pub role: Role,
    /// The `uuid` of its entry.
    pub uuid: String,
    /// The id of the session that its entry names; empty if it names none.
    pub session: String,
    /// The message in the format of the provider's API; null if the entry has none.
    pub message: Json,
    /// A subagent's messages: the id of the tool call that started it.
    pub parent_call: Option<String>,
    /// A subagent's messages: the id of the subagent that started it.
    pub parent_agent: Option<String>,
}

type Bytes<'a> = Cow<'a, [u8]>;

/// The entries of a transcript that have a place in a conversation, in order.
struct Links<'a> {
    all: Vec<Link<'a>>,
    /// The place of each `uuid`; the last one, if several entries have it.
    places: HashMap<Bytes<'a>, usize>,
    /// The places, in the order in which each `uuid` occurs first.
    distinct: Vec<usize>,
}

/// Returns the messages of a main transcript.
pub(super) fn messages(entries: &[Json]) -> Vec<TranscriptMessage> {
    let links = Links::of(entries);
    let Some(leaf) = links.leaf() else { return Vec::new() };
    let chain = links.with_parallel_results(links.path_to(leaf));
    let chain = chain.into_iter().map(|place| &links.all[place]);
    let shown = chain.filter(|link| {
        link.kind.is_message() && !link.is_meta && !link.is_sidechain && !link.is_team
    });
    shown.map(|link| message(link, &subagent::Starter::default())).collect()
}

/// Returns the messages of a subagent's transcript.
pub(super) fn messages_of_subagent(entries: &[Json]) -> Vec<TranscriptMessage> {
    let starter = subagent::Starter::of(entries);
    let links = Links::of(entries);
    let Some(leaf) = links.all.iter().rposition(|link| link.kind.is_message()) else {
        return Vec::new();
    };
    let chain = links.path_to(leaf).into_iter().map(|place| &links.all[place]);
    chain.filter(|link| link.kind.is_message()).map(|link| message(link, &starter)).collect()
}

fn message(link: &Link<'_>, starter: &subagent::Starter) -> TranscriptMessage {
    let json = link.message.and_then(|token| Json::parse(token).ok());
    TranscriptMessage {
        role: if link.kind == Kind::User { Role::User } else { Role::Assistant },
        uuid: text::lossy(&link.uuid),
        session: link.session.and_then(text::decode_lossy).unwrap_or_default(),
        message: json.unwrap_or_else(|| Json::from(serde_json::Value::Null)),
        parent_call: starter.call.clone(),
        parent_agent: starter.agent.clone(),
    }
}

impl<'a> Links<'a> {
    fn of(entries: &'a [Json]) -> Self {
        let all: Vec<Link<'a>> = entries.iter().filter_map(Link::of).collect();
        let mut places = HashMap::with_capacity(all.len());
        for (place, link) in all.iter().enumerate() {
            places.insert(link.uuid.clone(), place);
        }
        let mut seen = HashSet::with_capacity(places.len());
        let firsts = all.iter().filter(|link| seen.insert(&link.uuid));
        let distinct = firsts.map(|link| places[&link.uuid]).collect();
        Self { all, places, distinct }
    }

    fn parent(&self, place: usize) -> Option<usize> {
        self.places.get(self.all[place].parent.as_ref()?).copied()
    }

    /// Returns the leaf of the conversation: of the main one, if there is one, and of several the last in the file.
    fn leaf(&self) -> Option<usize> {
        let parents: HashSet<&Bytes<'a>> =
            self.all.iter().filter_map(|link| link.parent.as_ref()).collect();
        let ends = (0..self.all.len()).filter(|place| !parents.contains(&self.all[*place].uuid));
        let mut known = HashMap::new();
        let leaves: Vec<usize> =
            ends.filter_map(|end| self.message_at_or_above(end, &mut known)).collect();
        let is_main = |place: &usize| {
            let link = &self.all[*place];
            !link.is_sidechain && !link.is_team && !link.is_meta
        };
        let main: Vec<usize> = leaves.iter().copied().filter(is_main).collect();
        let candidates = if main.is_empty() { leaves } else { main };
        // Of several with the same place, the first: equal `uuid`s have one place.
        let last = |place: usize| self.places.get(&self.all[place].uuid).copied();
        candidates.into_iter().rev().max_by_key(|place| last(*place))
    }

    /// Returns the nearest message on the path to an entry.
    ///
    /// `known` caches the answers, so that a long path with many ends is walked once.
    fn message_at_or_above(
        &self,
        end: usize,
        known: &mut HashMap<usize, Option<usize>>,
    ) -> Option<usize> {
        let (mut at, mut passed, mut seen) = (Some(end), Vec::new(), HashSet::new());
        let found = loop {
            let Some(place) = at else { break None };
            if let Some(found) = known.get(&place) {
                break *found;
            }
            if !seen.insert(&self.all[place].uuid) {
                break None;
            }
            passed.push(place);
            if self.all[place].kind.is_message() {
                break Some(place);
            }
            at = self.parent(place);
        };
        known.extend(passed.into_iter().map(|place| (place, found)));
        found
    }

    /// Returns the path to an entry, from its root; a cycle is cut.
    fn path_to(&self, leaf: usize) -> Vec<usize> {
        let (mut at, mut path, mut seen) = (Some(leaf), Vec::new(), HashSet::new());
        while let Some(place) = at.filter(|place| seen.insert(&self.all[*place].uuid)) {
            path.push(place);
            at = self.parent(place);
        }
        path.reverse();
        path
    }

    /// Adds the parts and results of each answer on the chain that are not on it, behind its last part there: the parts by
    /// time, then the results by time.
    fn with_parallel_results(&self, chain: Vec<usize>) -> Vec<usize> {
        let mut answers: Vec<(Bytes<'a>, usize)> = Vec::new();
        let mut at_answer: HashMap<Bytes<'a>, usize> = HashMap::new();
        for &place in &chain {
            let Some(answer) = self.all[place].answer() else { continue };
            match at_answer.get(&answer) {
                Some(at) => answers[*at].1 = place,
                None => {
                    at_answer.insert(answer.clone(), answers.len());
                    answers.push((answer, place));
                }
            }
        }
        if answers.is_empty() {
            return chain;
        }
        let rounds = Rounds::of(self);
        let mut seen: HashSet<Bytes<'a>> =
            chain.iter().map(|place| self.all[*place].uuid.clone()).collect();
        let answered_on_chain: HashSet<Bytes<'a>> =
            chain.iter().flat_map(|place| self.all[*place].answered()).collect();
        let mut behind: HashMap<Bytes<'a>, Vec<usize>> = HashMap::new();
        for (answer, last) in answers {
            let found = rounds.missing(&answer, &seen, &answered_on_chain);
            if found.is_empty() {
                continue;
            }
            seen.extend(found.iter().map(|place| self.all[*place].uuid.clone()));
            behind.insert(self.all[last].uuid.clone(), found);
        }
        let mut whole = Vec::with_capacity(chain.len());
        for place in chain {
            whole.push(place);
            whole.extend(behind.get(&self.all[place].uuid).into_iter().flatten());
        }
        whole
    }
}

/// The answers of a transcript, and the results of their tool calls.
struct Rounds<'a, 'l> {
    links: &'l Links<'a>,
    /// The parts of each answer.
    parts: HashMap<Bytes<'a>, Vec<usize>>,
    /// Which part made a tool call; `None` if several answers have a call of this id.
    owners: HashMap<Bytes<'a>, Option<usize>>,
    /// The results that may belong to a part.
    results: HashMap<Bytes<'a>, Vec<usize>>,
}

impl<'a, 'l> Rounds<'a, 'l> {
    fn of(links: &'l Links<'a>) -> Self {
        let mut rounds =
            Self { links, parts: HashMap::new(), owners: HashMap::new(), results: HashMap::new() };
        let mut results = Vec::new();
        for &place in &links.distinct {
            let link = &links.all[place];
            match link.answer() {
                Some(answer) => rounds.add_part(answer, place),
                None if link.is_result() => results.push(place),
                None => {}
            }
        }
        for place in results {
            rounds.add_result(place);
        }
        rounds
    }

    fn add_part(&mut self, answer: Bytes<'a>, place: usize) {
        let links = self.links;
        for call in links.all[place].calls() {
            let owner = match self.owners.get(&call) {
                None => Some(place),
                Some(owner) => owner
                    .filter(|owner| links.all[*owner].answer().as_ref() == Some(&answer))
                    .map(|_| place),
            };
            self.owners.insert(call, owner);
        }
        self.parts.entry(answer).or_default().push(place);
    }

    /// A result may belong to its parent; and, if the same agent wrote them, to the answer that it names and to the parts
    /// whose calls it answers.
    fn add_result(&mut self, place: usize) {
        let links = self.links;
        let link = &links.all[place];
        let named = link.source.as_ref().and_then(|source| links.places.get(source)).copied();
        let called = link.answered().into_iter().filter_map(|call| *self.owners.get(&call)?);
        let others: Vec<usize> = named.into_iter().chain(called).collect();
        if let Some(parent) = &link.parent {
            self.results.entry(parent.clone()).or_default().push(place);
        }
        for other in others.into_iter().map(|other| &links.all[other]) {
            if link.is_of_writer_of(other) {
                self.results.entry(other.uuid.clone()).or_default().push(place);
            }
        }
    }

    /// Returns the parts and results of an answer that were not seen.
    fn missing(
        &self,
        answer: &Bytes<'a>,
        seen: &HashSet<Bytes<'a>>,
        answered_on_chain: &HashSet<Bytes<'a>>,
    ) -> Vec<usize> {
        let all = &self.links.all;
        let parts = self.parts.get(answer).map_or(&[][..], Vec::as_slice);
        let uuids: HashSet<&Bytes<'a>> = parts.iter().map(|place| &all[*place].uuid).collect();
        let mut missing: Vec<usize> =
            parts.iter().copied().filter(|place| !seen.contains(&all[*place].uuid)).collect();

        let (mut results, mut strays, mut collected) = (Vec::new(), Vec::new(), HashSet::new());
        for place in parts.iter().flat_map(|part| self.results.get(&all[*part].uuid)).flatten() {
            let link = &all[*place];
            if seen.contains(&link.uuid) || !collected.insert(&link.uuid) {
                continue;
            }
            match link.parent.as_ref().is_some_and(|parent| uuids.contains(parent)) {
                true => results.push(*place),
                false => strays.push(*place),
            }
        }
        if !strays.is_empty() {
            self.add_strays(strays, &uuids, answered_on_chain, &mut results);
        }
        // Sorting is stable: of equal times the order of the file, and of the calls, stays.
        missing.sort_by(|one, other| all[*one].timestamp.cmp(&all[*other].timestamp));
        results.sort_by(|one, other| all[*one].timestamp.cmp(&all[*other].timestamp));
        missing.append(&mut results);
        missing
    }

    /// Adds the results with a parent elsewhere that answer a call of these parts that nothing else answers.
    fn add_strays(
        &self,
        mut strays: Vec<usize>,
        parts: &HashSet<&Bytes<'a>>,
        answered_on_chain: &HashSet<Bytes<'a>>,
        results: &mut Vec<usize>,
    ) {
        let all = &self.links.all;
        let mut answered: HashSet<Bytes<'a>> =
            results.iter().flat_map(|place| all[*place].answered()).collect();
        let order: HashMap<usize, usize> =
            self.links.distinct.iter().enumerate().map(|(order, place)| (*place, order)).collect();
        strays.sort_by_key(|place| order.get(place));
        for place in strays {
            let calls = all[place].answered();
            let is_open = calls.iter().any(|call| {
                let owner = self.owners.get(call).copied().flatten();
                !answered.contains(call)
                    && !answered_on_chain.contains(call)
                    && owner.is_some_and(|owner| parts.contains(&all[owner].uuid))
            });
            if is_open {
                answered.extend(calls);
                results.push(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads entries drawn as `uuid parent type`, with more members after them.
    fn drawn(lines: &[&str]) -> Vec<Json> {
        let entry = |line: &&str| {
            let mut words = line.splitn(4, ' ');
            let (uuid, parent) = (words.next().unwrap(), words.next().unwrap());
            let kind = words.next().unwrap();
            let more = words.next().map(|more| format!(",{more}")).unwrap_or_default();
            let parent = if parent == "-" { "null".into() } else { format!("\"{parent}\"") };
            Json::parse(&format!(
                r#"{{"uuid":"{uuid}","parentUuid":{parent},"type":"{kind}"{more}}}"#
            ))
            .unwrap()
        };
        lines.iter().map(entry).collect()
    }

    fn shown(lines: &[&str]) -> String {
        let messages = messages(&drawn(lines));
        messages.iter().map(|message| message.uuid.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_chain_leads_to_the_last_leaf_of_the_main_conversation() {
        assert_eq!(shown(&["a - user", "b a assistant", "c a assistant", "d b user"]), "a b d");
        let side = r#""isSidechain":true"#;
        assert_eq!(shown(&["a - user", "b a assistant", &format!("c a assistant {side}")]), "a b");
        assert_eq!(shown(&["a - user", "p a progress", "s p system", "b s assistant"]), "a b");
        assert_eq!(shown(&["a - user", "p a progress", "q p progress"]), "a");
        assert_eq!(shown(&["a - user", "m a user \"isMeta\":true", "b m assistant"]), "a b");
        assert_eq!(shown(&["a - custom-title", "b - system"]), "");
    }

    #[test]
    fn the_chain_begins_at_the_last_compaction() {
        let lines = [
            "a - user",
            "b a assistant",
            r#"x - system "subtype":"compact_boundary","logicalParentUuid":"b""#,
            r#"s x user "isCompactSummary":true"#,
            "c s assistant",
        ];
        assert_eq!(shown(&lines), "s c");
    }

    #[test]
    fn missing_parents_and_cycles_end_the_chain() {
        assert_eq!(shown(&["b gone user", "c b assistant"]), "b c");
        assert_eq!(shown(&["a b user", "b a assistant", "c a user"]), "b a c");
        assert_eq!(shown(&["a b user", "b a assistant"]), "");
        assert_eq!(shown(&["a a progress", "b - user"]), "b");
    }

    #[test]
    fn results_of_parallel_calls_follow_their_answer() {
        let call = |id: &str| {
            format!(r#""message":{{"id":"m","content":[{{"type":"tool_use","id":"{id}"}}]}}"#)
        };
        let result = |id: &str| {
            format!(r#""message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}"#)
        };
        let lines = [
            "q - user".to_owned(),
            format!("a q assistant {}", call("1")),
            format!("b a assistant {}", call("2")),
            format!("r2 b user {}", result("2")),
            format!("r1 a user {}", result("1")),
            "e r1 assistant".to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(shown(&lines), "q a b r2 r1 e");
    }

    #[test]
    fn many_ends_of_a_long_path_are_found_in_one_walk() {
        let mut lines = vec!["p0 - progress".to_owned()];
        lines.extend((1..20_000).map(|n| format!("p{n} p{} progress", n - 1)));
        lines.extend((0..20_000).map(|n| format!("q{n} p19999 progress")));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(shown(&lines), "");
    }
}
