//! Who wrote a message, and the other values of its metadata that talktree knows.

use serde_json::{Value, json};
use talktree_text::foreign::name;

use super::{Extra, Json, Message, Role};
use crate::id::MAX_ID_BYTES;

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
    /// around it. One of more than [`MAX_ID_BYTES`] is none.
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
        let given = given.filter(|text| text.len() <= MAX_ID_BYTES);
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

/// The field that keeps metadata which is not an object.
const VALUE: &str = "value";

/// The field that marks a message as unfinished.
const UNFINISHED: &str = "unfinished";

impl Message {
    /// Returns a field of the metadata; `None` if there is none, or if the metadata is no object.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Message;
    ///
    /// let message = Message::user("hi").with_field("telegram", json!([17, 18]));
    /// assert_eq!(message.field("telegram").unwrap().value(), json!([17, 18]));
    /// assert_eq!(message.field("slack"), None);
    /// ```
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Json> {
        // Parsing costs more than searching, and most messages have no such field. A name may be written with escapes.
        let may_have = |json: &&Json| json.as_str().contains(name) || json.as_str().contains('\\');
        let metadata = self.metadata.as_ref().filter(may_have)?;
        serde_json::from_str::<Extra>(metadata.as_str()).ok()?.remove(name)
    }

    /// Returns the message as an unfinished one: hidden, with `unfinished` in its metadata. A reply is one while it is
    /// streamed.
    ///
    /// ```
    /// use talktree::Message;
    ///
    /// let reply = Message::assistant("The ans").unfinished();
    /// assert!(reply.is_unfinished() && reply.is_hidden);
    /// ```
    #[must_use]
    pub fn unfinished(self) -> Self {
        self.hidden().with_field(UNFINISHED, Value::Bool(true))
    }

    /// Returns whether the message is [unfinished](Self::unfinished).
    ///
    /// ```
    /// use talktree::Message;
    ///
    /// assert!(!Message::assistant("The answer is 4.").hidden().is_unfinished());
    /// ```
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.is_hidden && self.field(UNFINISHED).is_some_and(|mark| mark.as_str() == "true")
    }

    /// Returns the message without the mark of an unfinished one.
    pub(crate) fn finished(mut self) -> Self {
        if self.is_unfinished() {
            let mut fields = self.take_fields();
            fields.remove(UNFINISHED);
            self.set_fields(&fields);
        }
        self.is_hidden = false;
        self
    }

    /// Returns the message with this field in its metadata. Metadata that is no object becomes its field `value`.
    ///
    /// ```
    /// use serde_json::json;
    /// use talktree::Message;
    ///
    /// let message = Message::user("hi").with_metadata(json!({"topic": 7})).with_field("telegram", json!([17]));
    /// assert_eq!(message.metadata.unwrap().value(), json!({"topic": 7, "telegram": [17]}));
    /// ```
    #[must_use]
    pub fn with_field(mut self, name: &str, value: impl Into<Json>) -> Self {
        let mut fields = self.take_fields();
        fields.insert(name.to_owned(), value.into());
        self.set_fields(&fields);
        self
    }

    fn take_fields(&mut self) -> Extra {
        let Some(metadata) = self.metadata.take() else { return Extra::new() };
        match serde_json::from_str::<Extra>(metadata.as_str()) {
            Ok(fields) => fields,
            Err(_) if metadata.is_null() => Extra::new(),
            Err(_) => Extra::from([(VALUE.to_owned(), metadata)]),
        }
    }

    fn set_fields(&mut self, fields: &Extra) {
        // A map of JSON is always JSON.
        let text = serde_json::to_string(fields).unwrap_or_default();
        self.metadata = Json::parse(&text).ok().filter(|_| !fields.is_empty());
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

#[cfg(test)]
mod metadata_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_may_be_written_with_escapes() {
        let message = Message::user("hi").with_field("a\"b", json!(1));
        assert_eq!(message.field("a\"b"), Some(json!(1).into()));
        let spelled = Json::parse("{\"\\u0061\": 2}").unwrap();
        assert_eq!(Message::user("hi").with_metadata(spelled).field("a"), Some(json!(2).into()));
    }

    #[test]
    fn the_other_fields_keep_their_spelling() {
        for (metadata, expected) in [
            (r#"{"n": 1e400, "a": 7}"#, r#"{"a":[1],"n":1e400}"#),
            ("null", r#"{"a":[1]}"#),
            (r#"["x"]"#, r#"{"a":[1],"value":["x"]}"#),
        ] {
            let message = Message::user("hi").with_metadata(Json::parse(metadata).unwrap());
            let message = message.with_field("a", json!([1]));
            assert_eq!(message.metadata.as_ref().unwrap().as_str(), expected);
            assert_eq!(message.field("a").unwrap().value(), json!([1]));
        }
    }

    #[test]
    fn a_name_that_is_elsewhere_is_no_field() {
        for metadata in [json!("a"), json!(["a"]), json!({"b": "a"}), json!({"b": {"a": 1}})] {
            assert_eq!(Message::user("a").with_metadata(metadata).field("a"), None);
        }
    }
}
