//! What a model saw when it wrote an answer, as it was recorded, or reconstructed.
//!
//! A record says how many messages were shown, the newest of them by hashes of their ids, when the prompt was frozen, and the names of
//! tools. It has no text, and no hash of one: that of a short text gives it away, also after an erasure. So a message that was
//! updated since is shown as it reads now.
//!
//! Without a record the history is reconstructed of the messages above the answer, and of the summaries that were stored before it.
//! Then a summary or a message that was removed since is not in it; and if there are later summaries, tool outputs are whole, and a
//! summary whose first or last message was deleted is left out.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use talktree::{Compaction, Error, Message, MessageId, Path, Result, Session, SessionId, Store};
use uuid::Uuid;

use crate::Conversation;

/// The field of an answer's metadata that has the record.
pub(crate) const FIELD: &str = "shown_to_model";

/// How many messages a record has the hashes of: the newest ones. So it has about 450 bytes at most, and the names of tools.
const MAX_DIGESTS: usize = 64;

/// How many characters of a hash of an id are kept: 36 bits.
const DIGEST: usize = 6;

/// What a request showed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    count: usize,
    digests: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frozen_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
}

impl Record {
    pub(crate) fn of(history: &[Message]) -> Self {
        let newest = &history[history.len().saturating_sub(MAX_DIGESTS)..];
        let digests = newest.iter().map(|message| digest(&message.id)).collect();
        Self { count: history.len(), digests, ..Self::default() }
    }

    /// Returns the record that is stored with an answer.
    fn read(answer: &Message) -> Option<Self> {
        let record: Self = serde_json::from_str(answer.field(FIELD)?.as_str()).ok()?;
        record.digests.is_ascii().then_some(record)
    }

    /// Returns the messages of the record among those that are shown again and others, and before them those that it only counts.
    fn find(
        &self,
        again: &[Message],
        others: impl FnOnce() -> Result<Vec<Message>>,
    ) -> Result<Vec<(Option<Message>, SeenState)>> {
        let whole =
            (0..self.digests.len() / DIGEST).map(|at| &self.digests[at * DIGEST..][..DIGEST]);
        let digests: Vec<&str> = whole.collect();
        let wanted: HashSet<&str> = digests.iter().copied().collect();
        let mut known: HashMap<String, Message> = HashMap::new();
        let mut add = |messages: &[Message]| {
            for message in messages {
                let digest = digest(&message.id);
                if wanted.contains(&*digest) {
                    known.entry(digest).or_insert_with(|| message.clone());
                }
            }
            known.len() == wanted.len()
        };
        if !add(again) {
            add(&others()?);
        }
        let found = digests.into_iter().map(|digest| match known.get(digest) {
            Some(message) => (Some(message.clone()), SeenState::Recorded),
            None => (None, SeenState::Removed),
        });
        let found: Vec<_> = found.collect();
        let place = |message: &Message| again.iter().position(|it| it.id == message.id);
        let first = found.iter().find_map(|(message, _)| message.as_ref().and_then(place));
        let older = &again[..first.unwrap_or_default()];
        let count = self.count.saturating_sub(found.len()).min(older.len());
        let older = older[older.len() - count..].iter().cloned();
        let older = older.map(|message| (Some(message), SeenState::Reconstructed));
        Ok(older.chain(found).collect())
    }
}

/// Returns the beginning of the hash of an id.
fn digest(id: &MessageId) -> String {
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_str().as_bytes());
    BASE64.encode(hash.as_bytes())[..DIGEST].to_owned()
}

/// How sure it is that a model saw a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeenState {
    /// It was recorded: the model saw it, before the request was repaired and [truncated](crate::Request::truncated). This is how it
    /// reads now.
    Recorded,
    /// It was recorded, and was deleted since, or the summary was removed.
    Removed,
    /// It was not recorded. It was above the answer when that was written.
    Reconstructed,
}

/// A message or a summary that a model saw.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SeenMessage {
    /// The message; `None` if it was removed.
    pub message: Option<Message>,
    /// How sure that is.
    pub state: SeenState,
    /// Whether a model would see it today. If not, it is under a summary, or hidden.
    pub is_shown_now: bool,
}

