//! The conformance suite for a storage of your own.
//!
//! [`conformance()`] tests an implementation of [`SessionProvider`](crate::SessionProvider) against its documented
//! contract. Required methods must work; an optional method is skipped if it returns
//! [`Error::Unsupported`](crate::Error::Unsupported). [`conformance_of_removal()`] is for storages that can remove a
//! session. [`MemorySession`] is a small implementation to start from.
//!
//! [`conformance_of_context()`] tests a [`ContextStore`](crate::ContextStore), and [`conformance_of_catalog()`] a
//! [`SessionCatalog`](crate::SessionCatalog). [`MemoryContext`] and [`MemoryCatalog`] are small implementations of these.
//!
//! ```
//! use std::sync::Arc;
//! use talktree::testing::{MemorySession, conformance};
//!
//! conformance(|id| Arc::new(MemorySession::new(id))); // replace with your own
//! ```

mod conformance;
mod memory;

pub use conformance::{
    conformance, conformance_of_catalog, conformance_of_context, conformance_of_removal,
};
pub use memory::{MemoryCatalog, MemoryContext, MemorySession};
