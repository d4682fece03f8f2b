//! `talktree compact`: summaries by hand.

use talktree::Compaction;

use crate::clean::{one_line, plural};
use crate::context::Context;
use crate::failure::{Result, tell};
use crate::output::Output;
use crate::{find, paint, stdin};

/// Lay a summary over a stretch of a conversation, take one off, or list them
///
/// The messages under a summary stay as they are: `log --raw` shows them, and so does `log` once the
/// summary is taken off.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree compact [OPTIONS] <SESSION> --summary <TEXT> --from <MESSAGE> --to <MESSAGE>\n       talktree compact [OPTIONS] <SESSION> --remove <ID>\n       talktree compact [OPTIONS] <SESSION> --list"
)]
#[command(group(clap::ArgGroup::new("what").required(true)))]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// The summary; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", group = "what", requires = "from", requires = "to")]
    summary: Option<String>,

    /// The first message under it, or a summary shown there.
    #[arg(long, value_name = "MESSAGE", requires = "summary")]
    from: Option<String>,

    /// The last message under it; it shows on the branches that hold this message.
    #[arg(long, value_name = "MESSAGE", requires = "summary")]
    to: Option<String>,

    /// List the summaries, in the order they were made.
    #[arg(long, group = "what")]
    list: bool,

    /// Take this summary off.
    #[arg(long, value_name = "ID", group = "what")]
    remove: Option<String>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = if args.list { context.reader()? } else { context.writer()? };
    let session = find::session(&store, &args.session)?;
    if args.list {
        let compactions = session.compactions()?;
        if compactions.is_empty() && !context.is_json {
            tell("there are no summaries here");
        }
        for compaction in &compactions {
            write(&mut context.out, compaction, context.is_json)?;
        }
        return Ok(());
    }
    if let Some(given) = &args.remove {
        let compaction = session.compaction(&find::compaction(&session, given)?)?;
        session.remove_compaction(&compaction.id)?;
        if context.is_json {
            return Ok(context.out.json(&compaction)?);
        }
        let title = find::title(&session)?;
        return Ok(context.out.line(&[
            (paint::PLAIN, &title),
            (paint::PLAIN, ": summary "),
            (paint::FOLD, compaction.id.as_str()),
            (paint::PLAIN, " removed"),
        ])?);
    }
    if let (Some(summary), Some(from), Some(to)) = (args.summary, &args.from, &args.to) {
        let summary = if summary == "-" { stdin::read("the summary")? } else { summary };
        let (first, last) = (find::message(&session, from)?, find::message(&session, to)?);
        let id = session.add_compaction(summary.trim_end(), &first, &last)?;
        let compaction = session.compaction(&id)?;
        if context.is_json {
            return Ok(context.out.json(&compaction)?);
        }
        let title = find::title(&session)?;
        context.out.line(&[
            (paint::PLAIN, &title),
            (paint::PLAIN, ": summary "),
            (paint::FOLD, id.as_str()),
            (paint::PLAIN, " laid over "),
            (paint::PLAIN, &plural(compaction.count, "message")),
        ])?;
    }
    Ok(())
}

fn write(out: &mut Output, compaction: &Compaction, is_json: bool) -> Result<()> {
    if is_json {
        return Ok(out.json(compaction)?);
    }
    out.line(&[
        (paint::FOLD, compaction.id.as_str()),
        (paint::PLAIN, "  "),
        (paint::ID, compaction.first.as_str()),
        (paint::PLAIN, " .. "),
        (paint::ID, compaction.last.as_str()),
        (paint::FAINT, &format!("  {}", plural(compaction.count, "message"))),
    ])?;
    Ok(out.line_cut(&[(paint::PLAIN, "  "), (paint::PLAIN, &one_line(&compaction.summary))])?)
}
