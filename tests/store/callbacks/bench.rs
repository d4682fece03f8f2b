//! A session whose callbacks of every kind go through one trap, and the cases: each kind of callback in the verbs that call it.

use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::json;
use talktree::{
    Block, BoxError, Change, CompactionOptions, CompactionWindow, Document, Durability, Message,
    RangeSummary, ReadProvider, Result, SearchProvider, Session, SkillProvider, Store,
    TokenCounter, WriteProvider,
};
use talktree_import::export::export_jsonl;
use talktree_import::{ImportOptions, import_reader};

use crate::common;
use crate::tables::is_on_server;

/// How long a store waits for other writers, and a block for those of its provider.
const BUSY: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Listener,
    Counter,
    Summarizer,
    Policy,
    Executor,
    Handler,
    Init,
    Get,
    Set,
    Load,
    SetKeyed,
    Search,
    IsWritable,
    Verify,
    Backup,
    Import,
    ImportInput,
    ExportOutput,
}

/// What a verb answers when its callback panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The verb succeeds, and the handler gets the panic.
    Heard,
    /// The verb succeeds, and the panic is ignored.
    Done,
    /// The verb returns an error.
    Error,
    /// The verb panics: the callback is an argument of it.
    Panic,
}

pub(crate) type Verb = fn(&Bench) -> Result<()>;

const CASES: [(&str, Kind, Verb, Outcome); 30] = [
    ("append", Kind::Listener, |it| it.append(), Outcome::Heard),
    ("update", Kind::Listener, |it| it.update(), Outcome::Heard),
    ("append and compact", Kind::Listener, |it| it.overfill(), Outcome::Heard),
    ("append", Kind::Counter, |it| it.append(), Outcome::Heard),
    ("append and compact", Kind::Counter, |it| it.overfill(), Outcome::Heard),
    ("plan", Kind::Counter, |it| it.chat.compact().map(drop), Outcome::Heard),
    ("append and compact", Kind::Summarizer, |it| it.overfill(), Outcome::Heard),
    ("compact", Kind::Summarizer, |it| it.chat.compact().map(drop), Outcome::Error),
    ("append and compact", Kind::Policy, |it| it.overfill(), Outcome::Heard),
    ("compact", Kind::Policy, |it| it.chat.compact().map(drop), Outcome::Error),
    ("append and compact", Kind::Executor, |it| it.overfill(), Outcome::Heard),
    ("append and compact", Kind::Handler, |it| it.overfill(), Outcome::Done),
    ("first read", Kind::Init, |it| it.open()?.block("note").map(drop), Outcome::Error),
    ("prompt", Kind::Get, |it| it.chat.prompt().map(drop), Outcome::Error),
    ("append and compact", Kind::Get, |it| it.overfill(), Outcome::Heard),
    ("append to a block", Kind::Get, |it| it.append_note(), Outcome::Error),
    ("set", Kind::Set, |it| it.chat.context().set("note", "new").map(drop), Outcome::Error),
    ("append to a block", Kind::Set, |it| it.append_note(), Outcome::Error),
    ("load", Kind::Load, |it| it.chat.context().load("skills", "pdf").map(drop), Outcome::Error),
    ("append to a document", Kind::Load, |it| it.append_skill(), Outcome::Error),
    ("set document", Kind::SetKeyed, |it| it.set_skill(), Outcome::Error),
    ("search", Kind::Search, |it| it.search_facts(), Outcome::Error),
    ("tool that writes", Kind::Set, |it| it.tool("set_context"), Outcome::Done),
    ("tool that loads", Kind::Load, |it| it.tool("load_context"), Outcome::Done),
    ("tool that searches", Kind::Search, |it| it.tool("search_context"), Outcome::Done),
    ("verify", Kind::Verify, |it| it.verify(), Outcome::Panic),
    ("backup", Kind::Backup, |it| it.backup(), Outcome::Panic),
    ("import", Kind::Import, |it| it.import(), Outcome::Panic),
    ("import", Kind::ImportInput, |it| it.import(), Outcome::Panic),
    ("export", Kind::ExportOutput, |it| it.export(), Outcome::Panic),
];

/// Returns the cases of this engine: a server has no backup.
pub(crate) fn cases() -> impl Iterator<Item = (&'static str, Kind, Verb, Outcome)> {
    CASES.into_iter().filter(|(_, kind, ..)| *kind != Kind::Backup || !is_on_server())
}

pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) type Action = Arc<dyn Fn(&Store, &Session) + Send + Sync>;

/// What the callbacks of one kind do, while it is set.
pub(crate) struct Trap {
    pub(crate) kind: Kind,
    /// Acts once if it is true, and at each call otherwise.
    pub(crate) is_once: bool,
    pub(crate) action: Mutex<Option<Action>>,
    pub(crate) place: OnceLock<(Store, Session)>,
}

impl Trap {
    pub(crate) fn reached(&self, kind: Kind) {
        if kind != self.kind {
            return;
        }
        let action = match self.is_once {
            true => locked(&self.action).take(),
            false => locked(&self.action).clone(),
        };
        if let (Some(action), Some((store, chat))) = (action, self.place.get()) {
            action(store, chat);
        }
    }
}

