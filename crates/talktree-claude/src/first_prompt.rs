//! The first thing that a person wrote in a session, as the agent SDK finds it.

use std::borrow::Cow;

use crate::text::{self, Members};

/// The most characters of a first prompt; the rest is cut.
const MAX_CHARACTERS: usize = 200;

/// The beginnings of texts that a program wrote.
const GENERATED: &[&str] = &["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>"];

/// The prompt and the commands in an entry of a user.
pub(crate) struct Found {
    /// The prompt, cut; `None` if there is none.
    pub(crate) prompt: Option<Vec<u8>>,
    /// The names of the slash commands before it.
    pub(crate) commands: Vec<Vec<u8>>,
}

/// Returns what a person wrote in a message: in its text, or in the texts among its blocks.
pub(crate) fn find(message: Option<&str>) -> Found {
    let content = Members::of(message.unwrap_or_default()).get("content").unwrap_or_default();
    let mut commands = Vec::new();
    let blocks: Vec<Members<'_>> = text::items(content).map(Members::of).collect();
    if blocks.iter().any(|block| block.is("type", "tool_result")) {
        return Found { prompt: None, commands };
    }
    let texts = blocks.iter().filter(|block| block.is("type", "text"));
    let texts = texts.filter_map(|block| block.text("text"));
    for raw in text::decode(content).into_iter().chain(texts) {
        let words = without_lines(raw);
        let words = strip(&words);
        if words.is_empty() {
            continue;
        }
        match command(words) {
            Some(command) => commands.push(command.to_vec()),
            None if is_generated(words) => {}
            None => return Found { prompt: Some(cut(words)), commands },
        }
    }
    Found { prompt: None, commands }
}

fn without_lines(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match text.contains(&b'\n') {
        false => text,
        true => text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect(),
    }
}

/// Returns the name of the slash command in a text.
fn command(words: &[u8]) -> Option<&[u8]> {
    let start = find_in(words, b"<command-name>")? + b"<command-name>".len();
    let rest = &words[start..];
    find_in(rest, b"</command-name>").map(|end| &rest[..end])
}

fn is_generated(words: &[u8]) -> bool {
    let is_block = |open: &str, close: &str| {
        let inner = words.strip_prefix(open.as_bytes());
        inner.is_some_and(|inner| inner.ends_with(close.as_bytes()))
    };
    GENERATED.iter().any(|start| words.starts_with(start.as_bytes()))
        || words.starts_with(b"[Request interrupted by user") && words.contains(&b']')
        || is_block("<ide_opened_file>", "</ide_opened_file>")
        || is_block("<ide_selection>", "</ide_selection>")
}

fn cut(words: &[u8]) -> Vec<u8> {
    match text::code_points(words).nth(MAX_CHARACTERS - 1) {
        Some((_, end)) if end < words.len() => {
            [strip_end(&words[..end]), "\u{2026}".as_bytes()].concat()
        }
        _ => words.to_vec(),
    }
}

fn find_in(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn strip(text: &[u8]) -> &[u8] {
    let blank = text::code_points(text).take_while(|(code, _)| is_space(*code)).last();
    strip_end(&text[blank.map_or(0, |(_, end)| end)..])
}

fn strip_end(text: &[u8]) -> &[u8] {
    let mut kept = text.len();
    while let Some(start) = (0..kept).rev().find(|at| text[*at] & 0xC0 != 0x80) {
        match text::code_points(&text[start..kept]).next() {
            Some((code, _)) if is_space(code) => kept = start,
            _ => break,
        }
    }
    &text[..kept]
}

/// Returns whether Python strips a character: white space, and four separators of files and records.
fn is_space(code: u32) -> bool {
    char::from_u32(code).is_some_and(|c| c.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(content: &serde_json::Value) -> Result<String, Vec<String>> {
        let message = serde_json::json!({"content": content}).to_string();
        let found = find(Some(&message));
        let commands = found.commands.iter().map(|name| text::lossy(name)).collect();
        found.prompt.map(|bytes| text::lossy(&bytes)).ok_or(commands)
    }

    #[test]
    fn a_prompt_is_the_first_text_of_a_person() {
        use serde_json::json;
        assert_eq!(prompt(&json!("\u{1c} fix\nit \u{3000}")), Ok("fix it".into()));
        let long = "é".repeat(199) + "  " + &"é".repeat(9);
        assert_eq!(prompt(&json!(long)), Ok("é".repeat(199) + "…"));
        assert_eq!(prompt(&json!("x".repeat(200))), Ok("x".repeat(200)));
        let blocks = json!([{"type": "text", "text": "<ide_selection>a</ide_selection>"},
                            {"type": "image"}, {"type": "text", "text": "<command-name>/a</command-name>"},
                            {"type": "text", "text": "<tick>"}, {"type": "text", "text": "<goal"}]);
        assert_eq!(prompt(&blocks), Ok("<goal".into()));
        let result = json!([{"type": "text", "text": "hello"}, {"type": "tool_result"}]);
        assert_eq!(prompt(&result), Err(vec![]));
        assert_eq!(
            prompt(&json!("a <command-name></command-name> <command-name>b</command-name>")),
            Err(vec![String::new()])
        );
        assert_eq!(prompt(&json!("[Request interrupted by user for tool use]")), Err(vec![]));
        assert_eq!(
            prompt(&json!("[Request interrupted by user")),
            Ok("[Request interrupted by user".into())
        );
        for content in [json!(null), json!(5), json!([]), json!("  "), json!({"text": "a"})] {
            assert_eq!(prompt(&content), Err(vec![]));
        }
    }
}
