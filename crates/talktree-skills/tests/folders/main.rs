//! Folders as people keep and edit them.

mod documents;
mod skills;
