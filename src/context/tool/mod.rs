//! Tools: how a model itself writes, loads and searches its context.
//!
//! A [`definition`] says what a tool is called, what it does and what it takes; all else is made
//! from it: the [`schema`] of its input, what each provider is told ([`wire`]) and what a [`call`]
//! is checked against. An [`answer`] is text, also where something went wrong: a model can mend its
//! call, its host cannot.
//!
//! Invariant: a call refuses what its schema refuses, and beyond that only what no schema of these
//! few keywords can say: a blank key, the metadata of a document for a block that has none.

pub(crate) mod answer;
pub(crate) mod call;
mod definition;
mod nearest;
mod schema;
mod wire;

use serde_json::Value;

pub use definition::ToolDefinition;
pub(crate) use definition::{LOAD_CONTEXT, Reach, UNLOAD_CONTEXT};

use super::block::BlockInfo;

/// The tools that a session offers to its model.
///
/// Only those that something is there for: without a block to write, no `set_context`. Each
/// provider has its own form for them, to be passed as the `tools` of a request:
///
/// ```json
/// [{
///   "name": "load_context",
///   "description": "Gives the full text of a document ..",
///   "input_schema": {
///     "type": "object",
///     "properties": {
///       "label": {"type": "string", "enum": ["skills"], "description": ".."},
///       "key": {"type": "string", "description": ".."}
///     },
///     "required": ["label", "key"],
///     "additionalProperties": false
///   }
/// }]
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use]
pub struct Tools {
    definitions: Vec<ToolDefinition>,
}

impl Tools {
    /// Returns the tools for these blocks and what else there is to look up.
    pub(crate) fn of(blocks: &[BlockInfo], reach: Reach) -> Self {
        Self { definitions: definition::definitions(blocks, reach) }
    }

    /// Returns what the tools are, for a provider whose form is not among those here.
    #[must_use]
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the list that Anthropic's Messages API takes as `tools`.
    #[must_use]
    pub fn anthropic(&self) -> Value {
        self.rendered(wire::anthropic)
    }

    /// Returns the list that OpenAI's Chat Completions API takes as `tools`.
    ///
    /// In strict mode, wherever its limits allow it: a field that may be left out is `null` there.
    #[must_use]
    pub fn openai_chat(&self) -> Value {
        self.rendered(wire::openai_chat)
    }

    /// Returns the list that OpenAI's Responses API takes as `tools`, in strict mode as in
    /// [`openai_chat`](Self::openai_chat).
    #[must_use]
    pub fn openai_responses(&self) -> Value {
        self.rendered(wire::openai_responses)
    }

    /// Returns the list that a server of the Model Context Protocol answers `tools/list` with.
    #[must_use]
    pub fn mcp(&self) -> Value {
        self.rendered(wire::mcp)
    }

    fn rendered(&self, render: impl Fn(&ToolDefinition) -> Value) -> Value {
        self.definitions.iter().map(render).collect()
    }
}

#[cfg(test)]
pub(super) mod fixture {
    use super::super::block::Block;
    use super::{BlockInfo, Reach, Tools};

    /// One block of each kind.
    pub(crate) fn blocks() -> Vec<BlockInfo> {
        let info = |block: Block, label| block.info(label, "text".to_owned());
        vec![
            info(Block::text("You are helpful."), "soul"),
            info(Block::stored(), "memory"),
            info(Block::shared(), "house rules"),
            info(Block::stored_skills(), "skills"),
            info(Block::knowledge(), "knowledge"),
            info(Block::history(), "history"),
        ]
    }

    pub(crate) const ALL: Reach = Reach { has_sessions: true, has_history: true };

    pub(crate) fn tools() -> Tools {
        Tools::of(&blocks(), ALL)
    }
}
