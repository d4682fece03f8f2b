//! A storage in memory: sessions, contexts and a catalog, small and slow, to start a storage of your own from.
//!
//! A *session* is a list of messages, each with the index of its parent. The *state* holds all sessions of a catalog, the
//! texts of their contexts and the bindings, under one lock: so each verb is atomic. A *handle* is bound to the first
//! session that it finds under its id.

mod catalog;
mod context;
mod handle;
mod session;
mod state;
mod stored;
mod tree;
mod usage;

pub use catalog::MemoryCatalog;
pub use context::MemoryContext;
pub use session::MemorySession;
