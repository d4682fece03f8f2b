//! `talktree compact`: adds, lists and removes compactions.

mod list;
mod plan;
mod summarizer_cmd;
mod summary;

use std::path::PathBuf;

use clap::ArgGroup;
use talktree::{Compaction, CompactionOptions, Error, MessageId, Planned, Session, Store};

use crate::context::Context;
use crate::failure::Result;
use crate::suggestion::option;
use crate::text::plural;
use crate::whole::{self, Line};
use crate::{lookup, style};

/// Replace old messages with a summary when a history is read
///
/// With --summarizer-cmd, a shell command writes the summary. It reads a prompt on its standard
/// input and writes the summary to its standard output. It runs once for each step, until nothing
/// is left to compact:
///
///   talktree compact 7f3a --summarizer-cmd 'llm -m small'
///
/// With --summary or --summary-file, you give the summary. It replaces the messages from --from to
/// --to; without these, the messages that --plan shows.
///
/// No message is changed or deleted: `log --raw` prints all of them, `expand` prints those that one
/// compaction replaces, and --remove removes a compaction.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "talktree compact [OPTIONS] <SESSION> --summarizer-cmd <COMMAND>\n       talktree compact [OPTIONS] <SESSION> --plan [--prompt]\n       talktree compact [OPTIONS] <SESSION> --summary <TEXT> [--from <MESSAGE> --to <MESSAGE>]\n       talktree compact [OPTIONS] <SESSION> --remove <ID>\n       talktree compact [OPTIONS] <SESSION> --list"
)]
#[command(group(ArgGroup::new("what").required(true)))]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name; with --remove its whole id.
    session: String,

    /// Run this shell command for each summary.
    ///
    /// It cannot ask the user: its standard input is the prompt, and it cannot read the terminal.
    #[arg(long, value_name = "COMMAND", group = "what", value_hint = clap::ValueHint::CommandString)]
    summarizer_cmd: Option<String>,

    /// Stop after one step.
    #[arg(long, requires = "summarizer_cmd", conflicts_with_all = ["plan", "text", "list", "remove"])]
    once: bool,

    /// Kill the command, and the processes it started, if one summary takes longer than this many
    /// seconds [default: no limit].
    ///
    /// A process that left the group of the command, as with setsid, is not killed and not waited for.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "summarizer_cmd", conflicts_with_all = ["plan", "text", "list", "remove"])]
    timeout: Option<u64>,

    /// Print what would be compacted; change nothing.
    #[arg(long, group = "what")]
    plan: bool,

    /// Print the prompt for the summarizer.
    #[arg(long, requires = "plan", conflicts_with_all = ["summarizer_cmd", "text", "list", "remove"])]
    prompt: bool,

    /// Compact with this summary; `-` reads it from stdin.
    #[arg(long, value_name = "TEXT", groups = ["what", "text"])]
    summary: Option<String>,

    /// Compact with the summary in this file; `-` is stdin.
    #[arg(long, value_name = "FILE", groups = ["what", "text"])]
    summary_file: Option<PathBuf>,

    /// The first message to replace; may be the `compaction_..` id of a summary.
    #[arg(long, value_name = "MESSAGE", requires = "text", requires = "to")]
    #[arg(conflicts_with_all = ["summarizer_cmd", "plan", "list", "remove", "at", "Policy"])]
    from: Option<String>,

    /// The last message to replace; the summary is visible on every path with this message.
    #[arg(long, value_name = "MESSAGE", requires = "text", requires = "from")]
    to: Option<String>,

    /// The model that wrote the summary; its name is stored with the compaction.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plan", "list", "remove"])]
    model: Option<String>,

    /// Compact the path to this message instead of the path to the head.
    #[arg(long, value_name = "MESSAGE", conflicts_with_all = ["list", "remove"])]
    at: Option<String>,

    #[command(flatten)]
    policy: Policy,

    /// List the compactions, oldest first.
    #[arg(long, group = "what", conflicts_with = "Policy")]
    list: bool,

    /// Remove the compaction of this whole id; the messages it replaced are visible again.
    #[arg(long, value_name = "ID", group = "what", conflicts_with = "Policy")]
    remove: Option<String>,

    /// With --remove: SESSION is the name of a session.
    #[arg(long, requires = "remove")]
    name: bool,
}

