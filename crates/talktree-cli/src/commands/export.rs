//! `talktree export`: a conversation as a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use serde::Serialize;
use talktree::{Error, Store};

use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::output::Exact;
use crate::{find, paint};

/// Write a conversation as talktree's JSON lines, Markdown, or OpenAI chat messages
///
/// `talktree` holds all branches and loses nothing; the other two hold the branch to the head as a
/// model should see it.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree export [OPTIONS] <SESSION>\n       talktree export [OPTIONS] --all"
)]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name; none with --all.
    #[arg(required_unless_present = "all")]
    session: Option<String>,

    /// How to write it.
    #[arg(long, default_value = "talktree")]
    format: Format,

    /// The branch that leads to this message, instead of the one to the head.
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,

    /// What is stored, without summaries and with hidden.
    #[arg(long)]
    raw: bool,

    /// The whole store.
    #[arg(long, conflicts_with_all = ["session", "at", "raw"])]
    all: bool,

    /// With --all: leave out the conversations that cannot be read whole, and name them.
    #[arg(long, requires = "all")]
    skip_damaged: bool,

    /// Write to this file, which must not be there yet, instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// JSON lines: every branch, summary and label; `talktree import` reads them.
    Talktree,
    /// A page for people.
    Markdown,
    /// One JSON object with `messages`, as the OpenAI chat API takes them.
    Openai,
}

#[derive(Serialize)]
struct Answer {
    path: String,
    format: String,
    bytes: u64,
}

enum What {
    Store(Store),
    Path(talktree::Path),
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    if args.format != Format::Talktree && args.all {
        return Err(Failure::Usage("--all writes the talktree format only".to_owned()));
    }
    if args.format == Format::Talktree && (args.raw || args.at.is_some()) {
        let why = "the talktree format holds every branch as it is stored; --at and --raw are for the others";
        return Err(Failure::Usage(why.to_owned()));
    }
    let store = context.reader()?;
    let what = match &args.session {
        None => What::Store(store),
        Some(session) => {
            let session = find::session(&store, session)?;
            let leaf = args.at.as_deref().map(|at| find::message(&session, at)).transpose()?;
            let path = leaf.as_ref().map_or_else(|| session.path(), |leaf| session.at(leaf));
            What::Path(if args.raw { path.raw() } else { path })
        }
    };
    let Some(path) = &args.output else {
        let mut out = Exact::new(&mut context.out, args.format != Format::Markdown);
        let skipped = write(&what, &args, &mut out)?;
        out.flush()?;
        return all_or_damaged(skipped);
    };
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{} is there already; nothing was written", path.display()))
        }
        _ => Failure::Output(error),
    };
    let mut file = BufWriter::new(File::create_new(path).map_err(cannot)?);
    let skipped = write(&what, &args, &mut file)?;
    file.flush().map_err(cannot)?;
    let bytes = std::fs::metadata(path).map(|file| file.len()).unwrap_or(0);
    let format = args
        .format
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned());
    let path = path.to_string_lossy().into_owned();
    if context.is_json {
        context.out.json(&Answer { path, format, bytes })?;
    } else {
        let bytes = format!("  {bytes} bytes");
        context.out.line(&[(paint::PLAIN, &path), (paint::FAINT, &bytes)])?;
    }
    all_or_damaged(skipped)
}

/// What was left out was told where it was met.
fn all_or_damaged(skipped: u64) -> Result<()> {
    if skipped == 0 { Ok(()) } else { Err(Failure::Damaged(None)) }
}

/// Writes what was asked for and returns how many conversations were left out.
fn write(what: &What, args: &Args, output: &mut impl Write) -> Result<u64> {
    let mut skipped = 0;
    let written = match (what, args.format) {
        (What::Store(store), _) if args.skip_damaged => {
            store.export_readable_jsonl(output, |id, error| {
                skipped += 1;
                tell(&format!("{id} is left out: {error}"));
            })
        }
        (What::Store(store), _) => store.export_jsonl(output),
        (What::Path(path), Format::Talktree) => path.session().export_jsonl(output),
        (What::Path(path), Format::Markdown) => path.export_markdown(output),
        (What::Path(path), Format::Openai) => path.export_openai(output),
    };
    written.map_err(|error| match error {
        // The store's own errors of this kind are of opening it.
        Error::Io { source, .. } => Failure::Output(source),
        error => error.into(),
    })?;
    Ok(skipped)
}
