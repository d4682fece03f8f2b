//! A JSON object whose members are replaced, added and removed; the others keep their text.

use std::borrow::Cow;
use std::collections::HashMap;

use super::text;

/// A name, decoded, and its value; `None`: it was removed.
type Member<'a> = (Cow<'a, [u8]>, Option<Cow<'a, str>>);

/// The members of an object, in order. Of a name that occurred twice, the last value is there, at the first place.
pub(super) struct Object<'a> {
    members: Vec<Member<'a>>,
    places: HashMap<Cow<'a, [u8]>, usize>,
}

impl<'a> Object<'a> {
    /// Reads an object; another value has no members.
    pub(super) fn of(token: &'a str) -> Self {
        let mut object = Self { members: Vec::new(), places: HashMap::new() };
        for (name, value) in text::members(token) {
            let name = text::decode(name).unwrap_or_default();
            object.put(name, Cow::Borrowed(value));
        }
        object
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let place = *self.places.get(name.as_bytes())?;
        self.members[place].1.as_deref()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub(super) fn set(&mut self, name: &'a str, value: impl Into<Cow<'a, str>>) {
        self.put(Cow::Borrowed(name.as_bytes()), value.into());
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(place) = self.places.remove(name.as_bytes()) {
            self.members[place].1 = None;
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::from("{");
        for (name, value) in &self.members {
            let Some(value) = value else { continue };
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&text::encode(name));
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        text
    }

    fn put(&mut self, name: Cow<'a, [u8]>, value: Cow<'a, str>) {
        match self.places.get(&name) {
            Some(place) => self.members[*place].1 = Some(value),
            None => {
                self.places.insert(name.clone(), self.members.len());
                self.members.push((name, Some(value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_replaced_added_and_removed() {
        let mut object = Object::of(r#"{"a": 1, "\ud800": [1, 2], "\u0061": 3, "b": null}"#);
        assert_eq!((object.get("a"), object.has("b"), object.has("c")), (Some("3"), true, false));
        object.set("c", "{}");
        object.set("b", "4".to_owned());
        object.remove("a");
        object.remove("nothing");
        assert_eq!(object.to_text(), r#"{"\ud800":[1, 2],"b":4,"c":{}}"#);
        object.set("a", "5");
        assert_eq!(object.get("a"), Some("5"));
        assert_eq!(Object::of("[1]").to_text(), "{}");
    }
}
