//! What the server sends for verbs that read much, or that stop early.

use crate::common::on_server;
use crate::proxy::Proxy;
use serde_json::json;
use talktree::{Json, Message, Result, Store, TranscriptKey};

/// How long a text is, and how many there are.
const LONG: usize = 128 << 10;
const COUNT: usize = 300;

#[test]
fn the_first_messages_of_a_long_stream_are_sent_without_the_others() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let chat = Store::connect(&proxy.url)?.session("s")?;
    chat.append_all((0..COUNT).map(|_| Message::user("-".repeat(LONG))))?;
    proxy.sent();
    let mut batches = Vec::new();
    for (number, message) in chat.iter().enumerate() {
        message?;
        let sent = proxy.sent();
        if sent > 0 {
            batches.push((number, sent / LONG));
        }
    }
    let all: usize = batches.iter().map(|(_, sent)| sent).sum();
    let most = batches.iter().map(|(_, sent)| sent).max();
    assert!(all < 2 * COUNT && most < Some(&50), "{batches:?}");
    Ok(())
}

/// All that was left was sent for each MiB.
#[test]
fn an_export_of_a_transcript_sends_each_entry_once() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let store = Store::connect(&proxy.url)?;
    let entries: Vec<Json> =
        (0..COUNT).map(|number| json!({"n": number, "text": "x".repeat(LONG)}).into()).collect();
    store.transcripts().owned_by("ann").append(&TranscriptKey::new("p", "s"), &entries)?;
    proxy.sent();
    let mut count = 0;
    store.data_of_owner("ann", |kind, _| {
        count += usize::from(kind == "entry");
        Ok(())
    })?;
    let sent = proxy.sent() / LONG;
    assert!(count == COUNT && sent < 4 * COUNT, "{sent} for {COUNT}");
    Ok(())
}

#[test]
fn no_message_is_sent_where_no_session_has_a_name() -> Result<()> {
    let Some(proxy) = Proxy::start(on_server()).expect("a proxy") else { return Ok(()) };
    let chat = Store::connect(&proxy.url)?.session("s")?;
    chat.append_all((0..COUNT).map(|_| Message::user("-".repeat(LONG))))?;
    proxy.sent();
    chat.clear()?;
    let sent = proxy.sent();
    assert!(sent < LONG, "{sent} bytes");
    Ok(())
}
