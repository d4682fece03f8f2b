//! Messages and their trees: what is stored, branches, heads, labels, reads.

#[path = "../common/mod.rs"]
mod common;
mod forks;
mod json;
mod labels;
mod model;
mod outline;
mod pages;
mod pair;
mod recent;
mod retry_edit;
mod rules;
mod summary_ids;
mod tombstones;
