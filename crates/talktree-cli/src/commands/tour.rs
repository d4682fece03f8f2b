//! `talktree tour`: runs the commands on a sample.

use std::path::PathBuf;

use clap::Parser;
use serde_json::Value;
use talktree::Store;

use crate::cli::Cli;
use crate::prelude::*;

/// Show the commands at work, on a small conversation in a temporary store
#[derive(Debug, clap::Args)]
pub(crate) struct TourArgs {
    /// Keep the store, so that you can go on with it.
    #[arg(long)]
    keep: bool,
}

/// A conversation with two branches in two languages, written for the tour.
const SAMPLE: &str = include_str!("tour/sample.jsonl");

const SUMMARY: &str =
    "They will see the planetarium; tickets are sold online, Friday's shows are at 11, 15 and 20.";

pub(crate) fn run(args: TourArgs, context: &mut Context) -> Result<()> {
    if std::env::args_os().any(|word| word.to_string_lossy().starts_with("--store")) {
        let why = "the tour creates its own store; run it without --store";
        return Err(Failure::Usage(why.to_owned()));
    }
    context.is_tour = true;
    let mut folder = tempfile::Builder::new().prefix("talktree-tour-").tempdir()?;
    folder.disable_cleanup(args.keep);
    let sample = folder.path().join("sample.jsonl");
    std::fs::write(&sample, SAMPLE)?;
    let store = folder.path().join("tour.db");
    if !context.is_json {
        let out = &mut context.out;
        put!(out; PLAIN "The tour uses its own temporary store: ", STRONG &store.to_string_lossy())?;
        put!(out; PLAIN match args.keep {
            true => "You can paste its commands, in this order.",
            false => "It is removed at the end; with --keep it stays, and you can paste the commands.",
        })?;
        context.out.line(&[])?;
    }
    let mut tour = Tour { context, store, step: 0 };
    let sample = sample.to_string_lossy();
    let from_to =
        ["compact", "tour", "--summary", SUMMARY, "--from", "answer-1", "--to", "look-up"];
    for (title, words) in [
        (
            "Import a file: the format is detected, and all branches are kept.",
            &["import", &sample][..],
        ),
        ("Draw the tree. `*` is the head; answer-2 starts another branch.", &["tree", "tour"]),
        ("Print the history: the path to the head, as a model should see it.", &["log", "tour"]),
        (
            "Move the head to the end of the other branch. No message is deleted.",
            &["checkout", "tour", "how-far-answer"],
        ),
        (
            "The history now follows that branch. Print its last two messages.",
            &["log", "tour", "--limit", "2"],
        ),
        ("Undo the move of the head.", &["checkout", "tour", "--undo"]),
        (
            "Fork: copy the path to a message into a new session.",
            &["fork", "tour", "look-up", "What if"],
        ),
        ("Compact three messages into a summary. No message is deleted.", &from_to),
        (
            "A model sees the summary instead of the three messages.",
            &["log", "tour", "--limit", "4"],
        ),
        ("The tree still has the three messages, marked `·`.", &["tree", "tour", "--labels"]),
        (
            "Search also finds compacted messages.",
            &["search", "planetarium tickets", "--session", "tour"],
        ),
        ("Search works in any language.", &["search", "博物馆"]),
    ] {
        tour.step(title, words)?;
    }
    tour.step(
        "Remove the compaction. The history is as it was before.",
        &["compact", "tour", "--remove", &tour.compaction()?],
    )?;
    tour.step("Count what the store holds.", &["stats"])?;
    if !context.is_json && args.keep {
        let remove = format!("rm -r {}", quote(&folder.path().to_string_lossy()));
        put!(context.out; PLAIN "To delete the files of the tour: ", COMPACTION &remove)?;
    }
    Ok(())
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
        put!(out; STRONG &format!("{}. {title}", self.step))?;
        put!(out; COMPACTION "$ ", COMPACTION command)?;
        // Keeps the step's stderr in the right place.
        out.flush()?;
        cli.command.run(self.context)?;
        Ok(self.context.out.line(&[])?)
    }

    fn answer(&mut self, title: &str, command: String, cli: Cli) -> Result<()> {
        let (out, memory) = Output::memory();
        let stdout = std::mem::replace(&mut self.context.out, out);
        let done = cli.command.run(self.context);
        self.context.out = stdout;
        done?;
        let memory = memory.borrow();
        let answers: Vec<Value> =
            String::from_utf8_lossy(&memory).lines().flat_map(serde_json::from_str).collect();
        let json =
            json!({"step": self.step, "title": title, "command": command, "answers": answers});
        Ok(self.context.out.json(&json)?)
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
