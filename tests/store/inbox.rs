//! Inboxes: what was received is handled once, in order, also if it is delivered again or the program is killed.
//!
//! [`child`] is what the child processes run.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::folder;
use crate::common::process::{Other, say, task};
use crate::tables::{Tables, prove};
use talktree::{
    Erasure, Error, InboxItem, MAX_ID_BYTES, Message, Result, Retention, RetentionRule,
    SessionDetails, SessionManager, Store,
};
use talktree_import::export::content_hash;

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((task, store)) = task() else { return Ok(()) };
    let inbox = Store::open(store)?.inbox("telegram");
    match &*task {
        // Receives the same items as others, and prints which were new.
        "receive" => {
            for first in (0..DELIVERED).step_by(7) {
                let batch: Vec<InboxItem> = (first..first + 20).map(delivery).collect();
                let new = inbox.receive(&batch, Some(first))?;
                for (item, _) in batch.iter().zip(new).filter(|(_, is_new)| *is_new) {
                    say(&item.id);
                }
            }
        }
        // Receives one item after the other until it is killed, and prints the acknowledged ones.
        "receive_for_ever" => {
            for n in 0.. {
                inbox.receive(&[delivery(n)], Some(n + 1))?;
                say(n);
            }
        }
        other => panic!("unknown task: {other:?}"),
    }
    Ok(())
}

/// How many items the processes receive.
const DELIVERED: i64 = 200;

fn delivery(n: i64) -> InboxItem {
    InboxItem::new(n.to_string(), format!("chat {}", n % 5), format!("body {n}"))
}

fn item(id: &str, key: &str) -> InboxItem {
    InboxItem::new(id, key, format!("body of {id}"))
}

/// Handles all pending items; returns their ids in order.
fn handle_all(store: &Store, source: &str) -> Result<Vec<String>> {
    let inbox = store.inbox(source);
    let mut handled = Vec::new();
    for key in inbox.keys()? {
        while let Some(item) = inbox.next(&key)? {
            assert!(inbox.done(&item.id)?);
            handled.push(item.id);
        }
    }
    Ok(handled)
}

#[test]
fn a_duplicate_is_ignored_while_the_item_waits_and_after_it_was_handled() -> Result<()> {
    let store = Store::open_in_memory()?;
    let inbox = store.inbox("telegram");
    assert_eq!(
        inbox.receive(&[item("1", "a"), item("1", "a"), item("2", "a")], None)?,
        [true, false, true]
    );
    let changed = InboxItem::new("1", "b", "another body").owner("user:1");
    assert_eq!(inbox.receive(&[changed, item("3", "a")], None)?, [false, true]);
    let first = inbox.next("a")?.unwrap();
    assert_eq!((first.body.as_str(), first.owner), ("body of 1", None));
    assert_eq!(inbox.next("b")?, None);

    assert_eq!(handle_all(&store, "telegram")?, ["1", "2", "3"]);
    assert_eq!(inbox.receive(&[item("3", "a"), item("4", "a")], None)?, [false, true]);
    assert_eq!(inbox.next("a")?.unwrap().id, "4");
    Ok(())
}

#[test]
fn the_items_of_a_key_come_in_order_and_the_key_that_waits_longest_comes_first() -> Result<()> {
    let store = Store::open_in_memory()?;
    let inbox = store.inbox("telegram");
    // In the order of arrival, not of ids or keys.
    inbox.receive(&[item("9", "z"), item("3", "a"), item("5", "m")], None)?;
    inbox.receive(&[item("1", "a"), item("2", "z")], None)?;
    assert_eq!(inbox.keys()?, ["z", "a", "m"]);
    assert_eq!(inbox.pending()?, 5);
    assert!(inbox.done("9")?);
    assert_eq!(inbox.keys()?, ["a", "m", "z"]);
    assert_eq!(inbox.next("a")?.unwrap().id, "3");
    assert_eq!(inbox.next("a")?.unwrap().id, "3", "it stays until it is done");
    assert!(inbox.done("3")?);
    assert_eq!(inbox.next("a")?.unwrap().id, "1");
    assert_eq!(handle_all(&store, "telegram")?, ["5", "1", "2"]);
    assert_eq!((inbox.keys()?, inbox.pending()?), (vec![], 0));
    Ok(())
}

