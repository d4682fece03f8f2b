//! Does search find the chat and the turn that answer a question?
//!
//! LongMemEval: 940 chats of a person with an assistant in one store, and 231 questions about them, searched for word for
//! word. R@k is the share of the answering chats or turns among the first k hits, MRR is 1 divided by the rank of the first
//! one. The ranking constants were tuned on every other question; the rest is held out.
//!
//! Reads `longmemeval/` in the folder `TALKTREE_DATA`, or in `../shared/data`.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program to be watched")]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDateTime, Utc};
use flate2::read::GzDecoder;
use serde::Deserialize;
use talktree::{Message, Store};

#[derive(Deserialize)]
struct Chat {
    session_id: String,
    date: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    question_date: String,
    answer_session_ids: Vec<String>,
    gold_turns: Vec<String>,
}

/// R@1, R@5, R@10 and MRR.
type Figures = [f64; 4];

const HELP: &str = "\
Measures how well search answers 231 labelled questions over 940 chats (LongMemEval).

Usage: cargo bench --bench longmemeval

Reads longmemeval/ in the folder TALKTREE_DATA, or in ../shared/data, and does nothing where it is absent.
R@k is the share of the answers that are among the first k results; MRR is the mean of 1 / place of the first.";

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let folder = std::env::var_os("TALKTREE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let folder = folder.join("longmemeval");
    if !folder.is_dir() {
        println!("skipped: {} does not exist; set TALKTREE_DATA", folder.display());
        return Ok(());
    }
    let file = std::fs::File::open(folder.join("sessions.jsonl.gz"))?;
    let scratch = tempfile::tempdir()?;
    let store = Store::open(scratch.path().join("longmemeval.db"))?;
    let began = Instant::now();
    let mut count = 0;
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        count += import(&store, &serde_json::from_str(&line?)?)?;
    }
    println!("{count} turns imported in {:.1} s", began.elapsed().as_secs_f64());

    let text = std::fs::read_to_string(folder.join("questions.jsonl"))?;
    let questions: Vec<Question> =
        text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let (mut results, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
    for question in &questions {
        results.push(ask(&store, question, &mut times)?);
    }
    println!("        chats R@1   R@5  R@10   MRR   turns R@1   R@5  R@10   MRR");
    let every_other = |from: usize| results[from..].iter().step_by(2);
    print("tuned", every_other(0));
    print("held out", every_other(1));
    print("all", results.iter());
    for (what, times) in ["chats", "turns"].iter().zip(&mut times) {
        times.sort();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{what}: median {:.2} ms, p95 {:.2} ms",
            ms(times[times.len() / 2]),
            ms(times[times.len() * 95 / 100])
        );
    }
    Ok(())
}

fn import(store: &Store, chat: &Chat) -> Result<usize, Box<dyn Error>> {
    let time = time(&chat.date)?;
    let turns = chat.turns.iter().enumerate().map(|(index, turn)| {
        let message = match turn.role.as_str() {
            "user" => Message::user(turn.content.as_str()),
            _ => Message::assistant(turn.content.as_str()),
        };
        message.with_id(format!("{}#{index}", chat.session_id)).at(time)
    });
    store.session(chat.session_id.as_str())?.append_all(turns)?;
    Ok(chat.turns.len())
}

fn ask(
    store: &Store,
    question: &Question,
    times: &mut [Vec<Duration>; 2],
) -> Result<[Figures; 2], Box<dyn Error>> {
    let now = time(&question.question_date)?;
    let text = question.question.as_str();
    let began = Instant::now();
    let chats = store.search(text).limit(10).now(now).run_by_session()?;
    times[0].push(began.elapsed());
    let began = Instant::now();
    let turns = store.search(text).limit(10).now(now).run()?;
    times[1].push(began.elapsed());
    let chats: Vec<_> = chats.into_iter().map(|hit| hit.session.to_string()).collect();
    let turns: Vec<_> = turns.into_iter().map(|hit| hit.id.to_string()).collect();
    Ok([figures(&chats, &question.answer_session_ids), figures(&turns, &question.gold_turns)])
}

fn figures(found: &[String], gold: &[String]) -> Figures {
    let ranks: Vec<_> =
        gold.iter().filter_map(|gold| found.iter().position(|id| id == gold)).collect();
    let among = |first: usize| {
        ranks.iter().filter(|&&rank| rank < first).count() as f64 / gold.len() as f64
    };
    let best = ranks.iter().min().map_or(0.0, |&rank| 1.0 / (rank + 1) as f64);
    [among(1), among(5), among(10), best]
}

fn print<'a>(name: &str, results: impl Iterator<Item = &'a [Figures; 2]> + Clone) {
    let count = results.clone().count() as f64;
    let mean = |kind: usize, figure: usize| {
        results.clone().map(|result| result[kind][figure]).sum::<f64>() / count
    };
    print!("{name:<8}");
    for kind in 0..2 {
        print!("     ");
        (0..4).for_each(|figure| print!(" {:.3}", mean(kind, figure)));
        print!("   ");
    }
    println!();
}

fn time(text: &str) -> Result<DateTime<Utc>, Box<dyn Error>> {
    let (day, rest) = text.split_once(' ').ok_or("a date without a space")?;
    let clock = rest.rsplit(' ').next().unwrap_or("00:00");
    Ok(NaiveDateTime::parse_from_str(&format!("{day} {clock}"), "%Y/%m/%d %H:%M")?.and_utc())
}
