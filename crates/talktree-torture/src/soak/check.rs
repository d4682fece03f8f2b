//! Compares the store at the end with the journals.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use talktree::{BindingFilter, SessionId, Store};
use talktree_import::export::{Person, PersonFormat, export_jsonl, export_person};

use super::journal::Journal;
use super::mark::{Kind, Mark};
use super::{key_of, name_of};
use crate::Result;

/// How many owners' exports are checked.
const OWNERS: u32 = 5;
const CHUNK: usize = 1 << 20;
/// No mark is longer.
const LONGEST: usize = 64;

/// The result of the checks.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<String>,
    pub(crate) messages: u64,
    pub(crate) summaries: u64,
    pub(crate) sessions: u64,
    pub(crate) bytes: u64,
}

/// Checks a store that nobody uses, and the files where it is, or what it was written into.
pub(crate) fn run(
    store: Store,
    journals: &[Journal],
    files: impl FnOnce() -> Result<Vec<PathBuf>>,
) -> Result<Findings> {
    let mut check = Check { keys: keys(&store)?, ..Check::new(journals) };
    if !store.finish_erasure()? {
        check.fault("the last erasure cannot be finished".to_owned());
    }
    export_jsonl(&store, &mut Lines { rest: Vec::new(), check: &mut check })?;
    check.all_present();
    for damage in store.verify(|_| {})?.damages {
        check.fault(format!("damage: {}: {}", damage.kind, damage.what));
    }
    for owner in 0..OWNERS {
        let mut page = Vec::new();
        export_person(&store, Person::Owner(&name_of(owner)), PersonFormat::Jsonl, &mut page)?;
        if let Some(other) = Mark::all(&page).find(|mark| mark.owner != owner) {
            check.fault(format!("the export of owner {owner} has {other}"));
        }
    }
    drop(store);
    for path in files()? {
        check.scan(&path)?;
    }
    Ok(check.findings)
}

/// Returns the outside keys that lead to each session, or led to it.
fn keys(store: &Store) -> Result<HashMap<SessionId, Vec<String>>> {
    let mut keys: HashMap<SessionId, Vec<String>> = HashMap::new();
    let mut before = None;
    loop {
        let page = store.bindings(&BindingFilter::default(), before, 1_000)?;
        let Some(last) = page.last() else { return Ok(keys) };
        before = Some(last.number);
        for binding in page {
            keys.entry(binding.session).or_default().push(binding.key);
        }
    }
}

struct Check<'a> {
    journals: &'a [Journal],
    keys: HashMap<SessionId, Vec<String>>,
    /// The session whose records are being read, and its owner.
    session: (SessionId, String),
    seen: HashSet<Mark>,
    findings: Findings,
}

impl<'a> Check<'a> {
    fn new(journals: &'a [Journal]) -> Self {
        Self {
            journals,
            keys: HashMap::new(),
            session: ("".into(), String::new()),
            seen: HashSet::new(),
            findings: Findings::default(),
        }
    }

    fn fault(&mut self, what: String) {
        // The first ones tell enough.
        if self.findings.faults.len() < 50 {
            self.findings.faults.push(what);
        }
    }

