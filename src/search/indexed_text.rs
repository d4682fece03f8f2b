//! The text of a message that is indexed: the text parts in one column, reasoning and tools in another.

use serde_json::Value;

use crate::message::{Json, Part};

/// The version of the indexed text: an index with another version is rebuilt.
pub(crate) const VERSION: u32 = 10;

/// The tools for a model that answer with what is stored. They are not searched: a search would find the earlier ones.
pub(crate) const SEARCH_CONTEXT: &str = "search_context";
pub(crate) const SESSION_SEARCH: &str = "session_search";
pub(crate) const HISTORY_SEARCH: &str = "history_search";
pub(crate) const HISTORY_EXPAND: &str = "history_expand";
const QUOTING: [&str; 4] = [SEARCH_CONTEXT, SESSION_SEARCH, HISTORY_SEARCH, HISTORY_EXPAND];

/// Returns the text parts, one a line.
pub(crate) fn plain_text(parts: &[Part]) -> String {
    let mut lines = Lines::default();
    for part in parts {
        if let Part::Text(text) = part.typed().as_ref() {
            lines.add(&text.text);
        }
    }
    lines.0
}

/// Returns reasoning and tool names, inputs and outputs, one a line.
pub(crate) fn plain_tools(parts: &[Part]) -> String {
    tools_of(parts, &[])
}

/// The same without what tools quote from the store.
pub(crate) fn searched_tools(parts: &[Part]) -> String {
    tools_of(parts, &QUOTING)
}

fn tools_of(parts: &[Part], without: &[&str]) -> String {
    let mut lines = Lines::default();
    for part in parts {
        match part.typed().as_ref() {
            Part::Tool(tool) if without.contains(&tool.name.as_str()) => {}
            Part::Reasoning(reasoning) => lines.add(&reasoning.text),
            Part::Tool(tool) => {
                lines.add(&tool.name);
                let result = tool.extra.get("result");
                for json in tool.input.iter().chain(&tool.output).chain(result) {
                    lines.add_strings(&json.value());
                }
                lines.add(tool.error_text.as_deref().unwrap_or_default());
            }
            // The provider's own tools, whose blocks are kept as they came.
            Part::Other(block) => {
                for value in of_provider(block) {
                    lines.add_strings(&value);
                }
            }
            _ => {}
        }
    }
    lines.0
}

/// Returns what a call or a result of a tool says that the provider ran itself.
fn of_provider(block: &Json) -> Vec<Value> {
    const KINDS: [&str; 2] = ["_tool_use\"", "_tool_result\""];
    // Most of the other parts are none of these, and need not be read.
    if !KINDS.iter().any(|kind| block.as_str().contains(kind)) {
        return Vec::new();
    }
    let mut block = block.value();
    let kind = format!("{}\"", block["type"].as_str().unwrap_or_default());
    let is_of_tool = KINDS.iter().any(|known| kind.ends_with(known));
    let fields = ["name", "input", "content"].into_iter().filter(|_| is_of_tool);
    fields.filter_map(|field| Some(block.get_mut(field)?.take())).collect()
}

/// Returns whether a word is data in base64, or ends with some: no name or path is that long without another sign.
fn is_encoded(word: &str) -> bool {
    const MIN_BYTES: usize = 200;
    let is_sign = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
    };
    word.len() >= MIN_BYTES && word.bytes().rev().take(MIN_BYTES).all(|byte| is_sign(&byte))
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.0.is_empty() {
                self.0.push('\n');
            }
            self.0.push_str(text);
        }
    }

    /// Adds the strings and numbers of a value, but not its field names: people search for the former. Images and other encoded data
    /// are no text.
    fn add_strings(&mut self, value: &Value) {
        // A loop, not recursion: a tool decides how deep a value nests.
        let mut values = vec![value];
        while let Some(value) = values.pop() {
            match value {
                Value::String(text) if text.split_whitespace().any(is_encoded) => {
                    let words: Vec<&str> =
                        text.split_whitespace().filter(|word| !is_encoded(word)).collect();
                    self.add(&words.join(" "));
                }
                Value::String(text) => self.add(text),
                Value::Number(number) => self.add(&number.to_string()),
                Value::Array(items) => values.extend(items.iter().rev()),
                Value::Object(fields) => values.extend(fields.values().rev()),
                Value::Null | Value::Bool(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_tools_are_separate_columns() {
        let parts = [
            Part::text("Look it up: 故宫"),
            Part::reasoning("I should call the tool"),
            Part::tool_call("weather", "c", json!({"city": "Jena", "days": [1, {"unit": "C"}]})),
        ];
        assert_eq!(plain_text(&parts), "Look it up: 故宫");
        assert_eq!(plain_tools(&parts), "I should call the tool\nweather\nJena\n1\nC");
    }

    #[test]
    fn the_tools_of_a_provider_are_searched() {
        let block =
            |block: &str| Part::Other(Json::parse(block).unwrap_or_else(|error| panic!("{error}")));
        let parts = [
            block(
                r#"{"type":"server_tool_use","id":"t","name":"web_search","input":{"query":"owls"}}"#,
            ),
            block(
                r#"{"type":"web_search_tool_result","tool_use_id":"t","content":[{"title":"Barn owl"}]}"#,
            ),
            block(r#"{"type":"data-map","content":"no tool"}"#),
        ];
        assert_eq!(plain_tools(&parts), "web_search\nowls\nBarn owl");
    }

    #[test]
    fn encoded_data_of_a_tool_is_no_text() {
        let data = "iVBORw0KGgo".repeat(40);
        let input =
            json!({"image": data, "url": format!("see data:image/png;base64,{data} there")});
        assert_eq!(plain_tools(&[Part::tool_call("draw", "c", input)]), "draw\nsee there");
        let path = json!(format!("src/{}", "folder/file.rs ".repeat(40)));
        assert!(plain_tools(&[Part::tool_call("read", "c", path)]).contains("folder/file.rs"));
    }

    #[test]
    fn a_lone_surrogate_is_indexed_as_the_replacement_character() {
        let part = serde_json::from_str(r#"{"type": "text", "text": "mark \ud800 here"}"#);
        let parts = [part.unwrap_or_else(|error| panic!("{error}"))];
        assert_eq!(plain_text(&parts), "mark \u{FFFD} here");
    }
}
