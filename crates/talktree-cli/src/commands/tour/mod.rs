//! `talktree tour`: shows the commands on a small conversation.
//!
//! Each step prints a command, then parses and runs exactly what it printed. So every printed
//! command works when it is pasted.

use std::path::PathBuf;

use clap::Parser;
use serde::Serialize;
use serde_json::Value;
use talktree::Store;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::shell::quote;
use crate::style;

/// Show the commands at work, on a small conversation in a temporary store
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree tour [OPTIONS]")]
pub(crate) struct Args {}

/// A conversation with two branches in two languages, written for the tour.
const SAMPLE: &str = include_str!("sample.jsonl");

const SUMMARY: &str =
    "They will see the planetarium; tickets are sold online, Friday's shows are at 11, 15 and 20.";

#[derive(Serialize)]
struct Answer<'a> {
    step: usize,
    title: &'a str,
    command: String,
    answers: Vec<Value>,
}

pub(crate) fn run(_args: Args, context: &mut Context) -> Result<()> {
    if std::env::args_os().any(|word| word.to_string_lossy().starts_with("--store")) {
        let why = "the tour creates its own store; run it without --store";
        return Err(Failure::Usage(why.to_owned()));
    }
    context.is_tour = true;
    let folder = temporary_folder()?;
    let sample = folder.join("sample.jsonl");
    std::fs::write(&sample, SAMPLE)?;
    let store = folder.join("tour.db");
    if !context.is_json {
        context.out.line(&[
            (style::PLAIN, "The tour uses its own temporary store: "),
            (style::STRONG, &store.to_string_lossy()),
        ])?;
        context.out.line(&[(style::PLAIN, "You can paste its commands, in this order.")])?;
        context.out.line(&[])?;
    }
    let mut tour = Tour { context, store, step: 0 };
    let sample = sample.to_string_lossy();
    tour.step(
        "Import a file: the format is detected, and all branches are kept.",
        &["import", &sample],
    )?;
    tour.step(
        "Draw the tree. `*` is the head; answer-2 starts another branch.",
        &["tree", "tour"],
    )?;
    tour.step(
        "Print the history: the path to the head, as a model should see it.",
        &["log", "tour"],
    )?;
    tour.step(
        "Move the head to the end of the other branch. No message is deleted.",
        &["checkout", "tour", "how-far-answer"],
    )?;
    tour.step(
        "The history now follows that branch. Print its last two messages.",
        &["log", "tour", "--limit", "2"],
    )?;
    tour.step("Undo the move of the head.", &["checkout", "tour", "--undo"])?;
    tour.step(
        "Fork: copy the path to a message into a new session.",
        &["fork", "tour", "look-up", "What if"],
    )?;
    tour.step(
        "Compact three messages into a summary. No message is deleted.",
        &["compact", "tour", "--summary", SUMMARY, "--from", "answer-1", "--to", "look-up"],
    )?;
    tour.step(
        "A model sees the summary instead of the three messages.",
        &["log", "tour", "--limit", "4"],
    )?;
    tour.step("The tree still has the three messages, marked `·`.", &["tree", "tour", "--labels"])?;
    let compaction = tour.compaction()?;
    tour.step(
        "Search also finds compacted messages.",
        &["search", "planetarium tickets", "--session", "tour"],
    )?;
    tour.step("Search works in any language.", &["search", "博物馆"])?;
    tour.step(
        "Remove the compaction. The history is as it was before.",
        &["compact", "tour", "--remove", &compaction],
    )?;
    tour.step("Count what the store holds.", &["stats"])?;
    if !context.is_json {
        context.out.line(&[
            (style::PLAIN, "To delete the files of the tour: "),
            (style::COMPACTION, &format!("rm -r {}", quote(&folder.to_string_lossy()))),
        ])?;
    }
    Ok(())
}

/// Returns a new folder, which is not deleted when the command exits.
fn temporary_folder() -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("talktree-tour-").tempdir()?;
    Ok(folder.keep())
}

struct Tour<'a> {
    context: &'a mut Context,
    store: PathBuf,
    step: usize,
}

impl Tour<'_> {
    /// Prints a command and runs it.
    fn step(&mut self, title: &str, words: &[&str]) -> Result<()> {
        self.step += 1;
        let store = self.store.to_string_lossy();
        let words: Vec<&str> =
            ["--store", &store].into_iter().chain(words.iter().copied()).collect();
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let command = format!("{} {}", quote(&program()), quoted.join(" "));
        let cli = Cli::try_parse_from(std::iter::once("talktree").chain(words.iter().copied()))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let store_option = self.context.store_option.replace(self.store.clone());
        let done = match self.context.is_json {
            true => self.answer(title, command, cli),
            false => self.show(title, &command, cli),
        };
        self.context.store_option = store_option;
        done
    }

    fn show(&mut self, title: &str, command: &str, cli: Cli) -> Result<()> {
        let out = &mut self.context.out;
        out.line(&[(style::STRONG, &format!("{}. {title}", self.step))])?;
        out.line(&[(style::COMPACTION, "$ "), (style::COMPACTION, command)])?;
        // Keeps the step's stderr in the right place.
        out.flush()?;
        super::run(cli.command, self.context)?;
        Ok(self.context.out.line(&[])?)
    }

    fn answer(&mut self, title: &str, command: String, cli: Cli) -> Result<()> {
        let (out, memory) = Output::memory();
        let stdout = std::mem::replace(&mut self.context.out, out);
        let done = super::run(cli.command, self.context);
        self.context.out = stdout;
        done?;
        let answers = String::from_utf8_lossy(&memory.borrow())
            .lines()
            .flat_map(serde_json::from_str)
            .collect();
        Ok(self.context.out.json(&Answer { step: self.step, title, command, answers })?)
    }

    /// Returns the id of the tour's compaction.
    fn compaction(&self) -> Result<String> {
        let compactions = Store::open_read_only(&self.store)?.session("tour")?.compactions()?;
        let last = compactions.last();
        last.map(|last| last.id.to_string())
            .ok_or_else(|| Failure::NotFound("the tour's compaction is missing".to_owned()))
    }
}

/// Returns the name by which this program was called, so that pasted commands call it again.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "talktree".to_owned())
}
