//! The conversation in a transcript: from its first message to the leaf that was written last.
//!
//! An entry names its parent; a transcript is a tree, because a session may be rewound. A compaction starts a new root: a
//! boundary and a summary. So the chain from the leaf ends there. One answer of a model is several entries, one
//! for each part. If it called several tools, each result is a child of the entry of its call, and only one of them is on
//! the chain: the others are put back behind the answer.

use std::collections::{HashMap, HashSet};

use talktree::records::fields::Fields;
use talktree::{Json, Role};

use crate::entries::{Share, is_link, kind_of};
use crate::is_truthy;

/// A message of a session, as the agent SDK returns it.
///
/// An id that no Rust string can hold, because of a lone surrogate, is one derived from it; `message` is as it was stored.
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
    Fields::of(entry).is_some_and(|entry| kind_of(&entry) == "agent_metadata")
}

/// An entry that has a place in a conversation.
pub(crate) struct Link {
    pub(crate) kind: String,
    pub(crate) uuid: String,
    pub(crate) parent: Option<String>,
    pub(crate) is_side: bool,
    share: Share,
    /// Whether it is a team's, or the program's own.
    is_hidden: bool,
    agent: Option<String>,
    timestamp: String,
    /// The `uuid` of the answer with the tool call whose result this is, as the entry itself says.
    source: Option<String>,
    session: String,
    message: Json,
}

impl Link {
    /// Reads an entry; `None` if it has no place in a conversation.
    pub(crate) fn of(entry: &Json) -> Option<Self> {
        let entry = Fields::of(entry)?;
        let kind = kind_of(&entry);
        if !is_link(&kind) && kind != "progress" {
            return None;
        }
        Some(Self {
            uuid: entry.id("uuid")?,
            parent: entry.id("parentUuid").filter(|parent| !parent.is_empty()),
            is_side: is_truthy(entry.get("isSidechain")),
            share: Share::of(&kind, &entry, &entry.object("message").unwrap_or_default()),
            is_hidden: is_truthy(entry.get("teamName")) || is_truthy(entry.get("isMeta")),
            agent: entry.id("agentId"),
            timestamp: entry.text("timestamp").unwrap_or_default(),
            source: entry.id("sourceToolAssistantUUID"),
            session: entry.id("sessionId").unwrap_or_default(),
            message: entry
                .get("message")
                .cloned()
                .unwrap_or_else(|| serde_json::Value::Null.into()),
            kind,
        })
    }

    fn is_message(&self) -> bool {
        matches!(&*self.kind, "user" | "assistant")
    }

    fn is_main(&self) -> bool {
        !self.is_side && !self.is_hidden
    }

    /// Returns the id of the answer of which this is a part.
    fn answer(&self) -> Option<&str> {
        match &self.share {
            Share::Part(answer, _) => Some(answer),
            _ => None,
        }
    }

    /// Returns the ids of the tool calls in a part of an answer.
    fn calls(&self) -> &[String] {
        match &self.share {
            Share::Part(_, calls) => calls,
            _ => &[],
        }
    }

    /// Returns the ids of the tool calls whose results are in it.
    fn answered(&self) -> &[String] {
        match &self.share {
            Share::Results(answered) => answered,
            _ => &[],
        }
    }

    /// Returns whether the same agent wrote both entries.
    fn is_of_writer_of(&self, other: &Self) -> bool {
        (self.is_side, &self.agent) == (other.is_side, &other.agent)
    }

    fn to_message(&self) -> TranscriptMessage {
        TranscriptMessage {
            role: if self.kind == "user" { Role::User } else { Role::Assistant },
            uuid: self.uuid.clone(),
            session: self.session.clone(),
            message: self.message.clone(),
            parent_call: None,
            parent_agent: None,
        }
    }
}

/// Returns the messages of a main transcript.
pub(crate) fn messages(entries: &[Json]) -> Vec<TranscriptMessage> {
    let links = Links::of(entries);
    let Some(leaf) = links.leaf() else { return Vec::new() };
    let chain = links.with_parallel_results(links.path_to(leaf)).into_iter();
    let shown = chain.map(|place| &links.all[place]).filter(|it| it.is_message() && it.is_main());
    shown.map(Link::to_message).collect()
}

/// Returns the messages of a subagent's transcript, with who started it.
pub(crate) fn messages_of_subagent(entries: &[Json]) -> Vec<TranscriptMessage> {
    let started = entries.iter().rev().find(|entry| is_metadata(entry)).and_then(Fields::of);
    let started = started.unwrap_or_default();
    let links = Links::of(entries);
    let Some(leaf) = links.all.iter().rposition(Link::is_message) else { return Vec::new() };
    let chain = links.path_to(leaf).into_iter().map(|place| &links.all[place]);
    let message = |link: &Link| TranscriptMessage {
        parent_call: started.id("toolUseId"),
        parent_agent: started.id("parentAgentId"),
        ..link.to_message()
    };
    chain.filter(|link| link.is_message()).map(message).collect()
}

