//! Authors: which of many people wrote a message.

use serde_json::{Value, json};

use super::{Extra, Json, Message};

/// The field of the metadata that holds the author.
const FIELD: &str = "author";

/// The field of the metadata that keeps metadata which is not an object.
const VALUE: &str = "value";

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
        self.with_field(FIELD, Value::Object(author).into())
    }

    /// Returns a field of the metadata, also beside numbers that no Rust number can hold.
    pub(crate) fn field(&self, field: &str) -> Option<Json> {
        // Parsing costs more than searching, and most messages have no such field.
        let metadata = self.metadata.as_ref().filter(|json| json.as_str().contains(field))?;
        serde_json::from_str::<Extra>(metadata.as_str()).ok()?.remove(field)
    }

    /// Returns the message with this field in its metadata; the other fields keep their spelling.
    pub(crate) fn with_field(mut self, field: &str, value: Json) -> Self {
        let mut fields = match self.metadata.take() {
            None => Extra::new(),
            Some(metadata) => match serde_json::from_str::<Extra>(metadata.as_str()) {
                Ok(fields) => fields,
                Err(_) if metadata.is_null() => Extra::new(),
                Err(_) => Extra::from([(VALUE.to_owned(), metadata)]),
            },
        };
        fields.insert(field.to_owned(), value);
        // A map of JSON is always JSON.
        let text = serde_json::to_string(&fields).unwrap_or_default();
        self.metadata = Json::parse(&text).ok();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_fields_of_the_metadata_keep_their_spelling() {
        let ada = Author::new("42").named("Ada");
        for (metadata, expected) in [
            (r#"{"n": 1e400, "author": 7}"#, r#"{"author":{"id":"42","name":"Ada"},"n":1e400}"#),
            ("null", r#"{"author":{"id":"42","name":"Ada"}}"#),
            (r#"["x"]"#, r#"{"author":{"id":"42","name":"Ada"},"value":["x"]}"#),
        ] {
            let message = Message::user("hi").with_metadata(Json::parse(metadata).unwrap());
            let message = message.from(&ada);
            assert_eq!(message.metadata.as_ref().unwrap().as_str(), expected);
            assert_eq!(Author::of(&message), Some(ada.clone()));
        }
    }

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
