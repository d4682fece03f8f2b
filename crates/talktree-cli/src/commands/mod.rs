//! The subcommands.

mod branches;
#[cfg(feature = "browse")]
mod browse;
mod care;
mod catalog;
mod compact;
mod completions;
mod context;
mod details;
mod erase;
mod export;
mod import;
mod mcp;
mod messages;
mod resume;
mod retention;
mod rm;
mod search;
#[cfg(feature = "web")]
pub(crate) mod serve;
mod sessions;
mod tour;
mod watch;

pub(crate) use self::completions::completed;
pub(crate) use self::search::with_queries;

/// Declares subcommands, each with its arguments, the function that runs it, and the feature that it needs.
macro_rules! verbs {
    ($(#[$meta:meta])* $verbs:ident: $($(#[$of:meta])* $name:ident($args:ty) => $run:path $(where $feature:literal)?,)*) => {
        $(#[$meta])*
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum $verbs {
            $($(#[cfg(feature = $feature)])? $(#[$of])* $name($args),)*
        }

        impl $verbs {
            pub(crate) fn run(self, context: &mut crate::context::Context) -> crate::failure::Result<()> {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$name(args) => $run(args, context),)*
                }
            }
        }
    };
}
use verbs;

verbs! { Command:
    Import(import::ImportArgs) => import::run,
    Watch(watch::WatchArgs) => watch::run,
    New(details::NewArgs) => details::new,
    Sessions(sessions::SessionsArgs) => sessions::sessions,
    Log(messages::LogArgs) => messages::log,
    Last(messages::LastArgs) => messages::last,
    Tree(branches::TreeArgs) => branches::tree,
    Show(messages::ShowArgs) => messages::show,
    Search(search::SearchArgs) => search::run,
    Browse(browse::BrowseArgs) => browse::run where "browse",
    Checkout(branches::CheckoutArgs) => branches::checkout,
    Label(branches::LabelArgs) => branches::label,
    Compact(compact::CompactArgs) => compact::run,
    Expand(messages::ExpandArgs) => messages::expand,
    Context(context::ContextArgs) => context::run,
    Fork(branches::ForkArgs) => branches::fork,
    Lineage(branches::LineageArgs) => branches::lineage,
    Rename(details::RenameArgs) => details::rename,
    Tag(details::TagArgs) => details::tag,
    Pin(details::PinArgs) => details::pin,
    End(details::EndArgs) => details::end,
    Rm(rm::RmArgs) => rm::run,
    Erase(erase::EraseArgs) => erase::run,
    Restore(details::RestoreArgs) => details::restore,
    Trash(sessions::TrashArgs) => sessions::trash,
    Owners(catalog::OwnersArgs) => catalog::owners,
    Bindings(catalog::BindingsArgs) => catalog::bindings,
    Usage(catalog::UsageArgs) => catalog::usage,
    Retention(retention::RetentionArgs) => retention::run,
    Export(export::ExportArgs) => export::run,
    #[command(name = "resume-command")]
    Resume(resume::ResumeArgs) => resume::run,
    Serve(serve::ServeArgs) => serve::run where "web",
    Mcp(mcp::McpArgs) => mcp::run,
    Stats(care::StatsArgs) => care::stats,
    Verify(care::VerifyArgs) => care::verify,
    Backup(care::BackupArgs) => care::backup,
    Copy(care::CopyArgs) => care::copy,
    Tour(tour::TourArgs) => tour::run,
    Completions(completions::CompletionsArgs) => completions::run,
}
