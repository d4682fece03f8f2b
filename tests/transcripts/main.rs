//! Transcripts of the Claude Agent SDK.

#[path = "../common/claude.rs"]
mod claude;
#[path = "../common/mod.rs"]
mod common;
mod contract;
mod model;
mod projection;
mod verbs;
