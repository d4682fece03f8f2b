//! The same id again: with the same content nothing happens, with other content the answer says so, and what was stored
//! first stays.

use serde_json::json;
use talktree::{Appended, ImportRecord, Imported, Message, Parent, Part, Session, Store};

use crate::{Report, Result};

/// Gives every message again, as it was and otherwise, in every way.
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
                        format!("{way} of {other:?} again answers (is new, differs) {answer:?}");
                    report.failure(what, "just torture extremes");
                }
            }
        }
    }
    if chat.raw_history()? != before || chat.leaves()?.len() != 1 {
        report.failure("an id that came again changed what was stored", "just torture extremes");
    }
    report.fact("ids given again", tried);
    Ok(())
}

/// Returns the message as it was, and with each thing changed in turn; whether it differs.
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

/// Gives a message in every way; returns whether it was new, and whether it differs.
fn ways(chat: &Session, message: &Message) -> Result<Vec<(&'static str, (bool, bool))>> {
    let told = |appended: &Appended| (appended.is_new, appended.differs);
    let again = || message.clone();
    let many = chat.append_all([again(), again()])?;
    let at_root = chat.append_all_to(&Parent::Root, [again()])?;
    // A record that was brought once is known whatever it says now, so each of these is another one.
    let record = format!("{message:?}");
    let imported = match chat
        .import_messages(&[ImportRecord { record, parent: None, message: again() }])?
        .remove(0)
    {
        Imported::Added => (true, false),
        Imported::Known => (false, false),
        Imported::Differs => (false, true),
        imported => return Err(format!("an outcome nobody knows: {imported:?}").into()),
    };
    Ok(vec![
        ("append", told(&chat.append(again())?)),
        ("append_to", told(&chat.append_to(&"m3".into(), again())?)),
        ("append_root", told(&chat.append_root(again())?)),
        ("append_all", told(&many[0])),
        ("append_all, twice in it", told(&many[1])),
        ("append_all_to", told(&at_root[0])),
        ("import_messages", imported),
    ])
}
