//! What a reader sees of one session, all of it.

use talktree::{Result, Session};

/// A session as its readers see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Id, parent and text, in order of creation.
    pub(crate) messages: Vec<(String, Option<String>, String)>,
    pub(crate) head: Option<String>,
    /// Name and message.
    pub(crate) labels: Vec<(String, String)>,
    /// Id, first and last message.
    pub(crate) folds: Vec<(String, String, String)>,
    /// The ids that the history shows.
    pub(crate) view: Vec<String>,
    /// The ids on the path to the head.
    pub(crate) raw: Vec<String>,
}

impl State {
    /// Reads a session.
    pub(crate) fn of(chat: &Session) -> Result<Self> {
        let text = |id: &talktree::MessageId| id.to_string();
        let messages = chat.all_messages().map(|message| {
            let message = message?;
            Ok((message.id.to_string(), message.parent.as_ref().map(text), message.text()))
        });
        let folds = chat.compactions()?.into_iter();
        let mut labels: Vec<_> =
            chat.labels()?.into_iter().map(|label| (label.name, label.id.to_string())).collect();
        labels.sort();
        Ok(Self {
            messages: messages.collect::<Result<_>>()?,
            head: chat.head()?.as_ref().map(text),
            labels,
            folds: folds
                .map(|fold| (fold.id.to_string(), fold.first.to_string(), fold.last.to_string()))
                .collect(),
            view: chat.history()?.iter().map(|message| message.id.to_string()).collect(),
            raw: chat.raw_history()?.iter().map(|message| message.id.to_string()).collect(),
        })
    }

    /// Returns what is seen otherwise than it should be; `None` if all is equal.
    pub(crate) fn difference(&self, should: &Self) -> Option<String> {
        first_difference("messages", &self.messages, &should.messages)
            .or_else(|| {
                let (is, should) = (&self.head, &should.head);
                (is != should).then(|| format!("the head is {is:?}, not {should:?}"))
            })
            .or_else(|| first_difference("labels", &self.labels, &should.labels))
            .or_else(|| first_difference("compactions", &self.folds, &should.folds))
            .or_else(|| first_difference("the history", &self.view, &should.view))
            .or_else(|| first_difference("the raw history", &self.raw, &should.raw))
    }
}

/// Returns where two lists part ways.
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

/// Returns the beginning of what a value looks like.
pub(crate) fn short(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take(160).collect()
}
