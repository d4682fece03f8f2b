//! Calls: what a model asks for, with its input checked.

use serde_json::{Map, Value};
use talktree_text::foreign::{self, breaks_line, quoted};

use super::definition::{
    HISTORY_BRANCHES, HISTORY_EXPAND, HISTORY_SEARCH, LOAD_CONTEXT, METADATA, SEARCH_CONTEXT,
    SESSION_SEARCH, SET_CONTEXT, SPECS, Spec, UNLOAD_CONTEXT,
};
use super::nearest::{list, suggestion};
use super::schema::{self, field};
use crate::context::{BlockInfo, ToolOptions};
use crate::id::{CompactionId, MessageId, shorten};

/// A call of a tool with a checked input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    SetContext {
        label: String,
        content: String,
        action: Action,
        title: Option<String>,
        description: Option<String>,
        target: Target,
    },
    LoadContext {
        label: String,
        key: String,
    },
    UnloadContext {
        label: String,
        key: String,
    },
    SearchContext {
        label: String,
        query: String,
    },
    SessionSearch {
        query: String,
    },
    HistorySearch {
        query: String,
        /// Whether other branches are left out.
        is_on_path: bool,
    },
    HistoryExpand {
        id: CompactionId,
        after: Option<MessageId>,
    },
    HistoryBranches {
        id: Option<MessageId>,
    },
}

/// Which text of a block is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Its only one.
    Text,
    /// A document; without a key, that of the title or the content.
    Document { key: Option<String> },
}

/// What happens to the current text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Replace,
    Append,
}

impl Call {
    /// Returns the call of a name and an input. The error is text for the model.
    ///
    /// The input is an object, or text that holds one. An optional field may be null.
    pub(crate) fn parse(
        name: &str,
        input: &Value,
        blocks: &[BlockInfo],
        options: ToolOptions,
    ) -> Result<Self, String> {
        let offered = || SPECS.iter().filter(|spec| spec.is_open(options));
        let Some(spec) = offered().find(|spec| spec.name == name) else {
            let names: Vec<_> = offered().map(|spec| spec.name).collect();
            let given = shorten(name);
            return Err(format!("there is no tool {given:?}{}", suggestion(name, &names)));
        };
        let input = checked(spec, input, blocks)?;
        let fields = Fields(&input);
        Ok(match spec.name {
            SET_CONTEXT => set_context(&fields, blocks)?,
            LOAD_CONTEXT => {
                Self::LoadContext { label: fields.filled("label")?, key: fields.filled("key")? }
            }
            UNLOAD_CONTEXT => {
                Self::UnloadContext { label: fields.filled("label")?, key: fields.filled("key")? }
            }
            SEARCH_CONTEXT => Self::SearchContext {
                label: fields.filled("label")?,
                query: fields.filled("query")?,
            },
            SESSION_SEARCH => Self::SessionSearch { query: fields.filled("query")? },
            HISTORY_SEARCH => Self::HistorySearch {
                query: fields.filled("query")?,
                is_on_path: fields.text("branches") == Some("current"),
            },
            HISTORY_EXPAND => {
                let id = MessageId::from(fields.filled("id")?);
                // A history shows a summary as a message; both ids are accepted.
                let id = CompactionId::from_message(&id).unwrap_or_else(|| id.as_str().into());
                Self::HistoryExpand { id, after: fields.stated("after").map(MessageId::from) }
            }
            HISTORY_BRANCHES => {
                Self::HistoryBranches { id: fields.stated("id").map(MessageId::from) }
            }
            other => return Err(format!("there is no tool {other:?}")),
        })
    }
}

