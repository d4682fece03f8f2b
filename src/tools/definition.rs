//! Definitions: name, description and input of each tool, and its form for each provider.
//!
//! The schemas of inputs use the few keywords that every provider knows, also in strict mode: `type`, `properties`,
//! `required`, `additionalProperties`, `enum`, `description`. What these cannot express (no blank key) is checked by the call.
//!
//! - Anthropic (Messages API): `name` of at most 64 letters, digits, `_` and `-`, `description`, `input_schema`.
//! - OpenAI: in strict mode every field is required and every object is closed; an optional field takes null instead.
//!   The default of `strict` differs by API, so it is always set.
//! - MCP: `inputSchema`, and hints about what a call does.

use serde_json::{Map, Value, json};

use crate::context::{BlockInfo, ToolOptions};
pub(crate) use crate::search::indexed_text::{
    HISTORY_EXPAND, HISTORY_SEARCH, SEARCH_CONTEXT, SESSION_SEARCH,
};

pub(crate) const SET_CONTEXT: &str = "set_context";
pub(crate) const LOAD_CONTEXT: &str = "load_context";
pub(crate) const UNLOAD_CONTEXT: &str = "unload_context";
pub(crate) const HISTORY_BRANCHES: &str = "history_branches";

/// The most values of all enums of a strict schema together.
const MAX_STRICT_VALUES: usize = 1000;

/// The most values of one enum, unless they are short.
const MAX_LONG_VALUES: usize = 250;

/// The most characters of the values of an enum with more values than that.
const MAX_VALUE_CHARS: usize = 15_000;

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
#[derive(Debug, Clone, Copy)]
pub(super) enum Need {
    /// A block that can be this: a participle, and the check.
    Block(&'static str, fn(&BlockInfo) -> bool),
    Sessions,
    History,
}

const WRITABLE: Need = Need::Block("written", |block| block.is_writable);
const SKILL: Need = Need::Block("loaded from", |block| block.is_skill);
const SEARCHABLE: Need = Need::Block("searched", |block| block.is_searchable);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Changes,
    Overwrites,
}

/// What a field takes.
#[derive(Debug)]
pub(super) enum Kind {
    /// Text that may be blank.
    Text,
    /// Text that is not blank.
    Filled,
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
    pub(super) need: Need,
    effect: Effect,
    pub(super) fields: &'static [Field],
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
        need: WRITABLE,
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
        need: SKILL,
        effect: Effect::Reads,
        fields: &[
            required("label", Kind::Label, "The block that lists the document, by its label."),
            required("key", Kind::Filled, "The document's key, as it is listed."),
        ],
    },
    Spec {
        name: UNLOAD_CONTEXT,
        title: "Unload a document",
        description: "Removes the text of a document that you have loaded from the conversation, \
                      to make room. The document itself stays and can be loaded again.",
        need: SKILL,
        effect: Effect::Changes,
        fields: &[
            required("label", Kind::Label, "The block that lists the document, by its label."),
            required("key", Kind::Filled, "The key it was loaded by."),
        ],
    },
    Spec {
        name: SEARCH_CONTEXT,
        title: "Search the context",
        description: "Searches a [searchable] block of the system prompt. Gives at most 10 hits, \
                      best first, or says that there are none.",
        need: SEARCHABLE,
        effect: Effect::Reads,
        fields: &[
            required("label", Kind::Label, "The block to search, by its label."),
            required("query", Kind::Filled, "What to find: a few words."),
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
        fields: &[required("query", Kind::Filled, MESSAGE_QUERY)],
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
            required("query", Kind::Filled, MESSAGE_QUERY),
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
            required("id", Kind::Filled, "The id of the summary."),
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

impl Spec {
    /// Returns the labels of the blocks that the tool works on.
    pub(super) fn labels<'a>(&self, blocks: &'a [BlockInfo]) -> Vec<&'a str> {
        let Need::Block(_, is_met) = self.need else { return Vec::new() };
        let fitting = blocks.iter().filter(|block| is_met(block));
        fitting.map(|block| block.label.as_str()).collect()
    }

    pub(super) fn schema(&self, blocks: &[BlockInfo]) -> Value {
        let has_documents = blocks.iter().any(|block| block.is_writable && block.is_keyed());
        let fields = self.fields.iter().filter(|field| field.name != METADATA || has_documents);
        schema(fields, &self.labels(blocks))
    }

    /// Returns whether the options allow the tool; tools for blocks need no option.
    pub(super) fn is_open(&self, options: ToolOptions) -> bool {
        match self.need {
            Need::Sessions => options.sessions.is_some(),
            Need::History => options.has_history,
            Need::Block(..) => true,
        }
    }

    fn is_offered(&self, blocks: &[BlockInfo], options: ToolOptions) -> bool {
        let is_for_blocks = matches!(self.need, Need::Block(..));
        self.is_open(options) && (!is_for_blocks || !self.labels(blocks).is_empty())
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

/// Returns the schema of an object with these fields, in which a label is one of `labels`.
fn schema<'a>(fields: impl IntoIterator<Item = &'a Field>, labels: &[&str]) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in fields {
        let mut schema = match field.kind {
            Kind::Text | Kind::Filled => json!({"type": "string"}),
            Kind::Label => json!({"type": "string", "enum": labels}),
            Kind::OneOf(values) => json!({"type": "string", "enum": values}),
            Kind::Object(fields) => schema(fields, labels),
        };
        schema["description"] = field.description.into();
        properties.insert(field.name.to_owned(), schema);
        if field.is_required {
            required.push(field.name);
        }
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(super) fn is_required(schema: &Value, field: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
}

pub(super) fn anthropic(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input,
    })
}

