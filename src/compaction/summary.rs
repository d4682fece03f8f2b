//! The answer of a summarizer.

use super::is_blank;
use crate::message::Json;

/// The text of a summary, with its origin.
///
/// ```
/// use talktree::Summary;
///
/// let summary = Summary::new("They deploy on Friday.").by("small-1").details(serde_json::json!({"cost": 0.01}));
/// assert_eq!(summary.text(), "They deploy on Friday.");
/// assert_eq!(Summary::from("They deploy."), Summary::new("They deploy."));
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[must_use = "a summary does nothing until it is committed"]
pub struct Summary {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
    pub(crate) details: Option<Json>,
}

impl Summary {
    /// Returns a summary of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the model that wrote the summary. The compaction keeps it.
    pub fn by(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets details that the compaction keeps.
    pub fn details(mut self, details: impl Into<Json>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it has no text that can be seen; a blank summary is refused.
    ///
    /// ```
    /// use talktree::Summary;
    ///
    /// assert!(Summary::new(" \n\u{200B}").is_blank());
    /// assert!(!Summary::new("They deploy on Friday.").is_blank());
    /// ```
    #[must_use]
    pub fn is_blank(&self) -> bool {
        is_blank(&self.text)
    }
}

impl From<String> for Summary {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Summary {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
