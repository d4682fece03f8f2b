//! The subcommands, one file or folder each.

mod backup;
mod bindings;
mod checkout;
mod compact;
mod completions;
mod context;
mod end;
mod erase;
mod expand;
mod export;
mod fork;
mod import;
mod label;
mod lineage;
mod log;
mod message;
mod new;
mod owners;
mod pin;
mod rename;
mod restore;
mod retention;
mod rm;
mod search;
mod sessions;
mod show;
mod stats;
mod tag;
mod tour;
mod trash;
mod tree;
mod usage;
mod verify;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Result;

pub(crate) use self::search::with_queries;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Import(import::Args),
    New(new::Args),
    Sessions(sessions::Args),
    Log(log::Args),
    Tree(tree::Args),
    Show(show::Args),
    Search(search::Args),
    Checkout(checkout::Args),
    Label(label::Args),
    Compact(compact::Args),
    Expand(expand::Args),
    Context(context::Args),
    Fork(fork::Args),
    Lineage(lineage::Args),
    Rename(rename::Args),
    Tag(tag::Args),
    Pin(pin::Args),
    End(end::Args),
    Rm(rm::Args),
    Erase(erase::Args),
    Restore(restore::Args),
    Trash(trash::Args),
    Owners(owners::Args),
    Bindings(bindings::Args),
    Usage(usage::Args),
    Retention(retention::Args),
    Export(export::Args),
    Stats(stats::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    Tour(tour::Args),
    Completions(completions::Args),
}

pub(crate) fn run(command: Command, context: &mut Context) -> Result<()> {
    match command {
        Command::Import(args) => import::run(args, context),
        Command::New(args) => new::run(args, context),
        Command::Sessions(args) => sessions::run(args, context),
        Command::Log(args) => log::run(args, context),
        Command::Tree(args) => tree::run(args, context),
        Command::Show(args) => show::run(args, context),
        Command::Search(args) => search::run(args, context),
        Command::Checkout(args) => checkout::run(args, context),
        Command::Label(args) => label::run(args, context),
        Command::Compact(args) => compact::run(args, context),
        Command::Expand(args) => expand::run(args, context),
        Command::Context(args) => context::run(args, context),
        Command::Fork(args) => fork::run(args, context),
        Command::Lineage(args) => lineage::run(args, context),
        Command::Rename(args) => rename::run(args, context),
        Command::Tag(args) => tag::run(args, context),
        Command::Pin(args) => pin::run(args, context),
        Command::End(args) => end::run(args, context),
        Command::Rm(args) => rm::run(args, context),
        Command::Erase(args) => erase::run(args, context),
        Command::Restore(args) => restore::run(args, context),
        Command::Trash(args) => trash::run(args, context),
        Command::Owners(args) => owners::run(args, context),
        Command::Bindings(args) => bindings::run(args, context),
        Command::Usage(args) => usage::run(args, context),
        Command::Retention(args) => retention::run(args, context),
        Command::Export(args) => export::run(args, context),
        Command::Stats(args) => stats::run(args, context),
        Command::Verify(args) => verify::run(args, context),
        Command::Backup(args) => backup::run(args, context),
        Command::Tour(args) => tour::run(args, context),
        Command::Completions(args) => completions::run(args, context),
    }
}