fn set_context(fields: &Fields<'_>, blocks: &[BlockInfo]) -> Result<Call, String> {
    let label = fields.filled("label")?;
    let content = fields.text("content").unwrap_or_default().to_owned();
    let action = match fields.text("action") {
        Some("append") => Action::Append,
        _ => Action::Replace,
    };
    let none = Map::new();
    let metadata = Fields(fields.0.get(METADATA).and_then(Value::as_object).unwrap_or(&none));
    let title = metadata.stated("title").map(foreign::line);
    let description = metadata.stated("description").map(foreign::line);
    let key = metadata.stated("key").map(str::to_owned);
    if !blocks.iter().any(|block| block.label == label && block.is_keyed()) {
        if title.is_some() || description.is_some() || key.is_some() {
            return Err(format!(
                "{}: context block {} holds one text, no documents; leave it out",
                field(METADATA),
                quoted(&label)
            ));
        }
        let target = Target::Text;
        return Ok(Call::SetContext { label, content, action, title, description, target });
    }
    if content.trim().is_empty() {
        return Err(format!("{} is blank; a document needs text", field("content")));
    }
    // The prompt lists the key in one line.
    if key.as_deref().is_some_and(|key| !is_one_line(key)) {
        return Err(format!(
            "{}: a key is one line, with no white space but single spaces in it",
            field("metadata.key")
        ));
    }
    if action == Action::Append && title.is_none() && key.is_none() {
        return Err(format!(
            "{} is missing: say by its title or key to which document of {} the text is added",
            field(METADATA),
            quoted(&label)
        ));
    }
    let target = Target::Document { key };
    Ok(Call::SetContext { label, content, action, title, description, target })
}

fn is_one_line(key: &str) -> bool {
    !key.contains(breaks_line) && key.split_whitespace().collect::<Vec<_>>().join(" ") == key
}

