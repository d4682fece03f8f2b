//! After random steps and an erasure, no mark of what was erased is in any byte, or in any row of a server, and the rest is as it was.
//!
//! Several sessions of two owners, with forks, updates, deletes, summaries, memory, notes that forks copy, names made from
//! messages, frozen prompts, usage and keys. Every text that is ever written carries a mark of its own. Copies and summaries
//! are erased, too.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::random::cases;
use crate::tables::{Tables, is_on_server};
use proptest::prelude::*;
use talktree::records::Title;
use talktree::{
    Block, CompactionId, Erased, Erasure, Error, Message, MessageId, Result, Session,
    SessionChange, SessionId, SessionManager, Store, Usage, UsageGroup,
};
use talktree_import::export::{export_jsonl, session_hash};

type Pick = u8;

#[derive(Debug, Clone)]
enum Step {
    Append(Pick, u16),
    Branch(Pick, Pick, u16),
    Update(Pick, Pick, u16),
    Delete(Pick, Pick),
    Fork(Pick, Pick),
    Compact(Pick, Pick, Pick),
    Memory(Pick),
    /// A text of the session's own, or a further version of it.
    Notes(Pick),
    /// Names the session after a message, as imports do.
    Name(Pick, Pick),
    Freeze(Pick),
    Usage(Pick),
    Search,
}

#[derive(Debug, Clone)]
enum Erase {
    Messages(Pick, Vec<Pick>),
    Branch(Pick, Pick),
    Session(Pick),
    Owner(Pick),
    Key(Pick),
}

fn step() -> impl Strategy<Value = Step> {
    let words = 0..400_u16;
    prop_oneof![
        8 => (any::<Pick>(), words.clone()).prop_map(|(s, w)| Step::Append(s, w)),
        2 => (any::<Pick>(), any::<Pick>(), words.clone()).prop_map(|(s, m, w)| Step::Branch(s, m, w)),
        4 => (any::<Pick>(), any::<Pick>(), words).prop_map(|(s, m, w)| Step::Update(s, m, w)),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(s, m)| Step::Delete(s, m)),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(s, m)| Step::Fork(s, m)),
        1 => (any::<Pick>(), any::<Pick>(), any::<Pick>()).prop_map(|(s, a, b)| Step::Compact(s, a, b)),
        2 => any::<Pick>().prop_map(Step::Memory),
        2 => any::<Pick>().prop_map(Step::Notes),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(s, m)| Step::Name(s, m)),
        1 => any::<Pick>().prop_map(Step::Freeze),
        1 => any::<Pick>().prop_map(Step::Usage),
        1 => Just(Step::Search),
    ]
}

fn erase() -> impl Strategy<Value = Erase> {
    prop_oneof![
        3 => (any::<Pick>(), proptest::collection::vec(any::<Pick>(), 1..6))
            .prop_map(|(s, m)| Erase::Messages(s, m)),
        1 => (any::<Pick>(), any::<Pick>()).prop_map(|(s, m)| Erase::Branch(s, m)),
        2 => any::<Pick>().prop_map(Erase::Session),
        2 => any::<Pick>().prop_map(Erase::Owner),
        1 => any::<Pick>().prop_map(Erase::Key),
    ]
}

fn pick<T>(from: &[T], pick: Pick) -> Option<&T> {
    if from.is_empty() { None } else { from.get(usize::from(pick) % from.len()) }
}

/// A store, and all marks that were ever written to each message, by its id.
struct World {
    path: PathBuf,
    is_rewritten: bool,
    store: Store,
    bot: SessionManager,
    marks: u32,
    of_message: BTreeMap<MessageId, BTreeSet<String>>,
    of_summary: BTreeMap<CompactionId, String>,
    of_owner: BTreeMap<String, BTreeSet<String>>,
    /// The marks of the versions of a session's notes, the present one last.
    of_notes: BTreeMap<SessionId, Vec<String>>,
    usage: u64,
}

const KEYS: [&str; 4] = ["telegram:zq0001", "telegram:zq0002", "slack:zq0003", "slack:zq0004"];
const OWNERS: [&str; 2] = ["owner:zq0005", "owner:zq0006"];

impl World {
    fn new(folder: &Path, is_rewritten: bool) -> Result<Self> {
        let path = folder.join("bot.db");
        let up_to = if is_rewritten { u64::MAX } else { 0 };
        let store = Store::options().erasure_rewrites_up_to(up_to).open(&path)?;
        let bot = SessionManager::builder(&store)
            .block("memory", Block::stored().per_owner())
            .block("notes", Block::stored())
            .cached_prompt()
            .build()?;
        for (number, key) in KEYS.iter().enumerate() {
            let _ = bot.resume(*key).owner(OWNERS[number % 2]).open()?;
        }
        Ok(Self {
            path,
            is_rewritten,
            store,
            bot,
            marks: 0,
            of_message: BTreeMap::new(),
            of_summary: BTreeMap::new(),
            of_owner: BTreeMap::new(),
            of_notes: BTreeMap::new(),
            usage: 0,
        })
    }

