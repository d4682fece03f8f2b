//! The owners of transcripts, and lists by owner.

use super::{Probe, entries, key};
use talktree::{Error, Result, StoredTranscript, TranscriptFilter};

fn say(probe: &Probe, path: &str, owner: Option<&str>) -> Result<()> {
    let storage =
        owner.map_or_else(|| probe.storage.clone(), |owner| probe.storage.owned_by(owner));
    storage.append(&key(path), &entries(".")).map(drop)
}

fn listed(probe: &Probe, filter: &TranscriptFilter) -> Result<Vec<StoredTranscript>> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = probe.storage.log().list(filter, after, 2)?;
        assert!(page.len() <= 2, "a page exceeds its limit");
        let Some(last) = page.last() else { return Ok(all) };
        after = Some(last.number);
        all.extend(page);
    }
}

fn of_owner(owner: &str) -> TranscriptFilter {
    TranscriptFilter { owner: Some(owner.to_owned()), ..TranscriptFilter::default() }
}

#[test]
fn a_transcript_has_the_owner_of_its_first_append_with_one() -> Result<()> {
    let probe = Probe::new()?;
    say(&probe, "p/s", None)?;
    assert_eq!(listed(&probe, &of_owner("ann"))?, []);
    say(&probe, "p/s", Some("ann"))?;
    say(&probe, "p/s", None)?;
    for other in ["bob", ""] {
        let refused = say(&probe, "p/s", Some(other));
        assert!(matches!(refused, Err(Error::InvalidValue { .. })), "{refused:?}");
    }
    let found = listed(&probe, &of_owner("ann"))?;
    assert_eq!((found.len(), found[0].entries, found[0].owner.as_deref()), (1, 3, Some("ann")));
    assert_eq!(probe.mtime("p/s")?, Some(found[0].mtime));
    probe.is_sound()
}

/// The store remembered the owner of the transcript that was written last, and refused the next one.
#[test]
fn a_transcript_that_was_deleted_has_no_owner() -> Result<()> {
    let probe = Probe::new()?;
    for owner in ["ann", "bob"] {
        say(&probe, "p/s", Some(owner))?;
        assert_eq!(probe.storage.log().delete(&key("p/s"))?, 1);
    }
    probe.is_sound()
}

#[test]
fn lists_show_what_their_filter_says() -> Result<()> {
    let probe = Probe::new()?;
    for (path, owner) in [
        ("p/a", Some("ann")),
        ("p/a/x", Some("ann")),
        ("q/b", None),
        ("p/c", Some("bob")),
        ("q/d", Some("ann")),
    ] {
        say(&probe, path, owner)?;
    }
    let names = |filter: &TranscriptFilter| -> Result<String> {
        let found = listed(&probe, filter)?;
        let names = found.iter().map(|found| format!("{}{}", found.key.session, found.key.subpath));
        Ok(names.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(names(&TranscriptFilter::default())?, "a ax b c d");
    assert_eq!(names(&of_owner("ann"))?, "a ax d");
    let of_project = TranscriptFilter { project: Some("p".to_owned()), ..of_owner("ann") };
    assert_eq!(names(&of_project)?, "a ax");
    let before = probe.mtime("q/b")?;
    say(&probe, "p/a", None)?;
    let old = TranscriptFilter { written_before: before, ..TranscriptFilter::default() };
    assert_eq!(names(&old)?, "ax");
    assert!(probe.storage.log().list(&old, None, 0)?.is_empty());
    probe.is_sound()
}

#[test]
fn deleting_an_owners_transcripts_deletes_no_others() -> Result<()> {
    let probe = Probe::new()?;
    for (path, owner) in [
        ("p/a", Some("ann")),
        ("p/a/x", None),
        ("p/a/y", Some("bob")),
        ("p/b", Some("bob")),
        ("p/b/x", Some("ann")),
        ("p/b/y", None),
        ("q/a", None),
        ("q/a/x", None),
    ] {
        say(&probe, path, owner)?;
    }
    assert_eq!(probe.storage.log().delete_of_owner("nobody")?, 0);
    assert_eq!(probe.storage.log().delete_of_owner("ann")?, 4);
    let left = listed(&probe, &TranscriptFilter::default())?;
    let left: Vec<String> = left
        .iter()
        .map(|left| format!("{}/{}/{}", left.key.project, left.key.session, left.key.subpath))
        .collect();
    assert_eq!(left, ["p/b/", "p/b/y", "q/a/", "q/a/x"]);
    assert_eq!((probe.load("p/a/y")?, probe.subpaths("p/a")?), (None, vec![]));
    probe.is_sound()
}
