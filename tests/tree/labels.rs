//! Labels, tags and authors of messages.
//!
//! The library and the imports took `head` and the ids of messages as labels. Whoever typed such a label meant the
//! labelled message and got another one, also to delete it.

use std::io::Cursor;

use serde_json::json;
use talktree::{
    Author, Error, Label, MAX_ID_BYTES, Message, MessageFilter, MessageId, Record, Result,
    SessionDetails, SessionFilter, SessionState, Store,
};
use talktree_import::export::{export_session, session_hash};
use talktree_import::{ImportOptions, import_reader};

/// Returns why a label is refused.
fn refused(answer: Result<()>) -> String {
    match answer {
        Err(Error::InvalidValue { what: "label", why, .. }) => why,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_label_never_means_something_else() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    let (a, b) = ("a".into(), "b".into());
    for id in ["a", "b"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    assert_eq!(refused(chat.label("head", &a)), "it always means the head");
    assert!(refused(chat.label("b", &a)).contains("the id of a message"));
    assert!(refused(chat.label("b", &b)).contains("the id of a message"));
    assert!(refused(chat.label("compaction_1", &a)).contains("summaries"));
    assert!(chat.labels()?.is_empty());
    for fine in ["Head", "HEAD", "head ", "c", "compaction"] {
        chat.label(fine, &a)?;
    }
    // The id of a deleted message is free.
    chat.delete([&b])?;
    chat.label("b", &a)
}

#[test]
fn a_message_may_get_the_name_of_a_label() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    let first = chat.append(Message::user("first").with_id("first"))?.id;
    chat.label("late", &first)?;
    let late = chat.append(Message::user("late").with_id("late"))?.id;
    assert_eq!(chat.labelled("late")?, Some(first.clone()));
    // The label cannot be set again, and a fork keeps it.
    assert!(refused(chat.label("late", &first)).contains("the id of a message"));
    assert_eq!(chat.fork(&late, "fork")?.labelled("late")?, Some(first));
    chat.unlabel("late")
}

/// An export of an older build may have such labels: they are left out, and all else is imported.
#[test]
fn an_import_leaves_such_labels_out_and_says_so() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for id in ["a", "b"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    chat.label("fine", &"a".into())?;
    let mut file = Vec::new();
    export_session(&chat, &mut file)?;
    let file = String::from_utf8(file).unwrap();
    for (name, why) in
        [("head", "always means the head"), ("b", "the id of a message"), ("", "empty")]
    {
        let line = format!("{{\"type\":\"label\",\"name\":{name:?},\"id\":\"a\"}}\n");
        let at = file.find("{\"type\":\"label\"").unwrap();
        let file = format!("{}{line}{}", &file[..at], &file[at..]);
        for is_dry_run in [true, false] {
            let copy = Store::open_in_memory()?;
            let options = ImportOptions { is_dry_run, ..ImportOptions::default() };
            let report = import_reader(&copy, "export", Cursor::new(&file), &options, |_| {})?;
            let note = report.notes.iter().find(|note| note.why.contains(why));
            assert!(note.is_some_and(|note| note.is_fault), "{name:?}: {:?}", report.notes);
            assert_eq!((report.added, report.dropped), (2, 1), "{name:?}");
            if !is_dry_run {
                let copied = copy.session("s")?;
                assert_eq!(copied.labels()?, [Label::new("fine", "a".into())]);
                assert_eq!(session_hash(&copied)?, session_hash(&chat)?);
            }
        }
    }
    Ok(())
}

#[test]
fn a_whole_session_with_such_a_label_is_refused_alone() -> Result<()> {
    let store = Store::open_in_memory()?;
    let said = |id: &str| Message::user(id).with_id(id);
    let mut records = vec![Record::Session { id: "s".into(), details: SessionDetails::default() }];
    for id in ["a", "b"] {
        records.push(Record::Message { below: None, message: said(id), name: None });
    }
    for label in ["head", "b", "fine"] {
        records.push(Record::Label(Label::new(label, MessageId::from("a"))));
    }
    let (_, refused) = store.import(records.into_iter().map(Ok))?;
    for (number, (at, error)) in (3..).zip(&refused) {
        assert_eq!(*at, number);
        assert!(matches!(error, Error::InvalidValue { what: "label", .. }), "{error:?}");
    }
    assert_eq!((refused.len(), store.session("s")?.labels()?.len()), (2, 1));
    Ok(())
}

/// Returns the texts of the messages that a filter lists, read in pages of two.
fn listed(store: &Store, filter: &MessageFilter) -> Result<Vec<String>> {
    let (mut texts, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = store.list_messages(filter, after.as_deref(), 2)?;
        texts.extend(page.messages.iter().map(|found| found.message.text()));
        after = page.after;
        if after.is_none() {
            return Ok(texts);
        }
    }
}

#[test]
fn tags_follow_their_messages() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for id in ["a", "b", "c", "d"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    let id = |id: &str| MessageId::from(id);
    for (of, tag) in [("a", "spam"), ("b", "spam"), ("b", "seen"), ("c", "spam"), ("b", "spam")] {
        chat.tag(&id(of), tag)?;
    }
    assert_eq!(chat.tags(&id("b"))?, ["seen", "spam"]);
    let tagged = MessageFilter::tagged("spam");
    assert_eq!(listed(&store, &tagged)?, ["a", "b", "c"]);

    chat.update(Message::user("B").with_id("b"))?;
    assert_eq!(chat.tags(&id("b"))?, ["seen", "spam"]);
    let fork = chat.fork_as(&"fork".into(), &id("b"), "fork")?;
    assert_eq!(fork.tags(&id("b"))?, ["seen", "spam"]);
    assert_eq!(listed(&store, &tagged)?, ["a", "B", "c", "a", "B"]);
    fork.untag(&id("b"), "spam")?;
    fork.untag(&id("b"), "never")?;
    assert_eq!(chat.tags(&id("b"))?.len(), 2);

    // An inner message leaves a tombstone, the last one does not.
    chat.delete([&id("b"), &id("d")])?;
    chat.delete_branch(&id("c"))?;
    assert_eq!(chat.all_tags()?.len(), 1);
    assert_eq!(listed(&store, &tagged)?, ["a", "a"]);
    let of_fork = MessageFilter { session: Some("fork".into()), ..tagged.clone() };
    assert_eq!(listed(&store, &of_fork)?, ["a"]);
    fork.clear()?;
    store.remove(&"s".into())?;
    assert_eq!(store.list_messages(&tagged, None, 10)?.messages, []);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn tags_are_refused_where_they_would_be_lost() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    assert!(matches!(chat.tag(&"a".into(), "spam"), Err(Error::UnknownMessage { .. })));
    let a = chat.append(Message::user("a").with_id("a"))?.id;
    assert!(matches!(chat.tag(&a, ""), Err(Error::InvalidValue { what: "tag", .. })));
    for n in 0..100 {
        chat.tag(&a, &format!("t{n}"))?;
    }
    let full = chat.tag(&a, "more").unwrap_err().to_string();
    assert!(full.contains("the message has 100 tags"), "{full}");
    chat.tag(&a, "t7")?;
    assert_eq!(chat.tags(&a)?.len(), 100);
    assert!(matches!(chat.tags(&"b".into()), Err(Error::UnknownMessage { .. })));
    Ok(())
}

#[test]
fn tags_survive_an_export_and_count_in_hashes() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    for id in ["a", "b"] {
        chat.append(Message::user(id).with_id(id))?;
    }
    let before = session_hash(&chat)?;
    chat.tag(&"a".into(), "spam")?;
    chat.tag(&"b".into(), "seen")?;
    assert_ne!(session_hash(&chat)?, before);
    let mut file = Vec::new();
    export_session(&chat, &mut file)?;
    let copy = Store::open_in_memory()?;
    let strict = ImportOptions { is_strict: true, ..ImportOptions::default() };
    import_reader(&copy, "export", Cursor::new(&file), &strict, |_| {})?;
    let copied = copy.session("s")?;
    assert_eq!(session_hash(&copied)?, session_hash(&chat)?);
    // A tag that was removed since does not come back.
    copied.untag(&"a".into(), "spam")?;
    import_reader(&copy, "export", Cursor::new(&file), &strict, |_| {})?;
    assert_eq!(copied.all_tags()?.len(), 1);
    Ok(())
}

