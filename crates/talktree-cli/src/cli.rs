//! The command line: what stands before the subcommand.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::commands::Command;

/// Conversations as trees: import, browse, branch, compact and search them.
///
/// A SESSION is named by its id, the beginning or the end of an id, or its exact name. A MESSAGE is
/// named by its id, the beginning or the end of an id, a label, or `head`.
#[derive(Debug, Parser)]
#[command(name = "talktree", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(
    override_usage = "talktree [OPTIONS] <COMMAND>",
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// The store; talktree/talktree.db in your data folder if it is not given.
    #[arg(
        long,
        value_name = "FILE",
        env = "TALKTREE_STORE",
        hide_env_values = true,
        global = true
    )]
    pub(crate) store: Option<PathBuf>,

    /// Answer with JSON, one object a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Whether to colour: `auto` does on a terminal, unless NO_COLOR is set.
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) color: Colour,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, or found; 1 nothing found; 2 wrong usage, or what can never be done \
as asked; 3 the store is not there, is full or failed; 4 the store is damaged, whichever command finds it; 5 a file cannot be imported or read; 6 the output cannot be written; 7 no summary came, or what it is of changed meanwhile; 130 stopped by Ctrl-C";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

impl From<Colour> for anstream::ColorChoice {
    fn from(colour: Colour) -> Self {
        match colour {
            Colour::Auto => Self::Auto,
            Colour::Always => Self::Always,
            Colour::Never => Self::Never,
        }
    }
}
