//! Transcripts of the Claude Agent SDK.

#[path = "../../../../tests/common/claude.rs"]
mod claude;
#[path = "../../../../tests/common/mod.rs"]
mod common;
mod contract;
mod model;
mod projection;
#[path = "../../../../tests/common/tables.rs"]
mod tables;
mod verbs;
