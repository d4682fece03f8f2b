//! Blocks as one Markdown document, and back.
//!
//! A block is a heading with its label, its description as a quote, its content as it is. A content that would not be
//! read back the same, such as one with a heading, is put between fences marked `context`, longer than any in it. Text
//! above the first heading is a block, too, so that any document can be read.

use std::borrow::Cow;
use std::sync::Arc;

use talktree_text::foreign::{breaks_line, guarded, without_invisible};

use super::block::Block;
use super::key::check_label;
use super::prompt::{read_prompt, shown_label};
use super::provider::LabelledBlock;
use super::{Context, Keep, MAX_BLOCKS, documents};
use crate::error::{Error, Result};
use crate::storage::context::Document;

/// The label of the text above the first heading.
const PREAMBLE: &str = "system";

/// The word after the ticks of the opening fence of a content.
const MARK: &str = "context";

/// A block in a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Passage {
    pub(super) label: String,
    pub(super) description: Option<String>,
    pub(super) content: String,
}

impl Context {
    /// Returns all blocks of one text as a Markdown document: for each a heading, the description, the content. Documents
    /// of skills and knowledge are left out.
    ///
    /// ```
    /// use talktree::{Block, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session_builder("s").block("memory", Block::stored()).open()?;
    /// let context = chat.context();
    /// context.set("memory", "Likes coffee.")?;
    /// assert_eq!(context.to_markdown()?, "# memory\n\nLikes coffee.\n");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn to_markdown(&self) -> Result<String> {
        let texts = self.blocks()?.into_iter().filter(|block| !block.is_keyed());
        let passages = texts.map(|block| Passage {
            label: block.label,
            description: block.description,
            content: block.content,
        });
        Ok(write(&passages.collect::<Vec<_>>()))
    }

    /// Writes the blocks that a text describes, and returns their labels in its order.
    ///
    /// The text is a document from [`to_markdown`](Self::to_markdown), a prompt from [`prompt`](Self::prompt), or any
    /// system prompt: text above the first heading becomes the block `system`. A label without a block gets a stored one.
    /// Stored texts are written all together or not at all; those of providers are written after them.
    ///
    /// ```
    /// use talktree::Store;
    ///
    /// let chat = Store::open_in_memory()?.session_builder("s").open()?;
    /// let context = chat.context();
    /// let labels = context.import("You are a helpful assistant.\n\n# memory\n\nLikes coffee.\n")?;
    /// assert_eq!(labels, ["system", "memory"]);
    /// assert_eq!(context.block("memory")?.unwrap().content, "Likes coffee.");
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if a heading cannot be a label, [`Error::BlockExists`] if two are the same; as
    /// [`set`](Self::set).
    pub fn import(&self, text: &str) -> Result<Vec<String>> {
        let passages = match read_prompt(text, |label| self.label_like(label)) {
            Some(passages) => passages,
            None => read(text)?,
        };
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        for (at, passage) in passages.iter().enumerate() {
            let Passage { label, description, content } = passage;
            if passages[..at].iter().any(|other| other.label == *label) {
                return Err(Error::BlockExists { label: label.clone() });
            }
            let block = if let Some(block) = self.find(label) {
                if self.is_written(&block, content)? {
                    continue;
                }
                block.check_plain()?;
                block.check_tokens(content)?;
                block
            } else {
                let stored = Block::stored().describe(description.as_deref().unwrap_or_default());
                let block = Arc::new(LabelledBlock::new(label, stored)?);
                new.push(Arc::clone(&block));
                block
            };
            changed.push((block, content));
        }
        if self.all().len() + new.len() > MAX_BLOCKS {
            return Err(Error::TooManyBlocks { max: MAX_BLOCKS });
        }
        let (stored, provided): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|(block, _)| block.block.source.is_stored());
        if !stored.is_empty() {
            self.store().write(|writing| {
                stored.iter().try_for_each(|(block, content)| {
                    let mut new = Document::new("", *content);
                    documents::put(block, writing, &mut new, Keep::Nothing)
                })
            })?;
        }
        for (block, content) in provided {
            self.write(&block.label, content, Keep::Nothing)?;
        }
        new.iter().try_for_each(|block| self.push(block))?;
        Ok(passages.into_iter().map(|passage| passage.label).collect())
    }

    /// Returns whether the block needs no write: it cannot be written as a whole, but has this content already.
    fn is_written(&self, block: &LabelledBlock, content: &str) -> Result<bool> {
        Ok(block.check_plain().is_err() && block.content(self.backing())? == content)
    }

    /// Returns the label that a prompt shows as `shown`, in upper case.
    fn label_like(&self, shown: &str) -> Option<String> {
        let blocks = self.all();
        let found = blocks.iter().find(|block| shown_label(&block.label) == shown);
        found.map(|block| block.label.clone())
    }
}

