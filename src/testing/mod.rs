//! The conformance suite for a storage of your own.
//!
//! [`conformance()`] tests an implementation of [`SessionProvider`](crate::SessionProvider) against its documented
//! contract. Required methods must work; an optional method is skipped if it returns
//! [`Error::Unsupported`](crate::Error::Unsupported). [`conformance_of_removal()`] is for storages that can remove a
//! session. [`MemorySession`] is a small implementation to start from.
//!
//! ```
//! use std::sync::Arc;
//! use talktree::testing::{MemorySession, conformance};
//!
//! conformance(|id| Arc::new(MemorySession::new(id))); // replace with your own
//! ```

mod conformance;
mod memory;

pub use conformance::{conformance, conformance_of_removal};
pub use memory::MemorySession;
