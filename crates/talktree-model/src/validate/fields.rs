//! The fields that an object of a request may have, as rules of one line.
//!
//! A rule names the fields, each with what it holds: `id name? phase?~:commentary|final_answer cache:object`. A field without a
//! colon is a text; `?` means that it may be missing, `~` that it may be null.

use serde_json::Value;

use super::Report;

impl Report {
    /// Checks that an object has the fields of the rule and no others; `type` is checked by the caller.
    pub(super) fn fields(&mut self, place: &str, object: &Value, rule: &str) {
        self.has(place, object, rule);
        let known = |name: &str| rule.split_whitespace().any(|field| parts(field).0 == name);
        for name in object.as_object().into_iter().flat_map(|given| given.keys()) {
            if name != "type" && !known(name) {
                self.add(format!("{place}.{name}"), "is not a field that is accepted here");
            }
        }
    }

    /// Checks that an object has the fields of the rule, whatever else it has.
    pub(super) fn has(&mut self, place: &str, object: &Value, rule: &str) {
        let Some(given) = object.as_object() else { return self.add(place, "is not an object") };
        for field in rule.split_whitespace() {
            let (name, marks, holds) = parts(field);
            match given.get(name) {
                None if marks.contains('?') => {}
                None => self.add(format!("{place}.{name}"), "is missing"),
                Some(Value::Null) if marks.contains('~') => {}
                Some(value) if fits(value, holds) => {}
                Some(_) => self.add(format!("{place}.{name}"), format!("is not {holds}")),
            }
        }
    }
}

/// Returns the name of a field of a rule, its marks, and what it holds.
fn parts(field: &str) -> (&str, &str, &str) {
    let (name, holds) = field.split_once(':').unwrap_or((field, "text"));
    let (name, marks) = name.split_at(name.find(['?', '~']).unwrap_or(name.len()));
    (name, marks, holds)
}

fn fits(value: &Value, holds: &str) -> bool {
    match holds {
        "any" => true,
        "text" => value.is_string(),
        "flag" => value.is_boolean(),
        "true" => *value == true,
        "false" => *value == false,
        "count" => value.is_u64(),
        "number" => value.is_i64(),
        "object" => value.is_object(),
        "objects" => value.as_object().is_some_and(|of| of.values().all(Value::is_object)),
        "list" => value.is_array(),
        "content" => value.is_string() || value.is_array(),
        words => value.as_str().is_some_and(|word| words.split('|').any(|known| known == word)),
    }
}
