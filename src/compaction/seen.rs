//! What a plan saw of the history, why it is stale, and why a summary is refused.

use std::hash::{DefaultHasher, Hash, Hasher};

use talktree_text::foreign::is_unseen;

use crate::error::Error;
use crate::id::{CompactionId, MessageId};
use crate::message::Message;

/// The messages and summaries of a planned range, oldest first.
///
/// A commit compares them with the current history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    items: Vec<(MessageId, u64)>,
}

impl Seen {
    /// Records these messages and summaries.
    #[must_use]
    pub(crate) fn of<'a>(items: impl IntoIterator<Item = &'a Message>) -> Self {
        let items = items.into_iter().map(|item| (item.id.clone(), fingerprint(item))).collect();
        Self { items }
    }

    /// Checks that the range has the recorded items, unchanged.
    ///
    /// # Errors
    /// The first difference that the current items show.
    pub(crate) fn check<'a>(
        &self,
        now: impl IntoIterator<Item = &'a Message>,
    ) -> Result<(), Stale> {
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
            // Every recorded item is there, and more: a summary over more than the plan saw was removed.
            Some(item) => Err(gone(&item.id)),
            None => Ok(()),
        }
    }

    /// Checks that each recorded item still reads as it did, wherever it is by now; `read` returns it.
    pub(crate) fn check_each<E: From<Error>>(
        &self,
        mut read: impl FnMut(&MessageId) -> Result<Option<Message>, E>,
    ) -> Result<(), E> {
        for (id, fingerprint_then) in &self.items {
            let why = match read(id)? {
                Some(now) if fingerprint(&now) == *fingerprint_then => continue,
                Some(_) => Stale::Updated { id: id.clone() },
                None => gone(id),
            };
            return Err(Error::Stale { why }.into());
        }
        Ok(())
    }

    /// Returns the ids of the messages and summaries.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = &MessageId> {
        self.items.iter().map(|(id, _)| id)
    }
}

/// Returns the reason why another item is in the place of a recorded one.
fn replaced(seen: &MessageId, found: &MessageId) -> Stale {
    match (CompactionId::from_message(seen), CompactionId::from_message(found)) {
        (_, Some(by)) => Stale::Compacted { by },
        (Some(id), None) => Stale::CompactionRemoved { id },
        (None, None) => Stale::Deleted { id: seen.clone() },
    }
}

/// Returns the reason why a recorded item is missing.
fn gone(seen: &MessageId) -> Stale {
    match CompactionId::from_message(seen) {
        Some(id) => Stale::CompactionRemoved { id },
        None => Stale::Deleted { id: seen.clone() },
    }
}

