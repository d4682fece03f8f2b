//! The rules of a session, each shown by an example: appends and their places, updates, deletes, heads, labels, summaries.
//!
//! Trees are drawn as text: a letter is the message of this id, `[s]` is the summary of the compaction `s`.

use talktree::{
    Appended, Compaction, CompactionId, Deleted, Error, Json, Message, MessageId, Parent, Part,
    Result, Session, Store,
};

struct Probe {
    chat: Session,
    store: Store,
}

fn id(letter: &str) -> MessageId {
    MessageId::from(letter)
}

fn message(letter: &str) -> Message {
    Message::user(format!("text of {letter}")).with_id(letter)
}

fn summary(name: &str) -> MessageId {
    CompactionId::from(name).as_message()
}

/// Returns letters for messages and `[s]` for summaries.
fn drawn(messages: &[Message]) -> String {
    let name = |message: &Message| match CompactionId::from_message(&message.id) {
        Some(compaction) => format!("[{compaction}]"),
        None => message.id.to_string(),
    };
    messages.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn ids(compactions: &[CompactionId]) -> String {
    compactions.iter().map(CompactionId::as_str).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_unknown<T>(answer: Result<T>) {
    match answer.err() {
        Some(Error::UnknownMessage { .. }) => {}
        other => panic!("an unknown id should be Error::UnknownMessage, not {other:?}"),
    }
}

impl Probe {
    fn new() -> Result<Self> {
        let store = Store::open_in_memory()?;
        Ok(Self { chat: store.session("s")?, store })
    }

    fn is_sound(&self) -> Result<()> {
        assert_eq!(self.store.verify(|_| {})?.damages, []);
        Ok(())
    }

    fn append(&self, parent: &Parent, letters: &str) -> Result<Vec<Appended>> {
        self.chat.append_all_to(parent, letters.split(' ').map(message))
    }

    /// Appends a tree drawn as pairs of message and parent: `"a- ba cb da"` is the path a b c, and a branch d under a.
    fn draw(&self, tree: &str) -> Result<()> {
        for node in tree.split(' ') {
            let (letter, parent) = node.split_at(1);
            let parent = match parent {
                "-" => Parent::Root,
                parent => Parent::Message(id(parent)),
            };
            self.append(&parent, letter)?;
        }
        Ok(())
    }

    fn compact(&self, name: &str, first: &str, last: &str) -> Result<()> {
        let mut compaction = Compaction::new(format!("summary {name}"), id(first), id(last));
        compaction.id = name.into();
        compaction.details = Some(Json::from(serde_json::json!({"of": name})));
        self.chat.import_compaction(&compaction)
    }

    fn history(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.chat.at(&id(leaf)).history()?))
    }

    fn raw(&self, leaf: &str) -> Result<String> {
        Ok(drawn(&self.chat.at(&id(leaf)).raw_history()?))
    }

    /// Returns the raw path to the head.
    fn head(&self) -> Result<String> {
        Ok(drawn(&self.chat.raw_history()?))
    }

    fn children(&self, of: &str) -> Result<String> {
        Ok(drawn(&self.chat.branches(&id(of))?))
    }

    fn roots(&self) -> Result<String> {
        Ok(drawn(&self.chat.roots()?))
    }

    fn delete(&self, ids: &str) -> Result<Deleted> {
        self.chat.delete(&ids.split(' ').map(id).collect::<Vec<_>>())
    }
}

#[test]
fn an_appended_message_is_read_back_unchanged() -> Result<()> {
    let probe = Probe::new()?;
    let call = serde_json::json!({"city": "Jena", "n": 1.5, "deep": [[[null, true]]]});
    let other = r#"{"type": "data-x", "mark": "\ud800", "n": 123456789012345678901234567890}"#;
    let mut rich = Message::new("critic", vec![Part::text("It's \"so\" \0 \u{1F600}\n")])
        .with_id("quote ' and \0 and \u{1F600}")
        .with_part(Part::reasoning("hm"))
        .with_part(Part::tool_call("weather", "call-1", call.clone()))
        .with_part(Part::tool_result("weather", "call-1", call))
        .with_part(Part::file("image/png", "data:,"))
        .with_part(serde_json::from_str::<Part>(other).unwrap())
        .with_metadata(serde_json::json!({"a": null}))
        .at("2024-02-03T10:00:00Z".parse().unwrap());
    rich.extra.insert("further".to_owned(), Json::from(serde_json::json!([1, "x"])));
    let blank = Message::new("user", Vec::new()).with_id("blank");
    let answers = probe.chat.append_all([rich.clone(), blank.clone()])?;
    assert!(answers.iter().all(|answer| answer.is_new && !answer.differs));
    let mut below = blank;
    below.parent = Some(rich.id.clone());
    assert_eq!(probe.chat.raw_history()?, [rich.clone(), below.clone()]);
    assert_eq!(probe.chat.history()?, [rich.clone(), below]);
    assert_eq!(probe.chat.message(&rich.id)?, Some(rich));
    probe.is_sound()
}

