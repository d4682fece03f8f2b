//! The store in which an owner is erased.

use talktree::{
    Block, Erasure, Json, Message, Retention, RetentionRule, SessionManager, Store, TranscriptKey,
    Usage,
};

use crate::Result;

/// The owner that is erased.
pub(super) const OWNER: &str = "zqhvtlrmkowner";
/// Words of the erased texts. Each begins differently: an index stores a word without what it shares with the word before.
const MARKS: [&str; 5] = ["zqhvtlrmk", "xwpgdnbfk", "jkcbtvhsm", "qvfmxrdlk", "vhzrkdgtm"];
/// How many letters of a mark may be missing in an index.
const SHARED: usize = 2;
/// A word of the messages that stay.
pub(super) const KEPT: &str = "meadows";

/// Returns what no byte may contain after the erasure.
pub(super) fn marks() -> impl Iterator<Item = &'static str> {
    MARKS.iter().map(|mark| &mark[SHARED..])
}

/// Returns a text with a mark and other words.
fn text(mark: &str, number: usize) -> String {
    format!("{mark} {} word{} {mark}", "common things ".repeat(number % 9), number % 100)
}

fn manager(store: &Store) -> Result<SessionManager> {
    Ok(SessionManager::builder(store)
        .block("memory", Block::stored().per_owner())
        .cached_prompt()
        .build()?)
}

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// An erasure of the owner.
    Erasure,
    /// A retention that erases the sessions of the owner, who has no memory.
    RetentionErases,
    /// One that removes them.
    RetentionRemoves,
}

/// Fills a store: an owner with all that it may have, and what stays.
pub(super) fn fill(store: &Store, verb: Verb) -> Result<()> {
    let bot = manager(store)?;
    for (owner, mark) in [("other", KEPT), (OWNER, MARKS[0])] {
        let chat = bot.resume(format!("{owner}:chat")).owner(owner).open()?;
        let said = (0..60).map(|number| Message::user(text(mark, number)));
        chat.append_all(said.collect::<Vec<_>>())?;
        if verb == Verb::Erasure {
            let memory = text(if owner == OWNER { MARKS[1] } else { KEPT }, 20);
            chat.context().set("memory", &memory)?;
        }
        chat.prompt()?;
        chat.add_usage(None, &Usage { input: 10, ..Usage::default() })?;
    }
    // Between those of the owner, so that pages have both.
    let shared = store.session("shared")?;
    for number in 0..20 {
        shared.append(Message::user(text(KEPT, number)))?;
        let chat = bot.resume(format!("{OWNER}:chat")).owner(OWNER).open()?;
        chat.append(Message::user(text(MARKS[2], number)))?;
    }
    let entries = |mark: &str, stem: &str| -> Vec<Json> {
        let entry = |number| {
            let message = serde_json::json!({"role": "user", "content": text(mark, number)});
            let uuid = format!("{stem}-{number}");
            serde_json::json!({"type": "user", "uuid": uuid, "message": message})
        };
        (0..30).map(|number| entry(number).into()).collect()
    };
    let transcripts = talktree_claude::SessionStore::new(store);
    let key = TranscriptKey::new("project", format!("{}-session", MARKS[3]));
    transcripts.owned_by(OWNER).projecting().append(&key, &entries(MARKS[3], MARKS[3]))?;
    let kept = TranscriptKey::new("project", "kept-session");
    transcripts.owned_by("other").projecting().append(&kept, &entries(KEPT, "kept"))?;
    // The words of all messages so far are in the index; those that follow are pending.
    store.search(KEPT).run()?;
    let chat = bot.resume(format!("{OWNER}:chat")).owner(OWNER).open()?;
    chat.append(Message::user(text(MARKS[4], 3)))?;
    shared.append(Message::user(text(KEPT, 3)))?;
    Ok(())
}

impl Verb {
    pub(super) const ALL: [Self; 3] =
        [Self::Erasure, Self::RetentionErases, Self::RetentionRemoves];

    pub(super) fn run(self, store: &Store) -> Result<()> {
        let rule = RetentionRule::new("gone").owner(OWNER);
        let rule = match self {
            Self::Erasure => {
                store.erase(&Erasure::owner(OWNER))?.prove()?;
                return Ok(());
            }
            Self::RetentionErases => rule.erase(),
            Self::RetentionRemoves => rule.remove(),
        };
        store.retention(Retention::new().rule(rule)).run()?;
        Ok(())
    }
}

/// How many messages there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// Of the owner.
    pub(super) owned: u64,
    pub(super) others: u64,
}

pub(super) fn size(store: &Store) -> Result<Size> {
    let owned = store.erasure_extent(&Erasure::owner(OWNER))?.messages;
    let mut all = 0;
    for session in store.sessions()? {
        all += store.session(session.id)?.all_messages().count() as u64;
    }
    Ok(Size { owned, others: all - owned })
}