#[test]
fn sources_have_ids_offsets_and_keys_of_their_own() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (one, two) = (store.inbox("one"), store.inbox("two"));
    assert_eq!(one.receive(&[item("1", "k")], Some(10))?, [true]);
    assert_eq!(two.receive(&[item("1", "k")], None)?, [true]);
    assert_eq!((one.offset()?.unwrap().0, two.offset()?), (10, None));
    assert!(one.done("1")?);
    assert_eq!((one.pending()?, two.pending()?), (0, 1));
    assert!(!one.note("1", "late")?);
    assert!(two.note("1", "noted")?);
    assert_eq!(store.stats()?.inbox_items, 1);
    Ok(())
}

#[test]
fn items_and_offset_are_stored_together_or_not_at_all() -> Result<()> {
    let store = Store::options().max_message_bytes(100).open_in_memory()?;
    let inbox = store.inbox("telegram");
    inbox.receive(&[item("1", "a")], Some(5))?;
    let before = inbox.offset()?.unwrap();

    let large = InboxItem::new("3", "a", "x".repeat(101));
    let refused = inbox.receive(&[item("2", "a"), large], Some(6)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the body of an inbox item is 101 bytes, over the store's limit of 100"
    );
    assert_eq!((inbox.offset()?.unwrap(), inbox.pending()?), (before, 1));

    let fits = InboxItem::new("3", "a", "x".repeat(100));
    assert_eq!(inbox.receive(&[item("2", "a"), fits], None)?, [true, true]);
    assert_eq!(inbox.offset()?.unwrap(), before, "no offset leaves the stored one");
    // A source that numbers anew goes back.
    for value in [6, i64::MAX, -3, 0, i64::MIN] {
        assert!(inbox.receive(&[], Some(value))?.is_empty());
        assert_eq!(inbox.offset()?.unwrap().0, value);
    }
    assert!(inbox.offset()?.unwrap().1 >= before.1);
    Ok(())
}

#[test]
fn a_note_is_kept_until_the_item_is_done() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    {
        let inbox = Store::open(&path)?.inbox("telegram");
        inbox.receive(&[item("1", "a").owner("user:1")], Some(2))?;
        assert_eq!(inbox.next("a")?.unwrap().note, None);
        assert!(inbox.note("1", "placeholder 99")?);
        assert!(inbox.note("1", "placeholder 99, then 100")?);
    }
    // After a restart.
    let store = Store::options().max_message_bytes(1_000).open(&path)?;
    let inbox = store.inbox("telegram");
    let found = inbox.next("a")?.unwrap();
    assert_eq!(found.note.as_deref(), Some("placeholder 99, then 100"));
    assert_eq!((found.key.as_str(), found.owner.as_deref()), ("a", Some("user:1")));
    assert_eq!(inbox.offset()?.unwrap().0, 2);
    let refused = inbox.note("1", &"x".repeat(1_001)).unwrap_err();
    assert!(matches!(refused, Error::TooLarge { bytes: 1_001, max: 1_000, .. }), "{refused}");
    assert!(inbox.note("1", "")?);
    assert_eq!(inbox.next("a")?.unwrap().note.as_deref(), Some(""));

    assert!(inbox.done("1")?);
    assert_eq!((inbox.done("1")?, inbox.done("unknown")?), (false, false), "done twice");
    assert!(!inbox.note("1", "late")? && !inbox.note("unknown", "x")?);
    assert_eq!(inbox.next("a")?, None);
    Ok(())
}

