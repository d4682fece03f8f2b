//! Imports and exports.

#[path = "../common/mod.rs"]
mod common;
mod export_jsonl;
mod export_markdown;
mod export_owner;
mod import_jsonl;
mod import_jsonl_damage;
mod import_jsonl_whole;
mod import_sessions;
#[path = "../common/tables.rs"]
mod tables;
