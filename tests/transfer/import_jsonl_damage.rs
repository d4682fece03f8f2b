//! Damaged exports of several sessions. After one damaged line the messages of one person once came into the session of
//! another: a line that could not be read was a session record, and what followed it went into the session before it.

use std::collections::BTreeSet;
use std::io::Cursor;

use talktree::{Message, Result, SessionDetails, Store};
use talktree_import::export::{content_hash, export_jsonl};
use talktree_import::{ImportOptions, ImportReport, import_reader};

const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];
const MESSAGES: usize = 4;

/// Returns the lines of an export: sessions whose messages have equal ids, with a branch, and a label at their ends.
fn export() -> Result<Vec<Vec<u8>>> {
    let store = Store::open_in_memory()?;
    for (at, name) in NAMES.into_iter().enumerate() {
        let chat = store.session(name)?;
        let created_at = format!("2026-01-0{}T03:04:05Z", at + 1).parse().unwrap();
        let created_at = Some(created_at);
        chat.set_details(&SessionDetails { created_at, ..SessionDetails::default() })?;
        for n in 0..MESSAGES {
            chat.append(Message::user(format!("{name} {n}")).with_id(format!("m{n}")))?;
        }
        chat.append_to(&"m1".into(), Message::user(format!("{name} branch")).with_id("m9"))?;
        chat.label(&format!("end of {name}"), &"m3".into())?;
    }
    let mut file = Vec::new();
    export_jsonl(&store, &mut file)?;
    Ok(file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
}

/// Imports a file, in a dry run first; returns the report and the store.
fn import(file: &[u8]) -> Result<(ImportReport, Store)> {
    let store = Store::open_in_memory()?;
    let dry = ImportOptions { is_dry_run: true, ..ImportOptions::default() };
    let rehearsed = import_reader(&store, "file", Cursor::new(file), &dry, |_| {})?;
    let options = ImportOptions::default();
    let mut report = import_reader(&store, "file", Cursor::new(file), &options, |_| {})?;
    assert_eq!(report.records, report.kept + report.converted + report.dropped, "{report:#?}");
    let mut sorted = rehearsed;
    for notes in [&mut sorted.notes, &mut report.notes] {
        notes.sort_by_key(|note| (note.line, note.why.clone()));
    }
    assert_eq!(sorted, report);
    let hash = content_hash(&store)?;
    let again = import_reader(&store, "file", Cursor::new(file), &options, |_| {})?;
    assert_eq!((again.added, again.known), (0, report.added));
    assert_eq!(content_hash(&store)?, hash);
    Ok((report, store))
}

/// Returns the texts of the sessions; fails if one is in a session that is not its own.
fn texts(store: &Store) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for info in store.sessions()? {
        let chat = store.session(&info.id)?;
        for message in chat.all_messages() {
            let text = message?.text();
            assert!(text.starts_with(info.id.as_str()), "{text:?} is in session {}", info.id);
            texts.insert(text);
        }
        for label in chat.labels()? {
            assert_eq!((label.name, label.id), (format!("end of {}", info.id), "m3".into()));
        }
    }
    Ok(texts)
}

/// Returns the texts of an import, without those of these sessions.
fn all_but(lost: &[&str]) -> BTreeSet<String> {
    let of = |name: &&str| {
        let ends = (0..MESSAGES).map(|n| n.to_string()).chain(["branch".to_owned()]);
        let name = (*name).to_owned();
        ends.map(move |end| format!("{name} {end}")).collect::<Vec<_>>()
    };
    NAMES.iter().filter(|name| !lost.contains(name)).flat_map(of).collect()
}

/// Returns lines with a damage.
type Damage = fn(&[Vec<u8>]) -> Vec<u8>;

const DAMAGES: [Damage; 5] = [
    |_| Vec::new(),
    |lines| lines.iter().flat_map(|line| [b"{".to_vec(), line.clone()].concat()).collect(),
    |lines| {
        let bad = |line: &Vec<u8>| [&line[..12], b"\xFF", &line[13..]].concat();
        lines.iter().flat_map(bad).collect()
    },
    // As one line, as a block of a disk that was never written.
    |lines| [vec![0; lines.concat().len() - 1], b"\n".to_vec()].concat(),
    |lines| b"lost\n".repeat(lines.len()),
];

/// Returns the export with lines from `at` on damaged.
fn damaged(lines: &[Vec<u8>], at: usize, count: usize, damage: usize) -> Vec<u8> {
    let (before, rest) = lines.split_at(at);
    let (hit, after) = rest.split_at(count);
    [before.concat(), DAMAGES[damage](hit), after.concat()].concat()
}

fn line_of(lines: &[Vec<u8>], part: &str) -> usize {
    let found = lines.iter().position(|line| String::from_utf8_lossy(line).contains(part));
    found.unwrap()
}

