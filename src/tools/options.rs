//! Options: which tools a context offers besides those for its blocks, and how long their answers may be.

use crate::context::ContextBuilder;

impl ContextBuilder {
    /// Offers tools by which a model looks into its own conversation: `history_search`, `history_expand` (what a
    /// summary stands for), `history_branches`.
    pub fn history_tools(mut self) -> Self {
        self.options.tools.has_history = true;
        self
    }

    /// Offers a tool that searches all sessions of the store, `session_search`: only where whoever talks to the model may
    /// read them all.
    pub fn session_search(mut self) -> Self {
        self.options.tools.has_sessions = true;
        self
    }

    /// Cuts the answers of tools to this size, in estimated tokens; 10 000 if it is not called.
    pub fn max_answer_tokens(mut self, tokens: u64) -> Self {
        self.options.tools.max_answer_tokens = Some(tokens);
        self
    }
}