/// What a model saw when it wrote an answer. [`seen`] has an example.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Seen {
    /// Whether the answer has a record of its request.
    pub is_recorded: bool,
    /// The messages and summaries, oldest first.
    pub messages: Vec<SeenMessage>,
    /// The frozen prompt as it is now, or else the texts of blocks as they were.
    pub prompt: String,
    /// Whether that is the prompt that was recorded.
    pub is_prompt_exact: bool,
    /// The stored blocks.
    pub blocks: Vec<SeenBlock>,
    /// The names of the tools, if they were recorded.
    pub tools: Vec<String>,
}

/// A text of the prompt: as it was, and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenBlock {
    /// The label of the block.
    pub label: String,
    /// Its text when the answer was written.
    pub then: Option<String>,
    /// Its text now.
    pub now: Option<String>,
}

impl Seen {
    /// Returns how many messages are in a state.
    #[must_use]
    pub fn count(&self, state: SeenState) -> usize {
        self.messages.iter().filter(|seen| seen.state == state).count()
    }
}

/// The request can be made again, without its tools.
impl Conversation for Seen {
    fn prompt(&self) -> Result<String> {
        Ok(self.prompt.clone())
    }

    fn history(&self) -> Result<Vec<Message>> {
        Ok(self.messages.iter().filter_map(|seen| seen.message.clone()).collect())
    }
}

/// Returns what a model saw when it wrote an answer: as it was [recorded](crate::Request::recorded), else reconstructed. `None`
/// if there is no such message.
///
/// Not in it are texts that the program adds itself, such as a reminder or the line with an author.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Store};
/// use talktree_model::{Request, SeenState, from_response, seen};
///
/// let store = Store::open_in_memory()?;
/// let chat = store.session("s")?;
/// chat.append(Message::user("2 + 2?").with_id("q"))?;
/// let request = Request::of(&chat);
/// let body = request.anthropic()?; // add the model, and send it
/// # let response = json!({"content": [{"type": "text", "text": "4"}]});
/// let answer = chat.append(request.recorded(from_response(&response)?))?.id;
///
/// chat.update(Message::user("2 + 3?").with_id("q"))?;
/// let seen = seen(&store, chat.id(), &answer)?.unwrap();
/// assert!(seen.is_recorded);
/// assert_eq!(seen.messages[0].state, SeenState::Recorded);
/// assert_eq!(seen.messages[0].message.as_ref().unwrap().text(), "2 + 3?"); // as it reads now
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// As every read.
pub fn seen(store: &Store, session: &SessionId, answer: &MessageId) -> Result<Option<Seen>> {
    // A handle of its own, because blocks are added to it.
    let session = &store.session(session.clone())?;
    let Some(answer) = session.message(answer)? else { return Ok(None) };
    let above = answer.parent.as_ref().map(|parent| session.at(parent));
    let now = above.as_ref().map_or(Ok(Vec::new()), Path::history)?;
    let compactions = session.compactions()?;
    let (then, later): (Vec<_>, Vec<_>) =
        compactions.iter().partition(|compaction| compaction.created_at <= answer.created_at);
    let again = match &above {
        Some(above) if !later.is_empty() => history_of(above.raw_history()?, &then),
        _ => now.clone(),
    };
    let shown: HashSet<&MessageId> = now.iter().map(|message| &message.id).collect();
    let record = Record::read(&answer);
    let found = match &record {
        None => {
            again.into_iter().map(|message| (Some(message), SeenState::Reconstructed)).collect()
        }
        // Others are hidden since, or a summary came between the request and the answer.
        Some(record) => record.find(&again, || {
            let mut others = now.clone();
            others.extend(above.as_ref().map_or(Ok(Vec::new()), Path::raw_history)?);
            others.extend(compactions.iter().map(|compaction| compaction.to_message(None)));
            Ok(others)
        })?,
    };
    let messages = found.into_iter().map(|(message, state)| {
        let is_shown_now = message.as_ref().is_some_and(|message| shown.contains(&message.id));
        SeenMessage { message, state, is_shown_now }
    });
    let messages = messages.collect();
    let (prompt, blocks) = prompt_of(session, answer.created_at)?;
    let is_recorded = record.is_some();
    let Record { frozen_at, tools, .. } = record.unwrap_or_default();
    let is_prompt_exact = frozen_at.is_some() && frozen_at == session.context().frozen_at()?;
    Ok(Some(Seen { is_recorded, messages, prompt, is_prompt_exact, blocks, tools }))
}

