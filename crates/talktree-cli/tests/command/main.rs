//! The command.

#[cfg(all(feature = "browse", target_os = "linux"))]
mod browse;
mod catalog;
mod common;
mod compact;
mod context;
mod context_pages;
mod context_versions;
mod documents;
mod endless;
mod exit_codes;
mod foreign_rows;
mod hints;
mod import;
mod json;
mod live;
mod mcp;
mod output_files;
mod page;
mod search;
mod servers;
mod terminal;
mod tour;
mod verbs;