#[test]
fn an_append_adds_to_its_parent_and_moves_the_head() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.append(&Parent::Head, "a b c")?;
    assert_eq!(probe.head()?, "a b c");
    probe.append(&Parent::Message(id("a")), "d e")?;
    assert_eq!(probe.head()?, "a d e");
    probe.append(&Parent::Head, "f")?;
    probe.append(&Parent::Root, "r")?;
    assert_eq!(probe.head()?, "r");
    assert_eq!((probe.raw("f")?, probe.raw("c")?), ("a d e f".into(), "a b c".into()));
    assert_eq!((probe.roots()?, probe.children("a")?), ("a r".into(), "b d".into()));
    assert_eq!(probe.children("f")?, "");
    assert_eq!((chat.at(&id("f")).path_length()?, chat.path_length()?), (4, 1));
    assert_eq!(chat.latest_leaf()?.map(|message| message.id), Some(id("r")));
    assert!(chat.branches(&id("a"))?.iter().all(|child| child.parent == Some(id("a"))));
    let elsewhere = chat.append_if_head(Some(&id("f")), message("g"));
    assert!(
        matches!(&elsewhere, Err(Error::HeadMoved { found, .. }) if *found == Some(id("r"))),
        "{elsewhere:?}"
    );
    chat.append_if_head(Some(&id("r")), message("g"))?;
    assert_eq!(probe.head()?, "r g");
    // A retry after a lost answer is a no-op.
    assert!(!chat.append_if_head(Some(&id("r")), message("g"))?.is_new);
    assert_eq!(probe.head()?, "r g");
    let leave = |from: &str, letter: &str| {
        let parent = Parent::Message(id("a"));
        chat.append_all_to_if_head(&parent, Some(&id(from)), [message(letter)])
    };
    assert!(matches!(leave("r", "x"), Err(Error::HeadMoved { .. })));
    leave("g", "y")?;
    assert_eq!(probe.head()?, "a y");
    assert!(!leave("g", "y")?[0].is_new, "a retry finds its own message");
    probe.is_sound()
}

#[test]
fn a_known_id_is_a_no_op_and_the_chain_continues_from_it() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba ca")?;
    let again = &probe.append(&Parent::Head, "b")?[0];
    assert!(!again.is_new && !again.differs && again.id == id("b"));
    assert!(probe.chat.append_root(Message::user("something else").with_id("b"))?.differs);
    assert_eq!((probe.head()?, probe.raw("b")?), ("a c".into(), "a b".into()));
    assert_eq!(probe.chat.at(&id("b")).raw_history()?[1].text(), "text of b");
    let answers = probe.append(&Parent::Root, "a b d")?;
    let are_new: Vec<bool> = answers.iter().map(|answer| answer.is_new).collect();
    assert_eq!((are_new, probe.head()?), (vec![false, false, true], "a b d".into()));
    probe.is_sound()
}

#[test]
fn an_unknown_id_is_an_error_and_nothing_is_changed() -> Result<()> {
    let probe = Probe::new()?;
    let (chat, x) = (&probe.chat, id("x"));
    assert_unknown(probe.delete("a"));
    probe.draw("a- ba")?;
    assert_unknown(probe.append(&Parent::Message(x.clone()), "c"));
    assert_unknown(chat.at(&x).history());
    assert_unknown(chat.at(&x).raw_history());
    assert_unknown(chat.branches(&x));
    assert_unknown(chat.at(&x).path_length());
    assert_unknown(chat.update(message("x")));
    assert_unknown(probe.delete("b x"));
    assert_unknown(probe.compact("s", "x", "b"));
    assert_unknown(probe.compact("s", "a", "x"));
    assert_unknown(chat.checkout(&x));
    assert_unknown(chat.delete_branch(&x));
    assert!(chat.is_on_path(&id("a"))?);
    assert_eq!((chat.message(&x)?, probe.head()?), (None, "a b".into()));
    assert!(chat.compactions()?.is_empty());
    probe.is_sound()
}

