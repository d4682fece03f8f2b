//! The conformance suite for a storage of your own.
//!
//! [`conformance()`] runs the written contract of [`SessionProvider`](crate::SessionProvider) against
//! whatever a function makes. The required verbs are held strictly; of the others one that answers
//! [`Error::Unsupported`](crate::Error::Unsupported) is passed over. [`MemorySession`] is the
//! smallest provider that keeps the contract: a place to begin your own.
//!
//! ```
//! use std::sync::Arc;
//! use talktree::testing::{MemorySession, conformance};
//!
//! conformance(|id| Arc::new(MemorySession::new(id))); // in a test of your own, with your own
//! ```

mod conformance;
mod memory;

pub use conformance::conformance;
pub use memory::MemorySession;
