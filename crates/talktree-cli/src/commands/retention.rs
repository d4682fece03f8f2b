//! `talktree retention`: discards sessions by the rules of a file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use talktree::{Retention, RetentionAction, RetentionReport, RetentionRule};

use super::verbs;
use crate::input::read_text;
use crate::prelude::*;
use crate::time::Span;

/// Discard sessions by the rules of a TOML file
///
/// Nothing is discarded unless `talktree retention run` is called. docs/command.md describes the file.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct RetentionArgs {
    #[command(subcommand)]
    verb: Verb,
}

verbs! { Verb:
    Run(RunArgs) => discard,
    Show(ShowArgs) => show,
}

pub(crate) fn run(args: RetentionArgs, context: &mut Context) -> Result<()> {
    args.verb.run(context)
}

/// Discard the sessions that meet a rule of a file, or list them
///
/// The action `trash` can be undone by `talktree restore`; `remove` and `erase` cannot. Pinned sessions stay.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The TOML file with the rules; `-` is standard input.
    file: PathBuf,

    /// Change nothing; list the sessions that would be discarded.
    #[arg(long)]
    dry_run: bool,

    /// Allow rules that all sessions of the store meet.
    #[arg(long)]
    all: bool,
}

pub(crate) fn discard(args: RunArgs, context: &mut Context) -> Result<()> {
    let mut retention = read(&args.file)?;
    if args.all {
        retention = retention.allow_all();
    }
    let signals = Signals::catch()?;
    let store = context.writer()?;
    let mut report = RetentionReport::default();
    let ended = signals.run(&store, "looking at sessions", |bar| {
        let run = store.retention(retention).progress(|at| bar.show(at));
        match args.dry_run {
            true => run.dry_run().map(|listed| report = listed),
            false => run.run_into(&mut report),
        }
    });
    // A run that failed says what it discarded until then.
    if ended.is_ok() || !report.sessions.is_empty() {
        print(&report, args.dry_run, context)?;
    }
    if ended.is_err() && !args.dry_run && store.has_unfinished_erasure()? {
        let finish = command("erase --finish");
        tell(&format!("an erasure was interrupted; run `{finish}`"));
    }
    ended
}

fn print(report: &RetentionReport, is_dry_run: bool, context: &mut Context) -> Result<()> {
    if context.is_json {
        return Ok(context.out.json(&json!({
            "is_dry_run": is_dry_run,
            "sessions": report.sessions,
            "rules": report.rules,
            "copies_left": report.copies_left,
            "is_log_in_use": report.is_log_in_use,
        }))?);
    }
    write(report, is_dry_run, context)?;
    for copy in &report.copies_left {
        let copies = plural(copy.messages, "erased message");
        tell(&format!("session {} still has copies of {copies}", copy.session));
    }
    if report.is_log_in_use {
        let finish = command("erase --finish");
        tell(&format!(
            "the write-ahead log is in use and still has erased text; run `{finish}` later"
        ));
    }
    if report.sessions.is_empty() {
        tell("no session meets a rule");
    } else if !is_dry_run
        && report.sessions.iter().any(|session| session.action == RetentionAction::Trash)
    {
        tell(&format!("`{}` lists the trash", command("trash list")));
    }
    Ok(())
}

/// Writes the sessions, then the sums of the rules.
fn write(report: &RetentionReport, is_dry_run: bool, context: &mut Context) -> Result<()> {
    let short = ShortIds::new(report.sessions.iter().map(|session| session.id.as_str()));
    let styles = [ID, PLAIN, FAINT, LABEL, STRONG];
    let mut table = Table::new("session messages last rule name", styles);
    for session in &report.sessions {
        table.push([
            short.of(session.id.as_str()).to_owned(),
            session.messages.to_string(),
            session.last_message_at.map(|at| context.out.ago(at)).unwrap_or_default(),
            one_line(&session.rule),
            one_line(session.name.as_deref().unwrap_or_default()),
        ]);
    }
    if !report.sessions.is_empty() {
        table.write(&mut context.out)?;
    }
    for rule in &report.rules {
        let done = match rule.action {
            RetentionAction::Trash => "put into the trash",
            RetentionAction::Erase => "erased",
            _ => "removed",
        };
        let done = if is_dry_run { format!("would be {done}") } else { done.to_owned() };
        let [sessions, messages] = [(rule.sessions, "session"), (rule.messages, "message")]
            .map(|(count, noun)| plural(count, noun));
        let figures = format!("  {sessions} {done}: {messages}, {}", size(rule.bytes));
        put!(context.out; LABEL &one_line(&rule.rule), PLAIN &figures)?;
    }
    Ok(())
}