#[test]
fn an_update_replaces_the_content_but_not_the_place() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb")?;
    let before = probe.chat.message(&id("b"))?.unwrap();
    let mut changed =
        Message::assistant("changed").with_id("b").with_metadata(serde_json::json!(true));
    changed.is_hidden = true;
    let updated = probe.chat.update(changed.clone())?;
    assert!(updated.is_changed && updated.covered_by.is_empty());
    let after = probe.chat.message(&id("b"))?.unwrap();
    assert_eq!((after.text(), after.role.as_str()), ("changed".into(), "assistant"));
    assert_eq!(after.metadata, changed.metadata);
    assert!(!after.is_hidden, "an update leaves the hidden flag as it is");
    assert_eq!((after.parent, after.created_at), (before.parent, before.created_at));
    assert!(!probe.chat.update(changed)?.is_changed);
    probe.compact("s", "a", "b")?;
    assert_eq!(ids(&probe.chat.update(message("b"))?.covered_by), "s");
    assert_eq!(probe.head()?, "a b c");
    probe.is_sound()
}

#[test]
fn the_children_of_a_deleted_message_become_those_of_its_parent() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba cb db ea")?;
    assert_eq!(probe.delete("b")?.messages, [id("b")]);
    assert_eq!((probe.raw("c")?, probe.raw("d")?), ("a c".into(), "a d".into()));
    assert_eq!(probe.children("a")?, "c d e");
    assert_eq!(chat.at(&id("c")).path_length()?, 2);
    assert_eq!(chat.message(&id("c"))?.and_then(|message| message.parent), Some(id("a")));
    assert_unknown(chat.at(&id("b")).history());
    assert_unknown(probe.delete("b"));
    probe.delete("a")?;
    assert_eq!((probe.roots()?, probe.raw("c")?), ("c d e".into(), "c".into()));
    // The id of a deleted message can be used again.
    assert!(probe.append(&Parent::Message(id("e")), "b")?[0].is_new);
    assert_eq!(probe.raw("b")?, "e b");
    probe.delete("c c d e b")?;
    assert_eq!((probe.roots()?, chat.latest_leaf()?), (String::new(), None));
    probe.is_sound()
}

#[test]
fn the_head_moves_to_the_parent_of_a_deleted_message() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb")?;
    probe.delete("c")?;
    assert_eq!(probe.head()?, "a b");
    probe.draw("da eb")?;
    probe.delete("b")?;
    probe.delete("e")?;
    assert_eq!(probe.head()?, "a");
    probe.append(&Parent::Head, "f")?;
    assert_eq!(probe.head()?, "a f");
    probe.is_sound()
}

#[test]
fn a_branch_is_deleted_with_all_its_messages() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb da eb fe gd")?;
    let deleted = probe.chat.delete_branch(&id("b"))?;
    assert_eq!(deleted.messages, ["b", "c", "e", "f"].map(id));
    assert_eq!((probe.children("a")?, probe.raw("g")?), ("d".into(), "a d g".into()));
    assert_unknown(probe.chat.delete_branch(&id("c")));
    probe.is_sound()
}

#[test]
fn a_cleared_session_is_empty_and_can_be_written_to() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba")?;
    probe.compact("s", "a", "b")?;
    probe.chat.clear()?;
    assert_eq!((probe.head()?, probe.roots()?), (String::new(), String::new()));
    assert!(probe.chat.compactions()?.is_empty());
    assert_eq!(probe.chat.message(&id("a"))?, None);
    probe.draw("b- ab")?;
    assert_eq!(probe.history("a")?, "b a");
    probe.is_sound()
}

#[test]
fn a_page_of_branches_is_a_part_of_them() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba ca da eb fb ga r-")?;
    // The children of a deleted message are among those of its parent, in order of creation.
    probe.delete("b")?;
    let page = |of: Option<&str>, after: Option<&str>, limit: usize| -> Result<String> {
        let (of, after) = (of.map(id), after.map(id));
        Ok(drawn(&probe.chat.branches_page(of.as_ref(), after.as_ref(), limit)?))
    };
    for (of, after, limit, expected) in [
        (Some("a"), None, 9, "c d e f g"),
        (Some("a"), None, 2, "c d"),
        (Some("a"), Some("d"), 2, "e f"),
        (Some("a"), Some("f"), 1, "g"),
        (Some("a"), Some("g"), 1, ""),
        (Some("a"), None, 0, ""),
        (None, None, 1, "a"),
        (None, Some("a"), 9, "r"),
    ] {
        assert_eq!(page(of, after, limit)?, expected, "{limit} of {of:?} after {after:?}");
    }
    assert_unknown(page(Some("x"), None, 1));
    assert_unknown(page(Some("a"), Some("x"), 1));
    assert_eq!(probe.chat.leaves()?, ["c", "d", "e", "f", "g", "r"].map(id));
    probe.is_sound()
}

