//! Front matter: the fields above a Markdown document, between two lines of `---`, in YAML.
//!
//! Only the description is read. Many a description is no YAML, because it has an unquoted colon: it is the rest of its
//! line then, with the indented lines below.

use saphyr_parser::{Event, Parser};
use talktree_text::foreign;

/// A document and what its front matter says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrontMatter<'a> {
    pub(crate) description: Option<String>,
    /// Whether the description is a list or has fields.
    pub(crate) is_nested: bool,
    /// Whether the front matter has no end, so that it counts as a part of the document.
    pub(crate) is_open: bool,
    /// The document without its front matter.
    pub(crate) body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Reads a text; without front matter it is the whole document.
    pub(crate) fn of(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let none = Self { description: None, is_nested: false, is_open: false, body: text };
        let Some(("---", rest)) =
            text.trim_start().split_once('\n').map(|(first, rest)| (first.trim_end(), rest))
        else {
            return none;
        };
        let mut start = 0;
        for line in rest.split_inclusive('\n') {
            let end = start + line.len();
            if matches!(line.trim_end(), "---" | "...") {
                let (head, body) = (&rest[..start], rest[end..].trim_start_matches(['\r', '\n']));
                return match Self::of_head(head, body) {
                    Some(found) => found,
                    None if head.trim().is_empty() => Self { body, ..none },
                    // A text between two rules.
                    None => none,
                };
            }
            start = end;
        }
        Self { is_open: Self::of_head(rest, text).is_some(), ..none }
    }

    /// Reads the lines between the marks; `None` if they hold no fields.
    fn of_head(head: &str, body: &'a str) -> Option<Self> {
        // Keys and values in turn; `None` for a list or fields.
        let (mut nodes, mut depth) = (Vec::new(), 0);
        let mut is_yaml = true;
        for event in Parser::new_from_str(head) {
            let Ok((event, _)) = event else {
                is_yaml = false;
                break;
            };
            match event {
                Event::MappingStart(..) if depth == 0 => depth = 1,
                Event::SequenceStart(..) | Event::Scalar(..) if depth == 0 => return None,
                Event::MappingStart(..) | Event::SequenceStart(..) => {
                    depth += 1;
                    nodes.extend((depth == 2).then_some(None));
                }
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                Event::Scalar(text, ..) => nodes.extend((depth == 1).then_some(Some(text))),
                Event::Alias(_) => nodes.extend((depth == 1).then_some(None)),
                _ => {}
            }
        }
        if nodes.is_empty() {
            return None;
        }
        let found = Self { description: None, is_nested: false, is_open: false, body };
        let mut fields = nodes.chunks(2).skip_while(|field| field[0].as_deref() != Some(FIELD));
        Some(match (fields.next(), fields.next()) {
            (None, _) => found,
            (Some(_), None) if !is_yaml => Self { description: Some(raw(head)), ..found },
            (Some([_, Some(text)]), _) => {
                Self { description: Some(text.trim().to_owned()), ..found }
            }
            _ => Self { is_nested: true, ..found },
        })
    }
}

const FIELD: &str = "description";

/// Returns the description of a head that is no YAML.
fn raw(head: &str) -> String {
    let mut lines = head.lines().skip_while(|line| !line.starts_with(FIELD));
    let first = lines.next().unwrap_or_default();
    let first = first.trim_start_matches(FIELD).trim_start().trim_start_matches(':');
    let below = lines.take_while(|line| line.starts_with([' ', '\t']));
    let text: Vec<_> = [first].into_iter().chain(below).map(without_comment).collect();
    foreign::line(&text.join(" "))
}

fn without_comment(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_in_the_forms_that_skills_use() {
        let cases = [
            ("description: Reads PDFs", Some("Reads PDFs")),
            ("description:   Reads: PDFs # a comment", Some("Reads: PDFs")),
            ("description: Use when: x\n  or: y", Some("Use when: x or: y")),
            ("description: C#", Some("C#")),
            ("description: one\n  two\n  three", Some("one two three")),
            ("description:\n  below", Some("below")),
            ("description: 'it''s # here' # not here", Some("it's # here")),
            (r#"description: "a \"b\" \u00e9\n""#, Some("a \"b\" é")),
            ("description: \"over\n  lines\"", Some("over lines")),
            ("description: \"no end", Some("\"no end")),
            ("description: >\n  one\n  two\n\n  three\n", Some("one two\nthree")),
            ("description: >-\n  one", Some("one")),
            ("description: |\n  one\n    two\n", Some("one\n  two")),
            ("description: text\nother: no: yaml", Some("text")),
            ("description:\n  - a\n  - b", None),
            ("description:\n  nested: b", None),
            ("description: [a, b]", None),
            ("other:\n  description: b", None),
            ("# description: no", None),
            ("description:no", None),
        ];
        for (head, value) in cases {
            let text = format!("---\nname: n\n{head}\nlast: x\n---\nbody");
            let found = FrontMatter::of(&text);
            assert_eq!((found.body, found.description.as_deref()), ("body", value), "{head}");
            let is_nested =
                value.is_none() && head.starts_with("description:") && !head.ends_with("no");
            assert_eq!(found.is_nested, is_nested, "{head}");
        }
    }

    #[test]
    fn the_document_is_what_follows() {
        let text = "\u{FEFF}---\r\nname: pdf\r\nmetadata:\r\n  a: b\r\ndescription: d\r\n---\r\n\r\nbody\r\n---\r\n";
        let found = FrontMatter::of(text);
        assert_eq!(found.description.as_deref(), Some("d"));
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
            "---\n- a list\n---\nbody",
            "---\n# a heading between rules\n---",
            "---\n\nno: end",
        ] {
            let found = FrontMatter::of(text);
            assert_eq!(found.description, None, "{text}");
            assert_eq!((found.body, found.is_open), (text, text.contains("end")), "{text}");
        }
        assert_eq!(FrontMatter::of("---\n---\nbody").body, "body");
    }

    /// References that double at each level would be gigabytes, were they followed.
    #[test]
    fn references_are_not_followed() {
        let mut head = "a: &a0 [x, x]\n".to_owned();
        for n in 1..60 {
            head += &format!("b{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1);
        }
        let text = format!("---\n{head}description: *a59\n---\nbody");
        let found = FrontMatter::of(&text);
        assert!(found.is_nested && found.body == "body");
    }
}