#[derive(Clone)]
pub(crate) struct Source(Arc<Trap>);

impl ReadProvider for Source {
    fn init(&self, _: &str) -> Result<(), BoxError> {
        self.0.reached(Kind::Init);
        Ok(())
    }

    fn get(&self) -> Result<String, BoxError> {
        self.0.reached(Kind::Get);
        Ok("A note.".to_owned())
    }
}

impl WriteProvider for Source {
    fn set(&self, _: &str) -> Result<(), BoxError> {
        self.0.reached(Kind::Set);
        Ok(())
    }
}

impl SkillProvider for Source {
    fn load(&self, key: &str) -> Result<Option<String>, BoxError> {
        self.0.reached(Kind::Load);
        Ok((key == "pdf").then(|| "Use pdftotext.".to_owned()))
    }

    fn is_writable(&self) -> bool {
        self.0.reached(Kind::IsWritable);
        true
    }

    fn set_keyed(&self, _: &Document) -> Result<(), BoxError> {
        self.0.reached(Kind::SetKeyed);
        Ok(())
    }
}

impl SearchProvider for Source {
    fn search(&self, _: &str, _: usize) -> Result<Vec<Document>, BoxError> {
        self.0.reached(Kind::Search);
        Ok(Vec::new())
    }
}

impl TokenCounter for Source {
    fn name(&self) -> &str {
        "a source"
    }

    fn count_text(&self, text: &str) -> f64 {
        self.0.reached(Kind::Counter);
        talktree::estimate_tokens(text) as f64
    }
}

impl Write for Source {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.reached(Kind::ExportOutput);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A file that is imported.
pub(crate) struct Input(Cursor<Vec<u8>>, Arc<Trap>);

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1.reached(Kind::ImportInput);
        self.0.read(into)
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

/// A session whose callbacks of every kind go through one trap.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) store: Store,
    pub(crate) chat: Session,
    pub(crate) trap: Arc<Trap>,
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    pub(crate) count: AtomicUsize,
    pub(crate) is_panicking: AtomicBool,
    _subscription: talktree::Subscription,
}

impl Bench {
    pub(crate) fn new(kind: Kind, is_once: bool) -> Result<Self> {
        let folder = common::folder()?;
        let store = Store::options().durability(Durability::Normal).busy_timeout(BUSY);
        let store = store.open(folder.path().join("talk.db"))?;
        let place = OnceLock::new();
        let trap = Arc::new(Trap { kind, is_once, action: Mutex::new(None), place });
        let heard = Arc::default();
        let chat = open(&store, &trap, &heard)?;
        let listens = Arc::clone(&trap);
        let subscription = chat.subscribe(move |event| {
            // Only some events: a listener that writes at each event of its own writes would be called too often.
            if matches!(event.change, Change::Append { .. } | Change::Update { .. }) {
                listens.reached(Kind::Listener);
            }
        });
        let _ = trap.place.set((store.clone(), chat.clone()));
        let count = AtomicUsize::new(0);
        let it = Self {
            folder,
            store,
            chat,
            trap,
            heard,
            count,
            is_panicking: AtomicBool::new(false),
            _subscription: subscription,
        };
        (0..10).try_for_each(|_| it.append())?;
        locked(&it.heard).clear();
        Ok(it)
    }

    /// Opens another handle with the same callbacks.
    pub(crate) fn open(&self) -> Result<Session> {
        open(&self.store, &self.trap, &self.heard)
    }

    pub(crate) fn sets(&self, action: impl Fn(&Store, &Session) + Send + Sync + 'static) {
        *locked(&self.trap.action) = Some(Arc::new(action));
    }

    pub(crate) fn message(&self) -> Message {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        Message::user(format!("<{n}> {}", "word ".repeat(14))).with_id(format!("m{n}"))
    }

    pub(crate) fn append(&self) -> Result<()> {
        assert!(self.chat.append(self.message())?.is_new);
        Ok(())
    }

    pub(crate) fn overfill(&self) -> Result<()> {
        let messages: Vec<_> = (0..20).map(|_| self.message()).collect();
        assert!(self.chat.append_all(messages)?.iter().all(|it| it.is_new));
        Ok(())
    }

    pub(crate) fn update(&self) -> Result<()> {
        assert!(self.chat.update(Message::user("other words").with_id("m9"))?.is_changed);
        Ok(())
    }

    pub(crate) fn append_note(&self) -> Result<()> {
        self.chat.context().append("note", "more").map(drop)
    }

    pub(crate) fn set_skill(&self) -> Result<()> {
        self.chat.context().set_document("skills", &Document::new("pdf", "text")).map(drop)
    }

    pub(crate) fn append_skill(&self) -> Result<()> {
        self.chat.context().append_document("skills", &Document::new("pdf", "text")).map(drop)
    }

