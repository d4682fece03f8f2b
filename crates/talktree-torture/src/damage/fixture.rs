//! The store that is damaged: it has every kind of content.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use talktree::{
    Durability, Message, MessageId, Part, Session, SessionDetails, SessionManager, Store, Summary,
    TranscriptKey, Usage,
};

use crate::Result;
use crate::compaction::{by_words, options};

/// The number of sessions; every third one is also forked.
const SESSIONS: usize = 12;
/// The words of all texts, in several scripts.
const WORDS: &[&str] = &[
    "river",
    "deploy",
    "friday",
    "backup",
    "invoice",
    "garden",
    "violet",
    "engine",
    "harbour",
    "signal",
    "letter",
    "Zürich",
    "café",
    "naïve",
    "мост",
    "письмо",
    "δρόμος",
    "故宫",
    "天气",
    "日本語",
    "커피",
    "🚀",
    "it's",
    "a/b",
    "C++",
    "x-ray",
    "2026-01-31",
    "\"quoted\"",
    "line\nbreak",
];

/// Builds the store and returns the ids of its sessions.
pub(super) fn build(path: &Path, seed: u64, messages: usize) -> Result<Vec<String>> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let store = Store::options().durability(Durability::Normal).open(path)?;
    let mut ids = Vec::new();
    for number in 0..SESSIONS {
        let id = format!("session-{number}");
        let chat = store.session(id.as_str())?;
        fill(&chat, &mut dice, messages)?;
        ids.push(id);
        if number % 3 == 0 {
            let fork = format!("fork-{number}");
            chat.fork_as(&fork.as_str().into(), &named(messages / 2), "A fork")?;
            ids.push(fork);
        }
    }
    // The pages of a removed session are free.
    let gone = store.session("gone")?;
    gone.append_all((0..messages).map(|n| message(&mut dice, n)))?;
    store.remove(gone.id())?;
    let bot = SessionManager::builder(&store).build()?;
    bot.resume("telegram:4711").owner("user:7").new_id("bound").open()?;
    transcripts(&store, &mut dice, messages)?;
    // One rebuild gives the index the same pages each time; later messages stay pending.
    store.rebuild_search()?;
    for id in &ids {
        let chat = store.session(id.as_str())?;
        chat.append_all((0..5).map(|n| message(&mut dice, 10_000 + n)))?;
    }
    for (at, id) in ids.iter().enumerate() {
        session(&store, at, id)?.visible_tokens()?;
    }
    Ok(ids)
}

/// Appends a main transcript and that of a subagent.
fn transcripts(store: &Store, dice: &mut fastrand::Rng, entries: usize) -> Result<()> {
    let key = TranscriptKey::new("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10");
    let owned = talktree_claude::SessionStore::new(store).owned_by("user:7");
    for key in [key.clone(), key.subpath("subagents/agent-1")] {
        for n in 0..entries {
            let message = json!({"role": "user", "content": text(dice, 30)});
            let entry = json!({"type": "user", "uuid": n.to_string(), "message": message});
            owned.append(&key, &[entry.into()])?;
        }
    }
    Ok(())
}

/// Returns the session at this position; every fifth one counts tokens in words.
pub(super) fn session(store: &Store, at: usize, id: &str) -> talktree::Result<Session> {
    if at.is_multiple_of(5) { by_words(store, id) } else { store.session(id) }
}

/// Returns a time that is the same in each run.
pub(super) fn time(minutes: u64) -> DateTime<Utc> {
    DateTime::<Utc>::UNIX_EPOCH + Duration::from_secs(1_790_000_000 + 60 * minutes)
}

fn named(n: usize) -> MessageId {
    format!("message-{n}").into()
}

fn fill(chat: &Session, dice: &mut fastrand::Rng, messages: usize) -> Result<()> {
    chat.set_details(&SessionDetails {
        name: Some(text(dice, 4)),
        model: Some("model-1".to_owned()),
        source: Some("notes.jsonl".to_owned()),
        metadata: Some(json!({"topic": text(dice, 3), "rank": dice.u32(..)}).into()),
        owner: Some("user:7".to_owned()),
        tags: vec!["garden".to_owned(), text(dice, 1)],
        ..SessionDetails::default()
    })?;
    for n in 0..messages {
        let new = message(dice, n);
        match n % 16 {
            // Every 16th message branches off from an earlier one.
            5 if n > 16 => chat.append_to(&named(n - 1 - dice.usize(1..12)), new)?,
            11 if n > 20 => chat.append_root(new)?,
            _ => chat.append(new)?,
        };
    }
    chat.import_message(Some(&named(2)), message(dice, messages))?;
    let inner: Vec<MessageId> = [4, 9, 10, messages / 3].map(named).into();
    chat.delete(&inner)?;
    for (n, name) in [(1, "start"), (7, "here"), (messages - 1, "end")] {
        chat.label(name, &named(n))?;
    }
    for (first, last) in [(12, 15), (1, 3), (messages / 2, messages / 2 + 4)] {
        // Refused if `first` is on another branch than `last`.
        let _ = chat.add_compaction(text(dice, 20), &named(first), &named(last));
    }
    for n in [3, messages / 2, messages - 2] {
        chat.checkout(&named(n))?;
    }
    chat.undo_head()?;
    let usage = Usage { model: Some("model-1".to_owned()), input: 90, ..Usage::default() };
    chat.add_usage(Some(&named(1)), &usage)?;
    compaction(chat)
}

/// Compacts the newest path twice; the second compaction contains the first.
fn compaction(chat: &Session) -> Result<()> {
    let leaf = chat.raw_history()?.last().map(|message| message.id.clone()).unwrap_or_default();
    for keep in [300, 60] {
        if let Ok(plan) = chat.at(&leaf).plan_compaction(&options().keep_recent_tokens(keep))? {
            let summary = Summary::new(format!("kept {keep}")).by("model-1").details(json!([keep]));
            chat.commit(plan, summary)?;
        }
    }
    Ok(())
}

fn message(dice: &mut fastrand::Rng, n: usize) -> Message {
    let mut parts = vec![Part::text(text(dice, 60))];
    if n % 7 == 3 {
        parts.push(Part::reasoning(text(dice, 20)));
        parts.push(Part::tool_call(
            "read",
            format!("call-{n}"),
            json!({"path": text(dice, 2), "line": n}),
        ));
    }
    if n % 7 == 4 {
        parts.push(Part::tool_result("read", format!("call-{}", n - 1), json!(text(dice, 40))));
    }
    if n % 29 == 1 {
        // Longer than a page.
        parts.push(Part::text(text(dice, 1_500)));
        parts.push(Part::file("image/png", "data:image/png;base64,iVBORw0KGgo="));
    }
    let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
    let mut message = Message::new(role, parts).with_id(format!("message-{n}")).at(time(n as u64));
    if n.is_multiple_of(5) {
        message = message.with_metadata(json!({"model": "m", "cost": n as f64 / 8.0}));
        message.extra.insert("note".to_owned(), json!(text(dice, 3)).into());
    }
    if n % 31 == 6 { message.hidden() } else { message }
}

fn text(dice: &mut fastrand::Rng, words: usize) -> String {
    let mut text = String::new();
    for _ in 0..words {
        let word = WORDS[dice.usize(..WORDS.len())];
        let end = if dice.u8(..9) == 0 { ". " } else { " " };
        // Numbered words give the index many entries.
        match dice.u8(..3) {
            0 => drop(write!(text, "{word}{}{end}", dice.u16(..2_000))),
            _ => drop(write!(text, "{word}{end}")),
        }
    }
    text
}