#[test]
fn threads_that_receive_the_same_items_at_once_get_each_as_new_once() -> Result<()> {
    let folder = folder()?;
    let store = Store::open(folder.path().join("bot.db"))?;
    let new: Vec<Vec<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let inbox = store.inbox("telegram");
                scope.spawn(move || -> Result<Vec<String>> {
                    let mut new = Vec::new();
                    for n in 0..DELIVERED {
                        for (item, is_new) in
                            [delivery(n)].iter().zip(inbox.receive(&[delivery(n)], Some(n))?)
                        {
                            new.extend(is_new.then(|| item.id.clone()));
                        }
                    }
                    Ok(new)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>()
    })?;
    let all: Vec<&String> = new.iter().flatten().collect();
    let ids: BTreeSet<&String> = all.iter().copied().collect();
    assert_eq!((all.len(), ids.len()), (DELIVERED as usize, DELIVERED as usize));
    assert_eq!(store.inbox("telegram").pending()?, DELIVERED as u64);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn processes_that_receive_the_same_items_at_once_get_each_as_new_once() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    let others = [(); 2].map(|()| Other::start("receive", &path));
    let mut new = Vec::new();
    for other in others {
        new.extend(other?.wait());
    }
    let ids: BTreeSet<&String> = new.iter().collect();
    assert_eq!(new.len(), ids.len(), "none is new twice");
    let store = Store::open(&path)?;
    assert_eq!(store.inbox("telegram").pending()?, new.len() as u64);
    // The items of a key are in the order of their ids, because each process received them in that order.
    let mut handled = handle_all(&store, "telegram")?;
    assert_eq!(handled.len(), new.len());
    let mut by_chat: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for id in handled.drain(..) {
        let id: i64 = id.parse().unwrap();
        by_chat.entry(id % 5).or_default().push(id);
    }
    for (chat, ids) in by_chat {
        assert!(ids.is_sorted(), "chat {chat}: {ids:?}");
    }
    Ok(())
}

#[test]
fn a_killed_process_loses_nothing_that_it_received_and_its_offset_fits() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    let mut other = Other::start("receive_for_ever", &path)?;
    for _ in 0..50 {
        other.hear();
    }
    let acknowledged = other.kill();
    let inbox = Store::open(&path)?.inbox("telegram");
    let last = acknowledged.last().map_or(49, |n| n.parse::<i64>().unwrap());
    let offset = inbox.offset()?.unwrap().0;
    assert!(offset > last, "{offset} after {last}");
    assert_eq!(inbox.pending()?, offset as u64);
    assert_eq!(inbox.receive(&[delivery(offset - 1)], None)?, [false]);
    Ok(())
}

#[test]
fn names_have_the_limits_of_ids() -> Result<()> {
    let store = Store::open_in_memory()?;
    let inbox = store.inbox("telegram");
    let (fits, long) = ("x".repeat(MAX_ID_BYTES), "x".repeat(MAX_ID_BYTES + 1));
    assert_eq!(inbox.receive(&[item(&fits, &fits).owner(&*fits)], None)?, [true]);
    for (name, what) in [(&long, "over the limit"), (&String::new(), "empty")] {
        for wrong in [item(name, "k"), item("1", name), item("1", "k").owner(&**name)] {
            let refused = inbox.receive(&[wrong], Some(1)).unwrap_err().to_string();
            assert!(refused.contains(what), "{refused}");
        }
        let wrong = store.inbox(name);
        assert!(wrong.receive(&[], None).is_err() && wrong.offset().is_err());
        assert!(wrong.keys().is_err() && wrong.next("k").is_err() && wrong.pending().is_err());
        assert!(wrong.note("1", "x").is_err() && wrong.done("1").is_err());
    }
    assert_eq!((inbox.pending()?, inbox.offset()?), (1, None));
    Ok(())
}

#[test]
fn any_text_is_a_name_or_a_body() -> Result<()> {
    let store = Store::open_in_memory()?;
    let hostile = [
        "a\0b",
        "\n\r\n",
        "'; DROP TABLE inbox_item; --",
        "%s%n",
        "\u{202E}rtl",
        "\u{FEFF}",
        "ﷺ".repeat(50).as_str(),
        " ",
        "👩‍👩‍👧",
    ]
    .map(str::to_owned);
    for name in &hostile {
        let inbox = store.inbox(name);
        for body in hostile.iter().chain([&String::new()]) {
            let item = InboxItem::new(format!("{name}{body}"), name, body).owner(name);
            assert_eq!(inbox.receive(std::slice::from_ref(&item), None)?, [true]);
            assert!(inbox.note(&item.id, body)?);
            let found = inbox.next(name)?.unwrap();
            assert_eq!((&found.id, &found.key, &found.body), (&item.id, name, body));
            assert_eq!((found.owner.as_ref(), found.note.as_ref()), (Some(name), Some(body)));
            assert!(inbox.done(&item.id)?);
        }
        assert_eq!(inbox.keys()?, Vec::<String>::new());
    }
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_read_only_store_reads_its_inboxes_and_receives_nothing() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    Store::open(&path)?.inbox("telegram").receive(&[item("1", "a")], Some(2))?;
    let inbox = Store::open_read_only(&path)?.inbox("telegram");
    assert_eq!((inbox.keys()?, inbox.pending()?), (vec!["a".to_owned()], 1));
    assert_eq!(inbox.next("a")?.unwrap().id, "1");
    for refused in [
        inbox.receive(&[item("2", "a")], None).map(drop),
        inbox.note("1", "x").map(drop),
        inbox.done("1").map(drop),
    ] {
        assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    }
    Ok(())
}