    fn mark(&mut self) -> String {
        self.marks += 1;
        format!("mk{:06}zq", self.marks)
    }

    fn text(mark: &str, words: u16) -> String {
        let words: Vec<String> = (0..words).map(|n| format!("word{}", n % 90)).collect();
        format!("{mark} {} {mark}", words.join(" "))
    }

    fn sessions(&self) -> Result<Vec<Session>> {
        let ids: BTreeSet<SessionId> =
            self.store.sessions()?.into_iter().map(|session| session.id).collect();
        ids.into_iter().map(|id| self.bot.session(id)).collect()
    }

    fn messages(session: &Session) -> Result<Vec<MessageId>> {
        session.all_messages().map(|message| Ok(message?.id)).collect()
    }

    fn message(&mut self, words: u16) -> Message {
        let mark = self.mark();
        let message = Message::user(Self::text(&mark, words));
        self.of_message.entry(message.id.clone()).or_default().insert(mark);
        message
    }

    fn run(&mut self, step: &Step) -> Result<()> {
        let sessions = self.sessions()?;
        match step {
            Step::Append(session, words) => {
                let message = self.message(*words);
                pick(&sessions, *session).unwrap().append(message)?;
            }
            Step::Branch(session, at, words) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(parent) = pick(&Self::messages(session)?, *at) {
                    let message = self.message(*words);
                    session.append_to(parent, message)?;
                }
            }
            Step::Update(session, at, words) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(id) = pick(&Self::messages(session)?, *at) {
                    let mark = self.mark();
                    let text = Self::text(&mark, *words);
                    session.update(Message::user(text).with_id(id.clone()))?;
                    self.of_message.get_mut(id).unwrap().insert(mark);
                }
            }
            Step::Delete(session, at) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(id) = pick(&Self::messages(session)?, *at) {
                    session.delete([id])?;
                }
            }
            Step::Fork(session, at) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(id) = pick(&Self::messages(session)?, *at) {
                    // Its own name: an erasure takes the name of an erased session from its relatives.
                    self.marks += 1;
                    let fork = session.fork(id, &format!("Fork {}", self.marks))?;
                    if let Some(mark) = self.of_notes.get(session.id()).and_then(|it| it.last()) {
                        let copied = vec![mark.clone()];
                        self.of_notes.insert(fork.id().clone(), copied);
                    }
                }
            }
            Step::Compact(session, first, last) => {
                let session = pick(&sessions, *session).unwrap();
                let path: Vec<MessageId> =
                    session.raw_history()?.into_iter().map(|message| message.id).collect();
                let mark = self.mark();
                if let (Some(first), Some(last)) = (pick(&path, *first), pick(&path, *last)) {
                    // Not every range can be compacted.
                    if let Ok(added) = session.add_compaction(Self::text(&mark, 3), first, last) {
                        self.of_summary.insert(added.id, mark);
                    }
                }
            }
            Step::Memory(session) => {
                let session = pick(&sessions, *session).unwrap();
                let owner = session.info()?.unwrap().owner.unwrap();
                let mark = self.mark();
                session.context().set("memory", &Self::text(&mark, 8))?;
                self.of_owner.entry(owner).or_default().insert(mark);
            }
            Step::Notes(session) => {
                let session = pick(&sessions, *session).unwrap();
                let mark = self.mark();
                session.context().set("notes", &Self::text(&mark, 8))?;
                self.of_notes.entry(session.id().clone()).or_default().push(mark);
            }
            Step::Name(session, at) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(id) = pick(&Self::messages(session)?, *at) {
                    let name = title(&session.message(id)?.unwrap());
                    self.store.change_session(session.id(), &SessionChange::Name(name))?;
                }
            }
            Step::Freeze(session) => drop(pick(&sessions, *session).unwrap().prompt()?),
            Step::Usage(session) => {
                let usage = Usage { input: 7, model: Some("large".into()), ..Usage::default() };
                pick(&sessions, *session).unwrap().add_usage(None, &usage)?;
                self.usage += 7;
            }
            Step::Search => drop(self.store.search("word7").run()?),
        }
        Ok(())
    }
}

/// Returns the name that an import gives to a session that begins with a message.
fn title(message: &Message) -> Option<String> {
    let mut title = Title::default();
    title.add(message);
    title.line().map(str::to_owned)
}

/// What is to be gone after an erasure.
#[derive(Default)]
struct Gone {
    erasure: Erasure,
    sessions: BTreeSet<SessionId>,
    messages: BTreeSet<MessageId>,
    names: Vec<String>,
}

