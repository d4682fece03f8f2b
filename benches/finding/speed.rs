//! What does each kind of query cost in a large store?
//!
//! Each kind has several queries; its times are those of all of them together. Three scopes: the messages of the store,
//! its conversations, and one session with a tenth of all messages.

use std::time::{Duration, Instant};

use talktree::Store;

use crate::corpus::Corpus;
use crate::options::Options;
use crate::speed_store::{self, LARGE};
use crate::{Result, data, memory};

/// How many messages are appended for the cost of an append.
const APPENDS: usize = 20_000;

/// The kinds of queries. The words are common ones of the chats: each is in one message of a hundred or more.
const KINDS: &[(&str, &[&str])] = &[
    ("one common word", &["time", "help", "recommend", "good", "new"]),
    ("two common words", &["time help", "recommend good", "new tips", "great ideas", "make way"]),
    (
        "five common words",
        &[
            "time help good make way",
            "recommend great new ideas tips",
            "like consider use different options",
            "want find best local place",
            "people work day start keep",
        ],
    ),
    (
        "a phrase of common words",
        &["\"a lot of\"", "\"thinking of\"", "\"can you\"", "\"make sure\"", "\"such as\""],
    ),
    ("a three-letter prefix", &["con*", "pre*", "rec*", "sta*", "com*"]),
    (
        "stop words only",
        &["the of and", "to be or not", "you are", "is it in a", "what do you have?"],
    ),
    (FILTERED, &[]),
    (
        "a question",
        &[
            "What did you recommend about the best way to make coffee?",
            "Which camera lens did I buy for my trip?",
            "How many days did I spend in the mountains?",
            "Can you remind me of the name of that restaurant in Rome?",
            "what was the recipe with tomatoes and basil you told me about",
        ],
    ),
    (PASTED, &[]),
];
/// Kinds whose queries are made for the store.
const FILTERED: &str = "common, role and dates";
const PASTED: &str = "a pasted page, 2 000 words";
/// How many queries such a kind has.
const MADE: usize = 5;

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let corpus = Corpus::read(&folder)?;
    let (store, path) = speed_store::open(&corpus, options.messages)?;
    let sizes = speed_store::sizes(&path)?;
    let kinds: Vec<(&str, Vec<String>)> = KINDS
        .iter()
        .filter(|(kind, _)| options.kind.as_deref().is_none_or(|text| kind.contains(text)))
        .map(|(kind, fixed)| (*kind, queries(kind, fixed, &corpus, options)))
        .collect();
    let appends = match options.kind {
        Some(_) => None,
        None => Some(speed_store::append_cost(&corpus, APPENDS)?),
    };
    drop(corpus);
    println!("\nTimes at {} messages, in ms: p50 / p95", options.messages);
    println!("  {:<28}{:>20}{:>20}{:>20}", "", "store", "conversations", "session of a tenth");
    let mut largest: Option<f64> = None;
    let before = memory::now_and_peak();
    for (kind, queries) in &kinds {
        memory::reset_peak();
        let scopes: [fn(&Store, &str) -> Result<()>; 3] = [messages, conversations, in_session];
        let mut line = format!("  {kind:<28}");
        let mut of_each: Vec<String> = queries.iter().map(|query| shown(query)).collect();
        for scope in scopes {
            let mut times = Vec::new();
            for (query, of_query) in queries.iter().zip(&mut of_each) {
                for _ in 0..options.runs {
                    let began = Instant::now();
                    scope(&store, query)?;
                    times.push(began.elapsed());
                }
                let from = times.len() - options.runs;
                *of_query += &format!("{:>20}", shares(&mut times[from..]));
            }
            line += &format!("{:>20}", shares(&mut times));
        }
        println!("{line}");
        if options.kind.is_some() {
            of_each.iter().for_each(|line| println!("{line}"));
        }
        if let Some((_, peak)) = memory::now_and_peak() {
            largest = Some(largest.map_or(peak, |largest| largest.max(peak)));
        }
    }
    if let (Some((before, _)), Some(largest)) = (before, largest) {
        println!("  memory: {before:.0} MiB before the searches, at most {largest:.0} MiB in them");
    }
    println!(
        "  index: {:.1} MiB of a file of {:.1} MiB, {:.0} bytes a message",
        mib(sizes.index),
        mib(sizes.file),
        sizes.index as f64 / options.messages as f64
    );
    let Some((mut appends, index)) = appends else { return Ok(()) };
    let sum: Duration = appends.iter().sum();
    println!(
        "  {APPENDS} appends to a new store: p50 / p95 / mean {} / {:.3} ms, {:.1} MiB of index",
        shares(&mut appends),
        sum.as_secs_f64() * 1e3 / APPENDS as f64,
        mib(index)
    );
    Ok(())
}

/// Returns the first letters of a query as the head of a line.
fn shown(query: &str) -> String {
    let start: String = query.chars().take(25).collect();
    format!("    {start:<26}")
}

fn queries(kind: &str, fixed: &[&str], corpus: &Corpus, options: &Options) -> Vec<String> {
    match kind {
        FILTERED => (0..MADE).map(|number| filtered(number, options.messages)).collect(),
        PASTED => (0..MADE).map(|number| pasted(corpus, number)).collect(),
        _ => fixed.iter().map(|query| (*query).to_owned()).collect(),
    }
}

/// Returns what a person pastes who searches for a whole page.
fn pasted(corpus: &Corpus, number: usize) -> String {
    let mut topic = corpus.topic(number + 1);
    let mut page = topic.text();
    while page.split(' ').count() < 2_000 {
        page.push('\n');
        page.push_str(&topic.text());
    }
    page
}

/// Returns a common word with a role and a range of dates: a tenth of the time of the store.
fn filtered(number: usize, messages: usize) -> String {
    let words = ["time", "help", "recommend", "good", "new"];
    let from = messages / 10 * (2 * number % 9);
    let day = |n: usize| speed_store::at(n).format("%Y-%m-%d").to_string();
    format!(
        "{} role:user after:{} before:{}",
        words[number % words.len()],
        day(from),
        day(from + messages / 10 + 1_440)
    )
}

fn messages(store: &Store, query: &str) -> Result<()> {
    store.search(query).run()?;
    Ok(())
}

fn conversations(store: &Store, query: &str) -> Result<()> {
    store.search(query).run_by_session()?;
    Ok(())
}

fn in_session(store: &Store, query: &str) -> Result<()> {
    store.search(query).session(LARGE).run()?;
    Ok(())
}

fn shares(times: &mut [Duration]) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!("{:.2} / {:.2}", ms(at(50)), ms(at(95)))
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}
