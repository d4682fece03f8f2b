//! `talktree context`: what a model should know beside the conversation.
//!
//! The command sees only stored texts. The other texts of a program, and its limits and descriptions, are not stored.

mod diff;
mod drift;
mod history;
mod list;
mod page;
mod prompt;
mod restore;
mod rm;
mod scope;
mod search;
mod set;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

/// Read and write stored context blocks: what a model should know besides the messages
///
/// A text is stored under a LABEL, such as `memory`; a document also has a KEY. --shared means the texts that all
/// sessions share, --owner those that the sessions of an owner share. If a session has a text of its own under the label
/// of a shared one, its own is read. The limits, descriptions and fixed texts of a program are not stored, so they are not
/// shown here.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "talktree context [OPTIONS] <COMMAND>",
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
    Show(show::Args),
    Set(set::Args),
    Rm(rm::Args),
    History(history::Args),
    Restore(restore::Args),
    Search(search::Args),
    Prompt(prompt::Args),
    Drift(drift::Args),
    Export(page::ExportArgs),
    Import(page::ImportArgs),
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    match args.verb {
        Verb::List(args) => list::run(&args, context),
        Verb::Show(args) => show::run(&args, context),
        Verb::Set(args) => set::run(args, context),
        Verb::Rm(args) => rm::run(&args, context),
        Verb::History(args) => history::run(&args, context),
        Verb::Restore(args) => restore::run(&args, context),
        Verb::Search(args) => search::run(&args, context),
        Verb::Prompt(args) => prompt::run(&args, context),
        Verb::Drift(args) => drift::run(&args, context),
        Verb::Export(args) => page::export(&args, context),
        Verb::Import(args) => page::import(&args, context),
    }
}
