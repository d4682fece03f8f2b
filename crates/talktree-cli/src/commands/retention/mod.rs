//! `talktree retention`: discards sessions by rules.

mod file;
mod run;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

/// Discard sessions by the rules of a TOML file
///
/// Nothing is discarded unless `talktree retention run` is called. docs/command.md describes the file.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree retention [OPTIONS] <COMMAND>",
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Args),
    Show(show::Args),
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    match args.verb {
        Verb::Run(args) => run::run(&args, context),
        Verb::Show(args) => show::run(&args, context),
    }
}
