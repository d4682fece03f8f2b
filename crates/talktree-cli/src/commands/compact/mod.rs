//! `talktree compact`: summaries, made by any program or by hand.

mod by_command;
mod by_hand;
mod list;
mod plan;

use std::path::PathBuf;

use clap::ArgGroup;
use talktree::{Compaction, CompactionOptions, MessageId, Planned, Session};

use crate::clean::plural;
use crate::context::Context;
use crate::failure::Result;
use crate::{find, paint};

/// Compact what is old under summaries, made by any program or by hand
///
/// With --summarizer-cmd the command is given a prompt on its standard input and writes the summary
/// to its standard output, again and again until nothing is left to compact:
///
///   talktree compact 7f3a --summarizer-cmd 'llm -m small'
///
/// --plan shows what would be compacted and asks nobody. A summary given with --summary or
/// --summary-file is laid over what would be compacted now, or over --from .. --to.
///
/// The messages under a summary stay as they are: `log --raw` shows them, `expand` what one summary
/// stands for, and so does `log` once it is taken off with --remove.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "talktree compact [OPTIONS] <SESSION> --summarizer-cmd <COMMAND>\n       talktree compact [OPTIONS] <SESSION> --plan [--prompt]\n       talktree compact [OPTIONS] <SESSION> --summary <TEXT> [--from <MESSAGE> --to <MESSAGE>]\n       talktree compact [OPTIONS] <SESSION> --remove <ID>\n       talktree compact [OPTIONS] <SESSION> --list"
)]
#[command(group(ArgGroup::new("what").required(true)))]
pub(crate) struct Args {
    /// The conversation: its id, the beginning or the end of it, or its name.
    session: String,

    /// Ask this command of the shell for the summaries.
    ///
    /// It cannot ask anything back: its input is the prompt, and the terminal is not its own.
    #[arg(long, value_name = "COMMAND", group = "what", value_hint = clap::ValueHint::CommandString)]
    summarizer_cmd: Option<String>,

    /// Compact one step only.
    #[arg(long, requires = "summarizer_cmd", conflicts_with_all = ["plan", "text", "list", "remove"])]
    once: bool,

    /// End the command, and all it started, when a summary takes longer.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "summarizer_cmd", conflicts_with_all = ["plan", "text", "list", "remove"])]
    timeout: Option<u64>,

    /// Show what would be compacted.
    #[arg(long, group = "what")]
    plan: bool,

    /// Print what a summarizer would be asked.
    #[arg(long, requires = "plan", conflicts_with_all = ["summarizer_cmd", "text", "list", "remove"])]
    prompt: bool,

    /// Lay this summary; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", groups = ["what", "text"])]
    summary: Option<String>,

    /// Lay the summary in this file; `-` is stdin.
    #[arg(long, value_name = "FILE", groups = ["what", "text"])]
    summary_file: Option<PathBuf>,

    /// The first message under it, or a summary shown there.
    #[arg(long, value_name = "MESSAGE", requires = "text", requires = "to")]
    #[arg(conflicts_with_all = ["summarizer_cmd", "plan", "list", "remove", "at", "Policy"])]
    from: Option<String>,

    /// The last message under it; it shows on the branches that hold this message.
    #[arg(long, value_name = "MESSAGE", requires = "text", requires = "from")]
    to: Option<String>,

    /// The name of the model that wrote it, to be kept with it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plan", "list", "remove"])]
    model: Option<String>,

    /// Compact the branch that leads to this message, instead of the one to the head.
    #[arg(long, value_name = "MESSAGE", conflicts_with_all = ["list", "remove"])]
    at: Option<String>,

    #[command(flatten)]
    policy: Policy,

    /// List the summaries, in the order they were made.
    #[arg(long, group = "what", conflicts_with = "Policy")]
    list: bool,

    /// Take this summary off.
    #[arg(long, value_name = "ID", group = "what", conflicts_with = "Policy")]
    remove: Option<String>,
}

