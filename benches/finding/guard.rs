//! A snapshot of the first ten hits of queries that find enough, and the differences of another build.
//!
//! The queries are those of the judged sets, and words, pairs and sentences drawn from the stores. A change that lets poor
//! queries find more must not change the first hits of a query that finds enough, unless the new hits are better by
//! [`grades`](crate::grades). The grades were given without knowing the build: the hits of both builds were one list, in the
//! order of their ids.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use talktree::{Matched, Store};

use crate::grades::{Grades, Pooled};
use crate::options::Options;
use crate::random::Random;
use crate::{Result, data, judged};

/// How many queries a snapshot has.
const QUERIES: usize = 200;
/// How many hits are enough, and are recorded.
pub(crate) const ENOUGH: usize = 10;

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Which store was searched: `transcripts` or `chats`.
    store: String,
    query: String,
    hits: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    if options.snapshot.is_none() && options.compare.is_none() {
        println!("\nguard: --snapshot FILE stores hits, --compare FILE compares with them");
        return Ok(());
    }
    let stores = BTreeMap::from([
        ("transcripts", data::transcripts(&folder)?),
        ("chats", data::chats(&folder)?),
    ]);
    if let Some(file) = &options.snapshot {
        snapshot(&stores, file)?;
    }
    if let Some(file) = &options.compare {
        compare(&stores, file, options.pool.as_deref())?;
    }
    Ok(())
}

fn snapshot(stores: &BTreeMap<&str, Store>, file: &Path) -> Result<()> {
    let judged = judged::queries()?;
    let mut kept = Vec::new();
    for (seed, (name, store)) in stores.iter().enumerate() {
        let texts = texts(store)?;
        let mut random = Random::of(seed as u64 + 1);
        let drawn = std::iter::from_fn(|| Some(draw(&texts, &mut random)));
        let known = judged.get(name).cloned().unwrap_or_default();
        let mut seen = HashSet::new();
        let mut of_store = 0;
        for query in known.into_iter().chain(drawn) {
            if of_store == QUERIES / stores.len() {
                break;
            }
            let (hits, matched) = first(store, &query)?;
            // Any word is enough for a question only.
            let finds_enough = matched == Matched::All || query.ends_with('?');
            if finds_enough && hits.len() == ENOUGH && seen.insert(query.clone()) {
                of_store += 1;
                kept.push(Kept { store: (*name).to_owned(), query, hits });
            }
        }
    }
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(file, serde_json::to_string_pretty(&kept)?)?;
    println!("\n{} queries with their first {ENOUGH} hits are in {}", kept.len(), file.display());
    Ok(())
}

fn compare(stores: &BTreeMap<&str, Store>, file: &Path, pool: Option<&Path>) -> Result<()> {
    let kept: Vec<Kept> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut grades = Grades::read()?;
    let mut pooled = Vec::new();
    println!("\nThe first {ENOUGH} hits beside those in {}", file.display());
    let (mut reordered, mut replaced) = (0, 0);
    for Kept { store: name, query, hits } in &kept {
        let store = stores.get(name.as_str()).ok_or_else(|| format!("no store {name:?}"))?;
        let (now, _) = first(store, query)?;
        if now == *hits {
            continue;
        }
        let gone = hits.iter().filter(|id| !now.contains(id)).count();
        let top = if now.first() == hits.first() { "" } else { ", another first" };
        match gone {
            0 => reordered += 1,
            _ => replaced += 1,
        }
        let graded = grades.compare(name, query, hits, &now);
        println!("  {name:<12} {gone:>2} of {} replaced{top}: {query:?}{graded}", hits.len());
        if pool.is_some() {
            pooled.push(Pooled::of(store, name, query, hits.iter().chain(&now))?);
        }
    }
    println!(
        "  {} queries: {} the same, {reordered} in another order, {replaced} with other hits",
        kept.len(),
        kept.len() - reordered - replaced
    );
    grades.print();
    if let Some(pool) = pool {
        std::fs::write(pool, serde_json::to_string_pretty(&pooled)?)?;
        println!("  {} queries with the hits of both are in {}", pooled.len(), pool.display());
    }
    Ok(())
}

fn first(store: &Store, query: &str) -> Result<(Vec<String>, Matched)> {
    let found = store.search(query).limit(ENOUGH).now(data::now()?).run()?;
    let name = |hit: &talktree::Hit| format!("{} {}", hit.session.as_str(), hit.id.as_str());
    Ok((found.hits.iter().map(name).collect(), found.matched))
}

fn texts(store: &Store) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut sessions = store.sessions()?;
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    for info in sessions {
        for message in store.session(info.id)?.all_messages() {
            texts.push(message?.text());
        }
    }
    texts.retain(|text| text.split_whitespace().count() > 8);
    Ok(texts)
}

/// Draws a word, two neighbours, a phrase, two words of one message, or a question from a text.
fn draw(texts: &[String], random: &mut Random) -> String {
    let words: Vec<&str> = texts[random.below(texts.len())].split_whitespace().collect();
    let clean = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let at = random.below(words.len() - 6);
    let run = |count: usize| words[at..at + count].iter().map(|it| clean(it)).collect::<Vec<_>>();
    match random.below(5) {
        0 => clean(words[at]),
        1 => run(2).join(" "),
        2 => format!("\"{}\"", run(2).join(" ")),
        3 => format!("{} {}", clean(words[at]), clean(words[random.below(words.len())])),
        _ => format!("what about {}?", run(5).join(" ")),
    }
}
