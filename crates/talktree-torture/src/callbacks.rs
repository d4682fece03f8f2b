//! Callbacks that panic, fail, block and call back, in several threads at once: listeners, token counters, summarizers, compaction
//! policies, error handlers, providers of blocks, progress.
//!
//! Threads run random verbs on one session. Each callback does something at random; a verb that it calls may call callbacks
//! again. Every verb must end, acknowledged messages must be present, a verb may panic only if its own progress callback
//! did, and the store must have no damage. Afterwards the session must be compacted as before.

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use talktree::{
    Block, CompactionOptions, CompactionWindow, Document, Durability, Error, Message, RangeSummary,
    ReadProvider, SearchProvider, Session, SessionBuilder, SkillProvider, Store, Subscription,
    TokenCounter, WriteProvider,
};

use crate::scratch::scratch;
use crate::{Report, Result};

/// How long a round may take; a deadlock takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
/// How many callbacks of a round call back; each call may lead to more.
const CALLS_BACK: i64 = 200;

/// The limit of a request: about half of it is taken by the tools.
const THRESHOLD: u64 = 1_200;
/// How many tokens the checks append, to have the session compacted.
const OVERFILL: u64 = 2 * THRESHOLD;

/// How much is tried.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many stores are tried.
    #[arg(long, default_value_t = 100)]
    pub rounds: u64,
    /// How many threads use one session.
    #[arg(long, default_value_t = 4)]
    pub threads: usize,
    /// How many verbs each thread runs.
    #[arg(long, default_value_t = 60)]
    pub verbs: usize,
    /// Run only this round.
    #[arg(long)]
    pub round: Option<u64>,
}

/// Runs the rounds.
///
/// # Errors
/// If a store cannot be made.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let (mut figures, mut stored) = ([0; Action::ALL.len()], 0);
    for round in args.round.map_or(0..args.rounds, |round| round..round + 1) {
        let seed = report.seed().wrapping_add(round);
        let replay = format!(
            "just torture callbacks --seed {} --round {round} --threads {} --verbs {}",
            report.seed(),
            args.threads,
            args.verbs
        );
        let (sender, done) = mpsc::channel();
        let (threads, verbs) = (args.threads, args.verbs);
        thread::spawn(move || sender.send(play(seed, threads, verbs)));
        match done.recv_timeout(PATIENCE) {
            Ok(Ok(played)) => {
                for what in played.failures {
                    report.failure(what, &replay);
                }
                stored += played.stored;
                figures.iter_mut().zip(played.figures).for_each(|(sum, more)| *sum += more);
            }
            Ok(Err(error)) => report.failure(error, &replay),
            Err(_) => {
                report.failure("a verb does not end", &replay);
                break;
            }
        }
    }
    report.fact("messages acknowledged, all present", stored);
    for (action, count) in Action::ALL.iter().zip(figures) {
        report.fact(action.name(), count);
    }
    Ok(())
}

/// What a callback does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Panic,
    Fail,
    Block,
    CallBack,
    CallFromThread,
}

impl Action {
    const ALL: [Self; 5] =
        [Self::Panic, Self::Fail, Self::Block, Self::CallBack, Self::CallFromThread];

    fn name(self) -> &'static str {
        match self {
            Self::Panic => "callbacks that panicked",
            Self::Fail => "callbacks that failed",
            Self::Block => "callbacks that blocked",
            Self::CallBack => "callbacks that called back",
            Self::CallFromThread => "callbacks that waited for a thread that called back",
        }
    }
}

/// What a round did.
struct Played {
    failures: Vec<String>,
    figures: [u64; Action::ALL.len()],
    stored: usize,
}

/// What all callbacks of a round share.
struct Shared {
    dice: Mutex<Rng>,
    place: OnceLock<(Store, Session)>,
    folder: tempfile::TempDir,
    figures: [AtomicU64; Action::ALL.len()],
    calls_left: AtomicI64,
    next: AtomicU64,
    acknowledged: Mutex<Vec<String>>,
    failures: Mutex<Vec<String>>,
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether a callback of this thread may do anything: not while a round is checked.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

impl Shared {
    fn roll(&self, sides: u32) -> u32 {
        locked(&self.dice).u32(..sides)
    }

    /// Does one of the actions, in 10 of `sides` calls.
    fn act(&self, sides: u32) -> Result<()> {
        if IS_QUIET.get() {
            return Ok(());
        }
        let action = match self.roll(sides) {
            0 | 1 => Action::Panic,
            2 | 3 => Action::Fail,
            4 | 5 => Action::Block,
            6..=8 => Action::CallBack,
            9 => Action::CallFromThread,
            _ => return Ok(()),
        };
        let calls = matches!(action, Action::CallBack | Action::CallFromThread);
        if calls && self.calls_left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Ok(());
        }
        self.figures[action as usize].fetch_add(1, Ordering::Relaxed);
        match action {
            // Without the message of the panic hook.
            Action::Panic => resume_unwind(Box::new("a torture panic")),
            Action::Fail => return Err("a torture failure".into()),
            Action::Block => thread::sleep(Duration::from_millis(2)),
            Action::CallBack => self.verb(),
            Action::CallFromThread => {
                thread::scope(|scope| drop(scope.spawn(|| self.verb()).join()))
            }
        }
        Ok(())
    }

