//! The contents of entries and keys, and which entries are added.

use super::{Probe, entries, entry, key};
use talktree::{Error, Json, Result, TranscriptKey};

#[test]
fn entries_come_back_with_their_text() -> Result<()> {
    let probe = Probe::new()?;
    let deep = format!(r#"{{"deep":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let given: Vec<Json> = [
        r#"{"lone":"\ud83d","pair":"\ud83d\ude00","back":"\ude00\ud83d"}"#,
        r#"{"nul":"a\u0000b","\u0000":1}"#,
        r#"{"big":123456789012345678901234567890,"one":1.0,"zero":-0.0,"far":1e999}"#,
        r#"{"z":1,"a":{"z":1,"a":2},"z":3}"#,
        r#"{ "spread" : [ 1,
 2 ] }"#,
        r#"{"text":"\u00e9 é 故宫 \u2028"}"#,
        "{}",
        &deep,
    ]
    .into_iter()
    .map(entry)
    .collect();
    probe.append("p/s", &given)?;
    let texts: Vec<&str> = given.iter().map(Json::as_str).collect();
    assert_eq!(probe.texts("p/s")?, texts);
    probe.is_sound()
}

#[test]
fn parts_of_keys_are_any_text() -> Result<()> {
    let probe = Probe::new()?;
    let keys = [
        TranscriptKey::new("a/b", "c"),
        TranscriptKey::new("a", "b/c"),
        TranscriptKey::new("a", "b").subpath("c"),
        TranscriptKey::new("a:b", "c"),
        TranscriptKey::new("a", "b:c"),
        TranscriptKey::new("", ""),
        TranscriptKey::new("", "").subpath(" "),
        TranscriptKey::new("a\0", "b"),
        TranscriptKey::new("a", "\0b"),
        TranscriptKey::new("A", "b").subpath("c"),
        TranscriptKey::new("é", "s"),
        TranscriptKey::new("e\u{301}", "s"),
        TranscriptKey::new("a%", "_"),
        TranscriptKey::new("a", "b").subpath("../../etc"),
    ];
    for (number, key) in keys.iter().enumerate() {
        probe.storage.append(key, &[entry(&format!(r#"{{"n":{number}}}"#))])?;
    }
    for (number, key) in keys.iter().enumerate() {
        let found = probe.storage.log().load(key)?;
        assert_eq!(found, Some(vec![entry(&format!(r#"{{"n":{number}}}"#))]), "{key:?}");
    }
    assert_eq!(probe.sessions("a")?, ["\0b", "b/c", "b:c"]);
    assert_eq!(probe.storage.log().delete(&TranscriptKey::new("a", "b"))?, 2);
    assert_eq!(probe.storage.log().delete(&TranscriptKey::new("a%", "_"))?, 1);
    for key in keys.iter().filter(|key| key.session != "b" || key.project != "a") {
        let is_deleted = key.project == "a%";
        assert_eq!(probe.storage.log().load(key)?.is_none(), is_deleted, "{key:?}");
    }
    // As long as the acceptance run of the SDK's rules has them; a storage may have a limit.
    let long = |part: &str| part.repeat(5_000);
    let long = TranscriptKey::new(long("p"), long("s")).subpath(long("x"));
    assert_eq!(probe.storage.append(&long, &entries("a"))?.added, 1);
    assert!(probe.storage.log().load(&long)?.is_some());
    let refused = probe.storage.append(&long.subpath("x".repeat(1 << 20)), &entries("a"));
    assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    probe.is_sound()
}

#[test]
fn an_entry_is_added_once_for_its_uuid() -> Result<()> {
    let probe = Probe::new()?;
    let one = |n: u8| entry(&format!(r#"{{"type":"x","uuid":"a","n":{n}}}"#));
    let added = probe.append("p/s", &[one(1), one(1), one(2), entry(r#"{"uuid":"b"}"#)])?;
    assert_eq!((added.added, added.known, added.differing), (2, 2, 1));
    let added = probe.append("p/s", &[entry(r#"{"uuid":"\u0062"}"#), entry(r#"{"uuid":"c"}"#)])?;
    assert_eq!((added.added, added.known, added.differing), (1, 1, 0));
    let texts = [r#"{"type":"x","uuid":"a","n":1}"#, r#"{"uuid":"b"}"#, r#"{"uuid":"c"}"#];
    assert_eq!(probe.texts("p/s")?, texts);
    // Those without a uuid are always added.
    let without = [r#"{"type":"tag"}"#, r#"{"uuid":""}"#, r#"{"uuid":5}"#, r#"{"uuid":null}"#];
    let without: Vec<Json> = without.into_iter().map(entry).collect();
    for _ in 0..2 {
        assert_eq!(probe.append("p/without", &without)?.added, 4);
    }
    assert_eq!(probe.texts("p/without")?.len(), 8);
    // Different uuids that a text cannot tell apart.
    let hard = [
        r#"{"uuid":"\ud800"}"#,
        r#"{"uuid":"\ud801"}"#,
        r#"{"uuid":"\ufffd"}"#,
        r#"{"uuid":"\"\\ud800\""}"#,
    ];
    let hard: Vec<Json> = hard.into_iter().map(entry).collect();
    assert_eq!(probe.append("p/hard", &hard)?.added, 4);
    assert_eq!(probe.append("p/hard", &hard)?.known, 4);
    probe.is_sound()
}

#[test]
fn a_uuid_counts_within_its_transcript() -> Result<()> {
    let probe = Probe::new()?;
    for path in ["p/s", "p/t", "q/s", "p/s/subagents/agent-1", "p/s/subagents/agent-2"] {
        assert_eq!(probe.say(path, "a")?.added, 1, "{path}");
    }
    // A snapshot names a message by its uuid, and is none.
    let snapshot = entry(r#"{"type":"file-history-snapshot","messageId":"a"}"#);
    assert_eq!(probe.append("p/s", &[snapshot])?.added, 1);
    probe.is_sound()
}

#[test]
fn an_entry_that_is_deleted_can_be_added_again() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("p/s", "a b")?;
    probe.say("p/s/x", "a")?;
    probe.delete("p/s")?;
    assert_eq!((probe.say("p/s", "b c")?.added, probe.say("p/s/x", "a")?.added), (2, 1));
    assert_eq!(probe.load("p/s")?, Some(entries("b c")));
    probe.is_sound()
}

#[test]
fn an_entry_that_is_no_object_is_refused_with_its_batch() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("p/s", "a")?;
    let before = (probe.texts("p/s")?, probe.mtime("p/s")?, probe.data("p/s")?);
    for bad in ["null", "5", "\"text\"", "[{}]", "true"] {
        for path in ["p/s", "p/fresh", "p/s/x"] {
            let refused = probe.append(path, &[entry(r#"{"uuid":"b"}"#), entry(bad)]);
            assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{bad}: {refused:?}");
        }
    }
    assert_eq!((probe.texts("p/s")?, probe.mtime("p/s")?, probe.data("p/s")?), before);
    assert_eq!((probe.load("p/fresh")?, probe.load("p/s/x")?), (None, None));
    assert_eq!(probe.sessions("p")?, ["s"]);
    probe.is_sound()
}

#[test]
fn a_transcript_can_have_many_entries() -> Result<()> {
    let probe = Probe::new()?;
    let of = |range: std::ops::Range<u32>| -> Vec<Json> {
        range.map(|n| entry(&format!(r#"{{"uuid":"{n}","n":{n}}}"#))).collect()
    };
    probe.append("p/s", &of(0..700))?;
    let added = probe.append("p/s", &of(650..1_000))?;
    assert_eq!((added.added, added.known), (300, 50));
    assert_eq!(probe.load("p/s")?, Some(of(0..1_000)));
    probe.is_sound()
}

#[test]
fn threads_can_append_at_the_same_time() -> Result<()> {
    let probe = Probe::new()?;
    let threads = &probe;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || -> Result<()> {
                    for n in 0..20 {
                        let own = format!(r#"{{"uuid":"{thread}-{n}","thread":{thread},"n":{n}}}"#);
                        let shared = format!(r#"{{"uuid":"shared-{n}"}}"#);
                        threads.append("p/s", &[entry(&own), entry(&shared)])?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    let found = probe.storage.log().load(&key("p/s"))?.unwrap_or_default();
    assert_eq!(found.len(), 4 * 20 + 20);
    for thread in 0..4 {
        let own = found.iter().map(Json::value).filter(|entry| entry["thread"] == thread);
        let order: Vec<_> = own.map(|entry| entry["n"].as_u64()).collect();
        assert!(order.is_sorted() && order.len() == 20, "thread {thread}: {order:?}");
    }
    probe.is_sound()
}
