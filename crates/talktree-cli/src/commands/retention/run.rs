//! `talktree retention run`: discards what meets a rule.

use std::path::PathBuf;

use serde::Serialize;
use talktree::{ErasureCopies, Error, RetentionAction, RetentionReport, RuleReport};

use super::file;
use crate::context::Context;
use crate::failure::{Failure, Result, tell};
use crate::progress::Bar;
use crate::short_ids::ShortIds;
use crate::signals::Signals;
use crate::table::{Table, minute};
use crate::text::{one_line, plural};
use crate::{style, suggestion};

/// Discard the sessions that meet a rule of a file, or list them
///
/// The action `trash` can be undone by `talktree restore`; `remove` and `erase` cannot. Pinned sessions stay.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree retention run [OPTIONS] <FILE>")]
pub(super) struct Args {
    /// The TOML file with the rules; `-` is standard input.
    file: PathBuf,

    /// Change nothing; list the sessions that would be discarded.
    #[arg(long)]
    dry_run: bool,

    /// Allow rules that all sessions of the store meet.
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct Summary<'a> {
    is_dry_run: bool,
    rules: &'a [RuleReport],
    copies_left: &'a [ErasureCopies],
    is_log_in_use: bool,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Result<()> {
    let mut retention = file::read(&args.file)?;
    if args.all {
        retention = retention.allow_all();
    }
    let signals = Signals::catch()?;
    let store = if args.dry_run { context.reader()? } else { context.writer()? };
    signals.interrupt(&store);
    let bar = Bar::of_steps("looking at sessions");
    let run = store.retention(retention).progress(|at| bar.show(at));
    let mut report = RetentionReport::default();
    let ended = match args.dry_run {
        true => run.dry_run().map(|listed| report = listed),
        false => run.run_into(&mut report),
    };
    drop(bar);
    let ended = ended.map_err(|error| match error {
        Error::Interrupted => signals.check().err().unwrap_or_else(|| error.into()),
        Error::RuleMeetsAll { .. } => Failure::Usage(format!("{error} with --all")),
        error => error.into(),
    });
    // A run that failed says what it discarded until then.
    if ended.is_ok() || !report.sessions.is_empty() {
        print(&report, args.dry_run, context)?;
    }
    if ended.is_err() && !args.dry_run && store.has_unfinished_erasure()? {
        let finish = suggestion::command("erase --finish");
        tell(&format!("an erasure was interrupted; run `{finish}`"));
    }
    ended
}

fn print(report: &RetentionReport, is_dry_run: bool, context: &mut Context) -> Result<()> {
    if context.is_json {
        for session in &report.sessions {
            context.out.json(session)?;
        }
        let RetentionReport { rules, copies_left, is_log_in_use, .. } = report;
        let is_log_in_use = *is_log_in_use;
        let summary = Summary { is_dry_run, rules, copies_left, is_log_in_use };
        return Ok(context.out.json(&summary)?);
    }
    write(report, is_dry_run, context)?;
    for copy in &report.copies_left {
        let copies = plural(copy.messages, "erased message");
        tell(&format!("session {} still has copies of {copies}", copy.session));
    }
    if report.is_log_in_use {
        let finish = suggestion::command("erase --finish");
        tell(&format!(
            "the write-ahead log is in use and still has erased text; run `{finish}` later"
        ));
    }
    if report.sessions.is_empty() {
        tell("no session meets a rule");
    } else if !is_dry_run
        && report.sessions.iter().any(|session| session.action == RetentionAction::Trash)
    {
        tell(&format!("`{}` lists the trash", suggestion::command("trash list")));
    }
    Ok(())
}

/// Writes the sessions, then the sums of the rules.
fn write(report: &RetentionReport, is_dry_run: bool, context: &mut Context) -> Result<()> {
    let short = ShortIds::new(report.sessions.iter().map(|session| session.id.as_str()));
    let mut table = Table::new([
        ("session", style::ID),
        ("messages", style::PLAIN),
        ("last", style::FAINT),
        ("rule", style::LABEL),
        ("name", style::STRONG),
    ]);
    for session in &report.sessions {
        table.push([
            short.of(session.id.as_str()).to_owned(),
            session.messages.to_string(),
            session.last_message_at.map(minute).unwrap_or_default(),
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
        let figures = format!(
            "{} {done}: {}, {}",
            plural(rule.sessions, "session"),
            plural(rule.messages, "message"),
            plural(rule.bytes, "byte")
        );
        context.out.line(&[
            (style::LABEL, &one_line(&rule.rule)),
            (style::PLAIN, "  "),
            (style::PLAIN, &figures),
        ])?;
    }
    Ok(())
}
