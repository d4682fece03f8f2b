//! A session in memory, small and slow, to start a storage of your own from: a list of messages, each with the index of its
//! parent.

mod session;
mod tree;

pub use session::MemorySession;
