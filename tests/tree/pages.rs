//! Pages and streams are stable while others write.

use crate::common::{drawn, letters};
use talktree::{Error, Message, MessageId, Result, Session, Store};

fn chat(path: &str) -> Result<Session> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters(path))?;
    Ok(chat)
}

fn numbers(count: usize) -> impl Iterator<Item = Message> {
    (0..count).map(|n| Message::user(n.to_string()).with_id(n.to_string()))
}

#[test]
fn pages_lead_to_the_first_and_to_the_last_message() -> Result<()> {
    let chat = chat("a b c d e f g")?;
    let last = chat.page().limit(3).run()?;
    assert_eq!((drawn(&last.messages), &last.after), ("e f g".into(), &None));
    let middle = chat.page().before(&"e".into()).limit(3).run()?;
    assert_eq!(drawn(&middle.messages), "b c d");
    assert_eq!((middle.before, middle.after), (Some("b".into()), Some("d".into())));
    let first = chat.page().before(&"b".into()).limit(3).run()?;
    assert_eq!((drawn(&first.messages), first.before), ("a".into(), None));
    let next = chat.page().after(&"d".into()).limit(2).run()?;
    assert_eq!((drawn(&next.messages), next.after), ("e f".into(), Some("f".into())));
    let end = chat.page().after(&"f".into()).limit(2).run()?;
    assert_eq!((drawn(&end.messages), end.after), ("g".into(), None));
    Ok(())
}

#[test]
fn pages_before_the_first_and_after_the_last_message_are_empty() -> Result<()> {
    let chat = chat("a b")?;
    let none = chat.page().before(&"a".into()).run()?;
    assert_eq!((none.messages.len(), none.before, none.after), (0, None, None));
    let none = chat.page().after(&"b".into()).run()?;
    assert_eq!((none.messages.len(), none.after), (0, None));
    assert_eq!(chat.page().limit(0).run()?.messages.len(), 0);
    let empty = Store::open_in_memory()?.session("s")?;
    assert_eq!(empty.page().run()?.messages.len(), 0);
    Ok(())
}

#[test]
fn a_page_of_an_unknown_message_is_an_error() -> Result<()> {
    let chat = chat("a b")?;
    chat.append_to(&"a".into(), Message::user("x").with_id("x"))?;
    chat.checkout(&"b".into())?;
    for page in [chat.page().before(&"?".into()), chat.page().after(&"?".into())] {
        assert!(matches!(page.run(), Err(Error::UnknownMessage { .. })));
    }
    // The message is on another path, so no message of this path is after it.
    assert!(matches!(chat.page().after(&"x".into()).run(), Err(Error::UnknownMessage { .. })));
    // But messages are before it.
    assert_eq!(drawn(&chat.page().before(&"x".into()).run()?.messages), "a");
    Ok(())
}

#[test]
fn pages_are_stable_while_others_append_and_move_the_head() -> Result<()> {
    let chat = chat("a b c d e")?;
    let page = chat.page().limit(2).run()?;
    let before = page.before.unwrap_or_default();
    chat.append_all(letters("f g"))?;
    chat.append_to(&"a".into(), Message::user("x").with_id("x"))?;
    assert_eq!(drawn(&chat.page().before(&before).limit(2).run()?.messages), "b c");
    Ok(())
}

