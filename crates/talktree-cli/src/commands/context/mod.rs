//! `talktree context`: what a model should know beside the conversation.
//!
//! The command knows what is stored, and nothing of the program that uses it: which texts come from
//! elsewhere, what they are limited to, how they are described.

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

/// Read and write what a model should know beside a conversation
///
/// Texts and documents lie under a LABEL, as `memory`; documents under a KEY each. What is kept for
/// all conversations is asked for with --shared; where a label is one of this conversation and of
/// all, the conversation's is read. Only what is stored is known here: not the limits and
/// descriptions that a program gives, nor its fixed texts.
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
