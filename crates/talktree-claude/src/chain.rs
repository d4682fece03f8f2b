//! The conversation in a transcript: from its first message to the leaf that was written last.
//!
//! An entry names its parent; a transcript is a tree, because a session may be rewound. A compaction starts a new root: a
//! boundary and a summary. So the chain from the leaf ends there. One answer of a model is several entries, one
//! for each part. If it called several tools, each result is a child of the entry of its call, and only one of them is on
//! the chain: the others are put back behind the answer.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use talktree::{Json, Role};

use crate::link::{Kind, Link};
use crate::text::{self, Members};

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

/// Returns the id of the subagent that has this subpath.
pub(crate) fn agent_of(subpath: &str) -> Option<&str> {
    let last = subpath.strip_prefix("subagents/")?.rsplit('/').next()?;
    last.strip_prefix("agent-")
}

/// Returns whether an entry is the content of a subagent's `.meta.json`, not a line of its transcript.
pub(crate) fn is_metadata(entry: &Json) -> bool {
    Members::of(entry.as_str()).is("type", "agent_metadata")
}

/// Who started a subagent: the tool call, and the agent that made it.
#[derive(Default)]
struct Starter {
    call: Option<String>,
    agent: Option<String>,
}

impl Starter {
    /// Reads the last entry with the subagent's metadata.
    fn of(entries: &[Json]) -> Self {
        let last = entries.iter().rev().find(|entry| is_metadata(entry));
        let last = Members::of(last.map_or("", Json::as_str));
        let text = |name| last.text(name).map(|text| text::lossy(&text));
        Self { call: text("toolUseId"), agent: text("parentAgentId") }
    }
}

type Bytes<'a> = Cow<'a, [u8]>;

/// The entries of a transcript that have a place in a conversation, in order. A transcript has one entry of each `uuid`.
struct Links<'a> {
    all: Vec<Link<'a>>,
    /// The place of the parent of each.
    parents: Vec<Option<usize>>,
    /// The place of the answer that each says it is a result of.
    sources: Vec<Option<usize>>,
}

/// Returns the messages of a main transcript.
pub(crate) fn messages(entries: &[Json]) -> Vec<TranscriptMessage> {
    let links = Links::of(entries);
    let Some(leaf) = links.leaf() else { return Vec::new() };
    let chain = links.with_parallel_results(links.path_to(leaf));
    let chain = chain.into_iter().map(|place| &links.all[place]);
    let shown = chain.filter(|link| {
        link.kind.is_message() && !link.is_meta && !link.is_sidechain && !link.is_team
    });
    shown.map(|link| message(link, &Starter::default())).collect()
}

/// Returns the messages of a subagent's transcript.
pub(crate) fn messages_of_subagent(entries: &[Json]) -> Vec<TranscriptMessage> {
    let starter = Starter::of(entries);
    let links = Links::of(entries);
    let Some(leaf) = links.all.iter().rposition(|link| link.kind.is_message()) else {
        return Vec::new();
    };
    let chain = links.path_to(leaf).into_iter().map(|place| &links.all[place]);
    chain.filter(|link| link.kind.is_message()).map(|link| message(link, &starter)).collect()
}

