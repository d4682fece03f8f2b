//! Options: which tools a context offers besides those for its blocks, and how long their answers may be.

use crate::context::ContextBuilder;
use crate::storage::context::BlockScope;

impl ContextBuilder {
    /// Offers the tools with which a model reads its own conversation: `history_search`, `history_expand` (the messages
    /// behind a summary) and `history_branches`.
    pub fn history_tools(mut self) -> Self {
        self.options.tools.has_history = true;
        self
    }

    /// Offers `session_search`, which searches all sessions of the store. Offer it only where whoever talks to the model
    /// may read all of them.
    pub fn session_search(mut self) -> Self {
        self.options.tools.sessions = Some(BlockScope::Shared);
        self
    }

    /// Offers `session_search` over the sessions of this session's owner. In a session without an owner it searches that
    /// session alone.
    pub fn session_search_of_owner(mut self) -> Self {
        self.options.tools.sessions = Some(BlockScope::Owner);
        self
    }

    /// Cuts the answers of tools to this size, in estimated tokens. The default is 10 000.
    pub fn max_answer_tokens(mut self, tokens: u64) -> Self {
        self.options.tools.max_answer_tokens = Some(tokens);
        self
    }
}