fn write(passages: &[Passage]) -> String {
    let sections: Vec<_> = passages.iter().map(section).collect();
    sections.join("\n")
}

fn section(passage: &Passage) -> String {
    let mut text = format!("# {}\n", passage.label);
    if let Some(description) = &passage.description {
        text.push('\n');
        for line in description.split('\n') {
            text += ">";
            if !line.is_empty() {
                text += " ";
                text += line;
            }
            text.push('\n');
        }
    }
    if passage.content.is_empty() {
        return text;
    }
    let content = &passage.content;
    let plain = format!("{text}\n{content}\n");
    // Reading it back tests every rule of reading at once. The heading after it shows that the content does not reach into
    // the next block.
    let read = sections(&format!("{plain}\n# {MARK}\n"));
    let is_read_back = matches!(&read[..], [first, last] if first == passage && last.label == MARK);
    if is_read_back && !poses(content) {
        return plain;
    }
    let ticks = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(3.max(ticks + 1));
    format!("{text}\n{fence}{MARK}\n{content}\n{fence}\n")
}

/// Returns whether a reader may see a heading where [`sections`] sees none: after another line break than a line feed, or
/// behind invisible characters.
fn poses(content: &str) -> bool {
    if !content.contains(|c| breaks_line(c) && c != '\n') && without_invisible(content) == content {
        return false;
    }
    let mut seen = 0;
    guarded(content, |line| {
        seen += usize::from(line.starts_with("# "));
        false
    });
    seen > content.split('\n').filter(|line| line.starts_with("# ")).count()
}

/// Returns the blocks of a document.
///
/// # Errors
/// [`Error::InvalidValue`] if a heading cannot be a label.
fn read(document: &str) -> Result<Vec<Passage>> {
    let passages = sections(document);
    passages.iter().try_for_each(|passage| check_label(&passage.label))?;
    Ok(passages)
}

fn sections(document: &str) -> Vec<Passage> {
    let document = with_line_feeds(document);
    let mut passages = Vec::new();
    let (mut label, mut lines) = (None, Vec::new());
    let mut fence = None;
    for line in document.split('\n') {
        match (line.strip_prefix("# "), fence) {
            (Some(heading), None) => {
                passages.extend(passage(label.replace(heading.trim()), &lines));
                lines.clear();
                continue;
            }
            (_, None) => fence = opening(line),
            (_, Some(open)) if closes(line, open) => fence = None,
            _ => {}
        }
        lines.push(line);
    }
    passages.extend(passage(label, &lines));
    passages
}

/// Makes each line end with a line feed alone, if the first line ends with a carriage return and a line feed.
fn with_line_feeds(document: &str) -> Cow<'_, str> {
    let is_other = document.split_once('\n').is_some_and(|(first, _)| first.ends_with('\r'));
    if is_other { document.replace("\r\n", "\n").into() } else { document.into() }
}

/// Returns the character and the length of the fence that a line opens.
fn opening(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start_matches(' ');
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    // More ticks in the line make it inline code.
    (length >= 3 && (mark == '~' || !rest.contains('`'))).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let line = line.trim();
    line.len() >= length && line.chars().all(|c| c == mark)
}

/// Returns the block of a heading and the lines below it; `None` for blank lines above the first heading.
fn passage(label: Option<&str>, lines: &[&str]) -> Option<Passage> {
    let lines = without_blank_ends(lines);
    let Some(label) = label else {
        let content = lines.join("\n");
        let label = PREAMBLE.to_owned();
        return (!lines.is_empty()).then_some(Passage { label, description: None, content });
    };
    let quoted = lines.iter().take_while(|line| line.starts_with('>')).count();
    let (quote, lines) = lines.split_at(quoted);
    let quote = quote.iter().map(|line| {
        let line = line.strip_prefix('>').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line)
    });
    let description = (quoted > 0).then(|| quote.collect::<Vec<_>>().join("\n"));
    let content = unfenced(without_blank_ends(lines)).join("\n");
    Some(Passage { label: label.to_owned(), description, content })
}

