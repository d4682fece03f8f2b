//! `talktree tree`: draws the branches of a session.

use talktree::DrawOptions;

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::{lookup, style};

/// Draw the branches of a session
///
/// Messages follow each other downwards; branches are indented to the right. Where messages or
/// branches are left out, the line says how many.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree tree [OPTIONS] <SESSION>", after_help = LEGEND)]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// List the labels below the tree, with the full ids of their messages.
    #[arg(long)]
    labels: bool,

    /// Draw every branch; long runs of messages are still shortened.
    #[arg(long)]
    all: bool,

    /// Use only ASCII characters.
    #[arg(long)]
    ascii: bool,
}

const LEGEND: &str = "\
Legend:
  *       the head
  o       a message
  ·       a compacted message (`.` with --ascii)
  -       a hidden message
  (..)    labels
  [compaction ..]  the summary that replaces the compacted messages above it";

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let tree = session.tree()?;
    if context.is_json {
        return Ok(context.out.json(&tree)?);
    }
    if tree.segments.is_empty() {
        tell("the session has no messages");
    }
    let mut options = if args.all { DrawOptions::everything() } else { DrawOptions::default() };
    options.is_ascii = args.ascii;
    for line in tree.lines(&options) {
        let pieces: Vec<_> =
            line.pieces.iter().map(|(ink, text)| (style::ink(*ink), text.as_str())).collect();
        context.out.line_cut(&pieces)?;
    }
    if args.labels {
        for label in session.labels()? {
            context.out.line(&[
                (style::LABEL, &label.name),
                (style::PLAIN, "  "),
                (style::ID, label.id.as_str()),
            ])?;
        }
    }
    Ok(())
}