    /// Runs a random verb, and checks that it fails only as it may.
    fn verb(&self) {
        let Some((store, chat)) = self.place.get() else { return };
        let verb = self.roll(22);
        match catch_unwind(AssertUnwindSafe(|| self.run(verb, store, chat))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) if is_allowed(&error) => {}
            Ok(Err(error)) => self.failed(format!("verb {verb}: {error}")),
            Err(_) if is_of_progress(verb) => {}
            Err(_) => self.failed(format!("verb {verb} panicked")),
        }
    }

    fn failed(&self, what: String) {
        locked(&self.failures).push(what);
    }

    fn message(&self) -> Message {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        Message::user(format!("<{n}> {}", "word ".repeat(14))).with_id(format!("m{n}"))
    }

    /// Returns one of the acknowledged messages.
    fn known(&self) -> String {
        let known = locked(&self.acknowledged);
        known[locked(&self.dice).usize(..known.len())].clone()
    }

    fn acknowledge(&self, ids: impl IntoIterator<Item = talktree::Appended>) {
        locked(&self.acknowledged).extend(ids.into_iter().map(|it| it.id.to_string()));
    }

    fn run(&self, verb: u32, store: &Store, chat: &Session) -> talktree::Result<()> {
        let (context, known) = (chat.context(), self.known());
        match verb {
            0..=4 => self.acknowledge([chat.append(self.message())?]),
            5 => {
                let messages = [self.message(), self.message(), self.message()];
                self.acknowledge(chat.append_all(messages)?);
            }
            6 => drop(chat.update(Message::user("other words").with_id(known))?),
            7 => chat.checkout(&known.into())?,
            8 => drop(chat.compact()?),
            9 => drop(chat.checkout_summarized(&known.into())?),
            10 => drop(chat.visible_tokens()?),
            11 => drop(chat.window_usage()?),
            12 => drop(chat.prompt()?),
            13 => drop(context.set("note", "a note")?),
            14 => drop(context.append("note", "more")?),
            15 => drop(context.append_document("skills", &Document::new("pdf", "more"))?),
            16 => drop(context.load("skills", "pdf")?),
            17 => drop(context.search("facts", "coffee", 3)?),
            18 => drop(chat.tools().call("load_context", tool_input())?),
            19 => drop(store.search("word").limit(5).run()?),
            20 => drop(store.verify(|_| self.of_progress())?),
            _ => {
                let n = self.next.fetch_add(1, Ordering::Relaxed);
                let copy = self.folder.path().join(format!("copy-{n}.db"));
                store.backup(copy, |_| self.of_progress())?;
            }
        }
        Ok(())
    }

    fn of_progress(&self) {
        // A failure has nowhere to go.
        let _ = self.act(30);
    }
}

fn tool_input() -> serde_json::Value {
    serde_json::json!({"label": "skills", "key": "pdf"})
}

fn is_of_progress(verb: u32) -> bool {
    verb >= 20
}

/// Returns whether a verb may fail with this error.
fn is_allowed(error: &Error) -> bool {
    error.is_retryable()
        || error.is_refused()
        || matches!(error, Error::Provider { .. } | Error::Summarizer { .. } | Error::Stale { .. })
        || matches!(error, Error::CompactionPolicy { .. })
}

#[derive(Clone)]
struct Source(Arc<Shared>);

impl Source {
    fn act(&self) -> Result<()> {
        self.0.act(40)
    }
}

impl ReadProvider for Source {
    fn init(&self, _: &str) -> Result<()> {
        self.act()
    }

    fn get(&self) -> Result<String> {
        self.act()?;
        Ok("A note.".to_owned())
    }
}

impl WriteProvider for Source {
    fn set(&self, _: &str) -> Result<()> {
        self.act()
    }
}

impl SkillProvider for Source {
    fn load(&self, key: &str) -> Result<Option<String>> {
        self.act()?;
        Ok((key == "pdf").then(|| "Use pdftotext.".to_owned()))
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn set_keyed(&self, _: &Document) -> Result<()> {
        self.act()
    }
}

impl SearchProvider for Source {
    fn search(&self, _: &str, _: usize) -> Result<Vec<Document>> {
        self.act()?;
        Ok(Vec::new())
    }
}

impl TokenCounter for Source {
    fn name(&self) -> &str {
        "torture"
    }