/// What is compacted.
#[derive(Debug, clap::Args)]
struct Policy {
    /// Leave so many tokens at the end as they are; 20000 if it is not given.
    #[arg(long, value_name = "TOKENS")]
    keep_recent_tokens: Option<u64>,

    /// Leave the first N messages as they are, up to the first summary; 3 if it is not given.
    #[arg(long, value_name = "N")]
    protect_head: Option<usize>,

    /// Leave the last N messages as they are, however long; 2 if it is not given.
    #[arg(long, value_name = "N")]
    min_tail: Option<usize>,

    /// Compact no more than so many tokens at a time; 100000 if it is not given.
    #[arg(long, value_name = "TOKENS")]
    max_step_tokens: Option<u64>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let is_reading = args.list || args.plan;
    let store = if is_reading { context.reader()? } else { context.writer()? };
    let session = find::session(&store, &args.session)?;
    if args.list {
        return list::run(&session, context);
    }
    if let Some(given) = &args.remove {
        return remove(given, &session, context);
    }
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        return by_hand::over(from, to, &args, &session, context);
    }
    let options = args.policy.options();
    // The session is to know, too, what of its window is which part.
    let session = store.session_builder(session.id()).compaction_options(options.clone()).open()?;
    let leaf = args.at.as_deref().map(|at| find::message(&session, at)).transpose()?;
    let target = Target { session, leaf, options };
    if args.plan {
        return plan::run(&target, args.prompt, context);
    }
    match &args.summarizer_cmd {
        Some(command) => by_command::run(command, &args, &target, context),
        None => by_hand::over_plan(&args, &target, context),
    }
}

/// A branch of a conversation, and what of it is to be compacted.
struct Target {
    session: Session,
    /// Where the branch ends, if it is not the head's.
    leaf: Option<MessageId>,
    options: CompactionOptions,
}

impl Target {
    fn plan(&self) -> Result<Planned> {
        Ok(match &self.leaf {
            Some(leaf) => self.session.at(leaf).plan_compaction(&self.options)?,
            None => self.session.plan_compaction(&self.options)?,
        })
    }
}

impl Policy {
    fn options(&self) -> CompactionOptions {
        let mut options = CompactionOptions::default();
        if let Some(tokens) = self.keep_recent_tokens {
            options = options.keep_recent_tokens(tokens);
        }
        if let Some(messages) = self.protect_head {
            options = options.protect_head(messages);
        }
        if let Some(messages) = self.min_tail {
            options = options.min_tail(messages);
        }
        if let Some(tokens) = self.max_step_tokens {
            options = options.max_step_tokens(tokens);
        }
        options
    }
}

fn remove(given: &str, session: &Session, context: &mut Context) -> Result<()> {
    let compaction = session.compaction(&find::compaction(session, given)?)?;
    session.remove_compaction(&compaction.id)?;
    if context.is_json {
        return Ok(context.out.json(&compaction)?);
    }
    let title = find::title(session)?;
    Ok(context.out.line(&[
        (paint::PLAIN, &title),
        (paint::PLAIN, ": summary "),
        (paint::COMPACTION, compaction.id.as_str()),
        (paint::PLAIN, " removed"),
    ])?)
}

/// Tells of a summary that was laid.
fn print_added(compaction: &Compaction, session: &Session, context: &mut Context) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(compaction)?);
    }
    let title = find::title(session)?;
    let taken_in = match compaction.nested.len() as u64 {
        0 => String::new(),
        count => format!(", with {}", plural(count, "summary")),
    };
    let Compaction { tokens_before, tokens_after, .. } = compaction;
    Ok(context.out.line(&[
        (paint::PLAIN, &title),
        (paint::PLAIN, ": summary "),
        (paint::COMPACTION, compaction.id.as_str()),
        (paint::PLAIN, " laid over "),
        (paint::PLAIN, &plural(compaction.count, "message")),
        (paint::PLAIN, &taken_in),
        (paint::FAINT, &format!(": {tokens_before} -> {tokens_after} tokens")),
    ])?)
}