/// What the database knows an author by, and what the library does.
#[test]
fn the_author_of_a_stored_message_is_the_key_of_its_author() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    // One that cannot be compressed is too long for an index of a server.
    let mut seed = 1_u64;
    let mut letter = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        char::from(b'#' + (seed % 57) as u8)
    };
    let [long, longer] = [MAX_ID_BYTES, 4_000]
        .map(|bytes| std::iter::repeat_with(&mut letter).take(bytes).collect::<String>());
    let keys = ["42", "Ada", "ada", "7", "-3", " ", "é ü", "[]", "a\"b", "true", "x\ny"];
    let keys = [&keys[..], &[&long]].concat();
    let authors = [
        json!("Ada"),
        json!("  Ada\n"),
        json!(" "),
        json!(7),
        json!(null),
        json!([1]),
        json!({}),
        json!({"id": "42", "name": "Ada"}),
        json!({"id": 42}),
        json!({"id": 7, "name": "7th"}),
        json!({"id": -3}),
        json!({"id": " ", "name": "Ada"}),
        json!({"id": [], "name": "ada"}),
        json!({"id": true, "name": "true"}),
        json!({"id": {"id": "42"}}),
        json!({"name": "é ü"}),
        json!({"name": "[]"}),
        json!({"id": "a\"b"}),
        json!({"id": "x\ny", "name": ""}),
        json!(long),
        json!(longer),
        json!(format!(" {long}")),
        json!({"id": longer, "name": "Ada"}),
    ];
    for author in &authors {
        let metadata = json!({"author": author, "note": "author"});
        chat.append(Message::user("hi").with_metadata(metadata))?;
    }
    for metadata in [json!("author"), json!(["author"]), json!({"note": "\"author\""})] {
        chat.append(Message::user("hi").with_metadata(metadata))?;
    }
    let all = chat.raw_history()?;
    let mut found = 0;
    for key in keys {
        let expected: Vec<&MessageId> = all
            .iter()
            .filter(|message| Author::of(message).is_some_and(|it| it.key() == Some(key)))
            .map(|message| &message.id)
            .collect();
        let page = store.list_messages(&MessageFilter::written_by(key), None, 100)?;
        let stored: Vec<&MessageId> = page.messages.iter().map(|found| &found.message.id).collect();
        assert_eq!(stored, expected, "{key:?}");
        found += stored.len();
    }
    assert_eq!(found, 15);
    // An update changes the author, and a delete removes it.
    let first = &all[0];
    chat.update(Message::user("hi").with_id(first.id.clone()).from(&Author::new("new")))?;
    assert_eq!(listed(&store, &MessageFilter::written_by("new"))?, ["hi"]);
    chat.delete([&first.id])?;
    assert_eq!(listed(&store, &MessageFilter::written_by("new"))?, [""; 0]);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn sessions_are_listed_by_who_wrote_in_them() -> Result<()> {
    let store = Store::open_in_memory()?;
    for n in 0..12 {
        let chat = store.session(format!("s{n}"))?;
        for author in ["ann", "bob"].into_iter().take(1 + n % 2) {
            for _ in 0..3 {
                chat.append(Message::user("hi").from(&Author::new(author)))?;
            }
        }
    }
    store.change_session(&"s3".into(), &talktree::SessionChange::Delete)?;
    let list = |filter: &SessionFilter| -> Result<Vec<String>> {
        let (mut ids, mut after) = (Vec::new(), None::<String>);
        loop {
            let page =
                store.list().filter(filter.clone()).after(after.as_deref()).limit(2).run()?;
            ids.extend(page.sessions.iter().map(|found| found.info.id.to_string()));
            after = page.after;
            if after.is_none() {
                ids.sort();
                return Ok(ids);
            }
        }
    };
    let by = |author: &str| SessionFilter {
        author: Some(author.to_owned()),
        ..SessionFilter::default()
    };
    assert_eq!(list(&by("bob"))?, ["s1", "s11", "s5", "s7", "s9"]);
    assert_eq!(list(&by("ann"))?.len(), 11);
    assert_eq!(list(&by("eve"))?, [""; 0]);
    let state = SessionState::Trash;
    assert_eq!(list(&SessionFilter { state, ..by("bob") })?, ["s3"]);
    let fork = store.session("s1")?.fork_as(
        &"fork".into(),
        &store.session("s1")?.raw_history()?[2].id,
        "fork",
    )?;
    let parent_session = Some("s1".into());
    let forks = SessionFilter { parent_session, ..by("bob") };
    assert_eq!(list(&forks)?, [""; 0]);
    fork.append(Message::user("hi").from(&Author::new("bob")))?;
    assert_eq!(list(&forks)?, ["fork"]);
    Ok(())
}

