//! `talktree tree`: the branches of a conversation, drawn.

use talktree::DrawOptions;

use crate::context::Context;
use crate::failure::{Result, tell};
use crate::{find, paint};

/// Draw the branches of a conversation: head `*`, labels, summaries, hidden `-`
///
/// A chain of messages is drawn downwards, its branches to the right of it. Long chains, wide fans
/// and deep branches are counted where they are not drawn.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree tree [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// List the labels below the tree, with the whole ids of their messages.
    #[arg(long)]
    labels: bool,

    /// Draw every branch; long chains are still cut.
    #[arg(long)]
    all: bool,

    /// Draw with ASCII characters only.
    #[arg(long)]
    ascii: bool,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = find::session(&store, &args.session)?;
    let tree = session.tree()?;
    if context.is_json {
        return Ok(context.out.json(&tree)?);
    }
    if tree.segments.is_empty() {
        tell("there are no messages here");
    }
    let mut options = if args.all { DrawOptions::everything() } else { DrawOptions::default() };
    options.is_ascii = args.ascii;
    for line in tree.lines(&options) {
        let pieces: Vec<_> = line
            .pieces
            .iter()
            .map(|(kind, text)| (paint::style_of(*kind), text.as_str()))
            .collect();
        context.out.line_cut(&pieces)?;
    }
    if args.labels {
        for label in session.labels()? {
            context.out.line(&[
                (paint::LABEL, &label.name),
                (paint::PLAIN, "  "),
                (paint::ID, label.id.as_str()),
            ])?;
        }
    }
    Ok(())
}
