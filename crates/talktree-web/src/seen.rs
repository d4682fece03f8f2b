//! What a model saw when it wrote an answer.

use serde_json::{Value, json};
use talktree::{Message, MessageId};
use talktree_model::{Request, SeenState};

use crate::routes::{Query, Refused, Result};
use crate::server::Page;
use crate::view::{self, Extent};

/// How many messages of a history are shown.
const MAX_SHOWN: usize = 2_000;

pub(crate) fn seen(page: &Page, query: &Query) -> Result<Value> {
    let (session, _) = page.session(query)?;
    let id = MessageId::from(query.required("message")?);
    let unknown = || Refused(404, "there is no such message".to_owned());
    let seen = talktree_model::seen(&page.store, session.id(), &id)?.ok_or_else(unknown)?;
    let answer = session.message(&id)?.ok_or_else(unknown)?;
    let count = seen.messages.len();
    let first = count.saturating_sub(MAX_SHOWN);
    let shown: Vec<Value> = seen.messages[first..]
        .iter()
        .map(|it| {
            let message = it.message.as_ref();
            let mut shown = message.map_or_else(|| json!({}), |it| view::message(it, Extent::Cut));
            shown["tokens"] = message.map_or(0, Message::tokens).into();
            shown["gone"] = (!it.is_shown_now).into();
            shown["state"] = match it.state {
                SeenState::Recorded => "exact",
                SeenState::Removed => "removed",
                SeenState::Reconstructed => "reconstructed",
            }
            .into();
            shown
        })
        .collect();
    let tokens: u64 =
        seen.messages.iter().filter_map(|it| it.message.as_ref()).map(Message::tokens).sum();
    let blocks = seen.blocks.iter();
    let blocks: Vec<Value> = blocks
        .map(|block| json!({"label": block.label, "then": block.then, "now": block.now}))
        .collect();
    let request = Request::of(&seen);
    let request = match query.text("provider") {
        None => Value::Null,
        Some("anthropic") => request.anthropic()?,
        Some("openai-chat") => request.openai_chat()?,
        Some("openai-responses") => request.openai_responses()?,
        Some(_) => return Err(Refused(400, "there is no such provider".to_owned())),
    };
    Ok(json!({
        "at": answer.created_at, "messages": shown, "left_out": first, "count": count, "tokens": tokens,
        "prompt": seen.prompt, "is_prompt_exact": seen.is_prompt_exact, "tools": seen.tools,
        "blocks": blocks, "request": request, "is_recorded": seen.is_recorded,
    }))
}
