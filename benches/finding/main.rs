//! How well and how fast does search find what people mean?
//!
//! Tables that every change of search is judged by: queries of developers, languages, typos, questions about chats, a
//! snapshot of the first ten hits, and times in a large store. The sets are hand-written and lie beside this file. Only the
//! grades of the snapshot were made by looking at what talktree finds. Half of each other set is *held*: nobody tunes on it.
//!
//! Reads real conversations in the folder `TALKTREE_DATA`, or in `../shared/data`; what needs them is skipped where the
//! folder is absent. It belongs to `talktree-import`, which reads the transcripts.

#![allow(clippy::print_stdout, reason = "a program to be watched")]

mod age;
mod corpus;
mod data;
mod grades;
mod guard;
mod judged;
mod languages;
mod librechat;
mod memory;
mod options;
mod random;
mod speed;
mod speed_store;

use options::Options;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Prints the tables of one part.
type Part = fn(&Options) -> Result<()>;

/// The parts by name, in the order in which they are printed.
const PARTS: &[(&str, Part)] = &[
    ("developer", judged::developer),
    ("typos", judged::typos),
    ("tools", judged::tools),
    ("chats", judged::chats),
    ("times", judged::times),
    ("languages", languages::run),
    ("guard", guard::run),
    ("age", age::run),
    ("speed", speed::run),
];

fn main() -> Result<()> {
    let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
    let Some(options) = Options::read(std::env::args().skip(1), &names)? else {
        println!("{}", options::HELP);
        return Ok(());
    };
    for (name, run) in PARTS {
        if options.wants(name) {
            run(&options)?;
        }
    }
    Ok(())
}