#[test]
fn sessions_that_are_removed_or_exported_leave_inboxes_as_they_are() -> Result<()> {
    let store = Store::open_in_memory()?;
    let bot = SessionManager::builder(&store).build()?;
    let chat = bot.resume("a").owner("user:1").open()?;
    chat.append(Message::user("hello"))?;
    let hash = content_hash(&store)?;
    store.inbox("telegram").receive(&[item("1", "a").owner("user:1")], Some(2))?;
    assert_eq!(content_hash(&store)?, hash, "work that waits is no content");
    store.remove(chat.id())?;
    assert_eq!(store.inbox("telegram").next("a")?.unwrap().id, "1");
    Ok(())
}

/// A store with one item for each way to be named, each body with a mark of its own.
fn named(store: &Store) -> Result<SessionManager> {
    let bot = SessionManager::builder(store).build()?;
    let ann = SessionDetails { owner: Some("user:ann".to_owned()), ..SessionDetails::default() };
    store.create_session_as("unbound", ann)?;
    bot.resume("chat:ann").owner("user:ann").open()?.append(Message::user("hello from ann"))?;
    bot.resume("chat:bob").owner("user:bob").open()?.append(Message::user("hello from bob"))?;
    let body = |mark: &str| format!("{{\"update\":\"{mark} {}\"}}", "and more of it ".repeat(40));
    let of = |id: &str, key: &str, mark: &str| InboxItem::new(id, key, body(mark));
    let telegram = store.inbox("telegram");
    telegram.receive(
        &[
            of("1", "chat:ann", "quokkamark").owner("user:ann"),
            of("2", "chat:ann", "forgetmark"), // without an owner
            of("3", "chat:bob", "wombatmark").owner("user:bob"),
        ],
        Some(4),
    )?;
    telegram.note("1", "placeholder of quokkanote")?;
    let webhook = store.inbox("webhook");
    webhook.receive(&[of("1", "chat:ann", "numbatmark").owner("user:ann")], None)?;
    Ok(bot)
}

/// Returns which of the items of [`named`] wait.
fn waiting(store: &Store) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for source in ["telegram", "webhook"] {
        let inbox = store.inbox(source);
        for key in inbox.keys()? {
            found.extend(inbox.next(&key)?.map(|item| format!("{source} {}", item.id)));
        }
    }
    Ok(found)
}

/// Returns how often a text is in the bytes of a closed store.
#[track_caller]
fn count(path: &std::path::Path, text: &str) -> usize {
    if let Some(rows) = Tables::of(path).rows() {
        return rows.matches(text).count();
    }
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}

#[test]
fn an_owner_is_erased_with_its_pending_items_and_no_byte_of_them_is_left() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    {
        let store = Store::open(&path)?;
        named(&store)?;
        let erasure = Erasure::owner("user:ann");
        assert_eq!(store.erasure_extent(&erasure)?.items, 2);
        let erased = store.erase(&erasure)?;
        assert_eq!(erased.extent.items, 2);
        let proof = prove(&erased);
        assert!(proof.is_none_or(|proof| proof.texts >= 5));
        assert_eq!(waiting(&store)?, ["telegram 2", "telegram 3"], "an item without owner stays");
        assert!(!store.inbox("telegram").note("1", "late")? && !store.inbox("webhook").done("1")?);
        let again = InboxItem::new("1", "chat:ann", "delivered again").owner("user:ann");
        assert_eq!(store.inbox("telegram").receive(&[again], None)?, [false]);
        assert_eq!(store.verify(|_| {})?.damages, []);
        assert_eq!(store.erase(&erasure)?.extent.items, 0);
    }
    for mark in ["quokkamark", "quokkanote", "numbatmark", "user:ann"] {
        assert_eq!(count(&path, mark), 0, "{mark}");
    }
    assert!(count(&path, "wombatmark") > 0 && count(&path, "forgetmark") > 0);
    Ok(())
}

