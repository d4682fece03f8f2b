//! A conversation of 5 000 turns that stays within 2 000 tokens, offline: its summarizer is a script.
//!
//! It prints what a model would see after each turn, and at the end finds a message from long ago.
//! With a file it continues where it stopped; without one it runs in memory.
//!
//! ```console
//! $ cargo run --example long_chat [STORE]
//! ```

mod talk;

use std::error::Error;

use talk::{Window, spaced};
use talktree::{BoxError, CompactionId, Durability, Hit, Session, Store, Summary};

const HELP: &str = "\
Plays a conversation of 5 000 turns that stays within 2 000 tokens, offline.

Usage: cargo run --example long_chat [STORE]

STORE is a file to play in; a second run continues where the first stopped. Without it, it plays in memory.";

/// Above this many tokens the conversation is compacted; the newest half of them is kept unchanged.
const THRESHOLD: u64 = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    let store = match std::env::args_os().nth(1) {
        Some(path) => Store::options().durability(Durability::Normal).open(path)?,
        None => Store::open_in_memory()?,
    };
    let chat = store
        .session_builder("workshop")
        .summarizer(summarize)
        .compact_after(THRESHOLD)
        .on_error(|error| println!("not compacted: {error}"))
        .open()?;

    let _subscription = talk::print_compactions(&chat);
    let played = chat.path_length()? as usize / 2;
    for number in played + 1..=talk::COUNT {
        for message in talk::turn(number) {
            chat.append(message)?; // compacts if necessary
        }
        println!("turn {number:4}  {} of {}", Window::of(&chat)?, spaced(THRESHOLD));
    }

    if !talk::is_complete(&chat, talk::COUNT)? {
        return Err("the stored messages differ from the script".into());
    }
    let (stored, shown) = (chat.path_length()?, chat.history()?.len());
    println!("\nAll {} messages are stored unchanged; a model sees {shown}.", spaced(stored));
    recall(&chat, talk::QUESTION)
}

/// Replaces a model: reads the prompt and writes the four sections that it asks for.
fn summarize(prompt: &str) -> Result<Summary, BoxError> {
    let lines = |start: &'static str| prompt.lines().filter(move |line| line.starts_with(start));
    let noted: Vec<&str> = lines("Order ").filter(|line| line.contains(" is noted: ")).collect();
    let last = noted.last().and_then(|line| number(line));
    let last = last.ok_or("the prompt contains no order")?;
    let newest = noted[noted.len().saturating_sub(3)..].iter();
    // Take the first sentence of each.
    let newest = newest.map(|line| line.split(". ").next().unwrap_or(line).trim_end_matches('.'));

    // Open orders are in the messages, or in the previous summary that the prompt contains.
    let is_settled =
        |order: &str| lines("The price for order ").any(|line| number(line) == number(order));
    let waiting = prompt.lines().map(|line| line.trim_start_matches("- "));
    let waiting = waiting.filter(|line| line.ends_with(" waits for a price."));
    let waiting: Vec<&str> = waiting.filter(|order| !is_settled(order)).collect();

    let text = format!(
        "## Topic\nA workshop takes orders, {last} so far.\n\
         ## Key Points\n{}\n\
         ## Current State\nEvery order up to {last} is noted.\n\
         ## Open Items\n{}",
        list(newest),
        list(waiting.into_iter()),
    );
    Ok(Summary::new(text).by("script"))
}

/// Formats the items as a Markdown list.
fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let list: Vec<String> = items.map(|item| format!("- {item}")).collect();
    if list.is_empty() { "None".to_owned() } else { list.join("\n") }
}

/// Returns the first number in a line.
fn number(line: &str) -> Option<usize> {
    line.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok())
}

/// Searches for a message, and expands the nested compactions down to it.
fn recall(chat: &Session, question: &str) -> Result<(), Box<dyn Error>> {
    println!("\n{question}");
    let found = chat.search(question).limit(1).run()?;
    let hit = found.hits.first().ok_or("the search found nothing")?;
    println!("  {}: {}", hit.role.as_str(), hit.snippet);

    let Some(shown) = hit.under.clone() else { return Ok(()) };
    println!(
        "\nA model sees this summary instead:\n{}\n",
        indented(&chat.compaction(&shown)?.summary)
    );
    let mut levels = Vec::new();
    let mut under = Some(shown);
    while let Some(id) = under {
        let compaction = chat.compaction(&id)?;
        let inside = chat.expand(&id)?;
        levels.push(format!(
            "level {:3}: {} messages: the last {}{}",
            levels.len() + 1,
            spaced(compaction.count),
            inside.len() - compaction.nested.len(),
            if compaction.nested.is_empty() { "" } else { ", and a summary of the earlier ones" },
        ));
        under = holding(chat, &compaction.nested, hit)?;
        if under.is_none() {
            print_ends(&levels);
            let message = inside.iter().find(|message| message.id == hit.id);
            let message = message.ok_or("the compaction does not contain the message")?;
            println!("\nThe message itself:\n{}", indented(&message.text()));
        }
    }
    Ok(())
}

/// Returns the compaction of these that contains the hit.
fn holding(
    chat: &Session,
    compactions: &[CompactionId],
    hit: &Hit,
) -> talktree::Result<Option<CompactionId>> {
    for id in compactions {
        let compaction = chat.compaction(id)?;
        if chat.is_ancestor(&compaction.first, &hit.id)?
            && chat.is_ancestor(&hit.id, &compaction.last)?
        {
            return Ok(Some(id.clone()));
        }
    }
    Ok(None)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Prints the first three lines and the last three.
fn print_ends(lines: &[String]) {
    for (at, line) in lines.iter().enumerate() {
        match at {
            3 if lines.len() > 7 => println!("  .. {} more ..", lines.len() - 6),
            _ if at >= 3 && at + 3 < lines.len() => {}
            _ => println!("{line}"),
        }
    }
}
