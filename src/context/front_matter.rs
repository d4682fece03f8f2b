//! Front matter: the fields above a Markdown document, between two lines of `---`.
//!
//! Only the part of YAML that skills use: `key: value` with plain, quoted, folded (`>`) and literal (`|`) values. Nested
//! values are ignored.

use std::collections::{BTreeMap, BTreeSet};

use talktree_text::foreign;

/// A document and what its front matter says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter<'a> {
    pub(super) fields: BTreeMap<String, String>,
    /// Fields that hold a list or other fields.
    pub(super) nested: BTreeSet<String>,
    /// Whether the front matter has no end, so that it counts as a part of the document.
    pub(super) is_open: bool,
    /// The document without its front matter.
    pub(super) body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Reads a text; without front matter it is the whole document.
    pub(super) fn of(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let none = Self { body: text, ..Self::default() };
        let above = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
        let Some((first, rest)) = text[above.map(str::len).sum()..].split_once('\n') else {
            return none;
        };
        if first.trim_end() != "---" {
            return none;
        }
        let mut end = 0;
        for line in rest.split_inclusive('\n') {
            if matches!(line.trim_end(), "---" | "...") {
                let (head, body) = rest.split_at(end);
                let found = Self::of_head(head);
                // A text between two rules.
                if found.is_empty() && !head.trim().is_empty() {
                    return none;
                }
                let body = body.get(line.len()..).unwrap_or_default();
                return Self { body: body.trim_start_matches(['\r', '\n']), ..found };
            }
            end += line.len();
        }
        let is_open = rest
            .lines()
            .find(|line| !is_blank_or_comment(line))
            .is_some_and(|line| field(line).is_some());
        Self { is_open, ..none }
    }

    /// Reads the lines between the marks.
    fn of_head(head: &str) -> Self {
        let lines: Vec<_> = head.lines().collect();
        let mut found = Self::default();
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            let Some((key, value)) = field(line) else { continue };
            let more = lines[at..].iter().take_while(|line| is_further(line, value)).count();
            let below = &lines[at..at + more];
            at += more;
            match value_of(value, below) {
                Some(value) => drop(found.fields.insert(key.to_owned(), value)),
                None => drop(found.nested.insert(key.to_owned())),
            }
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.nested.is_empty()
    }
}

fn is_blank_or_comment(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// Returns key and value of a line that begins a field.
fn field(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let is_key = !key.is_empty() && !key.starts_with([' ', '\t', '#', '-', '"', '\'']);
    let is_apart = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (is_key && is_apart).then(|| (key.trim_end(), value.trim()))
}

/// Returns whether a line belongs to the value above it. A list below a key may begin at the margin.
fn is_further(line: &str, value: &str) -> bool {
    line.trim().is_empty()
        || line.starts_with([' ', '\t'])
        || (value.is_empty() && (line.starts_with("- ") || line.trim_end() == "-"))
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
            Some(foreign::line(&plain.join(" ")))
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

/// Returns the text up to the closing quote, without its escapes, which are those of JSON but for rare ones.
fn double_quoted(text: &str) -> String {
    let quoted = format!("\"{text}");
    let mut values = serde_json::Deserializer::from_str(&quoted).into_iter();
    match values.next() {
        Some(Ok(value)) => value,
        _ => text.trim_end_matches('"').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(head: &str) -> Option<String> {
        let text = format!("---\nname: n\n{head}\nlast: x\n---\nbody");
        let mut found = FrontMatter::of(&text);
        assert_eq!((found.body, found.fields.contains_key("last")), ("body", true), "{head}");
        found.fields.remove("description")
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
        let text = "\u{FEFF}---\r\nname: pdf\r\nmetadata:\r\n  a: b\r\ndescription: d\r\n---\r\n\r\nbody\r\n---\r\n";
        let found = FrontMatter::of(text);
        assert_eq!(found.fields.get("name").map(String::as_str), Some("pdf"));
        assert_eq!(found.fields.get("description").map(String::as_str), Some("d"));
        assert_eq!(found.fields.len(), 2);
        assert_eq!(found.nested, BTreeSet::from(["metadata".to_owned()]));
        assert_eq!(found.body, "body\r\n---\r\n");
        assert_eq!(FrontMatter::of("\n \n---\na: b\n---\n\nbody").body, "body");
    }

    #[test]
    fn a_text_without_front_matter_is_all_document() {
        for text in [
            "",
            "---",
            "# heading\n---\nx: y\n---\n",
            "----\n---\n",
            "---\nan intro between rules\n---\nbody",
            "---\n\nno: end",
        ] {
            let found = FrontMatter::of(text);
            assert!(found.fields.is_empty(), "{text}");
            assert_eq!((found.body, found.is_open), (text, text.contains("end")), "{text}");
        }
        assert_eq!(FrontMatter::of("---\n---\nbody").body, "body");
        assert_eq!(FrontMatter::of("---\n# a comment\n---").body, "---\n# a comment\n---");
    }
}
