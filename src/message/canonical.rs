//! A canonical form of JSON.

use serde_json::Value;

/// Returns JSON without white space and with sorted fields, so that equal values have equal texts.
///
/// JSON that a [`Value`] cannot hold (lone surrogates, more than 128 levels) keeps its spelling and the order of its
/// fields, but loses its white space.
pub(crate) fn canonical(json: &str) -> String {
    match serde_json::from_str::<Value>(json) {
        Ok(value) => {
            let mut text = String::with_capacity(json.len());
            write(&value, &mut text);
            text
        }
        Err(_) => without_space(json),
    }
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            // Sorted here, because a feature of serde_json decides whether a map is sorted, and any crate can enable
            // it.
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                text.push_str(if at > 0 { "," } else { "" });
                write(value, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn without_space(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let keeps = |letter: &char| {
        if is_escaped {
            is_escaped = false;
        } else if in_string && *letter == '\\' {
            is_escaped = true;
        } else if *letter == '"' {
            in_string = !in_string;
        }
        in_string || !letter.is_ascii_whitespace()
    };
    json.chars().filter(keeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_spelling() {
        for (json, spelled) in [
            (
                r#"{ "b" : [1, 2.50], "a": {"d":null,"c":"x y"} }"#,
                r#"{"a":{"c":"x y","d":null},"b":[1,2.5]}"#,
            ),
            (r#"{"b": "\ud800 \" x", "a" : 1}"#, r#"{"b":"\ud800 \" x","a":1}"#),
            (r#""\u0041""#, r#""A""#),
        ] {
            assert_eq!(canonical(json), spelled);
        }
    }
}