/// Returns what a path showed while it had these compactions alone.
fn history_of(raw: Vec<Message>, compactions: &[&Compaction]) -> Vec<Message> {
    let places: HashMap<MessageId, usize> =
        raw.iter().enumerate().map(|(at, message)| (message.id.clone(), at)).collect();
    // Of several that end at one message the one that reaches furthest back is shown.
    let mut ends: HashMap<usize, (usize, &Compaction)> = HashMap::new();
    for compaction in compactions {
        let (Some(first), Some(last)) =
            (places.get(&compaction.first), places.get(&compaction.last))
        else {
            continue;
        };
        let shown = ends.entry(*last).or_insert((*first, compaction));
        if *first < shown.0 {
            *shown = (*first, compaction);
        }
    }
    let (mut history, mut at) = (Vec::new(), raw.len());
    let mut raw: Vec<Option<Message>> = raw.into_iter().map(Some).collect();
    while at > 0 {
        at -= 1;
        match ends.get(&at) {
            Some((first, compaction)) => {
                let parent = raw[*first].as_ref().and_then(|message| message.parent.clone());
                history.push(compaction.to_message(parent));
                at = *first;
            }
            None => history.extend(raw[at].take().filter(|message| !message.is_hidden)),
        }
    }
    history.reverse();
    history
}

/// Returns the prompt, and the stored texts of blocks at a time and now.
fn prompt_of(session: &Session, at: DateTime<Utc>) -> Result<(String, Vec<SeenBlock>)> {
    let context = session.context();
    let (mut blocks, mut texts) = (Vec::new(), Vec::new());
    for (label, block) in context.stored()? {
        // Of a block that the program has not, the versions are read as of one that it has.
        let is_added = match context.add(&label, block) {
            Err(Error::BlockExists { .. }) => false,
            added => added.map(|()| true)?,
        };
        let versions = context.versions(&label, None);
        if is_added {
            context.remove(&label);
        }
        let versions = versions?;
        let now = versions.last().and_then(|version| version.content.clone());
        let then = versions.into_iter().rfind(|version| version.changed_at <= at);
        let then = then.and_then(|version| version.content);
        texts.extend(then.iter().map(|text| format!("{label}\n{text}")));
        blocks.push(SeenBlock { label, then, now });
    }
    let prompt = context.frozen_prompt()?.unwrap_or_else(|| texts.join("\n\n"));
    Ok((prompt, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_has_the_summaries_of_its_time() -> talktree::Result<()> {
        let chat = Store::open_in_memory()?.session("s")?;
        let ids: Vec<MessageId> = ["a", "b", "c", "d", "e"].map(MessageId::from).into();
        chat.append_all(ids.iter().map(|id| Message::user(id.as_str()).with_id(id.clone())))?;
        chat.add_compaction("ab", &ids[0], &ids[1])?;
        chat.add_compaction("abcd", &ids[0], &ids[3])?;
        let drawn = |count: usize| -> talktree::Result<String> {
            let compactions = chat.compactions()?;
            let shown: Vec<&Compaction> = compactions.iter().take(count).collect();
            let history = history_of(chat.raw_history()?, &shown);
            Ok(history.iter().map(|it| it.text() + " ").collect::<String>())
        };
        assert_eq!(drawn(0)?, "a b c d e ");
        assert_eq!(drawn(1)?, "ab c d e ");
        assert_eq!(drawn(2)?, "abcd e ");
        Ok(())
    }
}