#[test]
fn the_head_can_be_moved_undone_and_redone() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba ca")?;
    chat.checkout(&id("b"))?;
    assert_eq!((chat.head()?, probe.head()?), (Some(id("b")), "a b".into()));
    probe.append(&Parent::Head, "d")?;
    assert_eq!(probe.head()?, "a b d");
    assert!(chat.undo_head()?);
    assert_eq!(probe.head()?, "a c");
    assert!(chat.redo_head()?);
    assert_eq!((probe.head()?, chat.redo_head()?), ("a b d".into(), false));
    assert_eq!(chat.head_log()?.iter().filter(|entry| entry.is_present).count(), 1);
    chat.checkout_start()?;
    assert_eq!((chat.head()?, probe.head()?), (None, String::new()));
    probe.append(&Parent::Head, "r")?;
    assert_eq!(probe.roots()?, "a r");
    probe.is_sound()
}

#[test]
fn labels_point_to_messages() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba cb")?;
    for (name, letter) in [("y", "a"), ("x", "b"), ("y", "c")] {
        chat.label(name, &id(letter))?;
    }
    assert_unknown(chat.label("z", &id("x")));
    let all = || -> Result<String> {
        let labels = chat.labels()?;
        let names: Vec<_> =
            labels.iter().map(|label| format!("{}={}", label.name, label.id)).collect();
        Ok(names.join(" "))
    };
    assert_eq!(all()?, "x=b y=c");
    assert_eq!((chat.labelled("x")?, chat.labelled("z")?), (Some(id("b")), None));
    probe.delete("b")?;
    assert_eq!((all()?, chat.labelled("x")?), ("y=c".into(), None));
    chat.unlabel("y")?;
    chat.unlabel("y")?;
    assert_eq!(all()?, "");
    probe.is_sound()
}

#[test]
fn a_summary_replaces_its_range_on_the_paths_with_its_last_message() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba cb dc xb")?;
    probe.compact("s", "b", "c")?;
    for (leaf, shown) in [("d", "a [s] d"), ("c", "a [s]"), ("b", "a b"), ("x", "a b x")] {
        assert_eq!(probe.history(leaf)?, shown, "the history at {leaf}");
    }
    assert_eq!(probe.raw("d")?, "a b c d");
    assert_eq!(chat.at(&id("d")).path_length()?, 4);
    let first = chat.at(&id("d")).history()?;
    assert_eq!(first, chat.at(&id("d")).history()?, "two reads of one state are equal");
    let stored = chat.compactions()?;
    assert_eq!((stored[0].count, stored[0].summary.as_str()), (2, "summary s"));
    assert_eq!((&stored[0].first, &stored[0].last), (&id("b"), &id("c")));
    assert_eq!(stored[0].details, Some(Json::from(serde_json::json!({"of": "s"}))));
    assert_eq!(first[1], stored[0].to_message(Some(id("a"))));
    assert_eq!(chat.message(&summary("s"))?.as_ref(), Some(&first[1]));
    assert_eq!(drawn(&chat.expand_raw(&"s".into())?), "b c");
    // A known id is a no-op.
    probe.compact("s", "a", "a")?;
    assert_eq!(chat.compactions()?, stored);
    probe.is_sound()
}

#[test]
fn a_compaction_covers_whole_items_of_the_view() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb dc ed xb")?;
    for (first, last) in [("c", "b"), ("x", "e"), ("c", "x")] {
        let answer = probe.compact("s", first, last);
        assert!(matches!(answer, Err(Error::NotAncestor { .. })), "{first}..{last}: {answer:?}");
    }
    probe.compact("s", "b", "d")?;
    let inside = probe.compact("t", "c", "e");
    assert!(
        matches!(&inside, Err(Error::InsideSummary { compaction, id: given })
            if *compaction == "s" && *given == id("c")),
        "{inside:?}"
    );
    assert_eq!(probe.history("e")?, "a [s] e");
    // On a path without the summary its messages are items.
    probe.compact("u", "a", "c")?;
    assert_eq!((probe.history("c")?, probe.history("e")?), ("[u]".into(), "a [s] e".into()));
    assert_eq!(probe.history("x")?, "a b x");
    probe.is_sound()
}