#[test]
fn what_follows_a_damaged_session_record_is_left_out() -> Result<()> {
    let lines = export()?;
    for (at, name) in NAMES.into_iter().enumerate() {
        let line = line_of(&lines, &format!(r#""id":"{name}""#));
        for damage in 0..DAMAGES.len() {
            let (report, store) = import(&damaged(&lines, line, 1, damage))?;
            assert_eq!(texts(&store)?, all_but(&[name]), "{name}, damage {damage}");
            assert_eq!(report.sessions.len(), 3);
            // The line, if it is there, and what follows it: five messages, a label, the head.
            assert_eq!(report.dropped, u64::from(damage > 0) + 7, "{report:#?}");
            let before = NAMES[at.saturating_sub(1)];
            if at > 0 {
                assert_eq!(store.session(before)?.head()?, Some("m9".into()));
            }
        }
    }
    Ok(())
}

#[test]
fn a_damaged_message_costs_no_other_message() -> Result<()> {
    let lines = export()?;
    // An export that was cut off has no end record, which counts the sessions.
    let cut = lines[..lines.len() - 1].to_vec();
    for lines in [lines, cut] {
        for lost in all_but(&[]) {
            let line = line_of(&lines, &format!("{lost:?}"));
            for damage in 0..DAMAGES.len() {
                let (_, store) = import(&damaged(&lines, line, 1, damage))?;
                let mut expected = all_but(&[]);
                expected.remove(&lost);
                assert_eq!(texts(&store)?, expected, "{lost}, damage {damage}");
            }
        }
    }
    Ok(())
}

/// A damaged part may begin and end anywhere.
#[test]
fn no_damage_brings_a_text_into_a_session_that_is_not_its_own() -> Result<()> {
    let lines = export()?;
    for count in [1, 2, 3, 8] {
        for at in 1..lines.len() - count {
            for damage in 0..DAMAGES.len() {
                let (_, store) = import(&damaged(&lines, at, count, damage))?;
                let found = texts(&store)?;
                // Of the others nothing is lost.
                let hit = lines[at..at + count].concat();
                let hit = String::from_utf8_lossy(&hit);
                let mut whole = all_but(&[]);
                whole.retain(|text| {
                    let name = text.split(' ').next().unwrap_or_default();
                    let is_lost = hit.contains(&format!("{text:?}"))
                        || hit.contains(&format!(r#""id":"{name}""#));
                    !is_lost
                });
                assert!(found.is_superset(&whole), "{at}, {count}, {damage}: {found:?}");
            }
        }
    }
    Ok(())
}

/// Two exports in one file: the end of the first is lost, with the header and the session record of the second.
#[test]
fn the_sessions_of_two_exports_are_told_apart() -> Result<()> {
    let one = |name: &str| -> Result<Vec<Vec<u8>>> {
        let store = Store::open_in_memory()?;
        let chat = store.session(name)?;
        for n in 0..MESSAGES {
            chat.append(Message::user(format!("{name} {n}")).with_id(format!("m{n}")))?;
        }
        let mut file = Vec::new();
        export_jsonl(&store, &mut file)?;
        Ok(file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    };
    let lines = [one("alice")?, one("bob")?].concat();
    for at in 2..lines.len() - 6 {
        for count in 1..7 {
            for damage in 0..DAMAGES.len() {
                texts(&import(&damaged(&lines, at, count, damage))?.1)?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_wrong_digit_in_the_number_of_a_session_costs_one_record_at_most() -> Result<()> {
    let lines = export()?;
    for (at, line) in lines.iter().enumerate() {
        let field = br#""session":"#;
        let found = line.windows(field.len()).rposition(|part| part == field);
        let Some(number) = found.filter(|at| line[at + field.len()].is_ascii_digit()) else {
            continue;
        };
        let mut file = lines.clone();
        let digits = &line[number + field.len()..];
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        file[at][number + field.len() + count - 1] ^= 1;
        let (report, store) = import(&file.concat())?;
        let is_session = String::from_utf8_lossy(line).contains(r#""type":"session""#);
        assert_eq!(report.dropped > 0, !is_session, "line {}", at + 1);
        assert!(texts(&store)?.len() + 1 >= all_but(&[]).len(), "line {}", at + 1);
    }
    // The id of a session can be edited.
    let file = String::from_utf8(lines.concat()).unwrap();
    let (report, store) = import(file.replace(r#""id":"bob""#, r#""id":"rob""#).as_bytes())?;
    assert_eq!((report.dropped, store.session("rob")?.path_length()?), (0, 3));
    Ok(())
}

#[test]
fn a_number_of_a_session_that_is_no_number_costs_nothing() -> Result<()> {
    let lines = export()?;
    let text = String::from_utf8(lines.concat()).unwrap();
    for number in [r#""session":"x","#, r#""session":null,"#, r#""session":-1,"#] {
        let edited: String = text.split(r#""session":"#).collect::<Vec<_>>().join("\u{0}");
        let mut parts = edited.split('\u{0}').map(str::to_owned);
        let mut file = parts.next().unwrap_or_default();
        for part in parts {
            let rest = part.trim_start_matches(|it: char| it.is_ascii_digit());
            file += match rest.strip_prefix(',') {
                Some(_) => number,
                None => number.trim_end_matches(','),
            };
            file += rest.trim_start_matches(',');
        }
        let (report, store) = import(file.as_bytes())?;
        assert_eq!((texts(&store)?, report.dropped), (all_but(&[]), 0), "{number}");
    }
    Ok(())
}