/// Print the rules of a file in words, in the order in which they are tried
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The TOML file with the rules; `-` is standard input.
    file: PathBuf,
}

pub(crate) fn show(args: ShowArgs, context: &mut Context) -> Result<()> {
    let retention = read(&args.file)?;
    let rules = retention.rules().iter();
    let rules = rules.map(|rule| (rule.name(), rule.action(), rule.to_string()));
    let term = retention.trash_term().map(|term| {
        ("trash", RetentionAction::Remove, format!("in the trash for {}: removed", hours(term)))
    });
    for (rule, action, text) in rules.chain(term) {
        let json = json!({"rule": rule, "action": action, "text": text});
        context.answer(&json, &[(STRONG, rule), (PLAIN, "  "), (PLAIN, &text)])?;
    }
    Ok(())
}

/// Returns a span in days if it is whole ones, else in hours.
fn hours(term: Duration) -> String {
    match term.as_secs() {
        seconds if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        seconds if seconds.is_multiple_of(3_600) => format!("{}h", seconds / 3_600),
        seconds => format!("{}min", seconds / 60),
    }
}

/// What a file may say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    empty_trash_after: Option<Span>,
    #[serde(default)]
    rule: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    name: String,
    owner: Option<String>,
    source: Option<String>,
    model: Option<String>,
    tag: Option<String>,
    #[serde(default)]
    ended: bool,
    older_than: Option<Span>,
    idle_for: Option<Span>,
    more_messages_than: Option<u64>,
    more_bytes_than: Option<u64>,
    keep_sessions: Option<u64>,
    keep_messages: Option<u64>,
    keep_bytes: Option<u64>,
    #[serde(default)]
    per_owner: bool,
    #[serde(default)]
    action: Action,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Trash,
    Remove,
    Erase,
}

/// Reads the rules of a file, or of standard input for `-`.
pub(crate) fn read(path: &Path) -> Result<Retention> {
    let text = read_text(path, "the file of rules")?;
    let wrong = |why: String| Failure::Input(format!("{}: {}", shown(path), why.trim_end()));
    let rules: Rules = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut retention = Retention::new();
    if let Some(term) = rules.empty_trash_after {
        retention = retention.empty_trash_after(term.length());
    }
    for rule in rules.rule {
        retention = retention.rule(rule.read().map_err(wrong)?);
    }
    retention.check().map_err(|error| wrong(error.to_string()))?;
    Ok(retention)
}

impl Rule {
    fn read(self) -> Result<RetentionRule, String> {
        type Set<T> = fn(RetentionRule, T) -> RetentionRule;
        let mut rule = RetentionRule::new(self.name);
        let texts: [(_, Set<String>); 4] = [
            (self.owner, RetentionRule::owner),
            (self.source, RetentionRule::source),
            (self.model, RetentionRule::model),
            (self.tag, RetentionRule::tag),
        ];
        for (text, set) in texts {
            rule = text.into_iter().fold(rule, set);
        }
        let spans: [(_, Set<std::time::Duration>); 2] = [
            (self.older_than, RetentionRule::older_than),
            (self.idle_for, RetentionRule::idle_for),
        ];
        for (span, set) in spans {
            rule = span.map(Span::length).into_iter().fold(rule, set);
        }
        let totals = [self.keep_sessions, self.keep_messages, self.keep_bytes];
        if totals.iter().flatten().count() > 1 {
            return Err(format!(
                "rule {} has more than one of keep_sessions, keep_messages and keep_bytes",
                quoted(rule.name())
            ));
        }
        let numbers: [(_, Set<u64>); 5] = [
            (self.more_messages_than, RetentionRule::more_messages_than),
            (self.more_bytes_than, RetentionRule::more_bytes_than),
            (self.keep_sessions, RetentionRule::keep_sessions),
            (self.keep_messages, RetentionRule::keep_messages),
            (self.keep_bytes, RetentionRule::keep_bytes),
        ];
        for (number, set) in numbers {
            rule = number.into_iter().fold(rule, set);
        }
        rule = if self.ended { rule.ended() } else { rule };
        rule = if self.per_owner { rule.per_owner() } else { rule };
        Ok(match self.action {
            Action::Trash => rule,
            Action::Remove => rule.remove(),
            Action::Erase => rule.erase(),
        })
    }
}
