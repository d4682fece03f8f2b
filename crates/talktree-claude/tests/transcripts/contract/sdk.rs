//! The checks of the agent SDK's suites, in their order.

use super::{Probe, entries, entry, key};
use talktree::Result;
use talktree_claude::fold_summary;

/// A time in milliseconds since 1970 is above this, one in seconds below.
const MILLIS: i64 = 1_000_000_000_000;

#[test]
fn entries_come_back_in_their_order() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("proj/sess", "b a")?;
    assert_eq!(probe.load("proj/sess")?, Some(entries("b a")));
    probe.is_sound()
}

#[test]
fn an_unknown_transcript_is_none() -> Result<()> {
    let probe = Probe::new()?;
    assert_eq!(probe.load("proj/nope")?, None);
    probe.say("proj/sess", "x")?;
    assert_eq!(probe.load("proj/sess/nope")?, None);
    probe.is_sound()
}

#[test]
fn appends_keep_their_order() -> Result<()> {
    let probe = Probe::new()?;
    for uuids in ["z", "a m", "b"] {
        probe.say("proj/sess", uuids)?;
    }
    let uuids: Vec<String> = probe
        .load("proj/sess")?
        .unwrap_or_default()
        .iter()
        .map(|entry| entry.value()["uuid"].to_string())
        .collect();
    assert_eq!(uuids, [r#""z""#, r#""a""#, r#""m""#, r#""b""#]);
    probe.is_sound()
}

#[test]
fn an_append_of_nothing_does_nothing() -> Result<()> {
    let probe = Probe::new()?;
    assert_eq!(probe.append("proj/fresh", &[])?.added, 0);
    assert_eq!((probe.load("proj/fresh")?, probe.sessions("proj")?), (None, vec![]));
    probe.say("proj/sess", "a")?;
    let before = probe.mtime("proj/sess")?;
    probe.append("proj/sess", &[])?;
    assert_eq!((probe.load("proj/sess")?, probe.mtime("proj/sess")?), (Some(entries("a")), before));
    probe.is_sound()
}

#[test]
fn a_subpath_is_a_transcript_of_its_own() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("proj/sess", "m")?;
    probe.say("proj/sess/subagents/agent-1", "s")?;
    assert_eq!(probe.load("proj/sess")?, Some(entries("m")));
    assert_eq!(probe.load("proj/sess/subagents/agent-1")?, Some(entries("s")));
    probe.is_sound()
}

#[test]
fn a_session_of_another_project_is_another_one() -> Result<()> {
    let probe = Probe::new()?;
    probe.append("A/s1", &[entry(r#"{"type":"x","from":"A"}"#)])?;
    probe.append("B/s1", &[entry(r#"{"type":"x","from":"B"}"#)])?;
    for project in ["A", "B"] {
        let found = probe.texts(&format!("{project}/s1"))?;
        assert_eq!(found, [format!(r#"{{"type":"x","from":"{project}"}}"#)]);
        assert_eq!(probe.sessions(project)?, ["s1"]);
    }
    probe.is_sound()
}

#[test]
fn a_list_has_the_sessions_of_a_project_with_the_time_of_their_last_append() -> Result<()> {
    let probe = Probe::new()?;
    for path in ["proj/a", "proj/b", "other/c"] {
        probe.say(path, ".")?;
    }
    assert_eq!(probe.sessions("proj")?, ["a", "b"]);
    for listed in probe.storage.log().of_project("proj")? {
        assert!(listed.mtime > MILLIS, "{} is in milliseconds", listed.mtime);
    }
    assert!(probe.sessions("never")?.is_empty());
    probe.is_sound()
}

#[test]
fn a_session_is_listed_once_and_only_if_it_has_a_main_transcript() -> Result<()> {
    let probe = Probe::new()?;
    probe.say("proj/main", ".")?;
    probe.say("proj/main/subagents/agent-1", ".")?;
    probe.say("proj/alone/subagents/agent-1", ".")?;
    assert_eq!(probe.sessions("proj")?, ["main"]);
    assert_eq!(probe.storage.log().of_project("proj")?.len(), 1);
    assert_eq!(probe.subpaths("proj/alone")?, ["subagents/agent-1"]);
    probe.is_sound()
}

#[test]
fn a_deleted_transcript_is_none() -> Result<()> {
    let probe = Probe::new()?;
    assert_eq!(probe.delete("proj/never")?, 0);
    probe.say("proj/sess", ".")?;
    assert_eq!(probe.delete("proj/sess")?, 1);
    assert_eq!(probe.load("proj/sess")?, None);
    probe.is_sound()
}

#[test]
fn deleting_a_session_deletes_its_other_transcripts() -> Result<()> {
    let probe = Probe::new()?;
    let of_session = ["proj/sess", "proj/sess/subagents/agent-1", "proj/sess/subagents/agent-2"];
    let others = ["proj/sess2", "other/sess", "proj/sess2/subagents/agent-1"];
    for path in of_session.iter().chain(&others) {
        probe.say(path, ".")?;
    }
    assert_eq!(probe.delete("proj/sess")?, 3);
    for path in of_session {
        assert_eq!(probe.load(path)?, None);
    }
    for path in others {
        assert_eq!(probe.load(path)?.map(|entries| entries.len()), Some(1), "{path}");
    }
    assert!(probe.subpaths("proj/sess")?.is_empty());
    assert_eq!(probe.sessions("proj")?, ["sess2"]);
    // A session without a main transcript, too.
    probe.say("proj/alone/subagents/agent-1", ".")?;
    assert_eq!(probe.delete("proj/alone")?, 1);
    assert!(probe.subpaths("proj/alone")?.is_empty());
    probe.is_sound()
}

#[test]
fn deleting_a_subpath_deletes_nothing_else() -> Result<()> {
    let probe = Probe::new()?;
    for subpath in ["", "/subagents/a", "/subagents/a/b", "/subagents/ab"] {
        probe.say(&format!("proj/sess{subpath}"), ".")?;
    }
    assert_eq!(probe.delete("proj/sess/subagents/a")?, 1);
    assert_eq!(probe.load("proj/sess/subagents/a")?, None);
    assert_eq!(probe.subpaths("proj/sess")?, ["subagents/a/b", "subagents/ab"]);
    assert_eq!(probe.sessions("proj")?, ["sess"]);
    probe.is_sound()
}

#[test]
fn the_subpaths_are_those_of_the_session() -> Result<()> {
    let probe = Probe::new()?;
    for path in [
        "proj/sess",
        "proj/sess/subagents/agent-1",
        "proj/sess/subagents/agent-2",
        "proj/other/subagents/x",
    ] {
        probe.say(path, ".")?;
    }
    assert_eq!(probe.subpaths("proj/sess")?, ["subagents/agent-1", "subagents/agent-2"]);
    probe.say("proj/main", ".")?;
    assert!(probe.subpaths("proj/main")?.is_empty() && probe.subpaths("proj/never")?.is_empty());
    probe.is_sound()
}

#[test]
fn a_summary_is_that_of_the_main_transcript() -> Result<()> {
    let probe = Probe::new()?;
    let titled = |second: u8, title: &str| {
        let title =
            if title.is_empty() { String::new() } else { format!(r#","customTitle":"{title}""#) };
        entry(&format!(r#"{{"type":"x","timestamp":"2024-01-01T00:00:0{second}.000Z"{title}}}"#))
    };
    probe.append("proj/summ", &[titled(0, "first"), titled(1, "")])?;
    probe.append("proj/summ", &[titled(2, "second")])?;
    probe.append("other/elsewhere", &[titled(0, "")])?;
    let listed = probe.storage.log().of_project("proj")?;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].key.session, "summ");
    let data = listed[0].summary.as_ref().unwrap();
    assert_eq!(data.value()["custom_title"], "second");
    let again = fold_summary(Some(data), &[titled(3, "")]);
    assert_eq!(again, *data);

    probe.append("proj/summ/subagents/agent-1", &[titled(9, "subagent")])?;
    assert_eq!(probe.data("proj/summ")?.as_ref(), Some(data));
    assert!(probe.storage.log().of_project("never")?.is_empty());
    probe.storage.log().delete(&key("proj/summ"))?;
    assert!(probe.storage.log().of_project("proj")?.is_empty());
    probe.is_sound()
}
