//! Search and cursors: both see the current messages, after updates and deletes.

use super::probe::{Probe, drawn, id, read_by, supported};
use crate::error::{Error, Result};
use crate::id::CompactionId;
use crate::message::Message;
use crate::search::{Scope, SearchRequest};
use crate::view::{ExpectedHead, Order, Parent, View};

pub(super) fn searches(probe: &Probe) -> Result<()> {
    let provider = &probe.provider;
    let all = || Scope::session(provider.id().clone());
    let path = |leaf: Option<&str>| Scope::Path(provider.id().clone(), leaf.map(id));
    for (letter, parent, text) in [
        ("a", None, "Which colour shall the door have?"),
        ("b", Some("a"), "The door shall be red."),
        ("c", Some("a"), "Green, and the window as well."),
    ] {
        let parent = parent.map_or(Parent::Root, |parent| Parent::Message(id(parent)));
        provider.append(&parent, &ExpectedHead::Any, &[Message::user(text).with_id(letter)])?;
    }
    assert_eq!(probe.found("door", all())?, "a b");
    assert_eq!(probe.found("DOOR red", all())?, "b");
    assert_eq!(probe.found("door", path(None))?, "a");
    assert_eq!(probe.found("door", path(Some("b")))?, "a b");
    assert_eq!(probe.found("elephant", all())?, "");
    assert_eq!(probe.found("door", Scope::Sessions(Vec::new()))?, "");
    for beyond in [Scope::Store, Scope::session("another"), Scope::Path("another".into(), None)] {
        let answer = provider.search(&SearchRequest::new("door", beyond));
        assert!(matches!(answer, Err(Error::Unsupported { .. })), "{answer:?}");
    }
    let mut plain = SearchRequest::new("-red", all());
    plain.is_plain = true;
    assert_eq!(
        provider.search(&plain)?.hits,
        provider.search(&SearchRequest::new("red", all()))?.hits
    );
    let found = provider.search(&SearchRequest::new("red", all()))?;
    let hit = &found.hits[0];
    assert_eq!((&hit.session, hit.on_path, &hit.under), (provider.id(), false, &None));
    assert!(hit.snippet.text.contains("red"));
    for text in ["", "\"", "AND", "a OR", "-", "*", "role:", "\0", "') --"] {
        provider.search(&SearchRequest::new(text, all()))?;
    }
    probe.compact("s", "a", "c")?;
    let found = provider.search(&SearchRequest::new("colour", all()))?;
    assert_eq!((found.hits[0].on_path, &found.hits[0].under), (true, &Some("s".into())));
    provider.update(&Message::user("It shall be blue.").with_id("b"))?;
    assert_eq!(
        (probe.found("red", all())?, probe.found("blue", all())?),
        (String::new(), "b".into())
    );
    probe.delete("b")?;
    assert_eq!(probe.found("blue", all())?, "");
    let hidden = Message::user("A hidden window.").hidden().with_id("d");
    provider.append(&Parent::Root, &ExpectedHead::Any, &[hidden])?;
    assert_eq!(probe.found("window", all())?, "c d");
    let mut shown =
        SearchRequest { limit: 1, omits_hidden: true, ..SearchRequest::new("window", all()) };
    let hits = provider.search(&shown)?.hits;
    assert_eq!(hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["c"]);
    shown.scope = path(Some("d"));
    assert_eq!(provider.search(&shown)?.hits, []);
    provider.clear()?;
    assert_eq!(probe.found("window", all())?, "");
    Ok(())
}

pub(super) fn streams(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc ed")?;
    probe.compact("s", "b", "c")?;
    for (view, shown) in [(View::head(), "a [s] d e"), (View::at(&id("d")).raw(), "a b c d")] {
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let Some(mut cursor) = supported(probe.provider.cursor(&view, order))? else {
                return Ok(());
            };
            assert_eq!(cursor.total()?, shown.split(' ').count() as u64);
            let mut read = read_by(&mut *cursor, 2)?;
            if order == Order::NewestFirst {
                read.reverse();
            }
            assert_eq!(drawn(&read), shown);
        }
    }
    let mut cursor = probe.provider.cursor(&View::head(), Order::OldestFirst)?;
    assert!(!cursor.skip_past(&id("x"))?);
    assert!(cursor.skip_past(&CompactionId::from("s").as_message())?);
    assert_eq!(drawn(&read_by(&mut *cursor, 9)?), "d e");
    let stats = probe.provider.row_stats(None)?;
    assert_eq!(stats.len(), 5);
    for (stat, message) in stats.iter().zip(probe.provider.raw_history(None)?) {
        assert_eq!((&stat.id, &stat.role), (&message.id, &message.role));
        assert_eq!(
            (stat.tokens, stat.bytes),
            (message.tokens(), crate::message::stored_bytes(&message)?)
        );
    }
    if let Some(mut cursor) = supported(probe.provider.all_messages())? {
        assert_eq!(drawn(&read_by(&mut *cursor, 2)?), "a b c d e");
    }
    Ok(())
}