#[test]
fn a_page_shows_one_author_or_one_tag() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    for n in 0..700 {
        let author = Author::new(if n % 100 == 7 { "rare" } else { "often" });
        let id = chat.append(Message::user(n.to_string()).from(&author))?.id;
        if n % 50 == 7 {
            chat.tag(&id, "seen")?;
        }
    }
    let texts = |messages: &[Message]| messages.iter().map(Message::text).collect::<Vec<_>>();
    let last = chat.page().author("rare").limit(3).run()?;
    assert_eq!(texts(&last.messages), ["407", "507", "607"]);
    let earlier =
        chat.page().author("rare").limit(9).before(last.before.as_ref().unwrap()).run()?;
    assert_eq!(texts(&earlier.messages), ["7", "107", "207", "307"]);
    assert_eq!((&earlier.before, earlier.after.is_some()), (&None, true));
    let both = chat.page().author("often").tag("seen").limit(2).run()?;
    assert_eq!(texts(&both.messages), ["557", "657"]);
    let next = chat.page().tag("seen").after(&both.messages[0].id).run()?;
    assert_eq!(texts(&next.messages), ["607", "657"]);
    let refused = [("author", chat.page().author("").run()), ("tag", chat.page().tag("").run())];
    for (field, page) in refused {
        assert!(matches!(page, Err(Error::InvalidValue { what, .. }) if what == field), "{field}");
    }
    Ok(())
}
