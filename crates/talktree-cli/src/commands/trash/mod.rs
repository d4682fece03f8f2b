//! `talktree trash`: the sessions in the trash.

mod empty;
mod list;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

/// List the sessions in the trash, or remove them for good
///
/// `talktree rm SESSION` puts a session there, `talktree restore SESSION` takes it out.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree trash [OPTIONS] <COMMAND>",
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    List(list::Args),
    Empty(empty::Args),
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    match args.verb {
        Verb::List(args) => list::run(&args, context),
        Verb::Empty(args) => empty::run(&args, context),
    }
}
