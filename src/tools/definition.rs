//! Definitions: name, description and input of each tool.

use serde_json::Value;

use super::schema;
use crate::context::{BlockInfo, ToolOptions};

pub(crate) const SET_CONTEXT: &str = "set_context";
pub(crate) const LOAD_CONTEXT: &str = "load_context";
pub(crate) const UNLOAD_CONTEXT: &str = "unload_context";
pub(crate) const SEARCH_CONTEXT: &str = "search_context";
pub(crate) const SESSION_SEARCH: &str = "session_search";
pub(crate) const HISTORY_SEARCH: &str = "history_search";
pub(crate) const HISTORY_EXPAND: &str = "history_expand";
pub(crate) const HISTORY_BRANCHES: &str = "history_branches";

/// The field for title, description and key; not offered if no block of documents can be written.
pub(super) const METADATA: &str = "metadata";

/// A tool, in no provider's form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name that a model calls it by: letters, digits and `_`.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// What it does, for the model; at most 1 024 characters.
    pub description: &'static str,
    /// The JSON schema of its input.
    pub input: Value,
    /// Whether it changes nothing.
    pub is_readonly: bool,
    /// Whether it may overwrite something.
    pub is_destructive: bool,
}

/// What must be there for a tool to be offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Writable,
    Skill,
    Searchable,
    Sessions,
    History,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
    Overwrites,
}

/// What a field takes.
#[derive(Debug)]
pub(super) enum Kind {
    Text,
    /// The label of a block that the tool works on.
    Label,
    OneOf(&'static [&'static str]),
    Object(&'static [Field]),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
    pub(super) description: &'static str,
}

const fn required(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field { name, kind, is_required: true, description }
}

const fn optional(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field { name, kind, is_required: false, description }
}

/// A tool as it is defined here. Its schema depends on the blocks.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    need: Need,
    effect: Effect,
    fields: &'static [Field],
}

const MESSAGE_QUERY: &str = "What to find: words, \"exact words\", -word to exclude a word; \
                             role:user, after:2026-01-31 and before:2026-02-28 narrow it.";

