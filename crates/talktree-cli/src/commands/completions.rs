//! `talktree completions`: scripts for shells, which ask the command itself for what completes a word.
//!
//! It completes verbs, options and their values, sessions, and the filters of a query.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};
use clap_complete::{ArgValueCompleter, CompletionCandidate, Shell, engine};
use talktree::{SessionFilter, SessionInfo, Store};

use crate::cli::Cli;
use crate::output::Exact;
use crate::prelude::*;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// The variable by which a script asks for the completions of the words after `--`; its value is the shell.
const VARIABLE: &str = "TALKTREE_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

pub(crate) fn run(args: CompletionsArgs, context: &mut Context) -> Result<()> {
    let mut script = Vec::new();
    if let Some(shell) = SHELLS.completer(&args.shell.to_string()) {
        shell.write_registration(VARIABLE, "talktree", "talktree", "talktree", &mut script)?;
    }
    Ok(Exact::new(&mut context.out, false).write_all(&script)?)
}

/// Prints the completions that a script asks for; `None` if none does.
pub(crate) fn completed(arguments: &[OsString]) -> Option<ExitCode> {
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(|| with_completers(Cli::command()))
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(arguments.iter().cloned(), folder.as_deref());
    match asked {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        // The script shows nothing then.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Returns the command with completions for each SESSION and for the query.
fn with_completers(command: clap::Command) -> clap::Command {
    let by = match command.get_name() {
        // What destroys takes whole ids.
        "rm" | "erase" => By::Id,
        _ => By::Name,
    };
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "session" => arg.add(ArgValueCompleter::new(move |start: &OsStr| sessions(start, by))),
        "query" => arg.add(ArgValueCompleter::new(filters)),
        _ => arg,
    });
    command.mut_subcommands(with_completers)
}

/// Bash divides words at colons, and needs a script of its own for the filters of a query.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == self.name()
    }

    fn write_registration(
        &self,
        variable: &str,
        _: &str,
        _: &str,
        _: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let script = include_str!("completions/completions.bash");
        out.write_all(script.replace("VARIABLE", variable).as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let at = words.len() - 1;
        let is_empty = words[at].is_empty();
        let found = engine::complete(command, words, at, folder)?;
        let found: Vec<_> = found.iter().map(|it| it.get_value().to_string_lossy()).collect();
        let is_option = |word: &str| word.starts_with('-');
        // Options are listed if there is nothing else, or one is begun.
        let hides_options = is_empty && !found.iter().all(|word| is_option(word));
        found
            .iter()
            .filter(|word| !(hides_options && is_option(word)))
            .try_for_each(|word| writeln!(out, "{word}"))
    }
}

/// The filters, with the values that need no store.
const FILTERS: &[(&str, &[&str])] = &[
    ("role:", &["user", "assistant", "system", "tool"]),
    ("session:", &[]),
    ("after:", DATES),
    ("before:", DATES),
    ("in:", &["text", "tools", "all"]),
];

const DATES: &[&str] = &["today", "yesterday", "7d", "2w", "3mo", "1y"];

/// Returns the completions of a word of a query.
fn filters(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let Some((name, value)) = word.split_once(':') else {
        let names = FILTERS.iter().map(|(name, _)| *name);
        let fitting = names.filter(|name| !word.is_empty() && name.starts_with(&*word));
        return fitting.map(CompletionCandidate::new).collect();
    };
    if name == "session" {
        let found = sessions(OsStr::new(value), By::ShortId).into_iter();
        // Another id would need quotes.
        let found = found.filter(|it| it.get_value().to_str().is_some_and(|id| quote(id) == id));
        return found.map(|it| it.add_prefix("session:")).collect();
    }
    let of_name = |filter: &&(&str, &[&str])| filter.0.strip_suffix(':') == Some(name);
    let values = FILTERS.iter().find(of_name).map_or(&[][..], |filter| filter.1);
    let fitting = values.iter().filter(|known| known.starts_with(value));
    fitting.map(|known| CompletionCandidate::new(format!("{name}:{known}"))).collect()
}

/// How many sessions are proposed.
const MAX_SESSIONS: usize = 50;
/// How many sessions are looked through: those with the newest messages.
const MAX_READ: usize = 10_000;

/// What is proposed for a session that has a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    ShortId,
    Id,
}

/// Returns the sessions whose id, or a word of whose name, starts with this text; without a readable store none.
fn sessions(start: &OsStr, by: By) -> Vec<CompletionCandidate> {
    let found = store().and_then(|store| fitting(&store, &start.to_string_lossy(), by).ok());
    found.unwrap_or_default()
}

/// Returns the store that the words to complete name, or the default one.
fn store() -> Option<Store> {
    let mut words = std::env::args_os().skip_while(|word| word != "--store");
    let named = words.nth(1).map(PathBuf::from);
    Context::to_read(named).reader().ok()
}

/// Returns whether a word of a name, with what follows it, starts with a text.
fn has_start(name: &str, start: &str) -> bool {
    let is_between = |c: char| !c.is_alphanumeric();
    let words = name.match_indices(is_between).map(|(at, between)| at + between.len());
    std::iter::once(0).chain(words).any(|at| name[at..].starts_with(start))
}

fn fitting(store: &Store, start: &str, by: By) -> Result<Vec<CompletionCandidate>> {
    let all = lookup::listed(store, &SessionFilter::default(), MAX_READ)?;
    let short = ShortIds::of_sessions(store)?;
    let mut names: HashMap<&str, usize> = HashMap::new();
    for name in all.iter().filter_map(|listed| listed.info.name.as_deref()) {
        *names.entry(name).or_default() += 1;
    }
    let lower = start.to_lowercase();
    let candidate = |info: &SessionInfo| {
        let id = info.id.as_str();
        let shown = if by == By::Id { id } else { short.of(id) };
        let name = info.name.as_deref().unwrap_or_default();
        let is_id = !start.is_empty() && (id.starts_with(start) || shown.starts_with(start));
        if !is_id && !has_start(&name.to_lowercase(), &lower) {
            return None;
        }
        let is_name =
            by == By::Name && !is_id && names.get(name) == Some(&1) && one_line(name) == name;
        let (value, help) = if is_name { (name, shown) } else { (shown, name) };
        let help = Some(one_line(help)).filter(|help| !help.is_empty());
        Some(CompletionCandidate::new(value).help(help.map(Into::into)))
    };
    Ok(all.iter().filter_map(|listed| candidate(&listed.info)).take(MAX_SESSIONS).collect())
}
