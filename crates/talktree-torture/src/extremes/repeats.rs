//! The same id twice: equal content is a no-op, other content is reported as differing, and what was stored first stays.

use serde_json::json;
use talktree::{Appended, Message, Parent, Part, Session, Store};

use crate::{Report, Result};

/// Gives every message again in every way, unchanged and changed.
pub(super) fn run(report: &mut Report) -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let messages: Vec<Message> =
        (0..50).map(|n| Message::user(format!("said {n}")).with_id(format!("m{n}"))).collect();
    chat.append_all(messages.iter().cloned())?;
    let before = chat.raw_history()?;
    let mut tried = 0;
    for message in &messages {
        for (other, differs) in others(message) {
            for (way, answer) in ways(&chat, &other)? {
                tried += 1;
                if answer != (false, differs) {
                    let what =
                        format!("{way} of {other:?} again returns (is_new, differs) {answer:?}");
                    report.failure(what, "just torture extremes");
                }
            }
        }
    }
    if chat.raw_history()? != before || chat.leaves()?.len() != 1 {
        report.failure("a repeated id changed what was stored", "just torture extremes");
    }
    report.fact("messages given again", tried);
    Ok(())
}

/// Returns the message unchanged and with each field changed in turn, and whether it differs.
fn others(message: &Message) -> Vec<(Message, bool)> {
    let mut role = message.clone();
    role.role = "system".into();
    let mut parts = message.clone();
    parts.parts.push(Part::text("and more"));
    let mut extra = message.clone();
    extra.extra.insert("x".to_owned(), json!(1).into());
    vec![
        (message.clone(), false),
        (role, true),
        (parts, true),
        (extra, true),
        (message.clone().with_metadata(json!({"a": 1})), true),
        (message.clone().hidden(), true),
    ]
}

/// Gives a message in every way; returns whether it was new and whether it differs.
fn ways(chat: &Session, message: &Message) -> Result<Vec<(&'static str, (bool, bool))>> {
    let outcome = |appended: &Appended| (appended.is_new, appended.differs);
    let again = || message.clone();
    let many = chat.append_all([again(), again()])?;
    let at_root = chat.append_all_to(&Parent::Root, [again()])?;
    // An imported record is known whatever its message is, so each message gets a new record.
    Ok(vec![
        ("append", outcome(&chat.append(again())?)),
        ("append_to", outcome(&chat.append_to(&"m3".into(), again())?)),
        ("append_root", outcome(&chat.append_root(again())?)),
        ("append_all", outcome(&many[0])),
        ("append_all, the second of two", outcome(&many[1])),
        ("append_all_to", outcome(&at_root[0])),
        ("import_messages", outcome(&chat.import_message(None, again())?)),
    ])
}