pub(super) const SPECS: &[Spec] = &[
    Spec {
        name: SET_CONTEXT,
        title: "Write to the context",
        description: "Writes to a context block, so that you still know later what you write now. \
                      The headings of the system prompt name the blocks and say how full they are. \
                      A block of one text is replaced or, with action \"append\", extended. A block \
                      that is [loadable] or [searchable] holds documents: give the document's \
                      title in metadata; the same title writes the same document again. Answers \
                      with how full the block is now. The write takes effect at once, though the \
                      system prompt may still show the old text for a while.",
        need: Need::Writable,
        effect: Effect::Overwrites,
        fields: &[
            required("label", Kind::Label, "The block, by its label."),
            required("content", Kind::Text, "The text to write."),
            optional(
                "action",
                Kind::OneOf(&["replace", "append"]),
                "Whether the text replaces the current one (replace, the default) or is added to it \
                 on a new line (append).",
            ),
            optional(
                METADATA,
                Kind::Object(&[
                    optional("title", Kind::Text, "The title of the document."),
                    optional("description", Kind::Text, "What the document is about, in one line."),
                    optional(
                        "key",
                        Kind::Text,
                        "The key of an existing document, to write that one; left out, it is made \
                         from the title.",
                    ),
                ]),
                "Only for a document, in a block that is [loadable] or [searchable].",
            ),
        ],
    },
    Spec {
        name: LOAD_CONTEXT,
        title: "Load a document",
        description: "Gives the full text of a document that a [loadable] block of the system \
                      prompt lists with its key. Load it before you do what it describes; unload \
                      it when you no longer need it.",
        need: Need::Skill,
        effect: Effect::Reads,
        fields: &[
            required("label", Kind::Label, "The block that lists the document, by its label."),
            required("key", Kind::Text, "The document's key, as it is listed."),
        ],
    },
    Spec {
        name: UNLOAD_CONTEXT,
        title: "Unload a document",
        description: "Removes the text of a document that you have loaded from the conversation, \
                      to make room. The document itself stays and can be loaded again.",
        need: Need::Skill,
        effect: Effect::Changes,
        fields: &[
            required("label", Kind::Label, "The block that lists the document, by its label."),
            required("key", Kind::Text, "The key it was loaded by."),
        ],
    },
    Spec {
        name: SEARCH_CONTEXT,
        title: "Search the context",
        description: "Searches a [searchable] block of the system prompt. Gives at most 10 hits, \
                      best first, or says that there are none.",
        need: Need::Searchable,
        effect: Effect::Reads,
        fields: &[
            required("label", Kind::Label, "The block to search, by its label."),
            required("query", Kind::Text, "What to find: a few words."),
        ],
    },
    Spec {
        name: SESSION_SEARCH,
        title: "Search all conversations",
        description: "Searches the messages of all conversations, including earlier ones. Gives at \
                      most 10 hits, best first, each with its conversation, time and a piece of \
                      its text, or says that there are none.",
        need: Need::Sessions,
        effect: Effect::Reads,
        fields: &[required("query", Kind::Text, MESSAGE_QUERY)],
    },
    Spec {
        name: HISTORY_SEARCH,
        title: "Search this conversation",
        description: "Searches everything that was said in this conversation, including messages \
                      that a summary replaces now. Gives at most 10 hits, best first, each with \
                      its message id and a piece of its text, or says that there are none.",
        need: Need::History,
        effect: Effect::Reads,
        fields: &[
            required("query", Kind::Text, MESSAGE_QUERY),
            optional(
                "branches",
                Kind::OneOf(&["all", "current"]),
                "Whether to search all branches of the conversation (all, the default) or only the \
                 one that led here (current).",
            ),
        ],
    },
    Spec {
        name: HISTORY_EXPAND,
        title: "Show the messages behind a summary",
        description: "Gives the messages that a summary in this conversation replaces, word for \
                      word, oldest first. Use it when the summary leaves out what you need to \
                      know. If they are too long for one answer, call it again with the id of the \
                      last message you have seen.",
        need: Need::History,
        effect: Effect::Reads,
        fields: &[
            required("id", Kind::Text, "The id of the summary."),
            optional("after", Kind::Text, "The id of a message, to continue after it."),
        ],
    },
    Spec {
        name: HISTORY_BRANCHES,
        title: "List the branches",
        description: "Lists the places where this conversation branches, for example where an \
                      answer was regenerated or a question was edited: for each place the messages \
                      that follow it, and which of them leads here.",
        need: Need::History,
        effect: Effect::Reads,
        fields: &[optional(
            "id",
            Kind::Text,
            "The id of a message, to list only what follows it; left out, all places are listed.",
        )],
    },
];

impl Need {
    pub(super) fn is_met_by(self, block: &BlockInfo) -> bool {
        match self {
            Self::Writable => block.is_writable,
            Self::Skill => block.is_skill,
            Self::Searchable => block.is_searchable,
            Self::Sessions | Self::History => false,
        }
    }

    /// Returns what the tool does with a block, as a participle; `None` if the tool is not for blocks.
    pub(super) fn participle(self) -> Option<&'static str> {
        match self {
            Self::Writable => Some("written"),
            Self::Skill => Some("loaded from"),
            Self::Searchable => Some("searched"),
            Self::Sessions | Self::History => None,
        }
    }
}

impl Spec {
    pub(super) fn need(&self) -> Need {
        self.need
    }

    pub(super) fn labels<'a>(&self, blocks: &'a [BlockInfo]) -> Vec<&'a str> {
        let fitting = blocks.iter().filter(|block| self.need.is_met_by(block));
        fitting.map(|block| block.label.as_str()).collect()
    }

    pub(super) fn schema(&self, blocks: &[BlockInfo]) -> Value {
        let has_documents = blocks.iter().any(|block| block.is_writable && block.is_keyed());
        let fields = self.fields.iter().filter(|field| field.name != METADATA || has_documents);
        schema::object(fields, &self.labels(blocks))
    }

    /// Returns whether the options allow the tool; tools for blocks need no option.
    pub(super) fn is_open(&self, options: ToolOptions) -> bool {
        match self.need {
            Need::Sessions => options.sessions.is_some(),
            Need::History => options.has_history,
            _ => true,
        }
    }

    fn is_offered(&self, blocks: &[BlockInfo], options: ToolOptions) -> bool {
        let is_for_blocks = self.need.participle().is_some();
        let is_met = || blocks.iter().any(|block| self.need.is_met_by(block));
        self.is_open(options) && (!is_for_blocks || is_met())
    }

    fn definition(&self, blocks: &[BlockInfo]) -> ToolDefinition {
        ToolDefinition {
            name: self.name,
            title: self.title,
            description: self.description,
            input: self.schema(blocks),
            is_readonly: self.effect == Effect::Reads,
            is_destructive: self.effect == Effect::Overwrites,
        }
    }
}

