//! The texts of a context: of blocks, in a frozen prompt, and the elisions of a history.
//!
//! A text belongs to a [`BlockScope`] and has a label and a key: the block's own text has the empty key, a document any
//! other. Each put and each removal is a version. Earlier versions are kept and can be put again. A frozen prompt is
//! stored as its sections. Clearing the session and adding a compaction remove it, and so does a change of the owner.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use talktree_text::foreign;

use crate::id::MessageId;

/// How many versions of a text are kept, the current one included; the oldest are removed first.
pub(crate) const MAX_VERSIONS: u64 = 1_000;

/// The longest description in a list of documents, in characters: every prompt shows the list.
const MAX_DESCRIPTION_CHARS: usize = 1_024;

/// Whose the texts of a block are; the narrowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) enum BlockScope {
    /// One session's: they are removed with the session, and a fork starts with a copy.
    #[default]
    Session,
    /// All sessions' of the session's owner: they stay when a session is removed, and a fork has them, too, because it
    /// has the same owner.
    Owner,
    /// All sessions'.
    Shared,
}

impl BlockScope {
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::Owner, Self::Shared];
}

/// A text under a key. Skills and knowledge are documents.
///
/// ```
/// use talktree::Document;
///
/// let skill = Document::new("pdf", "Use the tool `pdftotext`.").titled("PDF").described("Reads PDFs");
/// assert_eq!(skill.title.as_deref(), Some("PDF"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Document {
    /// The name it is loaded by, unique in its block.
    pub key: String,
    /// The title, for people.
    pub title: Option<String>,
    /// What the document is about, in one line.
    pub description: Option<String>,
    /// The text.
    pub content: String,
}

impl Document {
    /// Returns a document without title and description.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// assert_eq!(Document::new("pdf", "..").key, "pdf");
    /// ```
    #[must_use]
    pub fn new(key: impl Into<String>, content: impl Into<String>) -> Self {
        Self { key: key.into(), content: content.into(), ..Self::default() }
    }

    /// Returns the document with this title.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// assert_eq!(Document::new("pdf", "..").titled("PDF").title.as_deref(), Some("PDF"));
    /// ```
    #[must_use]
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Returns the document with this description.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// let skill = Document::new("pdf", "..").described("Reads PDFs");
    /// assert_eq!(skill.description.as_deref(), Some("Reads PDFs"));
    /// ```
    #[must_use]
    pub fn described(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Returns the line that lists the document in the content of a block of skills: its key and its description or, without
    /// one, its title. No key and no description makes a second line, or reads as another key.
    ///
    /// ```
    /// use talktree::Document;
    ///
    /// let skill = Document::new("pdf", "..").described("Reads PDFs");
    /// assert_eq!(skill.list_line(), "- pdf: Reads PDFs");
    /// ```
    #[must_use]
    pub fn list_line(&self) -> String {
        let about = self.description.as_ref().or(self.title.as_ref());
        let about = about.map(|text| foreign::short_line(text, MAX_DESCRIPTION_CHARS));
        let key = foreign::name(&self.key);
        match about.filter(|text| !text.is_empty()) {
            Some(about) => format!("- {key}: {about}"),
            None => format!("- {key}"),
        }
    }
}

/// One version of a stored text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredText {
    /// The name of the document in its block; empty for the block's own text.
    pub key: String,
    /// The name for people.
    pub title: Option<String>,
    /// One line on what it is about.
    pub description: Option<String>,
    /// The text; `None` in a list of documents, and if this version is a removal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The number of the version, from 1.
    pub version: u64,
    /// When this version was put or removed.
    pub changed_at: DateTime<Utc>,
}

/// A label that has at least one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredLabel {
    pub(crate) label: String,
    /// Whether the block has its own text, under the empty key.
    pub(crate) has_text: bool,
    /// Whether it has documents that can be searched.
    pub(crate) is_searchable: bool,
}

/// A marker that replaces the output of a tool call when a history is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Elision {
    pub(crate) message: MessageId,
    /// The id of the tool call.
    pub(crate) call: String,
    /// What a history shows instead of the output.
    pub(crate) marker: String,
}

/// One section of a frozen prompt: its header, a line break, its content. The prompt joins all sections with an empty
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PromptSection {
    /// The label of the block.
    pub(crate) label: String,
    /// The line above the content.
    pub(crate) header: String,
    /// The content of the block when the prompt was frozen.
    pub(crate) content: String,
}
