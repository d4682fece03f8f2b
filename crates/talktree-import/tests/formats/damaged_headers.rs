//! Files of Pi with several sessions. If a header could not be read, the entries of its session were once imported into the
//! session before it.

use std::io::Cursor;

use crate::common::pi;
use talktree::{Result, Store};
use talktree_import::ImportReport;
use talktree_import::{ImportOptions, import_reader};

fn import(file: &[u8]) -> Result<(Store, ImportReport)> {
    let store = Store::open_in_memory()?;
    let options = ImportOptions::default();
    let report = import_reader(&store, "file", Cursor::new(file), &options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    Ok((store, report))
}

/// Returns the ids of the messages of a session.
fn ids(store: &Store, session: &str) -> Result<String> {
    let chat = store.session(session)?;
    chat.all_messages().map(|message| Ok(message?.id.to_string())).collect()
}

/// The lines of a file with three sessions.
fn lines() -> Vec<Vec<u8>> {
    let file = [pi("s", "a- ba cb"), pi("t", "d- ed fe"), pi("u", "g- hg")].join("\n");
    file.lines().map(|line| line.as_bytes().to_vec()).collect()
}

/// Returns a line with a damage.
type Damage = fn(&[u8]) -> Vec<u8>;

const DAMAGES: [Damage; 6] = [
    |line| [b"{", line].concat(),
    |line| [&line[..line.len() - 4], b"\xFF", &line[line.len() - 3..]].concat(),
    |line| vec![0; line.len()],
    |_| b"lost".to_vec(),
    |line| line[..line.len() / 2].to_vec(),
    |line| line[2..].to_vec(),
];

/// The place of the damage that fills a line with zeros.
const ZEROS: usize = 2;

#[test]
fn what_follows_a_damaged_header_is_left_out_to_the_next_one() -> Result<()> {
    for damage in DAMAGES {
        let mut lines = lines();
        lines[4] = damage(&lines[4]);
        let (store, report) = import(&lines.join(&b'\n'))?;
        assert_eq!((ids(&store, "s")?, ids(&store, "u")?), ("abc".to_owned(), "gh".to_owned()));
        assert_eq!((report.sessions.len(), report.dropped), (2, 4), "{report:#?}");
        assert!(report.notes.iter().any(|note| note.line == Some(6) && note.is_fault));
        assert_eq!(store.session("s")?.head()?, Some("c".into()));
    }
    // Sound JSON, but no header.
    for (part, damaged) in [("\"session\"", "\"sessioo\""), ("\"type\"", "\"typd\"")] {
        let mut lines = lines();
        let line = String::from_utf8(lines[4].clone()).unwrap().replace(part, damaged);
        lines[4] = line.replace("\"version\":3", "\"version\":3,\"cwd\":\"/\"").into_bytes();
        let (store, report) = import(&lines.join(&b'\n'))?;
        assert_eq!((ids(&store, "s")?, report.dropped), ("abc".to_owned(), 4), "{report:#?}");
    }
    // The first entries are lost, too.
    for (last, damage) in [5, 6].into_iter().flat_map(|last| DAMAGES.map(|damage| (last, damage))) {
        let mut lines = lines();
        for line in &mut lines[4..=last] {
            *line = damage(line);
        }
        assert_eq!(ids(&import(&lines.join(&b'\n'))?.0, "s")?, "abc");
    }
    Ok(())
}

#[test]
fn a_damaged_entry_costs_no_other_entry() -> Result<()> {
    for (at, damage) in DAMAGES.into_iter().enumerate() {
        let mut lines = lines();
        lines[6] = damage(&lines[6]);
        let (store, report) = import(&lines.join(&b'\n'))?;
        // A line of zeros may have been a header and an entry.
        let (kept, dropped) = if at == ZEROS { ("d", 2) } else { ("df", 1) };
        assert_eq!((ids(&store, "t")?, report.dropped), (kept.to_owned(), dropped), "{report:#?}");
        assert_eq!(ids(&store, "u")?, "gh");
    }
    // Of version 1, whose entries name no parent.
    let file = concat!(
        "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"2026-01-02T03:04:05Z\"}\n",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"b\"\n",
        "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"c\"}}\n",
    );
    let (store, report) = import(file.as_bytes())?;
    assert_eq!((store.session("s")?.path_length()?, report.dropped), (2, 1), "{report:#?}");
    Ok(())
}
