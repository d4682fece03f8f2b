//! `talktree compact`: adds, lists and removes compactions.

mod plan;

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use talktree::{
    Compaction, CompactionId, CompactionOptions, CompactionPlan, CompactionStatus, Error,
    MessageId, NothingToCompact, Session, Store, Summary,
};

use crate::input::{read_stdin, read_text};
use crate::prelude::*;
use crate::summarizer::Summarizer;
use crate::whole::{self, Line};
use crate::work::Bar;

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
pub(crate) struct CompactArgs {
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

pub(crate) fn run(args: CompactArgs, context: &mut Context) -> Result<()> {
    let is_reading = args.list || args.plan;
    let store = if is_reading { context.reader()? } else { context.writer()? };
    if let Some(given) = &args.remove {
        return remove(given, &args, &store, context);
    }
    let session = lookup::session(&store, &args.session)?;
    if args.list {
        return list(&session, context);
    }
    let title = lookup::title(&store, &session)?;
    if let (Some(from), Some(to)) = (&args.from, &args.to) {
        return add_range(from, to, &args, &session, &title, context);
    }
    let options = args.policy.options();
    // With these options the session also reports the parts of its window.
    let session = store.session_builder(session.id()).compaction_options(options.clone()).open()?;
    let leaf = args.at.as_deref().map(|at| lookup::message(&session, at)).transpose()?;
    let target = Target { session, title, leaf, options };
    if args.plan {
        return plan::plan(&target, args.prompt, context);
    }
    match &args.summarizer_cmd {
        Some(command) => by_command(command, &args, &target, context),
        None => commit_plan(&args, &target, context),
    }
}

/// The path to compact, with the options that choose its range.
struct Target {
    session: Session,
    /// What the output calls the session.
    title: String,
    /// The last message of the path; none for the head.
    leaf: Option<MessageId>,
    options: CompactionOptions,
}

impl Target {
    fn plan(&self) -> Result<std::result::Result<CompactionPlan, NothingToCompact>> {
        Ok(match &self.leaf {
            Some(leaf) => self.session.at(leaf).plan_compaction(&self.options)?,
            None => self.session.plan_compaction(&self.options)?,
        })
    }
}

impl Policy {
    fn options(&self) -> CompactionOptions {
        type Options = CompactionOptions;
        let options = Options::default();
        let options =
            self.keep_recent_tokens.into_iter().fold(options, Options::keep_recent_tokens);
        let options = self.protect_head.into_iter().fold(options, Options::protect_head);
        let options = self.min_tail.into_iter().fold(options, Options::min_tail);
        self.max_step_tokens.into_iter().fold(options, Options::max_step_tokens)
    }
}

fn remove(given: &str, args: &CompactArgs, store: &Store, context: &mut Context) -> Result<()> {
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
    let json = compaction.map_or_else(|| json!({"id": &*id}), |compaction| json!(compaction));
    let title = format!("{}: compaction ", lookup::title(store, &session)?);
    context.answer(&json, &[(PLAIN, &title), (COMPACTION, id.as_str()), (PLAIN, " removed")])
}

/// Prints a new compaction.
fn print_added(
    id: &CompactionId,
    session: &Session,
    title: &str,
    context: &mut Context,
) -> Result<()> {
    let compaction = session.compaction(id)?;
    let all = session.compactions()?;
    let ids = ShortIds::new(all.iter().map(|one| one.id.as_str()));
    let nested = match compaction.nested.len() as u64 {
        0 => String::new(),
        count => format!(" with {}", plural(count, "earlier compaction")),
    };
    let Compaction { tokens_before, tokens_after, .. } = compaction;
    let text = format!(
        "{title}: compacted {}{nested}, {tokens_before} tokens into {tokens_after}: compaction ",
        plural(compaction.count, "message"),
    );
    context.answer(&compaction, &[(PLAIN, &text), (COMPACTION, ids.of(id.as_str()))])
}

/// A compaction of the list as JSON.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    compaction: &'a Compaction,
    status: &'static str,
    /// The compaction that contains this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    under: Option<&'a CompactionId>,
}

