//! The text of a message that is indexed: the text parts in one column, reasoning and tools in another.

use serde_json::Value;

use crate::message::Part;

/// The version of the indexed text: an index with another version is rebuilt.
pub(crate) const VERSION: u32 = 6;

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
    let mut lines = Lines::default();
    for part in parts {
        match part.typed().as_ref() {
            Part::Reasoning(reasoning) => lines.add(&reasoning.text),
            Part::Tool(tool) => {
                lines.add(&tool.name);
                let result = tool.extra.get("result");
                for json in tool.input.iter().chain(&tool.output).chain(result) {
                    lines.add_strings(&json.value());
                }
                lines.add(tool.error_text.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }
    lines.0
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

    /// Adds the strings and numbers of a value, but not its field names: people search for the former.
    fn add_strings(&mut self, value: &Value) {
        // A loop, not recursion: a tool decides how deep a value nests.
        let mut values = vec![value];
        while let Some(value) = values.pop() {
            match value {
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
    fn a_lone_surrogate_is_indexed_as_the_replacement_character() {
        let part = serde_json::from_str(r#"{"type": "text", "text": "mark \ud800 here"}"#);
        let parts = [part.unwrap_or_else(|error| panic!("{error}"))];
        assert_eq!(plain_text(&parts), "mark \u{FFFD} here");
    }
}
