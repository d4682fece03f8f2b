//! Reading and writing one field of the metadata.
//!
//! The other fields keep their spelling, because a number may be one that no Rust type can hold.

use serde_json::Value;

use super::{Extra, Json, Message};

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