    /// Runs a tool. Its answer says that a provider failed, so that the model can go on.
    pub(crate) fn tool(&self, name: &str) -> Result<()> {
        let input = match name {
            "set_context" => json!({"label": "note", "content": "new"}),
            "load_context" => json!({"label": "skills", "key": "pdf"}),
            _ => json!({"label": "facts", "query": "coffee"}),
        };
        let panics = self.is_panicking.load(Ordering::SeqCst);
        let answer = self.chat.tools().call(name, &input)?;
        assert_eq!(answer.contains("it panicked: boom"), panics, "{answer}");
        Ok(())
    }

    pub(crate) fn search_facts(&self) -> Result<()> {
        self.chat.context().search("facts", "coffee", 5).map(drop)
    }

    pub(crate) fn verify(&self) -> Result<()> {
        self.store.verify(|_| self.trap.reached(Kind::Verify)).map(drop)
    }

    pub(crate) fn backup(&self) -> Result<()> {
        let copy = self.folder.path().join("copy.db");
        self.store.backup(copy, |_| self.trap.reached(Kind::Backup))
    }

    pub(crate) fn import(&self) -> Result<()> {
        let (other, mut file) = (Store::open_in_memory()?, Vec::new());
        other.session("from afar")?.append(Message::user("hello"))?;
        export_jsonl(&other, &mut file)?;
        let options = ImportOptions::default();
        let told = |_| self.trap.reached(Kind::Import);
        let file = Input(Cursor::new(file), Arc::clone(&self.trap));
        import_reader(&self.store, "a file", file, &options, told).map(drop)
    }

    pub(crate) fn export(&self) -> Result<()> {
        export_jsonl(&self.store, &mut Source(Arc::clone(&self.trap)))
    }

    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.heard))
    }

    /// Checks that nothing is lost and nothing is locked.
    #[track_caller]
    pub(crate) fn is_sound(&self, case: &str) -> Result<()> {
        *locked(&self.trap.action) = None;
        let ids: Vec<_> = self.chat.raw_history()?.into_iter().map(|it| it.id).collect();
        for n in 0..self.count.load(Ordering::SeqCst) {
            assert!(ids.iter().any(|id| *id == *format!("m{n}")), "{case}: m{n} is lost");
        }
        self.append()?;
        self.store.session("s")?.append(Message::user("plain"))?;
        self.chat.context().set("note", "again")?;
        self.chat.context().append("note", "again")?;
        self.set_skill()?;
        self.chat.prompt()?;
        self.store.session("other")?.append(Message::user("hello"))?;
        assert_eq!(self.chat.visible_tokens()?, self.chat.window_usage()?.total - self.besides()?);
        assert_eq!(self.store.verify(|_| {})?.damages, [], "{case}");
        let left: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".partial"))
            .collect();
        assert_eq!(left, [""; 0], "{case}");
        Ok(())
    }

    /// Returns the tokens of a request that are not messages.
    pub(crate) fn besides(&self) -> Result<u64> {
        let request = self.chat.request_tokens()?;
        Ok(request.prompt + request.tools)
    }
}

/// Returns about as many tokens as the tools of the session have, without calling its providers.
fn tools_tokens() -> Result<u64> {
    let store = Store::open_in_memory()?;
    let alike = store
        .session_builder("s")
        .block("note", Block::stored())
        .block("skills", Block::stored_skills())
        .block("facts", Block::knowledge())
        .block("memory", Block::stored());
    Ok(alike.open()?.request_tokens()?.tools)
}

pub(crate) fn open(
    store: &Store,
    trap: &Arc<Trap>,
    heard: &Arc<Mutex<Vec<String>>>,
) -> Result<Session> {
    let source = Source(Arc::clone(trap));
    let (asked, told, heard) = (Arc::clone(trap), Arc::clone(trap), Arc::clone(heard));
    let summarize = move |_: &str| -> Result<&str, BoxError> {
        asked.reached(Kind::Summarizer);
        if asked.kind == Kind::Handler && locked(&asked.action).is_some() {
            return Err("out of credit".into());
        }
        Ok("short")
    };
    let (chosen, executes) = (Arc::clone(trap), Arc::clone(trap));
    let policy = move |window: &CompactionWindow<'_>| -> Result<Option<RangeSummary>, BoxError> {
        chosen.reached(Kind::Policy);
        let Ok(range) = window.suggested() else { return Ok(None) };
        let range = &window.messages()[range];
        Ok(Some(RangeSummary::new(&range[0].id, &range[range.len() - 1].id, "short")))
    };
    let builder = store.session_builder("s");
    let builder = match trap.kind {
        Kind::Policy => builder.compaction_policy(policy),
        _ => builder.summarizer(summarize),
    };
    builder
        .block("note", Block::write(source.clone()).max_tokens(50))
        .block("skills", Block::skills(source.clone()))
        .block("facts", Block::searchable(source.clone()))
        .block("memory", Block::stored())
        .token_counter(source)
        .compact_after(500 + tools_tokens()?)
        .compact_on(move |job| {
            executes.reached(Kind::Executor);
            job();
        })
        .compaction_options(CompactionOptions::default().protect_head(1).keep_recent_tokens(48))
        .on_error(move |error| {
            locked(&heard).push(error.to_string());
            told.reached(Kind::Handler);
        })
        .open()
}