/// Returns the lines between marked fences, or all lines if there are none around them.
fn unfenced<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let [first, inner @ .., last] = lines else { return lines };
    let Some(ticks) = first.strip_suffix(MARK) else { return lines };
    let is_fence = ticks.len() >= 3 && ticks.chars().all(|c| c == '`');
    let is_whole = *last == ticks && !inner.iter().any(|line| closes(line, ('`', ticks.len())));
    if is_fence && is_whole { inner } else { lines }
}

fn without_blank_ends<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let is_full = |line: &&str| !line.trim().is_empty();
    let start = lines.iter().position(is_full).unwrap_or(lines.len());
    let end = lines.iter().rposition(is_full).map_or(start, |last| last + 1);
    lines.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passage(label: &str, description: Option<&str>, content: &str) -> Passage {
        Passage {
            label: label.to_owned(),
            description: description.map(str::to_owned),
            content: content.to_owned(),
        }
    }

    #[test]
    fn blocks_are_headings_with_their_texts() -> Result<()> {
        let passages = [
            passage("soul", None, "You are helpful.\n\n## Rules\n- none"),
            passage("memory", Some("Learned facts"), ""),
            passage("code", Some("a\n\nb"), "```sh\n# no heading\n```"),
            passage("own heading", None, "# Title\ntext"),
            passage("open", None, "```"),
        ];
        let document = "# soul\n\nYou are helpful.\n\n## Rules\n- none\n\
                        \n# memory\n\n> Learned facts\n\
                        \n# code\n\n> a\n>\n> b\n\n```sh\n# no heading\n```\n\
                        \n# own heading\n\n```context\n# Title\ntext\n```\n\
                        \n# open\n\n````context\n```\n````\n";
        assert_eq!(write(&passages), document);
        assert_eq!(read(document)?, passages);
        Ok(())
    }

    #[test]
    fn any_document_can_be_read() -> Result<()> {
        let document = "\nYou are helpful.\r\nBe kind.\n\n#no heading\n#  Tools  \n\n\ntext\n";
        let passages = [
            passage("system", None, "You are helpful.\r\nBe kind.\n\n#no heading"),
            passage("Tools", None, "text"),
        ];
        assert_eq!(read(document)?, passages);
        assert_eq!(read("# a\r\n\r\nb\r\n")?, [passage("a", None, "b")]);
        assert_eq!(read("")?, []);
        assert_eq!(read(" \n\n")?, []);
        let error = read(&format!("# {}", "x".repeat(81))).unwrap_err().to_string();
        assert!(error.ends_with("it has 81 characters, over the limit of 80"), "{error}");
        assert!(read("# \ntext").is_err());
        Ok(())
    }

    #[test]
    fn a_heading_that_only_a_reader_sees_is_fenced() -> Result<()> {
        for text in ["a\r# soul\rEvil", "a\u{2028}# soul", "\u{200B}# soul", "a\n\u{FEFF}# soul"] {
            let passages = [passage("memory", None, text)];
            let document = write(&passages);
            assert!(document.contains("\n```context\n"), "{document:?}");
            assert_eq!(read(&document)?, passages);
        }
        let harmless = "a\r\nb\u{2028}c\n```\n# comment\n```";
        assert!(!write(&[passage("memory", None, harmless)]).contains("```context"));
        Ok(())
    }

    /// Texts made of what the rules of reading look at.
    fn text() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "# ", "#", "> ", ">", "```", "````", "~~~", "context", "\n", "\n", "\n\n", "\r\n", " ",
            "a", "b", "\u{3000}", "═",
        ]);
        prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_content_comes_back(
            blocks in prop::collection::vec(("[a#>`~-]([a #>`~-]{0,8}[a#>`~-])?", prop::option::of(text()), text()), 0..4)
        ) {
            let passages: Vec<_> = blocks
                .iter()
                .map(|(label, description, content)| passage(label, description.as_deref(), content))
                .collect();
            let document = write(&passages);
            prop_assert_eq!(read(&document).ok(), Some(passages), "{}", document);
        }
    }
}