/// The entries of a transcript that have a place in a conversation, in order. A transcript has one entry of each `uuid`.
struct Links {
    all: Vec<Link>,
    /// The place of the parent of each.
    parents: Vec<Option<usize>>,
    /// The place of the answer that each says it is a result of.
    sources: Vec<Option<usize>>,
}

impl Links {
    fn of(entries: &[Json]) -> Self {
        let all: Vec<Link> = entries.iter().filter_map(Link::of).collect();
        let places = all.iter().enumerate().map(|(place, link)| (&*link.uuid, place));
        let places: HashMap<&str, usize> = places.collect();
        let place = |uuid: &Option<String>| places.get(uuid.as_deref()?).copied();
        let parents = all.iter().map(|link| place(&link.parent)).collect();
        let sources = all.iter().map(|link| place(&link.source)).collect();
        Self { all, parents, sources }
    }

    /// Returns the leaf of the conversation: of the main one, if there is one, and of several the last in the file.
    fn leaf(&self) -> Option<usize> {
        let mut is_parent = vec![false; self.all.len()];
        self.parents.iter().flatten().for_each(|parent| is_parent[*parent] = true);
        let (mut seen, mut leaves) = (HashSet::new(), Vec::new());
        for end in (0..self.all.len()).filter(|place| !is_parent[*place]) {
            // The nearest message above an end; what was seen before has led to its message.
            let mut at = Some(end);
            while let Some(place) = at.filter(|place| seen.insert(*place)) {
                at = self.parents[place].filter(|_| !self.all[place].is_message());
                leaves.extend(self.all[place].is_message().then_some(place));
            }
        }
        let main = leaves.iter().copied().filter(|place| self.all[*place].is_main()).max();
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
        let Self { all, parents, sources } = self;
        let mut parts: HashMap<&str, Vec<usize>> = HashMap::new();
        // Which part made a call; none if several answers have a call of this id.
        let mut owners: HashMap<&String, Option<usize>> = HashMap::new();
        for (place, link) in all.iter().enumerate() {
            let Share::Part(answer, calls) = &link.share else { continue };
            parts.entry(answer).or_default().push(place);
            for call in calls {
                let owner = owners.entry(call).or_insert(Some(place));
                *owner = owner.filter(|it| all[*it].answer() == Some(answer)).map(|_| place);
            }
        }
        // A result may belong to its parent; and, if the same agent wrote them, to the answer that it names and to the parts
        // whose calls it answers.
        let mut results: HashMap<usize, Vec<usize>> = HashMap::new();
        let is_result = |link: &Link| link.parent.is_some() && !link.answered().is_empty();
        for (place, link) in all.iter().enumerate().filter(|(_, link)| is_result(link)) {
            let called = link.answered().iter().filter_map(|call| *owners.get(call)?);
            let others = sources[place].into_iter().chain(called);
            let others = others.filter(|other| link.is_of_writer_of(&all[*other]));
            for part in parents[place].into_iter().chain(others) {
                results.entry(part).or_default().push(place);
            }
        }

        let mut seen: HashSet<usize> = chain.iter().copied().collect();
        let answered: HashSet<&String> = chain.iter().flat_map(|it| all[*it].answered()).collect();
        let answer_of = |place: &usize| Some((all[*place].answer()?, *place));
        let mut last_of: HashMap<&str, usize> = chain.iter().filter_map(answer_of).collect();
        let mut behind: HashMap<usize, Vec<usize>> = HashMap::new();
        for (answer, _) in chain.iter().filter_map(answer_of) {
            let (Some(last), Some(parts)) = (last_of.remove(answer), parts.get(answer)) else {
                continue;
            };
            let calls = parts.iter().flat_map(|part| all[*part].calls());
            let is_owned = |call: &&String| owners.get(call).is_some_and(Option::is_some);
            let mut open: HashSet<&String> =
                calls.filter(|call| is_owned(call) && !answered.contains(call)).collect();
            let mut answers_one = |place: &usize| {
                all[*place].answered().iter().filter(|call| open.remove(call)).count() > 0
            };
            let mut collected = HashSet::new();
            let found = parts.iter().filter_map(|part| results.get(part)).flatten().copied();
            let found = found.filter(|place| !seen.contains(place) && collected.insert(*place));
            let is_direct =
                |place: &usize| parents[*place].is_some_and(|it| all[it].answer() == Some(answer));
            let (mut missing, mut strays): (Vec<usize>, Vec<usize>) = found.partition(is_direct);
            missing.iter().for_each(|place| _ = answers_one(place));
            // Of results with a parent elsewhere, those that answer a call of these parts that nothing else answers.
            strays.sort_unstable();
            missing.extend(strays.into_iter().filter(answers_one));
            missing.extend(parts.iter().copied().filter(|place| !seen.contains(place)));
            // Sorting is stable: of equal times the order of the file, and of the calls, stays.
            missing.sort_by_key(|place| (all[*place].answer().is_none(), &all[*place].timestamp));
            seen.extend(&missing);
            behind.insert(last, missing);
        }
        let behind = |place: usize| behind.get(&place).into_iter().flatten().copied();
        chain.iter().flat_map(|place| std::iter::once(*place).chain(behind(*place))).collect()
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