impl World {
    fn gone(&self, erase: &Erase) -> Result<Gone> {
        let sessions = self.sessions()?;
        let mut gone = Gone::default();
        match erase {
            Erase::Messages(session, picks) => {
                let session = pick(&sessions, *session).unwrap();
                let all = Self::messages(session)?;
                gone.messages = picks.iter().filter_map(|at| pick(&all, *at).cloned()).collect();
                gone.erasure = Erasure::messages(session.id(), &gone.messages);
            }
            Erase::Branch(session, at) => {
                let session = pick(&sessions, *session).unwrap();
                if let Some(top) = pick(&Self::messages(session)?, *at) {
                    gone.erasure = Erasure::branch(session.id(), top);
                    for id in Self::messages(session)? {
                        if &id == top || session.is_ancestor(top, &id)? {
                            gone.messages.insert(id);
                        }
                    }
                }
            }
            Erase::Session(session) => {
                let session = pick(&sessions, *session).unwrap();
                gone.erasure = Erasure::session(session.id());
                gone.sessions.insert(session.id().clone());
            }
            Erase::Owner(owner) => {
                let owner = OWNERS[usize::from(*owner) % 2];
                gone.erasure = Erasure::owner(owner);
                for session in &sessions {
                    if session.info()?.unwrap().owner.as_deref() == Some(owner) {
                        gone.sessions.insert(session.id().clone());
                    }
                }
                gone.names.push(owner.to_owned());
                gone.names.extend(self.of_owner.get(owner).into_iter().flatten().cloned());
            }
            Erase::Key(key) => {
                let key = KEYS[usize::from(*key) % KEYS.len()];
                gone.erasure = Erasure::key(key);
                let open = self.bot.resume(key).open()?;
                gone.sessions.insert(open.id().clone());
                gone.names.push(key.to_owned());
            }
        }
        for session in &gone.sessions {
            gone.names.extend(self.of_notes.get(session).into_iter().flatten().cloned());
            gone.messages.extend(Self::messages(&self.bot.session(session.clone())?)?);
        }
        gone.erasure = gone.erasure.with_forks().with_summaries();
        Ok(gone)
    }

    /// Returns the marks of the summaries that cover an erased message.
    fn summaries(&self, gone: &Gone) -> Result<BTreeSet<&String>> {
        let mut marks = BTreeSet::new();
        for session in self.sessions()? {
            for compaction in session.compactions()? {
                let mut covered = session.expand_raw(&compaction.id)?.into_iter();
                if covered.any(|message| gone.messages.contains(&message.id)) {
                    marks.insert(&self.of_summary[&compaction.id]);
                }
            }
        }
        Ok(marks)
    }

    /// Returns the hashes of the sessions of which nothing is erased.
    fn hashes(&self, gone: &Gone) -> Result<BTreeMap<SessionId, String>> {
        let mut hashes = BTreeMap::new();
        for session in self.sessions()? {
            // A summary goes with what it was made from, also where that was deleted before.
            let mut summed = session.compactions()?.into_iter();
            let parent = session.info()?.unwrap().parent_session;
            let is_touched = gone.sessions.contains(session.id())
                || parent.is_some_and(|parent| gone.sessions.contains(&parent))
                || summed.any(|it| [it.first, it.last].iter().any(|id| gone.messages.contains(id)))
                || Self::messages(&session)?.iter().any(|id| gone.messages.contains(id));
            if !is_touched {
                hashes.insert(session.id().clone(), session_hash(&session)?);
            }
        }
        Ok(hashes)
    }

    /// Returns the bytes of all files of the store and of a backup that is made now; or of all rows of a server.
    ///
    /// Another process reads the files: to close a descriptor of them here would drop SQLite's locks.
    fn bytes(&self) -> Vec<u8> {
        if let Some(rows) = Tables::of(&self.path).rows() {
            return rows.into_bytes();
        }
        let backup = self.path.with_extension("backup");
        self.store.backup(&backup, |_| {}).unwrap();
        let mut command = Command::new("cat");
        for suffix in ["", "-wal", "-shm"] {
            let mut path = self.path.clone().into_os_string();
            path.push(suffix);
            command.arg(path);
        }
        let read = command.arg(&backup).output().unwrap();
        std::fs::remove_file(backup).unwrap();
        read.stdout
    }