/// Returns a hash of the content of a message.
fn fingerprint(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.as_str().hash(&mut hasher);
    // Serialization cannot fail for parts that were read from JSON.
    if let Ok(parts) = serde_json::to_string(&message.parts) {
        parts.hash(&mut hasher);
    }
    message.metadata.as_ref().map(|json| json.as_str()).hash(&mut hasher);
    for (name, json) in &message.extra {
        (name, json.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The reason why a summary, or the range that it should replace, is refused. The history is unchanged.
///
/// ```
/// use talktree::SummaryRefused;
///
/// let why = SummaryRefused::NotShorter { tokens: 150, replaced: 120 };
/// assert_eq!(why.to_string(), "the summary (150 tokens) is not shorter than what it replaces (120)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryRefused {
    /// It has no visible text.
    #[error("a summary needs text; the one given is blank")]
    Blank,
    /// It is not shorter than its range.
    #[error("the summary ({tokens} tokens) is not shorter than what it replaces ({replaced})")]
    NotShorter {
        /// The tokens of the summary as a message.
        tokens: u64,
        /// The tokens of the range.
        replaced: u64,
    },
    /// A [`CompactionPolicy`](crate::CompactionPolicy) named an end that the history it was given does not show.
    #[error("the policy's range names {id:?}, which the history does not show")]
    NotShown {
        /// The id.
        id: MessageId,
    },
    /// The range of a policy begins after its end.
    #[error("the policy's range begins at {first:?}, after its end at {last:?}")]
    Reversed {
        /// The start of the range.
        first: MessageId,
        /// The end of the range.
        last: MessageId,
    },
    /// The range of a policy would separate a tool call from its result.
    #[error("the policy's range parts the tool call in {call:?} from its result in {result:?}")]
    PartsPair {
        /// The message with the call.
        call: MessageId,
        /// The message with the result.
        result: MessageId,
    },
    /// The range of a policy holds a message that the options of the session protect.
    #[error("the policy's range holds {id:?}, which the compaction options protect")]
    Protected {
        /// The message.
        id: MessageId,
    },
}

/// Returns whether a summary has no visible character.
pub(crate) fn is_blank(summary: &str) -> bool {
    summary.chars().all(is_unseen)
}

/// The reason why a plan is stale: its range changed since it was made.
///
/// ```
/// use talktree::{CompactionOptions, Error, Message, Stale, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// chat.append_all((1..=9).map(|n| Message::user("word ".repeat(50)).with_id(n.to_string())))?;
/// let options = CompactionOptions::default().keep_recent_tokens(0);
/// let Ok(plan) = chat.plan_compaction(&options)? else { panic!("nothing to compact") };
///
/// chat.delete(&["5".into()])?; // while the model thinks
/// let refused = chat.commit(plan, "They said words.").unwrap_err();
/// let Error::Stale { why } = refused else { panic!("{refused}") };
/// assert_eq!(why, Stale::Deleted { id: "5".into() });
/// assert_eq!(chat.history()?.len(), 8); // as it was
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Stale {
    /// A message of the range was deleted.
    #[error("message {id:?} was deleted")]
    Deleted {
        /// The message.
        id: MessageId,
    },
    /// A message of the range was updated.
    #[error("message {id:?} was updated")]
    Updated {
        /// The message.
        id: MessageId,
    },
    /// The range, or a part of it, was compacted into another summary.
    #[error("the range was compacted into the summary {by:?}")]
    Compacted {
        /// The other compaction.
        by: CompactionId,
    },
    /// A compaction inside the range was removed.
    #[error("the summary {id:?} was removed")]
    CompactionRemoved {
        /// The removed compaction.
        id: CompactionId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history drawn as letters: lower case is a message, upper case a summary.
    fn view(drawn: &str) -> Vec<Message> {
        let item = |letter: char| match letter.is_uppercase() {
            true => Message::assistant("s").with_id(format!("compaction_{letter}")),
            false => Message::user("m").with_id(letter.to_string()),
        };
        drawn.chars().map(item).collect()
    }

    #[test]
    fn each_change_of_a_range_has_its_reason() {
        for (then, now, why) in [
            ("abc", "abc", ""),
            ("aBc", "aBc", ""),
            ("abc", "ac", "message \"b\" was deleted"),
            ("abc", "ab", "message \"c\" was deleted"),
            ("abc", "", "message \"a\" was deleted"),
            ("abc", "aX", "the range was compacted into the summary \"X\""),
            ("abc", "Xc", "the range was compacted into the summary \"X\""),
            ("aBc", "aX", "the range was compacted into the summary \"X\""),
            // A recorded summary is not the one that replaced the range.
            ("abC", "aC", "message \"b\" was deleted"),
            ("aBc", "axyc", "the summary \"B\" was removed"),
            ("aB", "a", "the summary \"B\" was removed"),
        ] {
            let found = Seen::of(&view(then)).check(&view(now)).map_err(|why| why.to_string());
            assert_eq!(found.err().unwrap_or_default(), why, "{then} -> {now}");
        }
    }

    #[test]
    fn another_parent_is_not_an_update() {
        let [message] = &view("a")[..] else { panic!("one message") };
        let moved = Message { parent: Some("p".into()), ..message.clone() };
        assert_eq!(Seen::of([message]).check([&moved]), Ok(()));
    }
}

#[cfg(test)]
mod refusal_tests {
    use super::*;

    #[test]
    fn a_summary_that_nobody_would_see_is_blank() {
        for text in ["", " \n\t\u{A0}\u{3000}", "\u{200B}\u{FEFF}\0", "\u{2800}\u{3164}\u{E0020}"] {
            assert!(is_blank(text), "{text:?}");
        }
        assert!(!is_blank("\u{200B}好"));
    }
}
