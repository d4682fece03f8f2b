//! The fields that an object of a request may have.

use serde_json::Value;

use super::Report;

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Is {
    /// Checked elsewhere, or not at all.
    Any,
    Text,
    Flag,
    Object,
    List,
    /// Text or a list.
    Content,
    One(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
    /// May be missing or null.
    Null,
    /// Must be there, and may be null.
    MustOrNull,
}

/// A field by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field(&'static str, Is, Need);

pub(super) const fn must(name: &'static str, is: Is) -> Field {
    Field(name, is, Need::Must)
}

pub(super) const fn may(name: &'static str, is: Is) -> Field {
    Field(name, is, Need::May)
}

pub(super) const fn null(name: &'static str, is: Is) -> Field {
    Field(name, is, Need::Null)
}

pub(super) const fn must_or_null(name: &'static str, is: Is) -> Field {
    Field(name, is, Need::MustOrNull)
}

impl Is {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Content => value.is_string() || value.is_array(),
            Self::One(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Any => "anything".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Object => "an object".to_owned(),
            Self::List => "a list".to_owned(),
            Self::Content => "a string or a list".to_owned(),
            Self::One(words) => format!("one of {}", words.join(", ")),
        }
    }
}

impl Report {
    /// Checks that an object has these fields and no others; `type` is checked by the caller.
    pub(super) fn fields(&mut self, place: &str, object: &Value, fields: &[Field]) {
        let Some(given) = object.as_object() else { return self.add(place, "is not an object") };
        for Field(name, is, need) in fields {
            match given.get(*name) {
                None if matches!(need, Need::May | Need::Null) => {}
                None => self.add(format!("{place}.{name}"), "is missing"),
                Some(Value::Null) if matches!(need, Need::Null | Need::MustOrNull) => {}
                Some(value) if is.fits(value) => {}
                Some(_) => self.add(format!("{place}.{name}"), format!("is not {}", is.name())),
            }
        }
        for name in given.keys() {
            if name != "type" && !fields.iter().any(|field| field.0 == name) {
                self.add(format!("{place}.{name}"), "is not a field that is accepted here");
            }
        }
    }
}