    fn export(&self) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        export_jsonl(&self.store, &mut content)?;
        Ok(content)
    }

    /// Erases something. If it is stopped, the store finishes it, and there is no outcome.
    fn erase(&self, erasure: &Erasure, stop: Option<u8>) -> Result<Option<Erased>> {
        let (extent, handle, mut steps) =
            (self.store.erasure_extent(erasure)?, self.store.interrupt_handle(), 0);
        let erased = self.store.erase_with_progress(erasure, |_| {
            steps += 1;
            if Some(steps) == stop {
                handle.interrupt();
            }
        });
        let erased = match erased {
            Err(Error::Interrupted) => {
                assert!(self.store.finish_erasure()?);
                return Ok(None);
            }
            erased => erased?,
        };
        assert!(erased.is_complete() && erased.extent.copies_left.is_empty(), "{erased:?}");
        assert!(erased.extent.summaries_left.is_empty(), "{erased:?}");
        assert_eq!(erased.extent, extent);
        Ok(Some(erased))
    }

    fn check(&mut self, erase: &Erase, stop: Option<u8>) -> Result<()> {
        let gone = self.gone(erase)?;
        let before = self.export()?;
        // The content of a message before an update is erased only if the file is rewritten.
        let present = marks(&before);
        let is_looked_for = |mark: &str| self.is_rewritten || present.contains(mark.as_bytes());
        let of_summaries: BTreeSet<String> = self.summaries(&gone)?.into_iter().cloned().collect();
        let hashes = self.hashes(&gone)?;
        let erased = self.erase(&gone.erasure, stop)?;
        assert!(!self.store.has_unfinished_erasure()?);

        let content = String::from_utf8(self.export()?).unwrap();
        let bytes = self.bytes();
        let stored = marks(&bytes);
        for id in &gone.messages {
            for mark in &self.of_message[id] {
                assert!(!content.contains(mark.as_str()), "{mark} is still read");
                let is_stored = is_looked_for(mark) && stored.contains(mark.as_bytes());
                assert!(!is_stored, "{mark} of message {id}: {}", around(&bytes, mark));
                assert!(self.store.search(mark).run()?.hits.is_empty(), "{mark} is found");
            }
        }
        for mark in of_summaries.iter().filter(|mark| is_looked_for(mark)) {
            // A copy in a fork stays if all that it covers there was deleted before.
            let is_stored = stored.contains(mark.as_bytes());
            assert_eq!(is_stored, content.contains(mark.as_str()), "{mark} of a summary");
        }
        for session in self.sessions()? {
            let point = session.info()?.unwrap().fork_point;
            assert!(point.is_none_or(|id| !gone.messages.contains(&id)), "{}", session.id());
        }
        let names = gone.names.iter().filter(|name| self.is_rewritten || !name.starts_with("mk"));
        for name in names {
            let count = bytes.windows(name.len()).filter(|at| *at == name.as_bytes()).count();
            assert_eq!(count, 0, "{name}");
        }
        for (session, hash) in hashes {
            assert_eq!(session_hash(&self.bot.session(session.clone())?)?, hash, "{session}");
        }
        let usage = self.store.usage().by(UsageGroup::All).run()?;
        let used = usage.first().map_or(0, |row| row.input);
        match gone.sessions.is_empty() {
            true => assert_eq!(used, self.usage),
            false => assert!(used <= self.usage),
        }
        self.usage = used;
        assert_eq!(self.store.verify(|_| {})?.damages, []);
        let Some(erased) = erased.filter(|_| !is_on_server()) else { return Ok(()) };
        let proof = erased.scan()?;
        if let Some((path, offset)) = proof.occurrences.first() {
            let read = Command::new("cat").arg(path).output().unwrap().stdout;
            let at = *offset as usize;
            panic!(
                "{erased:?}, {proof:?}: {:?}",
                String::from_utf8_lossy(&read[at.saturating_sub(60)..at + 60])
            );
        }
        Ok(())
    }
}

/// Returns the bytes around the first place of a mark.
fn around(bytes: &[u8], mark: &str) -> String {
    let at = bytes.windows(mark.len()).position(|window| window == mark.as_bytes()).unwrap();
    let around = &bytes[at.saturating_sub(80)..(at + 80).min(bytes.len())];
    format!("at {at} of {}: {:?}", bytes.len(), String::from_utf8_lossy(around))
}

/// Returns all marks in some bytes.
fn marks(bytes: &[u8]) -> BTreeSet<&[u8]> {
    let is_mark = |mark: &&[u8]| {
        mark.starts_with(b"mk")
            && mark.ends_with(b"zq")
            && mark[2..8].iter().all(u8::is_ascii_digit)
    };
    bytes.windows(10).filter(is_mark).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]
    #[test]
    fn no_mark_of_the_erased_is_left(
        steps in proptest::collection::vec(step(), 20..120),
        erasures in proptest::collection::vec((erase(), proptest::option::of(1u8..9)), 1..3),
        later in proptest::collection::vec(step(), 0..20),
        is_rewritten in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), is_rewritten).unwrap();
        for step in &steps {
            world.run(step).unwrap();
        }
        for (erase, stop) in &erasures {
            world.check(erase, *stop).unwrap();
            if world.sessions().unwrap().is_empty() {
                break;
            }
            for step in &later {
                world.run(step).unwrap();
            }
        }
    }
}