    fn journal(&self, owner: u32) -> &'a Journal {
        &self.journals[owner as usize % self.journals.len()]
    }

    /// Returns why no text with this mark may be stored.
    fn erased(&self, mark: Mark) -> Option<&'static str> {
        let journal = self.journal(mark.owner);
        let epoch = journal.epochs.get(&mark.owner).copied().unwrap_or_default();
        match () {
            () if mark.epoch != epoch => Some("whose owner was erased"),
            () if journal.erased.contains(&mark) => Some("which was erased"),
            () => None,
        }
    }

    fn record(&mut self, record: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match record["type"].as_str() {
            Some("session") => {
                self.session = (text(&record["id"]).into(), text(&record["owner"]));
                self.findings.sessions += 1;
            }
            Some("message") => {
                self.findings.messages += 1;
                let message = &record["message"];
                let id: Vec<Mark> = Mark::all(text(&message["id"]).as_bytes()).collect();
                let said: Vec<Mark> = Mark::all(message["parts"].to_string().as_bytes()).collect();
                match said[..] {
                    [mark] if id == [mark] && mark.kind == Kind::Message => self.message(mark),
                    _ => self.fault(format!("message {id:?} says {said:?}")),
                }
            }
            Some("compaction") => {
                self.findings.summaries += 1;
                let said: Vec<Mark> = Mark::all(text(&record["summary"]).as_bytes()).collect();
                match said[..] {
                    [mark] if mark.kind == Kind::Summary => self.belongs(mark),
                    _ => self.fault(format!("a summary says {said:?}")),
                }
            }
            _ => {}
        }
    }

    fn message(&mut self, mark: Mark) {
        self.belongs(mark);
        if !self.seen.insert(mark) {
            self.fault(format!("{mark} is there twice"));
        }
        let journal = self.journal(mark.owner);
        if !journal.present.contains(&mark) && !journal.unknown.contains(&mark) {
            self.fault(format!("{mark} is there, and nobody wrote it"));
        }
    }

    /// Checks that a text is in a session of its owner and its chat.
    fn belongs(&mut self, mark: Mark) {
        let (session, owner) = self.session.clone();
        if owner != name_of(mark.owner) {
            self.fault(format!("{mark} is in a session of {owner}"));
        }
        let keys = self.keys.get(&session);
        if keys.is_none_or(|keys| keys.iter().any(|key| *key != key_of(mark.chat))) {
            self.fault(format!("{mark} is in the session of {keys:?}"));
        }
        if let Some(why) = self.erased(mark) {
            self.fault(format!("{mark} is stored, {why}"));
        }
    }

    fn all_present(&mut self) {
        for journal in self.journals {
            let lost: Vec<_> =
                journal.present.iter().filter(|mark| !self.seen.contains(mark)).collect();
            if let Some(first) = lost.first() {
                let what = format!("{} acknowledged messages are lost, {first} first", lost.len());
                self.fault(what);
            }
        }
    }

    /// Looks for erased marks in every byte of a file.
    fn scan(&mut self, path: &Path) -> Result<()> {
        let mut file = match std::fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let mut bytes = Vec::new();
        loop {
            let read = Read::by_ref(&mut file).take(CHUNK as u64).read_to_end(&mut bytes)?;
            self.findings.bytes += read as u64;
            let found: Vec<Mark> = Mark::all(&bytes).collect();
            for mark in found {
                if let Some(why) = self.erased(mark) {
                    self.fault(format!("{} has the bytes of {mark}, {why}", path.display()));
                }
            }
            if read == 0 {
                return Ok(());
            }
            // A mark may be split between two chunks.
            bytes.drain(..bytes.len().saturating_sub(LONGEST));
        }
    }
}

/// Gives the lines of an export to the check.
struct Lines<'c, 'j> {
    rest: Vec<u8>,
    check: &'c mut Check<'j>,
}

impl Write for Lines<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.check.record(&serde_json::from_slice(&line)?);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use talktree::{Message, SessionManager};

    use super::*;

    fn mark(owner: u32, number: u32) -> Mark {
        Mark { owner, epoch: 0, chat: owner, kind: Kind::Message, number }
    }

    /// Returns what is found in a store of one chat, whose key and owner are of this number, with this message.
    fn found(owner: u32, stored: Mark, journal: Journal) -> Result<Vec<String>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("bot.db");
        let store = Store::open(&path)?;
        let bot = SessionManager::builder(&store).build()?;
        let chat = bot.resume(key_of(owner)).owner(name_of(owner)).open()?;
        let id = stored.to_string();
        chat.append(Message::user(format!("a text {stored}")).with_id(id))?;
        drop((chat, bot));
        Ok(run(store, &[journal], || Ok(vec![path]))?.faults)
    }

    #[test]
    fn each_kind_of_fault_is_found() -> Result<()> {
        let present = |marks: &[Mark]| Journal {
            present: marks.iter().copied().collect(),
            ..Journal::default()
        };
        let one = mark(1, 0);
        assert_eq!(found(1, one, present(&[one]))?, [""; 0]);
        for (journal, owner, fault) in [
            (present(&[one, mark(1, 1)]), 1, "1 acknowledged messages are lost"),
            (present(&[]), 1, "nobody wrote it"),
            (present(&[one]), 2, "is in a session of person:2"),
            (present(&[one]), 2, r#"is in the session of Some(["chat:2"])"#),
            (present(&[one]), 2, "the export of owner 2 has"),
            (Journal { erased: [one].into(), ..present(&[one]) }, 1, "is stored, which was erased"),
            (Journal { epochs: [(1, 1)].into(), ..present(&[one]) }, 1, "whose owner was erased"),
            (Journal { erased: [one].into(), ..present(&[one]) }, 1, "bot.db has the bytes of"),
        ] {
            let faults = found(owner, one, journal)?;
            assert!(faults.iter().any(|found| found.contains(fault)), "{fault}: {faults:?}");
        }
        Ok(())
    }
}
