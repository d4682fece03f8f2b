//! Imports of the formats of other programs.

mod agents;
mod agents_of_others;
mod batches;
mod cases;
#[path = "../../../../tests/common/claude.rs"]
mod claude;
mod claude_logs;
mod common;
mod copying;
mod damaged_headers;
#[path = "../../../../tests/common/data.rs"]
mod data;
mod databases;
mod deep;
mod details;
mod each;
mod exports;
mod growing;
mod grown_sources;
mod hostile;
mod imported_again;
mod other_programs;
mod own_file;
mod pi_edits;
mod provider_views;
#[path = "../../../../tests/common/random.rs"]
mod random;
mod real;
mod records_of_others;
mod rewritten;
mod spoken_and_older;
#[path = "../../../../tests/common/tables.rs"]
mod tables;
mod unread_times;
mod unsupported_formats;
mod unusual_content;
mod usage;
