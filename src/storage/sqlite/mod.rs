//! The SQLite backend: all SQL text is here.
//!
//! A [`Database`] is one file with one connection for writing and several for reading. A write verb is all or nothing, in
//! an IMMEDIATE transaction that short writes of other threads may share; a read verb sees one snapshot. A [`SqliteSession`] is one session of it.
//! Functions below these verbs take a connection in a transaction and return a [`BackendResult`](crate::sql::BackendResult);
//! [`Database`] turns a [`BackendError`](crate::sql::BackendError) into the public error.

// First, so that its macros are in scope below.
#[macro_use]
mod row;

// `index` names the errors of the seam by this.
use crate::sql::error;

pub(crate) mod append;
mod backup;
pub(crate) mod catalog;
pub(crate) mod children;
mod commit_group;
pub(crate) mod compaction;
mod connection;
mod context;
mod cursor;
pub(crate) mod delete;
mod embedding;
#[cfg_attr(not(feature = "sqlcipher"), expect(dead_code, reason = "no store has a key"))]
mod encryption;
mod erase;
mod file;
pub(crate) mod fork;
pub(crate) mod head;
mod header;
pub(crate) mod import;
mod inbox;
mod index;
mod interrupt;
mod kept;
pub(crate) mod message;
mod owner_data;
pub(crate) mod path;
pub(crate) mod placed;
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
pub(crate) mod usage;
mod verify;
mod wal;
mod write;

pub(crate) use connection::{Config, Database};
pub(crate) use context::{Reading, SqliteContext, Texts, Writing};
pub(crate) use cursor::Cursor;
#[cfg(feature = "sqlcipher")]
pub(crate) use encryption::Encryption;
pub(crate) use file::is_open;
pub(crate) use interrupt::Watch;
pub(crate) use owner_data::PersonalData;
pub(crate) use plan_reader::{Place, PlanReader};
pub(crate) use session::SqliteSession;
pub(crate) use snapshot::Spool;
