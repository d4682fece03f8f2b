//! What compacts in these works: a summarizer that needs no model, and a counter of another name.

use talktree::{BoxError, CompactionOptions, Session, Store, Summary, TokenCounter};

/// Returns a summary of whatever is asked; the same one for prompts of the same length.
///
/// # Errors
/// None; a summarizer may have some.
pub(crate) fn brief(prompt: &str) -> Result<Summary, BoxError> {
    Ok(Summary::new(format!("In brief: {} bytes.", prompt.len())).by("brief"))
}

/// Returns what is compacted: all but a few messages.
pub(crate) fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(100)
}

/// Counts words.
#[derive(Debug)]
pub(crate) struct Words;

impl TokenCounter for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn count_text(&self, text: &str) -> f64 {
        text.split_whitespace().count() as f64
    }
}

/// Returns a session that compacts when it is told to.
pub(crate) fn compaction(store: &Store, id: &str) -> talktree::Result<Session> {
    store.session_builder(id).summarizer(brief).compaction_options(options()).open()
}

/// Returns a session whose tokens are counted by words.
pub(crate) fn by_words(store: &Store, id: &str) -> talktree::Result<Session> {
    store.session_builder(id).token_counter(Words).compaction_options(options()).open()
}
