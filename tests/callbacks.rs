//! Callbacks of every kind may panic, block, and call back into the library, from their own thread and from another. The
//! outcome of the verb is true, no lock stays held, and the error handler hears what no verb returns.
//!
//! Context providers once ran under locks of their block: one that called its own block waited for itself for ever. A
//! panic of a provider in an automatic compaction made the append look failed.

mod common;

use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::json;
use talktree::import::JsonlOptions;
use talktree::{
    Block, BoxError, Change, CompactionOptions, Document, Durability, Error, Message, ReadProvider,
    Result, SearchProvider, Session, SkillProvider, Store, TokenCounter, WriteProvider,
};

/// How long a case may take; a deadlock takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a store waits for other writers, and a block for those of its provider.
const BUSY: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Listener,
    Counter,
    Summarizer,
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
enum Outcome {
    /// The verb succeeds, and the handler hears of the panic.
    Heard,
    /// The verb succeeds; nobody is left to hear of it.
    Done,
    /// The verb returns an error.
    Error,
    /// The verb belongs to the caller, and so does the panic.
    Panic,
}

type Verb = fn(&Bench) -> Result<()>;

const CASES: [(&str, Kind, Verb, Outcome); 27] = [
    ("append", Kind::Listener, |it| it.append(), Outcome::Heard),
    ("update", Kind::Listener, |it| it.update(), Outcome::Heard),
    ("append and compact", Kind::Listener, |it| it.overfill(), Outcome::Heard),
    ("append", Kind::Counter, |it| it.append(), Outcome::Heard),
    ("append and compact", Kind::Counter, |it| it.overfill(), Outcome::Heard),
    ("plan", Kind::Counter, |it| it.chat.compact().map(drop), Outcome::Heard),
    ("append and compact", Kind::Summarizer, |it| it.overfill(), Outcome::Heard),
    ("compact", Kind::Summarizer, |it| it.chat.compact().map(drop), Outcome::Error),
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

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

type Action = Arc<dyn Fn(&Store, &Session) + Send + Sync>;

/// What the callbacks of one kind do, while it is set.
struct Trap {
    kind: Kind,
    /// Acts once if it is true, and at each call otherwise.
    is_once: bool,
    action: Mutex<Option<Action>>,
    place: OnceLock<(Store, Session)>,
}

impl Trap {
    fn reached(&self, kind: Kind) {
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
struct Source(Arc<Trap>);

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
struct Input(Cursor<Vec<u8>>, Arc<Trap>);

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
struct Bench {
    folder: tempfile::TempDir,
    store: Store,
    chat: Session,
    trap: Arc<Trap>,
    heard: Arc<Mutex<Vec<String>>>,
    count: AtomicUsize,
    is_panicking: AtomicBool,
    _subscription: talktree::Subscription,
}

impl Bench {
    fn new(kind: Kind, is_once: bool) -> Result<Self> {
        let folder = common::folder()?;
        let store = Store::options().durability(Durability::Normal).busy_timeout(BUSY);
        let store = store.open(folder.path().join("talk.db"))?;
        let place = OnceLock::new();
        let trap = Arc::new(Trap { kind, is_once, action: Mutex::new(None), place });
        let heard = Arc::default();
        let chat = open(&store, &trap, &heard)?;
        let listens = Arc::clone(&trap);
        let subscription = chat.subscribe(move |event| {
            // One event of each verb: a listener that writes at every event of its own writes is called very often.
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
    fn open(&self) -> Result<Session> {
        open(&self.store, &self.trap, &self.heard)
    }

    fn sets(&self, action: impl Fn(&Store, &Session) + Send + Sync + 'static) {
        *locked(&self.trap.action) = Some(Arc::new(action));
    }

    fn message(&self) -> Message {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        Message::user(format!("<{n}> {}", "word ".repeat(14))).with_id(format!("m{n}"))
    }

    fn append(&self) -> Result<()> {
        assert!(self.chat.append(self.message())?.is_new);
        Ok(())
    }

    fn overfill(&self) -> Result<()> {
        let messages: Vec<_> = (0..20).map(|_| self.message()).collect();
        assert!(self.chat.append_all(messages)?.iter().all(|it| it.is_new));
        Ok(())
    }

    fn update(&self) -> Result<()> {
        assert!(self.chat.update(Message::user("other words").with_id("m9"))?.is_changed);
        Ok(())
    }

    fn append_note(&self) -> Result<()> {
        self.chat.context().append("note", "more").map(drop)
    }

    fn set_skill(&self) -> Result<()> {
        self.chat.context().set_document("skills", &Document::new("pdf", "text")).map(drop)
    }

    fn append_skill(&self) -> Result<()> {
        self.chat.context().append_document("skills", &Document::new("pdf", "text")).map(drop)
    }

    /// Runs a tool. The model is told what a provider did, so that it can go on.
    fn tool(&self, name: &str) -> Result<()> {
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

    fn search_facts(&self) -> Result<()> {
        self.chat.context().search("facts", "coffee", 5).map(drop)
    }

    fn verify(&self) -> Result<()> {
        self.store.verify(|_| self.trap.reached(Kind::Verify)).map(drop)
    }

    fn backup(&self) -> Result<()> {
        let copy = self.folder.path().join("copy.db");
        self.store.backup(copy, |_| self.trap.reached(Kind::Backup))
    }

    fn import(&self) -> Result<()> {
        let (other, mut file) = (Store::open_in_memory()?, Vec::new());
        other.session("from afar")?.append(Message::user("hello"))?;
        other.export_jsonl(&mut file)?;
        let options = JsonlOptions::default();
        let told = |_| self.trap.reached(Kind::Import);
        let file = Input(Cursor::new(file), Arc::clone(&self.trap));
        self.store.import_jsonl("a file", file, &options, told).map(drop)
    }

    fn export(&self) -> Result<()> {
        self.store.export_jsonl(&mut Source(Arc::clone(&self.trap)))
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.heard))
    }

    /// Checks that nothing is lost and nothing is locked.
    #[track_caller]
    fn is_sound(&self, case: &str) -> Result<()> {
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
        assert_eq!(self.chat.visible_tokens()?, self.chat.window_usage()?.total - self.prompt()?);
        assert_eq!(self.store.verify(|_| {})?.damages, [], "{case}");
        let left: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(".partial"))
            .collect();
        assert_eq!(left, [""; 0], "{case}");
        Ok(())
    }

    fn prompt(&self) -> Result<u64> {
        Ok(self.chat.window_usage()?.prompt)
    }
}

fn open(store: &Store, trap: &Arc<Trap>, heard: &Arc<Mutex<Vec<String>>>) -> Result<Session> {
    let source = Source(Arc::clone(trap));
    let (asked, told, heard) = (Arc::clone(trap), Arc::clone(trap), Arc::clone(heard));
    let summarize = move |_: &str| -> Result<&str, BoxError> {
        asked.reached(Kind::Summarizer);
        if asked.kind == Kind::Handler && locked(&asked.action).is_some() {
            return Err("out of credit".into());
        }
        Ok("short")
    };
    store
        .session_builder("s")
        .block("note", Block::write(source.clone()).max_tokens(50))
        .block("skills", Block::skills(source.clone()))
        .block("facts", Block::searchable(source.clone()))
        .block("memory", Block::stored())
        .token_counter(source)
        .summarizer(summarize)
        .compact_after(500)
        .compaction_options(CompactionOptions::default().protect_head(1).keep_recent_tokens(48))
        .on_error(move |error| {
            locked(&heard).push(error.to_string());
            told.reached(Kind::Handler);
        })
        .open()
}

/// Runs a case in a thread of its own; one that does not end fails.
#[track_caller]
fn within_patience(case: String, work: impl FnOnce() -> Result<()> + Send + 'static) {
    let (sender, done) = mpsc::channel();
    thread::spawn(move || {
        let answer = catch_unwind(AssertUnwindSafe(work));
        let _ = sender.send(answer);
    });
    match done.recv_timeout(PATIENCE) {
        Ok(Ok(answer)) => assert!(answer.is_ok(), "{case}: {answer:?}"),
        Ok(Err(panic)) => {
            eprintln!("in {case}");
            std::panic::resume_unwind(panic)
        }
        Err(_) => panic!("{case}: does not end"),
    }
}

#[test]
fn a_callback_that_panics() {
    for (verb, kind, work, outcome) in CASES {
        let case = format!("{kind:?} in {verb}");
        within_patience(case.clone(), move || {
            let bench = Bench::new(kind, true)?;
            bench.sets(|_, _| panic!("boom"));
            bench.is_panicking.store(true, Ordering::SeqCst);
            let answer = catch_unwind(AssertUnwindSafe(|| work(&bench)));
            assert!(locked(&bench.trap.action).is_none(), "{case}: was not called");
            let heard = bench.heard();
            let is_heard = heard.iter().any(|text| text.contains("boom"));
            match (outcome, answer) {
                (Outcome::Heard, Ok(Ok(()))) => assert!(is_heard, "{case}: {heard:?}"),
                (Outcome::Done, Ok(Ok(()))) | (Outcome::Panic, Err(_)) => {}
                (Outcome::Error, Ok(Err(error))) => {
                    assert!(error.to_string().contains("boom"), "{case}: {error}");
                }
                (_, Ok(answer)) => panic!("{case}: {answer:?}"),
                (_, Err(_)) => panic!("{case}: it panicked"),
            }
            bench.is_sound(&case)
        });
    }
}

/// Calls what a callback could call, and asserts that each call succeeds or is refused as busy.
fn call_everything(store: &Store, chat: &Session) {
    let context = chat.context();
    let other = Message::user("from inside");
    let answers: [(&str, Result<()>); 17] = [
        ("append", chat.append(other.clone()).map(drop)),
        ("append of a plain handle", store.session("s").and_then(|s| s.append(other).map(drop))),
        ("history", chat.history().map(drop)),
        ("visible tokens", chat.visible_tokens().map(drop)),
        ("usage", chat.window_usage().map(drop)),
        ("compact", chat.compact().map(drop)),
        ("search", store.search("word").run().map(drop)),
        ("verify", store.verify(|_| {}).map(drop)),
        ("prompt", chat.prompt().map(drop)),
        ("block", context.block("note").map(drop)),
        ("set", context.set("note", "inside").map(drop)),
        ("append to a block", context.append("note", "inside").map(drop)),
        ("set a stored block", context.set("memory", "inside").map(drop)),
        ("load", context.load("skills", "pdf").map(drop)),
        ("set document", context.set_document("skills", &Document::new("a", "b")).map(drop)),
        ("search a block", context.search("facts", "x", 3).map(drop)),
        ("add a block", context.add("new", Block::text("x"))),
    ];
    context.remove("new");
    drop(chat.subscribe(|_| {}));
    for (name, answer) in answers {
        match answer {
            Ok(()) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

/// A compaction that others overtook is stale, and that is true.
fn done_or_stale(answer: Result<()>) -> Result<()> {
    match answer {
        Err(Error::Stale { .. }) => Ok(()),
        answer => answer,
    }
}

#[test]
fn a_callback_that_calls_back_from_its_own_thread() {
    for (verb, kind, work, _) in CASES {
        let case = format!("{kind:?} in {verb}");
        within_patience(case.clone(), move || {
            let bench = Bench::new(kind, true)?;
            bench.sets(call_everything);
            done_or_stale(work(&bench))?;
            assert!(locked(&bench.trap.action).is_none(), "{case}: was not called");
            let panicked = bench.heard().into_iter().find(|text| text.contains("panicked"));
            assert_eq!(panicked, None, "{case}");
            bench.is_sound(&case)
        });
    }
}

#[test]
fn a_callback_that_waits_for_another_thread_that_calls_back() {
    for (verb, kind, work, _) in CASES {
        let case = format!("{kind:?} in {verb}");
        within_patience(case.clone(), move || {
            let bench = Bench::new(kind, true)?;
            bench.sets(|store, chat| {
                thread::scope(|scope| scope.spawn(|| call_everything(store, chat)).join().unwrap());
            });
            done_or_stale(work(&bench))?;
            assert!(locked(&bench.trap.action).is_none(), "{case}: was not called");
            let panicked = bench.heard().into_iter().find(|text| text.contains("panicked"));
            assert_eq!(panicked, None, "{case}");
            bench.is_sound(&case)
        });
    }
}

#[test]
fn a_callback_that_blocks_keeps_nobody_else_waiting() {
    for (verb, kind, work, _) in CASES {
        let case = format!("{kind:?} in {verb}");
        within_patience(case.clone(), move || {
            let bench = Bench::new(kind, true)?;
            let (entered, is_entered) = mpsc::channel();
            let (release, released) = mpsc::channel::<()>();
            let (entered, released) = (Mutex::new(entered), Mutex::new(released));
            bench.sets(move |_, _| {
                let _ = locked(&entered).send(());
                let _ = locked(&released).recv_timeout(PATIENCE);
            });
            thread::scope(|scope| {
                let slow = scope.spawn(|| work(&bench));
                assert!(is_entered.recv_timeout(PATIENCE).is_ok(), "{case}: was not called");
                call_everything(&bench.store, &bench.chat);
                assert!(!slow.is_finished(), "{case}");
                let _ = release.send(());
                done_or_stale(slow.join().unwrap())
            })?;
            bench.is_sound(&case)
        });
    }
}

/// Each call of a callback made another: the stack overflowed, which ends the process.
#[test]
fn a_callback_that_calls_itself_without_end_is_refused() {
    type Call = fn(&Session) -> Result<()>;
    let cases: [(Kind, Call, Verb); 9] = [
        (Kind::Listener, append_inside, |it| it.append()),
        (Kind::Counter, append_inside, |it| it.append()),
        (Kind::Counter, |chat| chat.visible_tokens().map(drop), |it| it.update()),
        (Kind::Summarizer, |chat| chat.compact().map(drop), |it| it.overfill()),
        (Kind::Handler, append_inside, |it| it.overfill()),
        (Kind::Get, |chat| chat.prompt().map(drop), |it| it.chat.prompt().map(drop)),
        (
            Kind::Load,
            |chat| chat.context().load("skills", "pdf").map(drop),
            |it| it.chat.context().load("skills", "pdf").map(drop),
        ),
        (
            Kind::Search,
            |chat| chat.context().search("facts", "x", 1).map(drop),
            |it| it.search_facts(),
        ),
        (
            Kind::Set,
            |chat| chat.context().set("note", "x").map(drop),
            |it| it.chat.context().set("note", "x").map(drop),
        ),
    ];
    for (kind, call, work) in cases {
        let case = format!("{kind:?}");
        within_patience(case.clone(), move || {
            let bench = Bench::new(kind, false)?;
            bench.sets(move |_, chat| {
                let _ = call(chat);
            });
            work(&bench)?;
            bench.is_sound(&case)
        });
    }
}

fn append_inside(chat: &Session) -> Result<()> {
    chat.append(Message::user("word ".repeat(40))).map(drop)
}

/// The error of a summarizer is the program's own, and so is its text.
#[test]
fn an_error_that_cannot_be_shown_fails_no_append() {
    #[derive(Debug)]
    struct Unspeakable;
    impl std::fmt::Display for Unspeakable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("boom")
        }
    }
    impl std::error::Error for Unspeakable {}
    within_patience("an error".to_owned(), || {
        let store = Store::open_in_memory()?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&told);
        let chat = store
            .session_builder("s")
            .summarizer(|_: &str| -> Result<&str, BoxError> { Err(Unspeakable.into()) })
            .compact_after(300)
            .on_error(|error| println!("{error}"))
            .open()?;
        let _subscription = chat.subscribe(move |event| {
            if let Change::CompactionFailed { why } = &event.change {
                locked(&ear).push(why.clone());
            }
        });
        let messages = (1..=9).map(|_| Message::user("word ".repeat(50)));
        assert_eq!(chat.append_all(messages)?.len(), 9);
        assert_eq!(*locked(&told), ["it panicked: boom"]);
        Ok(())
    });
}

/// `init` ran under the lock that a call from inside waited for.
#[test]
fn a_provider_may_not_call_its_own_block_from_its_init() {
    struct Early(Arc<OnceLock<Session>>, Arc<AtomicUsize>);
    impl ReadProvider for Early {
        fn init(&self, label: &str) -> Result<(), BoxError> {
            self.1.fetch_add(1, Ordering::SeqCst);
            let chat = self.0.get().ok_or("too early")?;
            let own = chat.block(label);
            assert!(matches!(own, Err(Error::BlockBusy { waited_ms: 0, .. })), "{own:?}");
            chat.append(Message::user("from init"))?;
            Ok(())
        }
        fn get(&self) -> Result<String, BoxError> {
            Ok("here".to_owned())
        }
    }
    within_patience("init".to_owned(), || {
        let (place, calls) = (Arc::new(OnceLock::new()), Arc::default());
        let chat = Store::open_in_memory()?.session("s")?;
        chat.context().add("early", Block::read(Early(Arc::clone(&place), Arc::clone(&calls))))?;
        // An `init` that failed is called again.
        assert!(matches!(chat.block("early"), Err(Error::Provider { .. })));
        let _ = place.set(chat.clone());
        for _ in 0..3 {
            assert_eq!(chat.block("early")?.unwrap().content, "here");
        }
        assert_eq!((calls.load(Ordering::SeqCst), chat.path_length()?), (2, 1));
        Ok(())
    });
}

/// A provider was dropped under the lock of the list of blocks.
#[test]
fn a_provider_may_use_its_context_while_it_is_dropped() {
    struct Leaving(Arc<OnceLock<Session>>);
    impl ReadProvider for Leaving {
        fn get(&self) -> Result<String, BoxError> {
            Ok("here".to_owned())
        }
    }
    impl Drop for Leaving {
        fn drop(&mut self) {
            if let Some(chat) = self.0.get() {
                assert!(chat.prompt().is_ok());
            }
        }
    }
    within_patience("remove a block".to_owned(), || {
        let place = Arc::new(OnceLock::new());
        let chat = Store::open_in_memory()?.session("s")?;
        let _ = place.set(chat.clone());
        let leaving = || Block::read(Leaving(Arc::clone(&place)));
        chat.context().add("a", leaving())?;
        let again = chat.context().add("a", leaving());
        assert!(matches!(again, Err(Error::BlockExists { .. })));
        assert!(chat.context().remove("a"));
        Ok(())
    });
}

#[test]
fn a_provider_that_panics_about_being_writable_is_read_only() {
    within_patience("is writable".to_owned(), || {
        let bench = Bench::new(Kind::IsWritable, false)?;
        bench.sets(|_, _| panic!("boom"));
        let set = bench.set_skill();
        assert!(matches!(set, Err(Error::BlockReadOnly { .. })), "{set:?}");
        assert!(!bench.chat.prompt()?.is_empty());
        assert!(!bench.chat.tools().definitions().is_empty());
        bench.is_sound("is writable")
    });
}

/// What a callback captured is dropped, whatever it did.
#[test]
fn nothing_of_a_callback_is_kept_after_its_subscription() -> Result<()> {
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let is_dropped = Arc::new(AtomicBool::new(false));
    let flag = Flag(Arc::clone(&is_dropped));
    let chat = Store::open_in_memory()?.session("s")?;
    let subscription = chat.subscribe(move |_| {
        let _held = &flag;
        panic!("boom")
    });
    chat.append(Message::user("a"))?;
    drop(subscription);
    assert!(is_dropped.load(Ordering::SeqCst));
    Ok(())
}