/// Returns the tools that can do something with these blocks and options, in a fixed order.
pub(super) fn definitions(blocks: &[BlockInfo], options: ToolOptions) -> Vec<ToolDefinition> {
    let offered = SPECS.iter().filter(|spec| spec.is_offered(blocks, options));
    offered.map(|spec| spec.definition(blocks)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::context::Block;
    use crate::storage::context::BlockScope;

    fn names(blocks: &[BlockInfo], options: ToolOptions) -> Vec<&'static str> {
        definitions(blocks, options).iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn only_tools_that_something_needs_are_offered() {
        let info = |block: Block| [block.info("label", String::new())];
        let none = ToolOptions::default();
        assert_eq!(names(&[], none), [""; 0]);
        assert_eq!(names(&info(Block::text("x")), none), [""; 0]);
        assert_eq!(names(&info(Block::stored()), none), ["set_context"]);
        let skills = ["set_context", "load_context", "unload_context"];
        assert_eq!(names(&info(Block::stored_skills()), none), skills);
        assert_eq!(names(&info(Block::knowledge()), none), ["set_context", "search_context"]);
        assert_eq!(names(&info(Block::history()), none), ["search_context"]);
        assert_eq!(
            names(&[], ToolOptions { sessions: Some(BlockScope::Shared), ..none }),
            ["session_search"]
        );
        let history = ["history_search", "history_expand", "history_branches"];
        assert_eq!(names(&[], ToolOptions { has_history: true, ..none }), history);
        assert_eq!(names(&fixture::blocks(), fixture::ALL).len(), SPECS.len());
    }

    #[test]
    fn a_schema_lists_the_labels_that_fit() {
        let labels = |name: &str| {
            let tools = definitions(&fixture::blocks(), fixture::ALL);
            let tool = tools.into_iter().find(|tool| tool.name == name)?;
            Some(tool.input["properties"]["label"]["enum"].clone())
        };
        let writable = serde_json::json!(["memory", "house rules", "skills", "knowledge"]);
        assert_eq!(labels("set_context"), Some(writable));
        assert_eq!(labels("load_context"), Some(serde_json::json!(["skills"])));
        assert_eq!(labels("unload_context"), Some(serde_json::json!(["skills"])));
        assert_eq!(labels("search_context"), Some(serde_json::json!(["knowledge", "history"])));
        assert_eq!(labels("session_search"), Some(Value::Null));
    }

    #[test]
    fn metadata_is_asked_for_only_where_documents_can_be_written() {
        let fields = |block: Block| {
            let tools = definitions(&[block.info("label", String::new())], ToolOptions::default());
            let fields = tools.first()?.input["properties"].as_object()?.clone();
            Some(fields.contains_key(METADATA))
        };
        assert_eq!(fields(Block::stored()), Some(false));
        assert_eq!(fields(Block::knowledge()), Some(true));
    }

    #[test]
    fn names_and_descriptions_are_such_as_every_provider_takes() {
        for tool in definitions(&fixture::blocks(), fixture::ALL) {
            let ToolDefinition { name, description, .. } = tool;
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            assert!((1..=64).contains(&name.len()), "{name}");
            // Older models of OpenAI, and servers that imitate them, refuse longer ones.
            assert!(description.chars().count() <= 1024, "{name}");
            assert!(!description.contains(['\n', '\t']) && !description.contains("  "), "{name}");
            assert!(!(tool.is_readonly && tool.is_destructive), "{name}");
        }
    }
}
