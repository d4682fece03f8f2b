//! The id of a summary, as a history shows it, names the place of its last message.
//!
//! A program takes ids from the history that it shows. Those of summaries worked in `message` only: continuing after a
//! summary, looking at what follows it or forking there failed with an unknown message. After the last message of a
//! range was deleted, its place had no name at all, and what was appended at the head was not where `append_to(head)`
//! put it.

use crate::common::{drawn, letters};
use talktree::{Budget, Error, Message, MessageId, Parent, Result, Session, Store};
use talktree_import::export::export_markdown;

/// The path a b c d with a summary over b and c, a branch x under c, and the head at d.
fn chat() -> Result<(Store, Session, MessageId)> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    chat.append_all(letters("a b c x"))?;
    chat.append_to(&"c".into(), Message::user("d").with_id("d"))?;
    let summary = chat.add_compaction("b and c", &"b".into(), &"c".into())?.id.as_message();
    Ok((store, chat, summary))
}

/// Returns what the verbs that take a place say about one.
fn reads(chat: &Session, place: &MessageId) -> Result<Vec<String>> {
    let at = chat.at(place);
    let mut file = Vec::new();
    export_markdown(&at, &mut file)?;
    Ok(vec![
        drawn(&at.history()?),
        drawn(&chat.at(place).raw().history()?),
        drawn(&at.iter().collect::<Result<Vec<_>>>()?),
        drawn(&at.iter_rev().collect::<Result<Vec<_>>>()?),
        drawn(&at.page().run()?.messages),
        drawn(&at.recent(Budget::messages(9))?.messages),
        at.path_length()?.to_string(),
        format!("{:?}", at.row_stats()?.iter().map(|row| row.id.clone()).collect::<Vec<_>>()),
        drawn(&chat.branches(place)?),
        drawn(&chat.siblings(place)?),
        format!("{} {}", chat.is_on_path(place)?, chat.is_ancestor(place, &"d".into())?),
        chat.is_ancestor(&"a".into(), place)?.to_string(),
        format!("{:?}", at.search("text").run()?.hits.len()),
        String::from_utf8_lossy(&file).into_owned(),
    ])
}

#[test]
fn the_id_of_a_summary_reads_as_that_of_its_last_message() -> Result<()> {
    let (_store, chat, summary) = chat()?;
    assert_eq!(reads(&chat, &summary)?, reads(&chat, &"c".into())?);
    assert_eq!(drawn(&chat.at(&summary).history()?), format!("a {summary}"));
    assert_eq!(drawn(&chat.branches(&summary)?), "x d");
    Ok(())
}

#[test]
fn what_is_appended_to_a_summary_follows_it() -> Result<()> {
    let (_store, chat, summary) = chat()?;
    chat.append_to(&summary, Message::user("e").with_id("e"))?;
    assert_eq!(drawn(&chat.history()?), format!("a {summary} e"));
    assert_eq!(chat.message(&"e".into())?.unwrap().parent, Some("c".into()));
    chat.append_all_to(&Parent::Message(summary.clone()), letters("f g"))?;
    assert_eq!(drawn(&chat.history()?), format!("a {summary} f g"));
    chat.import_message(Some(&summary), Message::user("i").with_id("i"))?;
    assert_eq!(chat.message(&"i".into())?.unwrap().parent, Some("c".into()));
    Ok(())
}

#[test]
fn a_summary_can_be_checked_out_labelled_and_forked() -> Result<()> {
    let (_store, chat, summary) = chat()?;
    chat.checkout(&summary)?;
    assert_eq!(chat.head()?, Some("c".into()));
    chat.append_if_head(Some(&summary), Message::user("e").with_id("e"))?;
    assert_eq!(drawn(&chat.history()?), format!("a {summary} e"));
    assert!(matches!(
        chat.append_if_head(Some(&summary), Message::user("f")),
        Err(Error::HeadMoved { .. })
    ));
    chat.label("then", &summary)?;
    assert_eq!(chat.labelled("then")?, Some("c".into()));
    let fork = chat.fork(&summary, "Fork")?;
    assert_eq!(drawn(&fork.history()?), format!("a {summary}"));
    assert_eq!(drawn(&fork.raw_history()?), "a b c");
    Ok(())
}