/// Returns the fields of an input, checked by the schema of the tool.
fn checked(spec: &Spec, input: &Value, blocks: &[BlockInfo]) -> Result<Map<String, Value>, String> {
    let mut input = object_of(input)?;
    if let Some(participle) = spec.need().participle() {
        let labels = spec.labels(blocks);
        if labels.is_empty() {
            return Err(format!("there is no context block that can be {participle}"));
        }
        let given = input["label"].as_str();
        let is_there = |given: &str| blocks.iter().any(|block| block.label == given);
        if let Some(given) = given.filter(|given| is_there(given) && !labels.contains(given)) {
            return Err(format!(
                "context block {} cannot be {participle}; those that can: {}",
                quoted(given),
                list(&labels)
            ));
        }
    }
    let schema = spec.schema(blocks);
    schema::take_nulls(&schema, &mut input);
    schema::check(&schema, &input)?;
    match input {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// Returns the input as an object, read from text if need be.
fn object_of(input: &Value) -> Result<Value, String> {
    let read = match input {
        // Some servers pass on a call without arguments like this.
        Value::Null => return Ok(Value::Object(Map::new())),
        Value::String(text) if text.trim().is_empty() => return Ok(Value::Object(Map::new())),
        Value::String(text) => serde_json::from_str(text)
            .map_err(|error| format!("the input is text that is not valid JSON: {error}"))?,
        other => other.clone(),
    };
    if read.is_object() { Ok(read) } else { Err("the input is not a JSON object".to_owned()) }
}

/// The fields of an input that was checked.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_str()
    }

    /// Returns an optional text. A model that must give every field leaves it blank.
    fn stated(&self, name: &str) -> Option<&'a str> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    /// Returns a text that must not be blank.
    fn filled(&self, name: &str) -> Result<String, String> {
        let text = self.stated(name).ok_or_else(|| format!("{} is blank", field(name)))?;
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixture;
    use super::*;
    use crate::context::Block;

    fn parse(name: &str, input: Value) -> Result<Call, String> {
        Call::parse(name, &input, &fixture::blocks(), fixture::ALL)
    }

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn set(label: &str, content: &str, action: Action) -> Call {
        let (label, content) = (text(label), text(content));
        let target = Target::Text;
        Call::SetContext { label, content, action, title: None, description: None, target }
    }

    #[test]
    fn an_input_that_makes_sense_is_a_call() {
        let load = Call::LoadContext { label: text("skills"), key: text("pdf") };
        let unload = Call::UnloadContext { label: text("skills"), key: text("pdf") };
        let search = Call::SearchContext { label: text("history"), query: text("tea") };
        let all = Call::HistorySearch { query: text("tea"), is_on_path: false };
        let current = Call::HistorySearch { query: text("tea"), is_on_path: true };
        let expand = Call::HistoryExpand { id: "c1".into(), after: None };
        let further = Call::HistoryExpand { id: "c1".into(), after: Some("m9".into()) };
        let here = Call::HistoryBranches { id: Some("m1".into()) };
        let branches = Call::HistoryBranches { id: None };
        let cases = [
            (
                "set_context",
                json!({"label": "memory", "content": "x"}),
                set("memory", "x", Action::Replace),
            ),
            (
                "set_context",
                json!({"label": "memory", "content": ""}),
                set("memory", "", Action::Replace),
            ),
            (
                "set_context",
                json!({"label": "house rules", "content": "x", "action": "append"}),
                set("house rules", "x", Action::Append),
            ),
            (
                "set_context",
                json!({"label": "memory", "content": "x", "action": null,
                       "metadata": {"title": "", "description": null, "key": " "}}),
                set("memory", "x", Action::Replace),
            ),
            ("load_context", json!({"label": "skills", "key": "pdf"}), load.clone()),
            ("load_context", json!("{\"label\": \"skills\", \"key\": \"pdf\"}"), load),
            ("unload_context", json!({"label": "skills", "key": "pdf"}), unload),
            ("search_context", json!({"label": "history", "query": "tea"}), search),
            ("session_search", json!({"query": "tea"}), Call::SessionSearch { query: text("tea") }),
            ("history_search", json!({"query": "tea"}), all.clone()),
            ("history_search", json!({"query": "tea", "branches": "all"}), all),
            ("history_search", json!({"query": "tea", "branches": "current"}), current),
            ("history_expand", json!({"id": "c1"}), expand.clone()),
            ("history_expand", json!({"id": "compaction_c1", "after": null}), expand),
            ("history_expand", json!({"id": "compaction_c1", "after": "m9"}), further),
            ("history_branches", json!({"id": "m1"}), here),
            ("history_branches", json!({}), branches.clone()),
            ("history_branches", json!(""), branches.clone()),
            ("history_branches", json!(null), branches),
        ];
        for (name, input, call) in cases {
            assert_eq!(parse(name, input.clone()), Ok(call), "{name} {input}");
        }
    }

    #[test]
    fn a_document_is_written_under_a_key() {
        let key = |input: Value| match parse("set_context", input)? {
            Call::SetContext { target: Target::Document { key }, title, description, .. } => {
                Ok((key, title, description))
            }
            other => Err(format!("{other:?}")),
        };
        let with =
            |metadata: Value| json!({"label": "skills", "content": "text", "metadata": metadata});
        let coffee = (None, Some(text("coffee")), None);
        assert_eq!(key(with(json!({"title": "coffee"}))), Ok(coffee));
        let all = with(json!({"title": " How \n to", "description": "a\tb", "key": "my key"}));
        let named = (Some(text("my key")), Some(text("How to")), Some(text("a b")));
        assert_eq!(key(all), Ok(named));
        let made = key(json!({"label": "knowledge", "content": "Likes tea"}));
        assert_eq!(made, Ok((None, None, None)));
        let mut added = with(json!({"title": "coffee"}));
        added["action"] = json!("append");
        assert!(key(added).is_ok());
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        let skill =
            |metadata: Value| json!({"label": "skills", "content": "x", "metadata": metadata});
        let can = "those that can: \"memory\", \"house rules\", \"skills\", \"knowledge\"";
        let cannot = format!("context block \"soul\" cannot be written; {can}");
        let cases = [
            (
                "set_contxt",
                json!({}),
                "there is no tool \"set_contxt\"; did you mean \"set_context\"?",
            ),
            ("launch", json!({}), "there is no tool \"launch\""),
            ("load_context", json!([]), "the input is not a JSON object"),
            ("load_context", json!("[]"), "the input is not a JSON object"),
            ("load_context", json!(5), "the input is not a JSON object"),
            (
                "load_context",
                json!("{\"label\""),
                "the input is text that is not valid JSON: EOF while parsing an object at line 1 column 8",
            ),
            ("load_context", json!(null), "the fields \"label\", \"key\" are missing"),
            (
                "load_context",
                json!({"label": "skills", "key": 5}),
                "field \"key\": expected text, not the number 5",
            ),
            ("load_context", json!({"label": "skills", "key": " "}), "field \"key\" is blank"),
            (
                "load_context",
                json!({"label": "memory", "key": "k"}),
                "context block \"memory\" cannot be loaded from; those that can: \"skills\"",
            ),
            (
                "search_context",
                json!({"label": "memory", "query": "k"}),
                "context block \"memory\" cannot be searched; those that can: \"knowledge\", \"history\"",
            ),
            (
                "search_context",
                json!({"label": "history", "query": "\n"}),
                "field \"query\" is blank",
            ),
            ("set_context", json!({"label": "soul", "content": "x"}), &cannot),
            (
                "set_context",
                json!({"label": "memory", "content": "x", "metadata": {"title": "T"}}),
                "field \"metadata\": context block \"memory\" holds one text, no documents; leave it out",
            ),
            (
                "set_context",
                json!({"label": "skills", "content": " "}),
                "field \"content\" is blank; a document needs text",
            ),
            (
                "set_context",
                json!({"label": "skills", "content": "x", "action": "append"}),
                "field \"metadata\" is missing: say by its title or key to which document of \"skills\" the text is added",
            ),
            (
                "set_context",
                skill(json!({"key": "a\nb"})),
                "field \"metadata.key\": a key is one line, with no white space but single spaces in it",
            ),
            ("history_expand", json!({"id": ""}), "field \"id\" is blank"),
            (
                "history_search",
                json!({"query": "tea", "branches": true}),
                "field \"branches\": expected text, not the boolean true",
            ),
        ];
        for (name, input, text) in cases {
            assert_eq!(parse(name, input.clone()), Err(text.to_owned()), "{name} {input}");
        }
        let soul = [Block::text("x").info("soul", text("x"))];
        let refused =
            |name| Call::parse(name, &json!({"label": "soul"}), &soul, fixture::ALL).unwrap_err();
        assert_eq!(refused("set_context"), "there is no context block that can be written");
        assert_eq!(refused("load_context"), "there is no context block that can be loaded from");
        assert_eq!(refused("search_context"), "there is no context block that can be searched");
    }

    #[test]
    fn a_label_as_the_prompt_writes_it_is_told_apart() {
        let error = parse("load_context", json!({"label": "SKILLS", "key": "pdf"})).unwrap_err();
        let text = "field \"label\": expected \"skills\", not \"SKILLS\"; did you mean \"skills\"?";
        assert_eq!(error, text);
    }

    #[test]
    fn a_deep_or_large_input_is_answered() {
        let deep = json!("[".repeat(100_000));
        assert!(parse("load_context", deep).unwrap_err().contains("recursion limit"));
        let large = json!({"label": "memory", "content": "x".repeat(10_000_000)});
        assert!(parse("set_context", large).is_ok());
    }

    #[test]
    fn every_tool_that_is_offered_can_be_called() {
        for tool in fixture::tools().definitions() {
            let mut input = Map::new();
            for (name, schema) in tool.input["properties"].as_object().into_iter().flatten() {
                let value = schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text"));
                input.insert(name.clone(), value);
            }
            input.remove(METADATA);
            let call = parse(tool.name, Value::Object(input));
            assert!(call.is_ok(), "{}: {call:?}", tool.name);
        }
    }
}
