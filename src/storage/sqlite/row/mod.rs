//! The rows of sessions, messages and compactions.

#[macro_use]
pub(super) mod message;
#[macro_use]
pub(super) mod session;
