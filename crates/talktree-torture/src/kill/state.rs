//! Everything that a reader sees of one session.

use std::collections::BTreeMap;

use talktree::{CompactionId, Message, MessageId, Result, Session};

/// A session as its readers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Id, parent and text, in order of creation.
    pub(crate) messages: Vec<(String, Option<String>, String)>,
    pub(crate) head: Option<String>,
    /// Name and message.
    pub(crate) labels: Vec<(String, String)>,
    /// Summary, first and last message.
    pub(crate) compactions: Vec<(String, String, String)>,
    /// The ids in the history.
    pub(crate) view: Vec<String>,
    /// The ids on the path to the head.
    pub(crate) raw: Vec<String>,
}

impl State {
    /// Reads a session.
    pub(crate) fn of(chat: &Session) -> Result<Self> {
        let stored: Vec<Message> = chat.all_messages().collect::<Result<_>>()?;
        let names: BTreeMap<&MessageId, String> =
            stored.iter().map(|message| (&message.id, name_of(message))).collect();
        // An id that is not stored gets a name that equals no other.
        let text = |id: &MessageId| names.get(id).cloned().unwrap_or_else(|| format!("{id:?}?"));
        let messages = stored
            .iter()
            .map(|message| (name_of(message), message.parent.as_ref().map(text), message.text()));
        let compactions = chat.compactions()?.into_iter();
        let mut labels: Vec<_> =
            chat.labels()?.into_iter().map(|label| (label.name, label.id.to_string())).collect();
        labels.sort();
        Ok(Self {
            messages: messages.collect(),
            head: chat.head()?.as_ref().map(text),
            labels,
            compactions: compactions
                .map(|compaction| {
                    (compaction.summary, text(&compaction.first), text(&compaction.last))
                })
                .collect(),
            view: chat.history()?.iter().map(name_of).collect(),
            raw: chat.raw_history()?.iter().map(name_of).collect(),
        })
    }

    /// Returns the first difference; `None` if the states are equal.
    pub(crate) fn difference(&self, should: &Self) -> Option<String> {
        first_difference("messages", &self.messages, &should.messages)
            .or_else(|| {
                let (is, should) = (&self.head, &should.head);
                (is != should).then(|| format!("the head is {is:?}, not {should:?}"))
            })
            .or_else(|| first_difference("labels", &self.labels, &should.labels))
            .or_else(|| first_difference("compactions", &self.compactions, &should.compactions))
            .or_else(|| first_difference("the history", &self.view, &should.view))
            .or_else(|| first_difference("the raw history", &self.raw, &should.raw))
    }
}

/// Returns the model's name of a message: its id, the text of a compaction, or the first word of a branch summary.
pub(crate) fn name_of(message: &Message) -> String {
    let is_of_branch = message
        .metadata
        .as_ref()
        .is_some_and(|metadata| metadata.value().get("branch_summary").is_some());
    match CompactionId::from_message(&message.id) {
        Some(_) => message.text(),
        None if is_of_branch => message.text().split(' ').next().unwrap_or_default().to_owned(),
        None => message.id.to_string(),
    }
}

/// Returns the first difference between two lists.
fn first_difference<T: PartialEq + std::fmt::Debug>(
    what: &str,
    is: &[T],
    should: &[T],
) -> Option<String> {
    let at = is.iter().zip(should).take_while(|(is, should)| is == should).count();
    (at < is.len() || at < should.len()).then(|| {
        let (found, expected) = (short(&is.get(at)), short(&should.get(at)));
        format!(
            "{what}: {} instead of {}; number {at} is {found}, not {expected}",
            is.len(),
            should.len()
        )
    })
}

/// Returns the beginning of a value's debug text.
pub(crate) fn short(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take(160).collect()
}
