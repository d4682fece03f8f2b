//! Judged queries: is a message or a chat that answers a query among the first hits?
//!
//! A set names for each query the ids that answer it: of messages (or how such an id starts), or `session:ID` if any
//! message of a session does. They were found by reading and by scans of the texts, never by talktree.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use serde::Deserialize;
use talktree::{Matched, Store};

use crate::options::Options;
use crate::{Result, data};

/// How many hits are searched for the first answer.
const SEEN: usize = 50;
/// How many hits a person looks at.
const FIRST: usize = 10;

#[derive(Debug, Deserialize)]
pub(crate) struct Judged {
    pub(crate) query: String,
    kind: String,
    /// Why these ids answer the query.
    why: String,
    gold: Vec<String>,
}

/// What is searched for: messages, or whole chats.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Messages,
    Chats,
}

/// The outcome of a query.
struct Outcome {
    /// The place of the first answer among the hits, from 1; `None` if it is not among the first 50.
    place: Option<usize>,
    /// The share of the answers that are among the first ten, of those that can be.
    share: f64,
    hits: usize,
    matched: Matched,
}

pub(crate) fn developer(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let store = data::transcripts(&folder)?;
    let title = "Queries of developers over transcripts";
    measure(title, &store, read("developer.json")?, Wanted::Messages, options)
}

pub(crate) fn typos(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let store = data::transcripts(&folder)?;
    let title = "Misspelled and cut queries over transcripts";
    measure(title, &store, read("typos.json")?, Wanted::Messages, options)
}

pub(crate) fn tools(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let store = data::transcripts(&folder)?;
    let title = "Queries of developers for what tools said";
    measure(title, &store, read("tools.json")?, Wanted::Messages, options)
}

pub(crate) fn times(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let store = data::chats(&folder)?;
    let title = "Times of chats, where many chats have the words";
    measure(title, &store, read("times.json")?, Wanted::Chats, options)
}

pub(crate) fn chats(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let store = data::chats(&folder)?;
    let title = "Category words, several sessions and times over chats";
    measure(title, &store, read("chats.json")?, Wanted::Chats, options)
}

/// Reads a set that lies beside this file.
pub(crate) fn read<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    // Read at run time: packages without the sets still compile.
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../benches/finding").join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path:?}: {error}"))?;
    Ok(serde_json::from_str(&text).map_err(|error| format!("{path:?}: {error}"))?)
}

/// Returns whether a query belongs to the held half, on which nobody tunes.
///
/// Decided by its hash, so that no one chooses and a new query changes no other.
fn is_held(query: &str) -> bool {
    hash_of(query) >> 40 & 1 == 1
}