#[test]
fn a_key_is_erased_with_its_pending_items_in_all_inboxes() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    {
        let store = Store::open(&path)?;
        let bot = named(&store)?;
        let erased = bot.store().erase(&Erasure::key("chat:ann"))?;
        assert_eq!((erased.extent.items, erased.extent.bindings), (3, 1));
        prove(&erased);
        assert_eq!(waiting(&store)?, ["telegram 3"]);
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    for mark in ["quokkamark", "quokkanote", "numbatmark", "forgetmark", "chat:ann"] {
        assert_eq!(count(&path, mark), 0, "{mark}");
    }
    Ok(())
}

#[test]
fn a_session_is_erased_with_the_pending_items_of_the_keys_that_lead_to_it() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("bot.db");
    {
        let store = Store::open(&path)?;
        let bot = named(&store)?;
        let first = bot.resume("chat:ann").open()?.id().clone();
        bot.end(&first, "over")?;
        let second = bot.resume("chat:ann").open()?.id().clone();
        assert_ne!(first, second);
        let erasure = Erasure::session(&first);
        assert_eq!(store.erasure_extent(&erasure)?.items, 0, "the key leads to another one now");
        assert_eq!(store.erase(&erasure)?.extent.items, 0);
        let erasure = Erasure::session(&second);
        assert_eq!(store.erasure_extent(&erasure)?.items, 3);
        let erased = store.erase(&erasure)?;
        assert_eq!(erased.extent.items, 3);
        prove(&erased);
        assert_eq!(waiting(&store)?, ["telegram 3"]);
    }
    for mark in ["quokkamark", "quokkanote", "numbatmark", "forgetmark", "chat:ann"] {
        assert_eq!(count(&path, mark), 0, "{mark}");
    }
    Ok(())
}

#[test]
fn retention_that_erases_an_old_session_keeps_what_came_for_it() -> Result<()> {
    let store = Store::open_in_memory()?;
    named(&store)?;
    let rule = RetentionRule::new("ann").owner("user:ann").erase();
    let report = store.retention(Retention::new().rule(rule)).run()?;
    assert_eq!(report.rules[0].sessions, 2);
    assert_eq!(waiting(&store)?, ["telegram 1", "telegram 3", "webhook 1"]);
    assert_eq!(store.erase(&Erasure::owner("user:ann").keep_items())?.extent.items, 0);
    assert_eq!(waiting(&store)?.len(), 3);
    Ok(())
}

#[test]
fn many_items_are_erased_in_steps_and_an_interrupted_erasure_is_finished() -> Result<()> {
    let store = Store::open_in_memory()?;
    let inbox = store.inbox("telegram");
    let items: Vec<InboxItem> = (0..1_000).map(|n| delivery(n).owner("user:ann")).collect();
    inbox.receive(&items, None)?;
    store.inbox("telegram").receive(&[item("bob", "chat 1").owner("user:bob")], None)?;
    let stop = store.interrupt_handle();
    let interrupted = store.erase_with_progress(&Erasure::owner("user:ann"), |_| stop.interrupt());
    assert!(matches!(interrupted, Err(Error::Interrupted)), "{interrupted:?}");
    assert_eq!(inbox.pending()?, 1);
    // What comes after the erasure has begun stays.
    inbox.receive(&[item("late", "chat 2").owner("user:ann")], None)?;
    assert!(store.has_unfinished_erasure()?);
    assert!(store.finish_erasure()?);
    assert_eq!(inbox.pending()?, 2);
    assert_eq!(inbox.keys()?, ["chat 1", "chat 2"]);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}
