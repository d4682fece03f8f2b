//! Words in scripts written without spaces are found at any position.
//!
//! SQLite's own tokenizers find at most half of the two-character words of real Chinese and Korean chats. Here each
//! query is compared with a scan of every message: it must find every message that contains it. Needs the data in
//! `TALKTREE_DATA` or `../shared/data`; passes with a notice without it.

#![allow(clippy::print_stdout, reason = "figures for those who watch")]

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use talktree::{Matched, Message, Store};

type Outcome = Result<(), Box<dyn Error>>;

/// The queries of each kind.
type Queries = BTreeMap<String, Vec<String>>;

fn data(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TALKTREE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let folder = root.join(folder);
    if !folder.is_dir() {
        println!("skipped: there is no {}; set TALKTREE_DATA", folder.display());
    }
    folder.is_dir().then_some(folder)
}

#[test]
fn chinese_names_are_found_in_every_message_that_contains_them() -> Outcome {
    let Some(folder) = data("kdconv-zh") else { return Ok(()) };
    let mut chats = Vec::new();
    for file in ["film-test.json", "music-test.json", "travel-test.json"] {
        let dialogues: serde_json::Value = read(&folder.join(file))?;
        for dialogue in dialogues.as_array().into_iter().flatten() {
            let turns = dialogue["messages"].as_array().into_iter().flatten();
            let texts = turns.filter_map(|turn| turn["message"].as_str().map(str::to_owned));
            chats.push(texts.collect());
        }
    }
    find_all(&chats, &read(&folder.join("entity_queries.json"))?)
}

#[test]
fn korean_words_are_found_in_every_message_that_contains_them() -> Outcome {
    let Some(folder) = data("korean") else { return Ok(()) };
    let text = std::fs::read_to_string(folder.join("ChatbotData.csv"))?;
    let pairs: Vec<Vec<String>> =
        text.lines().skip(1).map(|line| fields(line).into_iter().take(2).collect()).collect();
    let chats: Vec<Vec<String>> = pairs.chunks(200).map(<[_]>::concat).collect();
    find_all(&chats, &read(&folder.join("substring_queries.json"))?)
}

fn read<T: serde::de::DeserializeOwned>(path: &std::path::Path) -> Result<T, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// Returns the fields of a line of CSV. A quoted field may contain commas; a doubled quote is a quote.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let field = fields.len() - 1;
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields[field].push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            c => fields[field].push(c),
        }
    }
    fields
}

/// Asserts that each query finds all messages that contain it.
fn find_all(chats: &[Vec<String>], queries: &Queries) -> Outcome {
    let place = tempfile::tempdir()?;
    let store = Store::open(place.path().join("cjk.db"))?;
    for (number, chat) in chats.iter().enumerate() {
        let messages = chat
            .iter()
            .enumerate()
            .map(|(at, text)| Message::user(text.as_str()).with_id(format!("{number}#{at}")));
        store.session(format!("chat {number}"))?.append_all(messages)?;
    }
    let texts: Vec<(String, &String)> = chats
        .iter()
        .enumerate()
        .flat_map(|(number, chat)| {
            chat.iter().enumerate().map(move |(at, text)| (format!("{number}#{at}"), text))
        })
        .collect();
    for (kind, queries) in queries {
        // A server is asked for each hit: every tenth query there.
        let step = if cfg!(talktree_on_postgres) { 10 } else { 1 };
        let queries: Vec<&String> = queries.iter().step_by(step).collect();
        let mut times: Vec<Duration> = Vec::new();
        let (mut sum, mut missed) = (0.0, Vec::new());
        for query in &queries {
            let gold: Vec<&String> = texts
                .iter()
                .filter(|(_, text)| text.contains(query.as_str()))
                .map(|(id, _)| id)
                .collect();
            let began = Instant::now();
            store.search(query.as_str()).limit(20).run()?;
            times.push(began.elapsed());
            let found = store.search(query.as_str()).limit(100_000).run()?;
            let ids: HashSet<&str> = found.hits.iter().map(|hit| hit.id.as_str()).collect();
            let count = gold.iter().filter(|id| ids.contains(id.as_str())).count();
            let recall = count as f64 / gold.len().max(1) as f64;
            sum += recall;
            if count < gold.len() {
                missed.push(format!("{query} ({count} of {})", gold.len()));
            }
            if !gold.is_empty() {
                assert_eq!(found.matched, Matched::All, "{query}");
            }
        }
        times.sort();
        let ms = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
        println!(
            "{kind}: {} queries over {} messages, recall {:.4}, first 20 in p50 {:.2} ms, p95 {:.2} ms",
            queries.len(),
            texts.len(),
            sum / queries.len() as f64,
            ms(50),
            ms(95)
        );
        assert!(missed.is_empty(), "{missed:?}");
    }
    Ok(())
}
