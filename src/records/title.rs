//! The title of a conversation that has none.

use super::fields::Fields;
use super::ids::name;
use crate::message::{Message, Role};

/// The longest title, in characters.
const MAX_CHARS: usize = 80;

/// Finds a title for a conversation that has none: the first line that a person wrote.
///
/// Programs write notes in the name of the user, in tags or marked in the metadata. A line of these is the title only if
/// there is no other.
///
/// ```
/// use talktree::Message;
/// use talktree::records::Title;
///
/// let mut title = Title::default();
/// for text in ["<now>Friday</now>", "Where is the museum?\nIt is late.", "Thanks."] {
///     title.add(&Message::user(text));
/// }
/// assert_eq!(title.line(), Some("Where is the museum?"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Title {
    /// The first line that a person wrote.
    written: Option<String>,
    /// The first line that a program wrote in a person's name.
    tagged: Option<String>,
}

impl Title {
    /// Takes the next message of the conversation.
    ///
    /// ```
    /// use talktree::Message;
    /// use talktree::records::Title;
    ///
    /// let mut title = Title::default();
    /// title.add(&Message::assistant("Welcome!"));
    /// assert_eq!(title.line(), None);
    /// ```
    pub fn add(&mut self, message: &Message) {
        if self.is_final() || message.is_hidden || message.role != Role::User {
            return;
        }
        let Some(line) = name(&message.text()) else { return };
        let line = match line.char_indices().nth(MAX_CHARS) {
            None => line,
            // At the end of a word, if it has words.
            Some((end, _)) => {
                let cut = &line[..end];
                cut.rsplit_once(' ').map_or(cut, |(words, _)| words.trim_end()).to_owned()
            }
        };
        let about = message.metadata.as_ref().and_then(Fields::of).unwrap_or_default();
        match line.starts_with('<') || about.is_true("isMeta") || about.has("kind") {
            true => drop(self.tagged.get_or_insert(line)),
            false => self.written = Some(line),
        }
    }

    /// Returns whether no later message can change the title.
    ///
    /// ```
    /// use talktree::Message;
    /// use talktree::records::Title;
    ///
    /// let mut title = Title::default();
    /// title.add(&Message::user("<now>Friday</now>"));
    /// assert!(!title.is_final());
    /// ```
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.written.is_some()
    }

    /// Returns the title so far, one line of at most 80 characters; `None` if no user wrote a text.
    ///
    /// ```
    /// assert_eq!(talktree::records::Title::default().line(), None);
    /// ```
    #[must_use]
    pub fn line(&self) -> Option<&str> {
        self.written.as_deref().or(self.tagged.as_deref())
    }
}