fn list(session: &Session, context: &mut Context) -> Result<()> {
    let compactions = session.compactions()?;
    let short = ShortIds::new(compactions.iter().map(|compaction| compaction.id.as_str()));
    let styles = [COMPACTION, PLAIN, PLAIN, PLAIN, FAINT, FAINT, PLAIN];
    let mut table = Table::new("compaction status messages tokens model created summary", styles);
    for compaction in &compactions {
        let status = match session.compaction_status(&compaction.id) {
            // Removed since the list was read.
            Err(error) if error.is_unknown() => continue,
            status => status?,
        };
        let (status, under) = match &status {
            CompactionStatus::Shown => ("shown", None),
            CompactionStatus::Under { id } => ("under", Some(id)),
            _ => ("off_path", None),
        };
        let cells = [
            short.of(compaction.id.as_str()).to_owned(),
            match under {
                Some(id) => format!("inside {}", short.of(id.as_str())),
                None => status.replace("off_path", "other branch"),
            },
            compaction.count.to_string(),
            format!("{} -> {}", compaction.tokens_before, compaction.tokens_after),
            one_line(compaction.model.as_deref().unwrap_or_default()),
            context.out.ago(compaction.created_at),
            one_line(&compaction.summary),
        ];
        context.row(&mut table, &Row { compaction, status, under }, cells)?;
    }
    context.write_list(&table, None, || Ok("the session has no compactions".to_owned()))
}

/// Compacts the range from one message to another.
fn add_range(
    from: &str,
    to: &str,
    args: &CompactArgs,
    session: &Session,
    title: &str,
    context: &mut Context,
) -> Result<()> {
    let text = text(args)?;
    let (first, last) = (lookup::message(session, from)?, lookup::message(session, to)?);
    let mut compaction = Compaction::new(text, first, last);
    compaction.model.clone_from(&args.model);
    session.import_compaction(&compaction)?;
    print_added(&compaction.id, session, title, context)
}

/// Compacts the range that the policy chooses.
fn commit_plan(args: &CompactArgs, target: &Target, context: &mut Context) -> Result<()> {
    // The summary is read before planning: typing it may take so long that the plan would be stale.
    let mut summary = Summary::new(text(args)?);
    if let Some(model) = &args.model {
        summary = summary.by(model);
    }
    match target.plan()? {
        Err(why) => plan::tell_nothing(&why),
        Ok(plan) => {
            let compacted = target.session.commit(plan, summary)?;
            print_added(&compacted.id, &target.session, &target.title, context)?;
        }
    }
    Ok(())
}

/// Returns the given summary.
fn text(args: &CompactArgs) -> Result<String> {
    const WHAT: &str = "the summary";
    let text = match (&args.summary, &args.summary_file) {
        (Some(text), _) if text != "-" => text.clone(),
        (_, Some(file)) => read_text(file, WHAT)?,
        _ => read_stdin(WHAT)?,
    };
    Ok(text.trim_end().to_owned())
}

fn by_command(
    command: &str,
    args: &CompactArgs,
    target: &Target,
    context: &mut Context,
) -> Result<()> {
    let summarizer = Summarizer::new(command.to_owned(), args.timeout.map(Duration::from_secs))?;
    for number in 1.. {
        let plan = match target.plan()? {
            Ok(plan) => plan,
            Err(why) => {
                if number == 1 {
                    plan::tell_nothing(&why);
                }
                break;
            }
        };
        let id = step(plan, number, &summarizer, args, target)?;
        print_added(&id, &target.session, &target.title, context)?;
        // The next step may take a while.
        context.out.flush()?;
        if args.once {
            break;
        }
    }
    Ok(())
}

/// Asks for one summary, commits it, and returns the id of the compaction.
fn step(
    plan: CompactionPlan,
    number: usize,
    summarizer: &Summarizer,
    args: &CompactArgs,
    target: &Target,
) -> Result<CompactionId> {
    let bar = Bar::of_waiting(&format!(
        "summary {number}: {}, {} of {} tokens",
        plural(plan.messages() as u64, "message"),
        plan.tokens(),
        plan.usage().total,
    ));
    let answer = summarizer.ask(plan.prompt());
    drop(bar);
    let mut summary = Summary::new(answer?);
    if let Some(model) = &args.model {
        summary = summary.by(model);
    }
    let wanted = plan.target_tokens();
    let kept = if number > 1 { "; the compactions of earlier steps are kept" } else { "" };
    let compacted = target.session.commit(plan, summary).map_err(|error| match error {
        // The command is at fault, not the user's arguments.
        Error::SummaryRefused { why } => Failure::Summary(format!(
            "the summarizer's answer was refused: {why}; the prompt asks for at most {wanted} tokens{kept}"
        )),
        error => error.into(),
    })?;
    if compacted.tokens_after > wanted {
        let tokens = compacted.tokens_after;
        tell(&format!("the summary has {tokens} tokens; the prompt asked for at most {wanted}"));
    }
    Ok(compacted.id)
}
