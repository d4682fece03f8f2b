//! Authors: which of many people wrote a message.

use serde_json::{Value, json};

use super::{Message, Role, tool_of};
use crate::foreign::name;

/// The field of the metadata that holds the author.
const FIELD: &str = "author";

/// The beginning of the line that names an author to a model.
pub(crate) const AUTHOR_MARK: &str = "[from ";

/// A person who writes in a conversation.
///
/// [`Message::from`] stores it with a message; a model sees it if the request shows it
/// ([`name_authors`](crate::model::name_authors)). The time is that of the message, which [`Message::at`] sets.
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

    /// Returns the line that names the author of a user message to a model; `None` if the message has no author, or only
    /// results of tools, which nobody says.
    pub(crate) fn author_line(&self) -> Option<String> {
        Some(format!("{AUTHOR_MARK}{}]", self.author_to_show()?))
    }

    /// Returns the same line with the time of the message.
    pub(crate) fn author_line_with_time(&self) -> Option<String> {
        let time = self.created_at.format("%Y-%m-%d %H:%M UTC");
        Some(format!("{AUTHOR_MARK}{}, {time}]", self.author_to_show()?))
    }

    fn author_to_show(&self) -> Option<String> {
        if self.role != Role::User {
            return None;
        }
        let author = Author::of(self)?;
        if self.parts.iter().all(|part| tool_of(part).is_some()) {
            return None;
        }
        match (&author.name, &author.id) {
            (Some(of), Some(id)) => Some(format!("{} (id {})", name(of), name(id))),
            (Some(of), None) => Some(name(of).into_owned()),
            (None, Some(id)) => Some(format!("id {}", name(id))),
            (None, None) => None,
        }
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