    fn count_text(&self, text: &str) -> f64 {
        // Each message of a history is counted.
        match self.0.act(400) {
            Ok(()) => talktree::estimate_tokens(text) as f64,
            Err(_) => f64::NAN,
        }
    }
}

/// Gives each session a summarizer, and every third a policy.
fn compacting(chat: SessionBuilder, shared: &Arc<Shared>, seed: u64) -> SessionBuilder {
    let (asked, chooses) = (Arc::clone(shared), Arc::clone(shared));
    let policy = move |window: &CompactionWindow<'_>| -> Result<Option<RangeSummary>> {
        chooses.act(20)?;
        let Ok(range) = window.suggested() else { return Ok(None) };
        let range = &window.messages()[range];
        let ends = range.first().zip(range.last());
        Ok(ends.map(|(first, last)| RangeSummary::new(&first.id, &last.id, "short")))
    };
    let chat = chat.summarizer(move |_: &str| -> Result<Option<&str>> {
        asked.act(20)?;
        Ok((asked.roll(10) > 0 || IS_QUIET.get()).then_some("short"))
    });
    if seed.is_multiple_of(3) { chat.compaction_policy(policy) } else { chat }
}

fn open(
    store: &Store,
    shared: &Arc<Shared>,
    seed: u64,
) -> talktree::Result<(Session, Subscription)> {
    let source = Source(Arc::clone(shared));
    let (told, listens) = (Arc::clone(shared), Arc::clone(shared));
    let chat = compacting(store.session_builder("s"), shared, seed)
        .block("note", Block::write(source.clone()))
        .block("skills", Block::skills(source.clone()))
        .block("facts", Block::searchable(source.clone()))
        .token_counter(source)
        .compact_after(THRESHOLD)
        .compaction_options(CompactionOptions::default().protect_head(1).keep_recent_tokens(120))
        .on_error(move |_| told.of_progress())
        .open()?;
    let subscription = chat.subscribe(move |_| listens.of_progress());
    Ok((chat, subscription))
}

fn play(seed: u64, threads: usize, verbs: usize) -> Result<Played> {
    let folder = scratch()?;
    let path = folder.path().join("talk.db");
    let options =
        Store::options().durability(Durability::Normal).busy_timeout(Duration::from_millis(200));
    let store = match seed % 4 {
        0 => options.open_in_memory()?,
        _ => options.open(&path)?,
    };
    let shared = Arc::new(Shared {
        dice: Mutex::new(Rng::with_seed(seed)),
        place: OnceLock::new(),
        folder,
        figures: Default::default(),
        calls_left: AtomicI64::new(CALLS_BACK),
        next: AtomicU64::new(0),
        acknowledged: Mutex::default(),
        failures: Mutex::default(),
    });
    let (chat, subscription) = open(&store, &shared, seed)?;
    IS_QUIET.set(true);
    shared.acknowledge([chat.append(shared.message())?]);
    let _ = shared.place.set((store.clone(), chat.clone()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| (0..verbs).for_each(|_| shared.verb()));
        }
    });
    check(&store, &chat, &shared)?;
    drop(subscription);
    let failures = locked(&shared.failures).clone();
    let figures = std::array::from_fn(|action| shared.figures[action].load(Ordering::Relaxed));
    let stored = locked(&shared.acknowledged).len();
    Ok(Played { failures, figures, stored })
}

/// Checks that the session is compacted again: no compaction that failed holds its place.
fn check_compaction(chat: &Session, shared: &Shared) -> Result<()> {
    let before = chat.compactions()?.len();
    let mut appended = 0;
    while appended < OVERFILL {
        let message = shared.message();
        appended += message.tokens();
        chat.append(message)?;
    }
    if chat.compactions()?.len() == before {
        shared.failed(format!("no compaction after {appended} tokens: {}", chat.window_usage()?));
    }
    Ok(())
}

/// Checks that nothing is lost, damaged or locked.
fn check(store: &Store, chat: &Session, shared: &Arc<Shared>) -> Result<()> {
    let mut present = HashSet::new();
    for message in chat.all_messages() {
        present.insert(message?.id.to_string());
    }
    let acknowledged = locked(&shared.acknowledged).clone();
    let lost = acknowledged.iter().filter(|id| !present.contains(*id)).count();
    if lost > 0 {
        shared.failed(format!("{lost} acknowledged messages are lost"));
    }
    chat.append(Message::user("afterwards"))?;
    chat.context().set("note", "afterwards")?;
    chat.context().append("note", "afterwards")?;
    chat.context().set_document("skills", &Document::new("pdf", "afterwards"))?;
    let usage = chat.window_usage()?;
    let visible = chat.visible_tokens()?;
    if usage.total != usage.prompt + usage.tools + visible {
        shared.failed(format!("{usage}, but {visible} visible tokens"));
    }
    let counter = Source(Arc::clone(shared));
    let counted: u64 = chat.history()?.iter().map(|it| counter.count(it) as u64).sum();
    if visible != counted {
        shared.failed(format!("{visible} visible tokens, and {counted} by the counter that works"));
    }
    check_compaction(chat, shared)?;
    for damage in store.verify(|_| {})?.damages {
        shared.failed(format!("{}: {}", damage.kind, damage.what));
    }
    for entry in std::fs::read_dir(shared.folder.path())? {
        let name = entry?.file_name();
        if name.to_string_lossy().ends_with(".partial") {
            shared.failed(format!("{name:?} is left behind"));
        }
    }
    Ok(())
}