/// The start of a page was found by the id of the previous message. If that was deleted, its nearest living ancestor
/// was used, which is inside the summary's range: the page showed compacted messages.
#[test]
fn a_page_shows_the_summary_whose_last_message_is_deleted() -> Result<()> {
    let chat = chat("a b c d e")?;
    let compaction = chat.add_compaction("summary", &"b".into(), &"d".into())?.id.as_message();
    chat.delete([&"d".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("a {compaction} e"));
    let page = chat.page().before(&"e".into()).run()?;
    assert_eq!(drawn(&page.messages), format!("a {compaction}"));
    Ok(())
}

/// The parent of a summary was read from its first message, which may be deleted.
#[test]
fn a_summary_whose_first_message_is_deleted_reads_as_in_the_history() -> Result<()> {
    let chat = chat("a b c d")?;
    let compaction = chat.add_compaction("summary", &"b".into(), &"c".into())?.id.as_message();
    chat.delete([&"b".into()])?;
    let shown = chat.history()?;
    assert_eq!(shown[1].parent, Some("a".into()));
    assert_eq!(chat.message(&compaction)?.as_ref(), Some(&shown[1]));
    assert_eq!(drawn(&chat.page().before(&compaction).run()?.messages), "a");
    Ok(())
}

#[test]
fn adjacent_summaries_are_paged_as_in_the_history() -> Result<()> {
    let chat = chat("a b c d e")?;
    let one = chat.add_compaction("one", &"a".into(), &"b".into())?.id.as_message();
    let two = chat.add_compaction("two", &"c".into(), &"d".into())?.id.as_message();
    chat.delete([&"b".into(), &"d".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("{one} {two} e"));
    assert_eq!(drawn(&chat.page().before(&two).run()?.messages), one.as_str());
    assert_eq!(drawn(&chat.page().before(&"e".into()).run()?.messages), format!("{one} {two}"));
    assert_eq!(drawn(&chat.page().after(&one).run()?.messages), format!("{two} e"));
    assert!(chat.page().before(&one).run()?.messages.is_empty());
    Ok(())
}

#[test]
fn an_open_stream_skips_deleted_messages_and_ignores_new_ones() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(numbers(100))?;
    let mut forth = chat.iter();
    let mut back = chat.iter_rev();
    let begun: Vec<Message> = forth.by_ref().take(16).collect::<Result<_>>()?;
    let rev: Vec<Message> = back.by_ref().take(16).collect::<Result<_>>()?;
    assert_eq!((begun[15].id.as_str(), rev[15].id.as_str()), ("15", "84"));

    let gone: Vec<MessageId> = (30..70).map(|n| MessageId::from(n.to_string())).collect();
    chat.delete(&gone)?;
    chat.delete([&"99".into(), &"98".into()])?;
    chat.append(Message::user("new"))?;

    let rest: Vec<String> =
        forth.map(|message| Ok(message?.id.to_string())).collect::<Result<_>>()?;
    let expected: Vec<String> =
        (16..98).filter(|n| !(30..70).contains(n)).map(|n: usize| n.to_string()).collect();
    assert_eq!(rest, expected);
    let rest: Vec<String> =
        back.map(|message| Ok(message?.id.to_string())).collect::<Result<_>>()?;
    let expected: Vec<String> =
        (0..84).rev().filter(|n| !(30..70).contains(n)).map(|n: usize| n.to_string()).collect();
    assert_eq!(rest, expected);
    Ok(())
}

#[test]
fn an_open_stream_ends_after_a_clear() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(numbers(40))?;
    let mut stream = chat.iter();
    assert_eq!(stream.by_ref().take(16).count(), 16);
    chat.clear()?;
    chat.append_all(numbers(40))?;
    assert_eq!(stream.count(), 0);
    Ok(())
}

/// A batch ends after 4 MiB. Hidden messages counted, so a batch could be empty, which ended the stream.
#[test]
fn a_stream_continues_after_a_large_hidden_message() -> Result<()> {
    let chat = chat("a b")?;
    let large = Message::user("x".repeat(5 << 20)).with_id("x").hidden();
    chat.append(large)?;
    chat.append_all(letters("c d"))?;
    let forth: Vec<Message> = chat.iter().collect::<Result<_>>()?;
    let back: Vec<Message> = chat.iter_rev().collect::<Result<_>>()?;
    assert_eq!((drawn(&forth), drawn(&back)), ("a b c d".into(), "d c b a".into()));
    assert_eq!(drawn(&chat.page().run()?.messages), "a b c d");
    assert_eq!(drawn(&chat.page().before(&"c".into()).run()?.messages), "a b");
    // A large visible message ends a batch, not the stream.
    let raw: Vec<Message> = chat.path().raw().iter().collect::<Result<_>>()?;
    assert_eq!(drawn(&raw), "a b x c d");
    Ok(())
}

#[test]
fn a_stream_of_an_unknown_leaf_yields_one_error() -> Result<()> {
    let chat = chat("a")?;
    let mut stream = chat.at(&"?".into()).iter_rev();
    assert!(matches!(stream.next(), Some(Err(Error::UnknownMessage { .. }))));
    assert!(stream.next().is_none());
    assert!(chat.at(&"?".into()).iter().next().unwrap().is_err());
    Ok(())
}
