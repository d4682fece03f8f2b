//! What a plan saw of a stretch: enough to tell later whether it still stands.
//!
//! Each item of the view is kept by its id and a fingerprint of what it said. What lies hidden
//! under a summary is not looked at: the plan was made from the summary.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Stale;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;

/// The items of a stretch of a view as they were, oldest first.
///
/// A storage compares it with the view it has now, in [`SessionProvider::compact`](crate::SessionProvider::compact).
///
/// ```
/// use talktree::{Message, Seen, Stale};
///
/// let view = [Message::user("hello").with_id("a"), Message::assistant("hi").with_id("b")];
/// let seen = Seen::of(&view);
/// assert_eq!(seen.check(&view), Ok(()));
///
/// let now = [view[0].clone(), Message::assistant("hi there").with_id("b")];
/// assert_eq!(seen.check(&now), Err(Stale::Updated { id: "b".into() }));
/// assert_eq!(seen.check(&now[..1]), Err(Stale::Deleted { id: "b".into() }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    items: Vec<(MessageId, u64)>,
}

impl Seen {
    /// Returns what is to be remembered of these messages and summaries.
    #[must_use]
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Message>) -> Self {
        let items = items.into_iter().map(|item| (item.id.clone(), fingerprint(item))).collect();
        Self { items }
    }

    /// Returns whether the stretch holds just what was seen, unchanged.
    ///
    /// # Errors
    /// The first difference, as far as can be told from what is there now.
    pub fn check<'a>(&self, now: impl IntoIterator<Item = &'a Message>) -> Result<(), Stale> {
        let mut now = now.into_iter();
        for (id, fingerprint_then) in &self.items {
            match now.next() {
                Some(item) if item.id != *id => {
                    let is_next = self.ids().any(|seen| *seen == item.id);
                    return Err(if is_next { gone(id) } else { replaced(id, &item.id) });
                }
                Some(item) if fingerprint(item) != *fingerprint_then => {
                    return Err(Stale::Updated { id: id.clone() });
                }
                Some(_) => {}
                None => return Err(gone(id)),
            }
        }
        match now.next() {
            // Neighbours come together only where a summary went that stood for more than the plan saw.
            Some(item) => Err(gone(&item.id)),
            None => Ok(()),
        }
    }

    /// Returns the ids of the items, messages and summaries alike.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &MessageId> {
        self.items.iter().map(|(id, _)| id)
    }
}

/// Returns why another item stands where one was seen.
fn replaced(seen: &MessageId, found: &MessageId) -> Stale {
    match (CompactionId::from_message(seen), CompactionId::from_message(found)) {
        (_, Some(by)) => Stale::Compacted { by },
        (Some(id), None) => Stale::CompactionRemoved { id },
        (None, None) => Stale::Deleted { id: seen.clone() },
    }
}

/// Returns why an item is not where it was seen.
fn gone(seen: &MessageId) -> Stale {
    match CompactionId::from_message(seen) {
        Some(id) => Stale::CompactionRemoved { id },
        None => Stale::Deleted { id: seen.clone() },
    }
}

/// Returns a number that two messages share only if they say the same.
fn fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.as_str().hash(&mut hasher);
    // What cannot be written as JSON cannot have been read either.
    if let Ok(parts) = serde_json::to_string(&message.parts) {
        parts.hash(&mut hasher);
    }
    message.metadata.as_ref().map(|json| json.as_str()).hash(&mut hasher);
    for (name, json) in &message.extra {
        (name, json.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view of letters: lower case is a message, upper case a summary.
    fn view(drawn: &str) -> Vec<Message> {
        let item = |letter: char| match letter.is_uppercase() {
            true => Message::assistant("s").with_id(format!("compaction_{letter}")),
            false => Message::user("m").with_id(letter.to_string()),
        };
        drawn.chars().map(item).collect()
    }

    #[test]
    fn what_became_of_a_stretch_is_told() {
        for (then, now, why) in [
            ("abc", "abc", ""),
            ("aBc", "aBc", ""),
            ("abc", "ac", "message \"b\" was deleted"),
            ("abc", "ab", "message \"c\" was deleted"),
            ("abc", "", "message \"a\" was deleted"),
            ("abc", "aX", "it was compacted under the summary \"X\""),
            ("abc", "Xc", "it was compacted under the summary \"X\""),
            ("aBc", "aX", "it was compacted under the summary \"X\""),
            // A summary that was seen itself lies over nothing else.
            ("abC", "aC", "message \"b\" was deleted"),
            ("aBc", "axyc", "the summary \"B\" was taken off"),
            ("aB", "a", "the summary \"B\" was taken off"),
        ] {
            let found = Seen::of(&view(then)).check(&view(now)).map_err(|why| why.to_string());
            assert_eq!(found.err().unwrap_or_default(), why, "{then} -> {now}");
        }
    }

    #[test]
    fn a_new_place_in_the_tree_is_no_update() {
        let [message] = &view("a")[..] else { panic!("one message") };
        let moved = Message { parent: Some("p".into()), ..message.clone() };
        assert_eq!(Seen::of([message]).check([&moved]), Ok(()));
    }
}