fn message(link: &Link<'_>, starter: &Starter) -> TranscriptMessage {
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
        let places: HashMap<&[u8], usize> =
            all.iter().enumerate().map(|(place, link)| (&*link.uuid, place)).collect();
        let place = |uuid: &Option<Bytes<'a>>| places.get(uuid.as_deref()?).copied();
        let parents = all.iter().map(|link| place(&link.parent)).collect();
        let sources = all.iter().map(|link| place(&link.source)).collect();
        Self { all, parents, sources }
    }

    /// Returns the leaf of the conversation: of the main one, if there is one, and of several the last in the file.
    fn leaf(&self) -> Option<usize> {
        let mut is_parent = vec![false; self.all.len()];
        self.parents.iter().flatten().for_each(|parent| is_parent[*parent] = true);
        let (mut seen, mut leaves) = (vec![false; self.all.len()], Vec::new());
        for end in (0..self.all.len()).filter(|place| !is_parent[*place]) {
            // The nearest message above an end; what was seen before has led to its message.
            let mut at = Some(end);
            while let Some(place) = at.filter(|place| !std::mem::replace(&mut seen[*place], true)) {
                at = self.parents[place];
                if self.all[place].kind.is_message() {
                    leaves.push(place);
                    break;
                }
            }
        }
        let is_main = |place: &usize| {
            let link = &self.all[*place];
            !link.is_sidechain && !link.is_team && !link.is_meta
        };
        let main = leaves.iter().copied().filter(is_main).max();
        main.or(leaves.into_iter().max())
    }

    /// Returns the path to an entry, from its root; a cycle is cut.
    fn path_to(&self, leaf: usize) -> Vec<usize> {
        let (mut at, mut path, mut seen) = (Some(leaf), Vec::new(), HashSet::new());
        while let Some(place) = at.filter(|place| seen.insert(*place)) {
            path.push(place);
            at = self.parents[place];
        }
        path.reverse();
        path
    }

    /// Adds the parts and results of each answer on the chain that are not on it, behind its last part there: the parts by
    /// time, then the results by time.
    fn with_parallel_results(&self, chain: Vec<usize>) -> Vec<usize> {
        let answer_of = |place: &usize| Some((self.all[*place].answer()?, *place));
        let mut last_of: HashMap<Bytes<'a>, usize> = chain.iter().filter_map(answer_of).collect();
        if last_of.is_empty() {
            return chain;
        }
        let rounds = Rounds::of(self);
        let mut seen: HashSet<usize> = chain.iter().copied().collect();
        let answered_on_chain: HashSet<Bytes<'a>> =
            chain.iter().flat_map(|place| self.all[*place].answered()).collect();
        let mut behind: HashMap<usize, Vec<usize>> = HashMap::new();
        for (answer, _) in chain.iter().filter_map(answer_of) {
            let Some(last) = last_of.remove(&answer) else { continue };
            let found = rounds.missing(&answer, &seen, &answered_on_chain);
            seen.extend(&found);
            behind.insert(last, found);
        }
        let mut whole = Vec::with_capacity(chain.len());
        for place in chain {
            whole.push(place);
            whole.extend(behind.get(&place).into_iter().flatten());
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
    results: HashMap<usize, Vec<usize>>,
}

impl<'a, 'l> Rounds<'a, 'l> {
    fn of(links: &'l Links<'a>) -> Self {
        let mut rounds =
            Self { links, parts: HashMap::new(), owners: HashMap::new(), results: HashMap::new() };
        let mut results = Vec::new();
        for (place, link) in links.all.iter().enumerate() {
            match link.answer() {
                Some(answer) => rounds.add_part(answer, place),
                None if link.is_result() => results.push(place),
                None => {}
            }
        }
        results.into_iter().for_each(|place| rounds.add_result(place));
        rounds
    }

    fn add_part(&mut self, answer: Bytes<'a>, place: usize) {
        let all = &self.links.all;
        for call in all[place].calls() {
            let is_of_it = |owner: &usize| all[*owner].answer().as_ref() == Some(&answer);
            let owner = match self.owners.get(&call) {
                None => Some(place),
                Some(owner) => owner.filter(is_of_it).map(|_| place),
            };
            self.owners.insert(call, owner);
        }
        self.parts.entry(answer).or_default().push(place);
    }

    /// A result may belong to its parent; and, if the same agent wrote them, to the answer that it names and to the parts
    /// whose calls it answers.
    fn add_result(&mut self, place: usize) {
        let Links { all, parents, sources } = self.links;
        let called = all[place].answered();
        let called = called.iter().filter_map(|call| *self.owners.get(call)?);
        let others: Vec<usize> = sources[place].into_iter().chain(called).collect();
        let others = others.into_iter().filter(|other| all[place].is_of_writer_of(&all[*other]));
        for part in parents[place].into_iter().chain(others) {
            self.results.entry(part).or_default().push(place);
        }
    }

    /// Returns the parts and results of an answer that were not seen.
    fn missing(
        &self,
        answer: &Bytes<'a>,
        seen: &HashSet<usize>,
        answered_on_chain: &HashSet<Bytes<'a>>,
    ) -> Vec<usize> {
        let Links { all, parents, .. } = self.links;
        let parts = self.parts.get(answer).map_or(&[][..], Vec::as_slice);
        let mut missing: Vec<usize> =
            parts.iter().copied().filter(|place| !seen.contains(place)).collect();
        let mut collected = HashSet::new();
        let found = parts.iter().filter_map(|part| self.results.get(part)).flatten().copied();
        let found = found.filter(|place| !seen.contains(place) && collected.insert(*place));
        let (mut results, mut strays): (Vec<usize>, Vec<usize>) =
            found.partition(|place| parents[*place].is_some_and(|parent| parts.contains(&parent)));
        // Of results with a parent elsewhere, those that answer a call of these parts that nothing else answers.
        let mut answered: HashSet<Bytes<'a>> =
            results.iter().flat_map(|place| all[*place].answered()).collect();
        strays.sort_unstable();
        for place in strays {
            let calls = all[place].answered();
            let is_open = calls.iter().any(|call| {
                let owner = self.owners.get(call).copied().flatten();
                !answered.contains(call)
                    && !answered_on_chain.contains(call)
                    && owner.is_some_and(|owner| parts.contains(&owner))
            });
            if is_open {
                answered.extend(calls);
                results.push(place);
            }
        }
        // Sorting is stable: of equal times the order of the file, and of the calls, stays.
        missing.sort_by(|one, other| all[*one].timestamp.cmp(&all[*other].timestamp));
        results.sort_by(|one, other| all[*one].timestamp.cmp(&all[*other].timestamp));
        missing.append(&mut results);
        missing
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
