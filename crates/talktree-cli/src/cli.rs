//! The command line: global options and the list of commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::commands::Command;

/// Import, browse, branch, compact and search conversations that are stored as trees.
///
/// Name a SESSION by its id, the start or the end of its id, its name or a part of it, `-` for the one with the newest message,
/// or `@1` for the first one of the list that was printed last. Name a MESSAGE by its id, the start or the end of its id, a
/// label, or `head`.
#[derive(Debug, Parser)]
#[command(name = "talktree", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(override_usage = "talktree [OPTIONS] <COMMAND>", subcommand_required = true)]
pub(crate) struct Cli {
    /// The store: a file, or a URL of PostgreSQL's [env: TALKTREE_STORE] [default: talktree/talktree.db in your data folder].
    // The parser does not read the variable: it would refuse an empty one, which is none.
    #[arg(long, value_name = "STORE", global = true, help_heading = GLOBAL_OPTIONS)]
    pub(crate) store: Option<PathBuf>,

    /// Print JSON, one object per line.
    #[arg(long, global = true, help_heading = GLOBAL_OPTIONS)]
    pub(crate) json: bool,

    /// When to use colour; `auto`: on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = GLOBAL_OPTIONS
    )]
    pub(crate) color: ColorChoice,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the arguments of the process. Help and errors have the colour that `--color` asks for.
    pub(crate) fn parse_coloured(
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let mut command = Self::command().color(colour(&arguments));
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// Returns the value of `--color`, also if another argument is wrong.
fn colour(arguments: &[OsString]) -> ColorChoice {
    let mut arguments = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = arguments.next() {
        let value = match argument.to_str().and_then(|text| text.strip_prefix("--color")) {
            Some("") => arguments.next().and_then(|value| value.to_str()),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        if let Some(colour) = value.and_then(|value| ColorChoice::from_str(value, false).ok()) {
            return colour;
        }
    }
    ColorChoice::Auto
}

const GLOBAL_OPTIONS: &str = "Global options";

const EXIT_CODES: &str = "\
Exit codes:
  0    the command succeeded
  1    nothing was found: no match, or no session, message, label, compaction, owner or key of that name
  2    wrong usage, or a request that can never succeed
  3    the store is missing, full, busy or read-only, or it failed
  4    the store is damaged
  5    an input file cannot be read or imported
  6    the output cannot be written
  7    no summary was made, or the messages to compact changed
  130  stopped by Ctrl-C
  143  stopped by SIGTERM";