#[test]
fn a_summary_whose_last_message_is_deleted_names_the_same_place() -> Result<()> {
    let (_store, chat, summary) = chat()?;
    chat.delete([&"c".into()])?;
    assert_eq!(drawn(&chat.at(&summary).history()?), format!("a {summary}"));
    assert_eq!(drawn(&chat.at(&summary).raw().history()?), "a b");
    assert_eq!(drawn(&chat.branches(&summary)?), "x d");
    assert_eq!(drawn(&chat.branches(&"b".into())?), "x d");
    assert!(chat.is_on_path(&summary)?);
    assert!(!chat.is_ancestor(&"d".into(), &summary)?);
    chat.append_to(&summary, Message::user("e").with_id("e"))?;
    assert_eq!(drawn(&chat.history()?), format!("a {summary} e"));
    chat.label("then", &summary)?;
    assert_eq!(chat.labelled("then")?, Some("b".into()));
    let fork = chat.fork(&summary, "Fork")?;
    assert_eq!(drawn(&fork.history()?), format!("a {summary}"));
    fork.append(Message::user("n").with_id("n"))?;
    assert_eq!(drawn(&fork.history()?), format!("a {summary} n"));
    Ok(())
}

/// A summary has no content of its own to replace or delete: that would be its last message's.
#[test]
fn where_an_id_names_content_that_of_a_summary_is_unknown() -> Result<()> {
    let (_store, chat, summary) = chat()?;
    let unknown = |answer: Result<()>| {
        assert!(matches!(answer, Err(Error::UnknownMessage { .. })), "{answer:?}");
    };
    unknown(chat.delete([&summary]).map(drop));
    unknown(chat.delete_branch(&summary).map(drop));
    unknown(chat.update(Message::user("c").with_id(summary.clone())).map(drop));
    assert!(chat.upsert(Message::user("c").with_id(summary)).is_err());
    assert_eq!(chat.raw_history()?.len(), 4);
    Ok(())
}

#[test]
fn an_unknown_summary_is_an_unknown_message() -> Result<()> {
    let (_store, chat, _) = chat()?;
    let nobody: MessageId = "compaction_nobody".into();
    let unknown = |answer: Result<()>| match answer {
        Err(Error::UnknownMessage { id, .. }) => assert_eq!(id, nobody),
        other => panic!("{other:?}"),
    };
    unknown(chat.at(&nobody).history().map(drop));
    unknown(chat.branches(&nobody).map(drop));
    unknown(chat.siblings(&nobody).map(drop));
    unknown(chat.is_on_path(&nobody).map(drop));
    unknown(chat.checkout(&nobody));
    unknown(chat.label("l", &nobody));
    unknown(chat.fork(&nobody, "Fork").map(drop));
    unknown(chat.append_to(&nobody, Message::user("e")).map(drop));
    Ok(())
}

/// The head stays at a deleted message with children. Appending there followed the summary, and appending to `head()`
/// went above it.
#[test]
fn appending_to_the_head_is_appending_at_it() -> Result<()> {
    let heads = |delete: &[&str]| -> Result<(Session, MessageId)> {
        let (_store, chat, summary) = chat()?;
        chat.checkout(&"c".into())?;
        let ids: Vec<MessageId> = delete.iter().map(|id| MessageId::from(*id)).collect();
        chat.delete(&ids)?;
        Ok((chat, summary))
    };
    for delete in [&[][..], &["c"], &["b"], &["a"], &["a", "c"], &["x"]] {
        let (at, summary) = heads(delete)?;
        at.append(Message::user("n").with_id("n"))?;
        let (to, other) = heads(delete)?;
        let head = to.head()?.unwrap();
        to.append_to(&head, Message::user("n").with_id("n"))?;
        let shown = |chat: &Session, summary: &MessageId| -> Result<String> {
            Ok(drawn(&chat.history()?).replace(summary.as_str(), "[s]"))
        };
        assert_eq!(shown(&at, &summary)?, shown(&to, &other)?, "after deleting {delete:?}");

        let (guarded, _) = heads(delete)?;
        guarded.append_if_head(Some(&guarded.head()?.unwrap()), Message::user("n"))?;
        let (moved, _) = heads(delete)?;
        let view = moved.history()?;
        moved.checkout(&moved.head()?.unwrap())?;
        assert_eq!(moved.history()?, view, "after deleting {delete:?}");
    }
    let (chat, summary) = heads(&["c"])?;
    assert_eq!(chat.head()?, Some(summary));
    Ok(())
}

/// A tombstone below a summary shows the summary, too, and so does the message at which the summary ends.
#[test]
fn the_head_below_a_summary_is_named_by_what_the_history_ends_with() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all(letters("a b c d e"))?;
    let summary = chat.add_compaction("b", &"b".into(), &"c".into())?.id.as_message();
    chat.checkout(&"d".into())?;
    chat.delete([&"d".into()])?;
    assert_eq!(chat.head()?, Some("c".into()));
    assert_eq!(drawn(&chat.history()?), format!("a {summary}"));
    assert_eq!(drawn(&chat.at(&"c".into()).history()?), format!("a {summary}"));
    chat.delete([&"c".into()])?;
    assert_eq!(chat.head()?, Some(summary.clone()));
    assert_eq!(drawn(&chat.at(&summary).history()?), format!("a {summary}"));
    Ok(())
}