/// Returns a hash of a query that stays the same (FNV-1a).
pub(crate) fn hash_of(query: &str) -> u64 {
    query.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

fn measure(
    title: &str,
    store: &Store,
    set: Vec<Judged>,
    wanted: Wanted,
    options: &Options,
) -> Result<()> {
    let ids = Ids::of(store)?;
    let mut rows = Rows::default();
    let mut failures = Vec::new();
    for judged in &set {
        let gold: Vec<String> =
            judged.gold.iter().map(|id| ids.whole(id, wanted)).collect::<Result<_>>()?;
        let outcome = ask(store, &judged.query, &gold, wanted)?;
        let half = if is_held(&judged.query) { "held" } else { "tuned" };
        for name in [judged.kind.as_str(), half, "all"] {
            rows.add(name, &outcome);
        }
        if outcome.place.is_none_or(|place| place > FIRST) {
            failures.push((judged, half, outcome));
        }
    }
    println!("\n{title}");
    rows.print();
    println!(
        "  {} queries have no answer in the first ten; --list shows the tuned ones",
        failures.len()
    );
    if options.lists_failures {
        for (judged, half, outcome) in &failures {
            if *half == "held" && !options.lists_held {
                continue;
            }
            let place = outcome.place.map_or("-".to_owned(), |place| place.to_string());
            let matched = if outcome.matched == Matched::All { "all" } else { "any" };
            println!(
                "  {:<12} {half:<5} place {place:>2}, {:>2} hits by {matched} words: {:?} ({})",
                judged.kind, outcome.hits, judged.query, judged.why
            );
        }
    }
    Ok(())
}

fn ask(store: &Store, query: &str, gold: &[String], wanted: Wanted) -> Result<Outcome> {
    let search = store.search(query).limit(SEEN).now(data::now()?);
    let mut found: Vec<Vec<String>> = Vec::new();
    let matched = match wanted {
        Wanted::Messages => {
            let result = search.run()?;
            let names = |hit: &talktree::Hit| {
                vec![hit.id.as_str().to_owned(), format!("session:{}", hit.session.as_str())]
            };
            found.extend(result.hits.iter().map(names));
            result.matched
        }
        Wanted::Chats => {
            let result = search.run_by_session()?;
            found.extend(result.hits.iter().map(|hit| vec![hit.session.as_str().to_owned()]));
            result.matched
        }
    };
    let is_answer = |names: &Vec<String>| names.iter().any(|name| gold.contains(name));
    let first = found.iter().take(FIRST).filter(|names| is_answer(names)).count();
    // A whole session may have any number of messages that answer.
    let possible = match gold.iter().any(|id| id.starts_with("session:")) {
        true => FIRST,
        false => gold.len().min(FIRST),
    };
    Ok(Outcome {
        place: found.iter().position(is_answer).map(|place| place + 1),
        share: first as f64 / possible as f64,
        hits: found.len(),
        matched,
    })
}

/// The ids of a store, to complete those that a set shortens.
struct Ids {
    messages: Vec<String>,
    sessions: Vec<String>,
}

impl Ids {
    fn of(store: &Store) -> Result<Self> {
        let (mut messages, mut sessions) = (Vec::new(), Vec::new());
        for info in store.sessions()? {
            sessions.push(info.id.as_str().to_owned());
            for message in store.session(info.id)?.all_messages() {
                messages.push(message?.id.as_str().to_owned());
            }
        }
        messages.sort();
        sessions.sort();
        messages.dedup();
        Ok(Self { messages, sessions })
    }

    fn whole(&self, id: &str, wanted: Wanted) -> Result<String> {
        let (start, known, prefix) = match id.strip_prefix("session:") {
            Some(start) => (start, &self.sessions, "session:"),
            None if wanted == Wanted::Chats => (id, &self.sessions, ""),
            None => (id, &self.messages, ""),
        };
        let from = known.partition_point(|name| name.as_str() < start);
        let mut fitting = known[from..].iter().take_while(|name| name.starts_with(start));
        match (fitting.next(), fitting.next()) {
            // An id may be the start of another one.
            (Some(name), other) if name == start || other.is_none() => {
                Ok(format!("{prefix}{name}"))
            }
            (None, _) => Err(format!("the store has no {id:?}, which a set names").into()),
            _ => Err(format!("{id:?} is the start of several ids").into()),
        }
    }
}

/// The rows of a table: sums by kind, by half and of all.
#[derive(Default)]
struct Rows(BTreeMap<String, Sums>, Vec<String>);

#[derive(Default)]
struct Sums {
    queries: usize,
    within: [usize; 3],
    reciprocal: f64,
    share: f64,
    nothing: usize,
}

impl Rows {
    fn add(&mut self, name: &str, outcome: &Outcome) {
        if !self.0.contains_key(name) {
            self.1.push(name.to_owned());
        }
        let sums = self.0.entry(name.to_owned()).or_default();
        sums.queries += 1;
        for (sum, first) in sums.within.iter_mut().zip([1, 5, FIRST]) {
            *sum += usize::from(outcome.place.is_some_and(|place| place <= first));
        }
        sums.reciprocal += outcome.place.map_or(0.0, |place| 1.0 / place as f64);
        sums.share += outcome.share;
        sums.nothing += usize::from(outcome.hits == 0);
    }

    fn print(&self) {
        println!(
            "  {:<14}{:>8}{:>9}{:>9}{:>10}{:>7}{:>10}{:>9}",
            "", "queries", "first 1", "first 5", "first 10", "MRR", "share@10", "no hit"
        );
        const LAST: [&str; 3] = ["tuned", "held", "all"];
        let kinds = self.1.iter().map(String::as_str).filter(|name| !LAST.contains(name));
        for name in kinds.chain(LAST) {
            let Some(sums) = self.0.get(name) else { continue };
            let of = |sum: f64| sum / sums.queries as f64;
            let [one, five, ten] = sums.within.map(|sum| of(sum as f64));
            println!(
                "  {name:<14}{:>8}{one:>9.2}{five:>9.2}{ten:>10.2}{:>7.3}{:>10.3}{:>9}",
                sums.queries,
                of(sums.reciprocal),
                of(sums.share),
                sums.nothing
            );
        }
    }
}

/// Returns all queries of the sets over transcripts and of the one over chats.
pub(crate) fn queries() -> Result<HashMap<&'static str, Vec<String>>> {
    let of = |name: &str| -> Result<Vec<String>> {
        Ok(read::<Vec<Judged>>(name)?.into_iter().map(|judged| judged.query).collect())
    };
    let mut transcripts = of("developer.json")?;
    transcripts.extend(of("typos.json")?);
    Ok(HashMap::from([("transcripts", transcripts), ("chats", of("chats.json")?)]))
}
