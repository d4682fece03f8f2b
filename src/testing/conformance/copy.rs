//! Imports and forks: copies of records and of paths, independent of their source.

use super::probe::{Probe, assert_unknown, id, message, supported};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::Message;
use crate::outcome::ImportRecord;
use crate::view::{ExpectedHead, Parent};

pub(super) fn imports(probe: &Probe) -> Result<()> {
    use crate::outcome::Imported::{Added, Differs, Known};
    let record = |letter: &str, parent: Option<&str>| ImportRecord {
        record: format!("record {letter}"),
        parent: parent.map(id),
        message: message(letter),
    };
    let records = [record("a", None), record("b", Some("a")), record("c", Some("a"))];
    let Some(imported) = supported(probe.provider.import(&records))? else { return Ok(()) };
    assert_eq!(imported, [Added, Added, Added]);
    assert_eq!((probe.head()?, probe.children(Some("a"))?), ("a b".into(), "b c".into()));
    probe.delete("c")?;
    assert_eq!(probe.provider.import(&records)?, [Known, Known, Known]);
    assert!(probe.provider.is_imported("record c")?, "also when its message was deleted");
    assert!(!probe.provider.is_imported("record x")?);
    probe.provider.import(&[ImportRecord::mark("a mark", id("a"))])?;
    assert!(probe.provider.is_imported("a mark")?);
    assert_eq!(probe.provider.message(&id("a"))?.map(|a| a.text()), Some("text of a".to_owned()));
    assert_eq!(probe.provider.message(&id("c"))?, None);
    let mut other = record("b", None);
    other.record = "another".to_owned();
    other.message = Message::user("other").with_id("b");
    assert_eq!(probe.provider.import(&[other])?, [Differs]);
    assert_unknown(probe.provider.import(&[record("d", None), record("e", Some("x"))]));
    assert_eq!(probe.provider.message(&id("d"))?, None);
    Ok(())
}

pub(super) fn forks(probe: &Probe) -> Result<()> {
    probe.draw("a- ba cb dc xb")?;
    probe.compact("s", "a", "b")?;
    probe.compact("t", "a", "d")?;
    let details = crate::outcome::SessionDetails::default();
    let name = SessionId::from(format!("fork of {}", probe.provider.id()));
    let Some(fork) = supported(probe.provider.fork(&id("c"), &name, &details))? else {
        return Ok(());
    };
    let fork = Probe { provider: fork };
    assert_eq!(*fork.provider.id(), name);
    assert_eq!((fork.history("c")?, fork.head()?), ("[s] c".into(), "a b c".into()));
    assert_eq!(fork.provider.message(&id("x"))?, None);
    fork.provider.append(&Parent::Head, &ExpectedHead::Any, &[message("n")])?;
    assert_eq!((probe.children(Some("c"))?, fork.children(Some("c"))?), ("d".into(), "n".into()));
    let again = probe.provider.fork(&id("c"), &name, &details);
    assert!(matches!(again.err(), Some(Error::SessionExists { .. })));
    Ok(())
}
