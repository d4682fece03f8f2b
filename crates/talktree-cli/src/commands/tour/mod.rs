//! `talktree tour`: what the command does, shown on a small conversation.
//!
//! Each step prints a command and then does exactly that: the words printed are parsed and run as
//! if they had been typed, so what is shown can be pasted.

use std::path::PathBuf;

use clap::Parser;
use serde::Serialize;
use serde_json::Value;
use talktree::Store;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::paint;
use crate::quote::quote;

/// Show what this does, on a small conversation in a temporary store
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree tour [OPTIONS]")]
pub(crate) struct Args {}

/// A conversation with two branches, in two languages, written for this.
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
        let why = "the tour has a store of its own; --store is for the other commands";
        return Err(Failure::Usage(why.to_owned()));
    }
    context.is_tour = true;
    let folder = temporary_folder()?;
    let sample = folder.join("sample.jsonl");
    std::fs::write(&sample, SAMPLE)?;
    let store = folder.join("tour.db");
    if !context.is_json {
        context.out.line(&[
            (paint::PLAIN, "A tour on a store of its own: "),
            (paint::STRONG, &store.to_string_lossy()),
        ])?;
        context.out.line(&[(
            paint::PLAIN,
            "The commands can be pasted, in this order, while that folder is there.",
        )])?;
        context.out.line(&[])?;
    }
    let mut tour = Tour { context, store, step: 0 };
    let sample = sample.to_string_lossy();
    tour.step(
        "Import: formats are told from the content, trees stay trees.",
        &["import", &sample],
    )?;
    tour.step("The tree: the head `*` and the branch that was left.", &["tree", "tour"])?;
    tour.step("The conversation up to the head, as a model would read it.", &["log", "tour"])?;
    tour.step(
        "Go to the end of the other branch; the first one stays.",
        &["checkout", "tour", "how-far-answer"],
    )?;
    tour.step("What a model reads now.", &["log", "tour", "--limit", "2"])?;
    tour.step("And back.", &["checkout", "tour", "--undo"])?;
    tour.step(
        "A branch can become a conversation of its own.",
        &["fork", "tour", "look-up", "What if"],
    )?;
    tour.step(
        "Lay a summary over a stretch; nothing is deleted.",
        &["compact", "tour", "--summary", SUMMARY, "--from", "answer-1", "--to", "look-up"],
    )?;
    tour.step(
        "A model reads the summary in place of the three messages ..",
        &["log", "tour", "--limit", "4"],
    )?;
    tour.step(".. and the tree shows what lies under it.", &["tree", "tour", "--labels"])?;
    let summary = tour.summary()?;
    tour.step(
        "Search finds what lies under a summary, too.",
        &["search", "planetarium tickets", "--session", "tour"],
    )?;
    tour.step("In any language.", &["search", "博物馆"])?;
    tour.step(
        "Take the summary off: everything is as it was.",
        &["compact", "tour", "--remove", &summary],
    )?;
    tour.step("What the store holds.", &["stats"])?;
    if !context.is_json {
        context.out.line(&[
            (paint::PLAIN, "This removes the tour: "),
            (paint::COMPACTION, &format!("rm -r {}", quote(&folder.to_string_lossy()))),
        ])?;
    }
    Ok(())
}

/// Returns a new folder that stays when the command has ended.
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
    /// Prints a command and does what it says.
    fn step(&mut self, title: &str, words: &[&str]) -> Result<()> {
        self.step += 1;
        let store = self.store.to_string_lossy();
        let words: Vec<&str> =
            ["--store", &store].into_iter().chain(words.iter().copied()).collect();
        let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let command = format!("{} {}", quote(&program()), quoted.join(" "));
        let cli = Cli::try_parse_from(std::iter::once("talktree").chain(words.iter().copied()))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let stated = self.context.stated.replace(self.store.clone());
        let done = match self.context.is_json {
            true => self.answer(title, command, cli),
            false => self.show(title, &command, cli),
        };
        self.context.stated = stated;
        done
    }

    fn show(&mut self, title: &str, command: &str, cli: Cli) -> Result<()> {
        let out = &mut self.context.out;
        out.line(&[(paint::STRONG, &format!("{}. {title}", self.step))])?;
        out.line(&[(paint::COMPACTION, "$ "), (paint::COMPACTION, command)])?;
        // What the step says on stderr comes where it belongs.
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

    /// Returns the id of the summary that was laid.
    fn summary(&self) -> Result<String> {
        let compactions = Store::open_read_only(&self.store)?.session("tour")?.compactions()?;
        let last = compactions.last();
        last.map(|last| last.id.to_string())
            .ok_or_else(|| Failure::NotFound("the summary of the tour is gone".to_owned()))
    }
}

/// Returns what this program was called as, so that what is printed calls it again.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "talktree".to_owned())
}
