//! `talktree context`: reads and writes stored context blocks.

mod read;
mod scope;
mod versions;
mod write;

use super::verbs;
use crate::prelude::*;

/// Read and write stored context blocks: what a model should know besides the messages
///
/// A text is stored under a LABEL, such as `memory`; a document also has a KEY. --shared means the texts that all
/// sessions share, --owner those that the sessions of an owner share. If a session has a text of its own under the label
/// of a shared one, its own is read. The limits, descriptions and fixed texts of a program are not stored, so they are not
/// shown here.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    verb: Verb,
}

verbs! { Verb:
    List(read::ListArgs) => read::list,
    Show(read::ShowArgs) => read::show,
    Set(write::SetArgs) => write::set,
    Rm(write::RmArgs) => write::rm,
    History(versions::HistoryArgs) => versions::history,
    Restore(write::RestoreArgs) => write::restore,
    Search(read::SearchArgs) => read::search,
    Prompt(read::PromptArgs) => read::prompt,
    Drift(versions::DriftArgs) => versions::drift,
    Export(read::ExportArgs) => read::export,
    Import(write::ImportArgs) => write::import,
}

pub(crate) fn run(args: ContextArgs, context: &mut Context) -> Result<()> {
    args.verb.run(context)
}