#[test]
fn of_compactions_with_one_last_message_the_longest_is_visible_of_equals_the_newest() -> Result<()>
{
    let probe = Probe::new()?;
    probe.draw("a- ba cb dc ed")?;
    for (name, first, last, shown) in [
        ("s", "b", "c", "a [s] d e"),
        ("t", "b", "d", "a [t] e"),
        ("u", "a", "d", "[u] e"),
        ("v", "a", "d", "[v] e"),
    ] {
        probe.compact(name, first, last)?;
        assert_eq!(probe.history("e")?, shown);
    }
    assert_eq!(probe.history("c")?, "a [s]");
    assert_eq!(drawn(&probe.chat.expand_raw(&"v".into())?), "a b c d");
    // Each expansion shows one level.
    for (over, below) in [("v", "[u]"), ("u", "a [t]"), ("t", "[s] d"), ("s", "b c")] {
        assert_eq!(drawn(&probe.chat.expand(&over.into())?), below, "under {over}");
    }
    let nested: Vec<String> =
        probe.chat.compactions()?.iter().map(|compaction| ids(&compaction.nested)).collect();
    assert_eq!(nested, ["", "s", "t", "u"]);
    probe.is_sound()
}

#[test]
fn the_id_of_a_summary_names_the_place_of_its_last_message() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba cb xc dc")?;
    probe.compact("s", "b", "c")?;
    let (of, nobody) = (summary("s"), summary("nobody"));
    assert_unknown(chat.at(&nobody).history());
    assert_unknown(chat.branches(&nobody));
    assert_unknown(chat.is_on_path(&nobody));
    assert_unknown(chat.append_to(&nobody, message("n")));
    for is_deleted in [false, true] {
        if is_deleted {
            probe.delete("c")?;
        }
        assert_eq!(drawn(&chat.at(&of).history()?), "a [s]");
        assert_eq!(drawn(&chat.branches(&of)?), "x d");
        assert!(chat.is_on_path(&of)?);
        assert!(chat.is_ancestor(&id("a"), &of)? && !chat.is_ancestor(&id("d"), &of)?);
        chat.checkout(&of)?;
        assert_eq!(drawn(&chat.history()?), "a [s]");
        chat.checkout(&id("d"))?;
    }
    assert_unknown(chat.delete([&of]));
    assert_unknown(chat.update(message("c").with_id(of.clone())));
    probe.append(&Parent::Message(of), "e f")?;
    assert_eq!((probe.history("f")?, probe.raw("f")?), ("a [s] e f".into(), "a b e f".into()));
    probe.is_sound()
}

#[test]
fn the_head_is_named_by_what_the_history_ends_with() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    probe.draw("a- ba cb dc")?;
    probe.compact("s", "b", "c")?;
    chat.checkout(&id("c"))?;
    assert_eq!(chat.head()?, Some(id("c")));
    probe.delete("c")?;
    assert_eq!(chat.head()?, Some(summary("s")));
    assert_eq!(chat.at(&summary("s")).history()?, chat.history()?);
    let parent = Parent::Message(summary("s"));
    chat.append_all_to_if_head(&parent, Some(&summary("s")), [message("n")])?;
    assert_eq!(probe.history("n")?, "a [s] n");
    probe.is_sound()
}

#[test]
fn hidden_messages_are_stored_but_not_visible() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    chat.append_all([message("a"), message("b").hidden(), message("c")])?;
    assert_eq!((probe.history("c")?, probe.raw("c")?), ("a c".into(), "a b c".into()));
    assert_eq!(chat.history()?[1].parent, Some(id("b")));
    assert_eq!(chat.path_length()?, 3);
    assert!(chat.message(&id("b"))?.is_some_and(|message| message.is_hidden));
    let answer = probe.compact("s", "b", "b");
    assert!(matches!(answer, Err(Error::NothingVisible { .. })), "{answer:?}");
    probe.compact("s", "b", "c")?;
    assert_eq!(probe.history("c")?, "a [s]");
    probe.is_sound()
}

