//! Front matter: the fields above a Markdown document, between two lines of `---`.
//!
//! Only the part of YAML that skills use: `key: value` with plain, quoted, folded (`>`) and literal (`|`) values. Nested
//! values are ignored.

use std::collections::BTreeMap;

use super::label::collapse_whitespace;

/// Returns the fields and the document below them; no fields and the whole text if there is no front matter.
pub(crate) fn split(text: &str) -> (BTreeMap<String, String>, &str) {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let none = (BTreeMap::new(), text);
    let Some((first, rest)) = text.split_once('\n') else { return none };
    if first.trim_end() != "---" {
        return none;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let (head, body) = rest.split_at(end);
            return (fields(head), body.get(line.len()..).unwrap_or_default());
        }
        end += line.len();
    }
    none
}

/// Returns the fields of the lines between the marks.
fn fields(head: &str) -> BTreeMap<String, String> {
    let lines: Vec<_> = head.lines().collect();
    let mut fields = BTreeMap::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some((key, value)) = field(line) else { continue };
        let more = lines[at..].iter().take_while(|line| is_further(line)).count();
        let below = &lines[at..at + more];
        at += more;
        if let Some(value) = value_of(value, below) {
            fields.insert(key.to_owned(), value);
        }
    }
    fields
}

/// Returns key and value of a line that begins a field.
fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && !key.starts_with([' ', '\t', '#', '-', '"', '\'']);
    let is_apart = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (is_key && is_apart).then(|| (key.trim_end(), value.trim()))
}

/// Returns whether a line belongs to the value above it.
fn is_further(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t'])
}

fn value_of(first: &str, below: &[&str]) -> Option<String> {
    let mut letters = first.chars();
    match letters.next() {
        Some('>') => Some(folded(below)),
        Some('|') => Some(literal(below).join("\n").trim_end().to_owned()),
        Some(quote @ ('"' | '\'')) => {
            let mut text = letters.as_str().to_owned();
            for line in below {
                text += " ";
                text += line.trim();
            }
            Some(if quote == '"' { double_quoted(&text) } else { single_quoted(&text) })
        }
        // A list or a nested map.
        None if below.iter().find(|line| !line.trim().is_empty()).is_some_and(|line| {
            let line = line.trim();
            line.starts_with('-') || field(line).is_some()
        }) =>
        {
            None
        }
        Some('[' | '{' | '&' | '*' | '!') => None,
        _ => {
            let plain: Vec<_> =
                [first].iter().chain(below).map(|line| without_comment(line)).collect();
            Some(collapse_whitespace(&plain.join(" ")))
        }
    }
}

/// Returns the lines of a block without their common indent.
fn literal<'a>(below: &[&'a str]) -> Vec<&'a str> {
    let full = below.iter().filter(|line| !line.trim().is_empty());
    let indent = full.map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    below.iter().map(|line| line.get(indent..).unwrap_or_default()).collect()
}

/// Returns the lines of a block, joined by spaces; an empty line is a line break.
fn folded(below: &[&str]) -> String {
    let mut text = String::new();
    for line in literal(below) {
        let line = line.trim();
        if line.is_empty() {
            text.push('\n');
        } else {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(' ');
            }
            text.push_str(line);
        }
    }
    text.trim().to_owned()
}

fn without_comment(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(value, _)| value)
}

/// Returns the text up to the closing quote, where `''` is a quote.
fn single_quoted(text: &str) -> String {
    let mut value = String::new();
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        if c == '\'' && letters.next_if_eq(&'\'').is_none() {
            break;
        }
        value.push(c);
    }
    value
}

/// Returns the text up to the closing quote, without its escapes.
fn double_quoted(text: &str) -> String {
    let mut value = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match c {
            '"' => break,
            '\\' => match letters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(width @ ('x' | 'u' | 'U')) => {
                    let digits = match width {
                        'x' => 2,
                        'u' => 4,
                        _ => 8,
                    };
                    let code: String = letters.by_ref().take(digits).collect();
                    let code = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    value.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                Some(other) => value.push(other),
                None => break,
            },
            other => value.push(other),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(head: &str) -> Option<String> {
        split(&format!("---\nname: n\n{head}\nlast: x\n---\nbody")).0.remove("description")
    }

    #[test]
    fn values_are_read_in_the_forms_that_skills_use() {
        let cases = [
            ("description: Reads PDFs", Some("Reads PDFs")),
            ("description:   Reads: PDFs # a comment", Some("Reads: PDFs")),
            ("description: C#", Some("C#")),
            ("description: one\n  two\n  three", Some("one two three")),
            ("description:\n  below", Some("below")),
            ("description:", Some("")),
            ("description: 'it''s # here' # not here", Some("it's # here")),
            (r#"description: "a \"b\" \u00e9\n""#, Some("a \"b\" é\n")),
            ("description: \"over\n  lines\"", Some("over lines")),
            ("description: \"no end", Some("no end")),
            ("description: >\n  one\n  two\n\n  three\n", Some("one two\nthree")),
            ("description: >-\n  one", Some("one")),
            ("description: |\n  one\n    two\n", Some("one\n  two")),
            ("description:\n  - a\n  - b", None),
            ("description:\n  nested: b", None),
            ("description: [a, b]", None),
            ("# description: no", None),
            ("description:no", None),
        ];
        for (head, value) in cases {
            assert_eq!(description(head).as_deref(), value, "{head}");
        }
    }

    #[test]
    fn what_follows_a_value_is_read() {
        let text = "\u{FEFF}---\r\nname: pdf\r\nmetadata:\r\n  a: b\r\ndescription: d\r\n---\r\n\r\nbody\r\n";
        let (fields, body) = split(text);
        assert_eq!(fields.get("name").map(String::as_str), Some("pdf"));
        assert_eq!(fields.get("description").map(String::as_str), Some("d"));
        assert_eq!(fields.len(), 2);
        assert_eq!(body, "\r\nbody\r\n");
    }

    #[test]
    fn a_text_without_front_matter_is_all_document() {
        for text in
            ["", "---", "---\nname: x\nno end", "# heading\n---\nx: y\n---\n", "----\n---\n"]
        {
            let (fields, body) = split(text);
            assert!(fields.is_empty());
            assert_eq!(body, text);
        }
        assert_eq!(split("---\n---\nbody").1, "body");
        assert_eq!(split("---\n---").1, "");
    }
}