/// The options that choose the messages to compact.
#[derive(Debug, clap::Args)]
struct Policy {
    /// Do not compact the newest messages, up to this many tokens [default: 20000].
    #[arg(long, value_name = "TOKENS")]
    keep_recent_tokens: Option<u64>,

    /// Do not compact the first N messages before the first summary [default: 3].
    #[arg(long, value_name = "N")]
    protect_head: Option<usize>,

    /// Do not compact the last N messages, however long they are [default: 2].
    #[arg(long, value_name = "N")]
    min_tail: Option<usize>,

    /// Compact at most this many tokens in one step [default: 100000].
    #[arg(long, value_name = "TOKENS")]
    max_step_tokens: Option<u64>,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let is_reading = args.list || args.plan;
    let store = if is_reading { context.reader()? } else { context.writer()? };
    if let Some(given) = &args.remove {
        return remove(given, &args, &store, context);
    }
    let session = lookup::session(&store, &args.session)?;
    if args.list {
        return list::run(&session, context);
    }
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        return summary::add_range(from, to, &args, &session, context);
    }
    let options = args.policy.options();
    // With these options the session also reports the parts of its window.
    let session = store.session_builder(session.id()).compaction_options(options.clone()).open()?;
    let leaf = args.at.as_deref().map(|at| lookup::message(&session, at)).transpose()?;
    let target = Target { session, leaf, options };
    if args.plan {
        return plan::run(&target, args.prompt, context);
    }
    match &args.summarizer_cmd {
        Some(command) => summarizer_cmd::run(command, &args, &target, context),
        None => summary::commit_plan(&args, &target, context),
    }
}

/// The path to compact, with the options that choose its range.
struct Target {
    session: Session,
    /// The last message of the path; none for the head.
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

fn remove(given: &str, args: &Args, store: &Store, context: &mut Context) -> Result<()> {
    let line =
        Line { verb: "compact", arguments: vec![&args.session], options: option("remove", given) };
    let session = whole::session(store, &line, args.name)?;
    let id = whole::compaction(&session, given)?;
    let compaction = match session.compaction(&id) {
        // One that cannot be read can be removed.
        Err(Error::Corrupt { .. }) => None,
        read => Some(read?),
    };
    whole::remove_compaction(&session, &id)?;
    if context.is_json {
        return match compaction {
            Some(compaction) => Ok(context.out.json(&compaction)?),
            None => Ok(context.out.json(&serde_json::json!({ "id": &*id }))?),
        };
    }
    let title = lookup::title(&session)?;
    Ok(context.out.line(&[
        (style::PLAIN, &title),
        (style::PLAIN, ": compaction "),
        (style::COMPACTION, id.as_str()),
        (style::PLAIN, " removed"),
    ])?)
}

/// Prints a new compaction.
fn print_added(compaction: &Compaction, session: &Session, context: &mut Context) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(compaction)?);
    }
    let title = lookup::title(session)?;
    let nested = match compaction.nested.len() as u64 {
        0 => String::new(),
        count => format!(" with {}", plural(count, "earlier compaction")),
    };
    let Compaction { tokens_before, tokens_after, .. } = compaction;
    Ok(context.out.line(&[
        (style::PLAIN, &title),
        (style::PLAIN, ": compacted "),
        (style::PLAIN, &plural(compaction.count, "message")),
        (style::PLAIN, &nested),
        (style::PLAIN, &format!(", {tokens_before} tokens into {tokens_after}: compaction ")),
        (style::COMPACTION, compaction.id.as_str()),
    ])?)
}
