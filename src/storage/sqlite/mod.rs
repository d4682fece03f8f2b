//! The SQLite backend: all SQL text is here.
//!
//! A [`Database`] is one file with one connection for writing and several for reading. A write verb is all or nothing, in
//! an IMMEDIATE transaction that short writes of other threads may share; a read verb sees one snapshot. A [`SqliteSession`] implements the doorway for one session of it.
//! Functions below the doorway take a connection in a transaction and return a
//! [`BackendResult`]; [`Database`] turns a [`BackendError`](error::BackendError) into the public
//! error.

// First, so that its macros are in scope below.
#[macro_use]
mod row;

mod ancestry;
mod append;
mod backup;
mod catalog;
mod children;
mod commit_group;
mod compaction;
mod connection;
mod context;
mod cursor;
mod delete;
mod embedding;
#[cfg_attr(not(feature = "sqlcipher"), expect(dead_code, reason = "no store has a key"))]
mod encryption;
mod erase;
mod error;
mod file;
mod fork;
mod handle;
mod head;
mod header;
mod import;
mod inbox;
mod index;
mod interrupt;
mod label;
mod mention;
mod message;
mod message_tag;
mod outline;
mod owner_data;
mod path;
mod placed;
mod plan_reader;
#[cfg(test)]
mod query_plans;
mod readers;
mod schema;
mod search;
mod session;
mod snapshot;
mod stats;
mod tokens;
mod transaction;
pub(crate) mod transcript;
mod tree_source;
mod unfinished;
mod update;
mod usage;
mod verify;
mod wal;
mod write;

pub(crate) use connection::{Config, Database};
pub(crate) use context::{Reading, SqliteContext, Texts, Writing};
#[cfg(feature = "sqlcipher")]
pub(crate) use encryption::Encryption;
pub(crate) use error::BackendResult;
pub(crate) use file::is_open;
pub(crate) use interrupt::Watch;
pub(crate) use owner_data::PersonalData;
pub(crate) use session::SqliteSession;
pub(crate) use snapshot::Spool;
