//! What a model saw when it wrote an answer: the history, the prompt and the request of that moment.
//!
//! No record of a request is stored with an answer, so it is made again: of the messages above the answer, of the summaries that were
//! stored before it, and of the texts of blocks as they were. A summary or a message that was removed since is not in it.
//!
//! Mostly there is no later summary, and the history is what the library returns. Otherwise it is made of messages and summaries; then
//! a summary whose first or last message was deleted is left out, too, and tool outputs are whole.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use talktree::{Compaction, Message, MessageId, Path, Session};
use talktree_model::{Conversation, Request};

use crate::routes::{Query, Refused, Result};
use crate::server::Page;
use crate::view::{self, Extent};

/// How many messages of a history are shown.
const MAX_SHOWN: usize = 2_000;

/// A conversation at a moment.
struct Moment {
    prompt: String,
    history: Vec<Message>,
}

impl Conversation for Moment {
    fn prompt(&self) -> talktree::Result<String> {
        Ok(self.prompt.clone())
    }

    fn history(&self) -> talktree::Result<Vec<Message>> {
        Ok(self.history.clone())
    }
}

pub(crate) fn seen(page: &Page, query: &Query) -> Result<Value> {
    let (session, _) = page.session(query)?;
    let id = MessageId::from(query.required("message")?);
    let unknown = || Refused(404, "there is no such message".to_owned());
    let answer = session.message(&id)?.ok_or_else(unknown)?;
    let above = answer.parent.as_ref().map(|parent| session.at(parent));
    let now = above.as_ref().map_or(Ok(Vec::new()), Path::history)?;
    let (then, later): (Vec<_>, Vec<_>) = session
        .compactions()?
        .into_iter()
        .partition(|compaction| compaction.created_at <= answer.created_at);
    let history = match &above {
        Some(above) if !later.is_empty() => history_of(above.raw_history()?, &then),
        _ => now.clone(),
    };
    let (prompt, blocks) = prompt_of(&session, answer.created_at)?;

    let now: HashSet<&MessageId> = now.iter().map(|message| &message.id).collect();
    let first = history.len().saturating_sub(MAX_SHOWN);
    let shown: Vec<Value> = history[first..]
        .iter()
        .map(|message| {
            let mut shown = view::message(message, Extent::Cut);
            shown["gone"] = (!now.contains(&message.id)).into();
            shown["tokens"] = message.tokens().into();
            shown
        })
        .collect();
    let tokens: u64 = history.iter().map(Message::tokens).sum();
    let count = history.len();
    let moment = Moment { prompt, history };
    let request = Request::of(&moment);
    let request = match query.text("provider") {
        None => Value::Null,
        Some("anthropic") => request.anthropic()?,
        Some("openai-chat") => request.openai_chat()?,
        Some("openai-responses") => request.openai_responses()?,
        Some(_) => return Err(Refused(400, "there is no such provider".to_owned())),
    };
    Ok(json!({
        "at": answer.created_at, "messages": shown, "left_out": first, "count": count, "tokens": tokens,
        "prompt": moment.prompt, "blocks": blocks, "request": request, "is_recorded": false,
    }))
}

/// Returns what a path showed while it had these compactions alone.
fn history_of(raw: Vec<Message>, compactions: &[Compaction]) -> Vec<Message> {
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
fn prompt_of(session: &Session, at: DateTime<Utc>) -> Result<(String, Vec<Value>)> {
    let context = session.context();
    let (mut blocks, mut texts) = (Vec::new(), Vec::new());
    for (label, block) in context.stored()? {
        context.add(&label, block)?;
        let versions = context.versions(&label, None)?;
        let now = versions.last().and_then(|version| version.content.clone());
        let then = versions.into_iter().rfind(|version| version.changed_at <= at);
        let then = then.and_then(|version| version.content);
        texts.extend(then.iter().map(|text| format!("{label}\n{text}")));
        blocks.push(json!({"label": label, "then": then, "now": now}));
    }
    let prompt = context.frozen_prompt()?.unwrap_or_else(|| texts.join("\n\n"));
    Ok((prompt, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use talktree::Store;

    #[test]
    fn a_history_has_the_summaries_of_its_time() -> talktree::Result<()> {
        let chat = Store::open_in_memory()?.session("s")?;
        let ids: Vec<MessageId> = ["a", "b", "c", "d", "e"].map(MessageId::from).into();
        chat.append_all(ids.iter().map(|id| Message::user(id.as_str()).with_id(id.clone())))?;
        chat.add_compaction("ab", &ids[0], &ids[1])?;
        chat.add_compaction("abcd", &ids[0], &ids[3])?;
        let drawn = |count: usize| -> talktree::Result<String> {
            let history = history_of(chat.raw_history()?, &chat.compactions()?[..count]);
            Ok(history.iter().map(|it| it.text() + " ").collect::<String>())
        };
        assert_eq!(drawn(0)?, "a b c d e ");
        assert_eq!(drawn(1)?, "ab c d e ");
        assert_eq!(drawn(2)?, "abcd e ");
        let now = chat.history()?;
        assert_eq!(history_of(chat.raw_history()?, &chat.compactions()?), now);
        Ok(())
    }
}
