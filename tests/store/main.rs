//! Stores, sessions and all that is theirs: files, threads, processes, limits, damage.

mod callbacks;
mod catalog;
#[path = "../common/mod.rs"]
mod common;
mod encryption;
mod events;
mod file_names;
mod foreign_rows;
mod foreign_writes;
mod hostile;
mod inbox;
mod manager;
mod open_errors;
mod pair;
mod paths;
mod processes;
mod read_only;
mod retention;
mod schema;
#[cfg(feature = "postgres")]
mod servers;
mod sessions;
mod shared_commits;
#[path = "../common/tables.rs"]
mod tables;
mod threads;
mod usage;
mod verify;