#[test]
fn a_compaction_of_deleted_messages_is_removed_and_reported() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb dc ed")?;
    probe.compact("s", "b", "c")?;
    probe.compact("t", "a", "d")?;
    assert_eq!(ids(&probe.delete("b")?.covered_by), "s t");
    assert_eq!((probe.history("e")?, probe.history("c")?), ("[t] e".into(), "a [s]".into()));
    let deleted = probe.delete("c")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.covered_by)),
        ("s".into(), "t".into())
    );
    // Its last message is a tombstone, which is removed with its last descendant.
    assert_eq!(ids(&probe.delete("d")?.covered_by), "t");
    assert_eq!(probe.history("e")?, "[t] e");
    assert_eq!(ids(&probe.delete("e")?.compactions_gone), "t");
    assert_eq!((probe.history("a")?, probe.chat.compactions()?.len()), ("a".into(), 0));
    probe.draw("fa gf hg")?;
    probe.compact("u", "a", "f")?;
    probe.compact("v", "a", "h")?;
    let deleted = probe.delete("h")?;
    assert_eq!(
        (ids(&deleted.compactions_gone), ids(&deleted.compactions_back)),
        ("v".into(), "u".into())
    );
    assert_eq!(probe.history("g")?, "[u] g");
    probe.is_sound()
}

#[test]
fn removing_a_compaction_makes_its_range_visible_again() -> Result<()> {
    let probe = Probe::new()?;
    probe.draw("a- ba cb dc")?;
    probe.compact("s", "a", "b")?;
    probe.compact("t", "a", "c")?;
    probe.chat.remove_compaction(&"t".into())?;
    assert_eq!(probe.history("d")?, "[s] c d");
    let answer = probe.chat.remove_compaction(&"t".into());
    assert!(matches!(answer, Err(Error::UnknownCompaction { .. })), "{answer:?}");
    probe.chat.remove_compaction(&"s".into())?;
    assert_eq!(probe.history("d")?, "a b c d");
    probe.is_sound()
}

#[test]
fn an_edit_is_a_sibling_of_the_edited_message() -> Result<()> {
    let probe = Probe::new()?;
    let edit = |of: &str, new: &str| probe.chat.edit(&id(of), message(new));
    probe.append(&Parent::Head, "q a r b")?;
    assert!(edit("r", "s")?.is_new);
    assert_eq!((probe.head()?, probe.children("a")?), ("q a s".into(), "r s".into()));
    assert!(edit("q", "t")?.is_new);
    assert_eq!((probe.head()?, probe.roots()?), ("t".into(), "q t".into()));
    assert!(!edit("q", "s")?.is_new);
    assert_eq!(probe.head()?, "t");
    assert_unknown(edit("x", "u"));
    probe.compact("z", "q", "a")?;
    assert_unknown(probe.chat.edit(&summary("z"), message("u")));
    // The place of a deleted message is kept as long as something is below it.
    probe.delete("a")?;
    assert!(edit("r", "v")?.is_new);
    assert_eq!((probe.head()?, probe.children("q")?), ("q v".into(), "r s v".into()));
    probe.is_sound()
}

#[test]
fn a_record_is_imported_once() -> Result<()> {
    let probe = Probe::new()?;
    let chat = &probe.chat;
    let record = |letter: &str, parent: Option<&str>| (parent.map(id), message(letter));
    let records = || [record("a", None), record("b", Some("a")), record("c", Some("a"))];
    assert_eq!(chat.import_messages(records())?, ["a", "b", "c"].map(|it| Appended::new(id(it))));
    assert_eq!((probe.head()?, probe.children("a")?), ("a b".into(), "b c".into()));
    probe.delete("c")?;
    let known = ["a", "b", "c"].map(|it| Appended::known(id(it), false));
    assert_eq!(chat.import_messages(records())?, known);
    assert!(chat.is_imported("c")?, "also when it was deleted");
    assert!(!chat.is_imported("x")?);
    assert_eq!(chat.message(&id("a"))?.map(|a| a.text()), Some("text of a".to_owned()));
    probe.chat.append(Message::user("written here").with_id("f"))?;
    let other = Message::user("other").with_id("f");
    assert_eq!(chat.import_message(None, other)?, Appended::known(id("f"), true));
    assert_unknown(chat.import_messages([record("d", None), record("e", Some("x"))]));
    assert_eq!(chat.message(&id("d"))?, None);
    probe.is_sound()
}

/// A server lists rows without an order as they were written last.
#[test]
fn leaves_are_in_order_of_creation_also_after_an_update() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let root = chat.append(Message::user("root"))?.id;
    for id in ["a", "b", "c"] {
        chat.append_to(&root, Message::assistant(id).with_id(id))?;
    }
    chat.update(Message::assistant("longer than it was before").with_id("b"))?;
    assert_eq!(chat.leaves()?, ["a", "b", "c"]);
    Ok(())
}
