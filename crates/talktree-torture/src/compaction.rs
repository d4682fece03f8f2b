//! Sessions that compact: a summarizer that needs no model, and a second token counter.

use talktree::{BoxError, CompactionOptions, Session, Store, Summary, TokenCounter};

/// Returns a summary that depends only on the length of the prompt.
///
/// # Errors
/// None; the signature is that of a summarizer.
pub(crate) fn brief(prompt: &str) -> Result<Summary, BoxError> {
    Ok(Summary::new(format!("In brief: {} bytes.", prompt.len())).by("brief"))
}

/// Returns options that compact all but a few messages.
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

/// Returns a session with a summarizer; it compacts only when `compact` is called.
pub(crate) fn compaction(store: &Store, id: &str) -> talktree::Result<Session> {
    store.session_builder(id).summarizer(brief).compaction_options(options()).open()
}

/// Returns a session whose tokens are counted in words.
pub(crate) fn by_words(store: &Store, id: &str) -> talktree::Result<Session> {
    store.session_builder(id).token_counter(Words).compaction_options(options()).open()
}
