//! Authors: which of many people wrote a message.

use serde_json::{Value, json};
use talktree_text::foreign::name;

use super::{Message, Role};

/// The field of the metadata that holds the author.
const FIELD: &str = "author";

/// A person who writes in a conversation.
///
/// [`Message::from`] stores it with a message; a model sees it if the request shows its [line](AuthorLine). The time is that of the message, which [`Message::at`] sets.
///
/// ```
/// use talktree::{Author, Message};
///
/// let ada = Author::new("telegram:42").named("Ada");
/// let message = Message::user("Can we deploy on Friday?").from(&ada);
/// assert_eq!(message.metadata.as_ref().unwrap().value()["author"]["name"], "Ada");
/// assert_eq!(Author::of(&message), Some(ada));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub struct Author {
    /// The id of the person, in whatever form the program has it.
    pub id: Option<String>,
    /// The name of the person.
    pub name: Option<String>,
}

impl Author {
    /// Returns an author of this id.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), name: None }
    }

    /// Returns the author with this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns the author of a message; `None` if it names none.
    ///
    /// It is read from the field `author` of the metadata: an object with `id` and `name`, or a name.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        let author = message.field(FIELD)?.value();
        let text = |value: &Value| match value {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let name = if author.is_string() { text(&author) } else { text(&author["name"]) };
        let author = Self { id: text(&author["id"]), name };
        (author != Self::default()).then_some(author)
    }

    /// Returns what searches, lists, usage and erasures know the author by: the id, or without one the name, without blanks
    /// around it.
    ///
    /// ```
    /// use talktree::Author;
    ///
    /// assert_eq!(Author::new("telegram:42").named("Ada").key(), Some("telegram:42"));
    /// assert_eq!(Author::default().named("Ada").key(), Some("Ada"));
    /// ```
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let given = [&self.id, &self.name].into_iter().flatten();
        let mut keys = given.map(|text| text.trim_matches(['\t', '\n', '\x0c', '\r', ' ']));
        keys.find(|key| !key.is_empty())
    }
}

/// The line that names the author of a user message to a model: `[from Ada (id 42)]`.
///
/// Requests show it, and the [tokens](Message::tokens) of a message include it. A name that could be taken for more than a name
/// is in quotation marks.
///
/// ```
/// use talktree::{Author, AuthorLine, Message};
///
/// let time = "2026-01-31T14:05:00Z".parse().unwrap();
/// let message = Message::user("hi").from(&Author::new("42").named("Ada")).at(time);
/// let line = AuthorLine::NameAndTime.of(&message).unwrap();
/// assert_eq!(line, "[from Ada (id 42), 2026-01-31 14:05 UTC]");
/// assert!(line.starts_with(AuthorLine::START));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthorLine {
    /// The name and the id.
    Name,
    /// The name, the id and the time of the message, in UTC.
    NameAndTime,
}

impl AuthorLine {
    /// What each such line begins with.
    pub const START: &str = "[from ";

    /// Returns the line; `None` if the message is not a user's, names no author, or has only results of tools, which nobody
    /// writes.
    #[must_use]
    pub fn of(self, message: &Message) -> Option<String> {
        if message.role != Role::User {
            return None;
        }
        let author = Author::of(message)?;
        if message.parts.iter().all(|part| part.tool().is_some()) {
            return None;
        }
        let who = match (&author.name, &author.id) {
            (Some(of), Some(id)) => format!("{} (id {})", name(of), name(id)),
            (Some(of), None) => name(of).into_owned(),
            (None, Some(id)) => format!("id {}", name(id)),
            (None, None) => return None,
        };
        Some(match self {
            Self::Name => format!("{}{who}]", Self::START),
            Self::NameAndTime => {
                let time = message.created_at.format("%Y-%m-%d %H:%M UTC");
                format!("{}{who}, {time}]", Self::START)
            }
        })
    }
}

impl Message {
    /// Returns the message with its author in the field `author` of its metadata.
    ///
    /// The other fields of the metadata stay; metadata that is not an object moves to its field `value`.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::{Author, Message};
    ///
    /// let message = Message::user("hi").with_metadata(json!({"chat": 7})).from(&Author::new("42"));
    /// let metadata = message.metadata.unwrap().value();
    /// assert_eq!(metadata, json!({"author": {"id": "42"}, "chat": 7}));
    /// ```
    #[must_use]
    pub fn from(self, author: &Author) -> Self {
        let fields = [("id", &author.id), ("name", &author.name)];
        let fields = fields.into_iter().filter_map(|(field, text)| Some((field, text.as_ref()?)));
        let author: serde_json::Map<String, Value> =
            fields.map(|(field, text)| (field.to_owned(), json!(text))).collect();
        self.with_field(FIELD, Value::Object(author))
    }

    /// Returns whether the author of the message has this key.
    pub(crate) fn is_written_by(&self, key: &str) -> bool {
        Author::of(self).is_some_and(|author| author.key() == Some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_read_in_the_forms_of_others() {
        let of = |author: Value| {
            Author::of(&Message::user("hi").with_metadata(json!({"author": author})))
        };
        assert_eq!(of(json!("Ada")), Some(Author { name: Some("Ada".to_owned()), id: None }));
        assert_eq!(of(json!({"id": 42})), Some(Author::new("42")));
        for none in [json!(null), json!(""), json!({}), json!({"name": " ", "id": []}), json!([1])]
        {
            assert_eq!(of(none.clone()), None, "{none}");
        }
        for none in [json!("author"), json!(["author"]), json!(7)] {
            assert_eq!(Author::of(&Message::user("author").with_metadata(none)), None);
        }
    }
}