pub(super) fn openai_chat(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": function(tool)})
}

pub(super) fn openai_responses(tool: &ToolDefinition) -> Value {
    let mut function = function(tool);
    function["type"] = json!("function");
    function
}

pub(super) fn mcp(tool: &ToolDefinition) -> Value {
    let mut hints = json!({"readOnlyHint": tool.is_readonly});
    // MCP defines it only for tools that are not read-only.
    if !tool.is_readonly {
        hints["destructiveHint"] = json!(tool.is_destructive);
    }
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input,
        "annotations": hints,
    })
}

fn function(tool: &ToolDefinition) -> Value {
    let is_strict = fits_strict_mode(&tool.input);
    json!({
        "name": tool.name,
        "description": tool.description,
        "strict": is_strict,
        "parameters": if is_strict { strict(&tool.input) } else { tool.input.clone() },
    })
}

/// Returns whether the enums of a schema are within the limits of strict mode.
fn fits_strict_mode(schema: &Value) -> bool {
    let mut count = 0;
    let fits = enums(schema).into_iter().all(|values| {
        let values = || values.iter().filter_map(Value::as_str);
        count += values().count();
        let is_long = values().count() > MAX_LONG_VALUES
            && values().map(|value| value.chars().count()).sum::<usize>() > MAX_VALUE_CHARS;
        // Strict mode refuses a line break in a value; other characters that JSON escapes may be refused, too.
        !is_long && !values().any(|value| value.contains(['"', '\\']))
    });
    fits && count <= MAX_STRICT_VALUES
}

fn enums(schema: &Value) -> Vec<&Vec<Value>> {
    let inner = schema["properties"].as_object().into_iter().flatten();
    let inner = inner.flat_map(|(_, schema)| enums(schema));
    schema["enum"].as_array().into_iter().chain(inner).collect()
}

/// Returns the schema with every field required; an optional one takes null.
fn strict(schema: &Value) -> Value {
    let Some(fields) = schema["properties"].as_object() else { return schema.clone() };
    let mut properties = Map::new();
    for (name, field) in fields {
        let mut field = strict(field);
        if !is_required(schema, name) {
            // `anyOf`, because an enum refuses null even if the type allows it.
            let description = field["description"].take();
            if let Some(field) = field.as_object_mut() {
                field.remove("description");
            }
            field = json!({"anyOf": [field, {"type": "null"}], "description": description});
        }
        properties.insert(name.clone(), field);
    }
    let mut strict = schema.clone();
    strict["required"] = properties.keys().cloned().collect();
    strict["properties"] = Value::Object(properties);
    strict
}
