//! The SQLite backend: all SQL text is here.
//!
//! A [`Database`] is one file: one connection for writing and several for reading. Every write verb
//! is one IMMEDIATE transaction, every read sees one moment. A [`SqliteSession`] is the doorway to
//! one session of it. Inside, functions take a connection in a transaction and answer with an
//! [`Outcome`](fault::Outcome); the doorway turns a [`Fault`](fault::Fault) into the public error.

mod address;
mod append;
mod backup;
mod catalog;
mod compaction;
mod connection;
mod context;
mod cursor;
mod delete;
mod fault;
mod fork;
mod functions;
mod head;
mod import;
mod index;
mod interrupt;
mod label;
mod log;
mod message;
mod outline;
mod path;
#[cfg(test)]
mod plans;
mod recount;
mod rows;
mod schema;
mod search;
mod session;
mod shape;
mod stamp;
mod stats;
mod survey;
mod transaction;
mod update;
mod verify;
mod visible;

pub(crate) use connection::{Config, Database};
pub(crate) use interrupt::{InterruptSignal, Watch};
pub(crate) use session::SqliteSession;
