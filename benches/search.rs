//! What does a search cost in a large store, and in one session of it?
//!
//! The floor of a search in one session is the same session alone in a store; the budget is twice the floor. Words are as
//! unevenly frequent as those of a language. `TALKTREE_MESSAGES` sets the number of messages, 200 000 by default; a session
//! has 200.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program to be watched")]

use std::error::Error;
use std::time::{Duration, Instant};

use talktree::{Durability, Message, Store};

const PER_SESSION: usize = 200;
const WORDS_PER_MESSAGE: usize = 60;
const VOCABULARY: f64 = 30_000.0;
const RUNS: usize = 31;

/// A small random number generator, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a word; the n-th most frequent word is about 1/n as frequent as the first.
    fn word(&mut self) -> String {
        word(VOCABULARY.powf(self.next()) as usize)
    }

    fn text(&mut self) -> String {
        (0..WORDS_PER_MESSAGE).map(|_| self.word() + " ").collect()
    }
}

/// Returns the n-th most frequent word.
fn word(mut n: usize) -> String {
    let mut text = String::from("w");
    while n > 0 {
        text.push_str(["ba", "ke", "li", "mo", "nu", "ra", "so", "ti", "vu", "zo"][n % 10]);
        n /= 10;
    }
    text
}

fn fill(store: &Store, session: usize) -> Result<(), Box<dyn Error>> {
    let mut random = Random(session as u64 * 2 + 1);
    let messages = (0..PER_SESSION).map(|n| match n % 2 {
        0 => Message::user(random.text()),
        _ => Message::assistant(random.text()),
    });
    store.session(format!("chat {session}"))?.append_all(messages)?;
    Ok(())
}

fn median(
    mut run: impl FnMut() -> talktree::Result<usize>,
) -> Result<(Duration, usize), Box<dyn Error>> {
    let (mut times, mut count) = (Vec::new(), 0);
    for _ in 0..RUNS {
        let began = Instant::now();
        count = run()?;
        times.push(began.elapsed());
    }
    times.sort();
    Ok((times[RUNS / 2], count))
}

fn main() -> Result<(), Box<dyn Error>> {
    let size = std::env::var("TALKTREE_MESSAGES")
        .ok()
        .and_then(|size| size.parse().ok())
        .unwrap_or(200_000);
    let folder = tempfile::tempdir()?;
    let open =
        |name: &str| Store::options().durability(Durability::Normal).open(folder.path().join(name));
    let (store, alone) = (open("large.db")?, open("alone.db")?);
    let began = Instant::now();
    for session in 0..size / PER_SESSION {
        fill(&store, session)?;
    }
    store.search("anything").run()?;
    println!("{size} messages written and indexed in {:.1} s", began.elapsed().as_secs_f64());
    let middle = size / PER_SESSION / 2;
    fill(&alone, middle)?;
    alone.search("anything").run()?;

    let (common, usual, rare) = (word(3), word(300), word(20_000));
    let queries = [
        ("a common word", common.clone()),
        ("a rare word", rare.clone()),
        ("two words", format!("{common} {usual}")),
        ("a phrase", format!("\"{common} {common}\"")),
        ("a question", format!("what did you say about {common} and {usual} or {rare}?")),
        ("a filter", "role:user".to_owned()),
    ];
    println!(
        "{:<16}{:>12}{:>8}{:>14}{:>8}{:>14}{:>8}",
        "", "store ms", "hits", "session ms", "hits", "alone ms", "ratio"
    );
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (name, query) in queries {
        let (all, found) = median(|| Ok(store.search(query.as_str()).run()?.hits.len()))?;
        let session = format!("chat {middle}");
        let (large, large_store) =
            (store.session(session.as_str())?, alone.session(session.as_str())?);
        let (inside, hits) = median(|| Ok(large.search(query.as_str()).run()?.hits.len()))?;
        let (floor, _) = median(|| Ok(large_store.search(query.as_str()).run()?.hits.len()))?;
        println!(
            "{name:<16}{:>12.2}{found:>8}{:>14.2}{hits:>8}{:>14.2}{:>8.2}",
            ms(all),
            ms(inside),
            ms(floor),
            ms(inside) / ms(floor)
        );
    }
    Ok(())
}
