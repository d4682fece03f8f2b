//! A summarizer that runs while others write: its summary is committed if the range is unchanged and refused otherwise,
//! and nobody waits for it.
//!
//! The summarizers wait on a channel, so the order of events is certain. [`child`] is what the child processes run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::process::{Other, say, task};
use crate::common::{Scratch, drawn};
use talktree::{
    BoxError, Change, CompactionId, CompactionOptions, Error, Message, MessageId, Result, Session,
    SessionBuilder, Stale, Store, TokenCounter,
};

/// The token limit of these sessions; a message has 24.
const THRESHOLD: u64 = 400;
/// The time limit of a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer = std::result::Result<String, BoxError>;

/// The test's end of a summarizer that waits.
struct Model {
    asked: Receiver<String>,
    answer: Sender<Answer>,
    count: Arc<AtomicUsize>,
}

impl Model {
    /// Returns both ends; the second one is the summarizer.
    fn new() -> (Self, impl Fn(&str) -> Answer + Send + Sync + Clone + use<>) {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let count = Arc::new(AtomicUsize::new(0));
        let asks = Arc::clone(&count);
        let ends = Arc::new((Mutex::new(ask), Mutex::new(answers)));
        let summarize = move |prompt: &str| -> Answer {
            asks.fetch_add(1, Ordering::SeqCst);
            let (ask, answers) = &*ends;
            let Ok(answers) = answers.try_lock() else { return Err("it is busy".into()) };
            ask.lock().unwrap().send(prompt.to_owned())?;
            answers.recv_timeout(PATIENCE)?
        };
        (Self { asked, answer, count }, summarize)
    }

    /// Waits until the summarizer is called; returns the prompt.
    fn is_asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }

    fn answers(&self, text: &str) {
        self.answer.send(Ok(text.to_owned())).unwrap();
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

/// Returns a message of 24 tokens that contains its id.
fn message(id: impl std::fmt::Display) -> Message {
    Message::user(format!("<{id}.0> {}", "word ".repeat(14))).with_id(id.to_string())
}

fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(48)
}

fn builder(store: &Store, id: &str) -> SessionBuilder {
    store.session_builder(id).compact_after(THRESHOLD).compaction_options(options())
}

fn plain(store: &Store) -> Result<Session> {
    store.session("s")
}

/// Returns a session that is one message below its threshold: 0 ..= 15.
fn filled(store: &Store) -> Result<Session> {
    let chat = plain(store)?;
    chat.append_all((0..16).map(message))?;
    assert!(chat.visible_tokens()? <= THRESHOLD);
    Ok(chat)
}

/// The errors that a session reported to its handler.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    fn handler(&self) -> impl Fn(&Error) + Send + Sync + use<> {
        let errors = self.clone();
        move |error| errors.0.lock().unwrap().push(error.to_string())
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn while_a_summarizer_runs_appends_return_and_no_other_summarizer_is_called() -> Result<()> {
    let scratch = Scratch::new()?;
    filled(&scratch.store)?;
    let (model, summarize) = Model::new();
    let chat = builder(&scratch.store, "s").summarizer(summarize.clone()).open()?;
    let other = builder(&scratch.store, "s").summarizer(summarize).open()?;
    thread::scope(|scope| -> Result<()> {
        let slow = scope.spawn(|| chat.append(message(16)));
        let prompt = model.is_asked();
        assert!(prompt.contains("<1.0>") && !prompt.contains("<16.0>"));
        // All of them exceed the threshold and return before the summarizer does.
        for n in 17..40 {
            let writer = if n % 2 == 0 { &other } else { &chat.clone() };
            assert!(writer.append(message(n))?.is_new);
            assert!(writer.visible_tokens()? > THRESHOLD);
        }
        assert_eq!((model.count(), slow.is_finished()), (1, false));
        model.answers("from 1 to 14");
        assert!(slow.join().unwrap()?.is_new);
        Ok(())
    })?;
    assert_eq!(model.count(), 1);
    let compaction = &chat.compactions()?[0];
    assert_eq!(
        (compaction.first.as_str(), compaction.last.as_str(), compaction.count),
        ("1", "14", 14)
    );
    let expected = (15..40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(drawn(&chat.history()?), format!("0 {} {expected}", compaction.id.as_message()));
    assert_eq!(chat.raw_history()?.len(), 40);
    Ok(())
}

fn update(chat: &Session, id: &str) -> Result<()> {
    chat.update(Message::user("other").with_id(id)).map(drop)
}

/// What others do while the summarizer runs, and why its summary is refused then; `None` if it is committed.
#[test]
fn a_change_of_the_range_while_the_summarizer_runs_is_a_refusal_with_its_reason() -> Result<()> {
    type Work = fn(&Session, &CompactionId) -> Result<()>;
    type Why = fn(CompactionId) -> Stale;
    let cases: [(&str, Work, Option<Why>); 9] = [
        ("append", |chat, _| chat.append(message("x")).map(drop), None),
        ("branch", |chat, _| chat.append_to(&"5".into(), message("x")).map(drop), None),
        ("checkout", |chat, _| chat.checkout(&"2".into()), None),
        ("delete behind", |chat, _| chat.delete([&"18".into()]).map(drop), None),
        ("update before", |chat, _| update(chat, "0"), None),
        (
            "delete",
            |chat, _| chat.delete([&"9".into()]).map(drop),
            Some(|_| Stale::Deleted { id: "9".into() }),
        ),
        ("update", |chat, _| update(chat, "9"), Some(|_| Stale::Updated { id: "9".into() })),
        (
            "remove the compaction inside",
            |chat, inner| chat.remove_compaction(inner),
            Some(|id| Stale::CompactionRemoved { id }),
        ),
        // A compaction covers that message already, so no view changes.
        ("delete inside a compaction", |chat, _| chat.delete([&"2".into()]).map(drop), None),
    ];
    for (name, work, why) in cases {
        let scratch = Scratch::new()?;
        let other = filled(&scratch.store)?;
        let inner = other.add_compaction("from 1 to 3", &"1".into(), &"3".into())?.id;
        other.append_all((16..19).map(message))?;
        let (model, summarize) = Model::new();
        let errors = Errors::default();
        let chat =
            builder(&scratch.store, "s").summarizer(summarize).on_error(errors.handler()).open()?;
        thread::scope(|scope| -> Result<()> {
            let slow = scope.spawn(|| chat.append(message(19)));
            model.is_asked();
            scope.spawn(|| work(&other, &inner)).join().unwrap()?;
            assert!(!slow.is_finished());
            model.answers("the new one");
            assert!(slow.join().unwrap()?.is_new);
            Ok(())
        })?;
        let made: Vec<_> = chat.compactions()?.into_iter().filter(|it| it.id != inner).collect();
        match why {
            None => {
                assert_eq!(errors.all(), [""; 0], "{name}");
                assert_eq!(made[0].nested, [inner], "{name}");
                let view = chat.at(&"17".into()).history()?;
                assert_eq!(view[1].text(), "the new one", "{name}");
            }
            Some(why) => {
                let why = Error::Stale { why: why(inner) };
                assert_eq!(errors.all(), [why.to_string()], "{name}");
                assert_eq!(made, [], "{name}");
            }
        }
        assert_eq!(scratch.store.verify(|_| {})?.damages, [], "{name}");
    }
    Ok(())
}

#[test]
fn of_two_compactions_of_one_range_the_first_is_committed() -> Result<()> {
    let scratch = Scratch::new()?;
    let other = filled(&scratch.store)?;
    let (model, summarize) = Model::new();
    let errors = Errors::default();
    let chat = builder(&scratch.store, "s").summarizer(summarize);
    let chat = chat.on_error(errors.handler()).open()?;
    let by = thread::scope(|scope| -> Result<CompactionId> {
        let slow = scope.spawn(|| chat.append(message(16)));
        model.is_asked();
        let Ok(plan) = other.plan_compaction(&options())? else { panic!("nothing") };
        let first = other.commit(plan, "the first")?;
        model.answers("the second");
        slow.join().unwrap()?;
        Ok(first.id)
    })?;
    let why = Stale::Compacted { by };
    assert_eq!(errors.all(), [Error::Stale { why }.to_string()]);
    assert_eq!(chat.history()?[1].text(), "the first");
    assert_eq!(chat.compactions()?.len(), 1);
    Ok(())
}

/// A compaction that was removed right after its commit made the commit return an error.
#[test]
fn committing_succeeds_if_the_compaction_is_removed_at_once() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = filled(&scratch.store)?;
    let other = chat.clone();
    let _subscription = chat.subscribe(move |event| {
        if let Change::Compact { id, .. } = &event.change {
            other.remove_compaction(id).unwrap();
        }
    });
    let Ok(plan) = chat.plan_compaction(&options())? else { panic!("nothing") };
    // The result describes the moment of the commit.
    assert!(chat.commit(plan, "gone at once")?.is_shown());
    assert_eq!((chat.history()?.len(), chat.compactions()?.len()), (16, 0));
    Ok(())
}

/// A counter that runs a hook when it counts the summary, once; it is called between two transactions.
struct Overtaken(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl TokenCounter for Overtaken {
    fn name(&self) -> &str {
        "overtaken"
    }

    fn count_text(&self, text: &str) -> f64 {
        let hook = self.0.lock().unwrap().take_if(|_| text == "the summary");
        if let Some(hook) = hook {
            hook();
        }
        text.len() as f64
    }
}

/// Two handles counted at once while a message grew: the later count stored the older figure.
#[test]
fn an_outdated_count_is_not_stored() -> Result<()> {
    let scratch = Scratch::new()?;
    let open =
        |hook| scratch.store.session_builder("s").token_counter(Overtaken(Mutex::new(hook))).open();
    let other = open(None)?;
    other.append_all((0..5).map(message))?;
    other.add_compaction("the summary", &"1".into(), &"2".into())?;
    let meanwhile = other.clone();
    let hook = move || {
        meanwhile.visible_tokens().unwrap();
        meanwhile.update(Message::user("a longer one ".repeat(20)).with_id("4")).unwrap();
    };
    let chat = open(Some(Box::new(hook)))?;
    let counted = chat.visible_tokens()?;
    let seen: u64 = other
        .history()?
        .iter()
        .map(|message| Overtaken(Mutex::default()).count(message) as u64)
        .sum();
    assert_eq!((counted, other.visible_tokens()?), (seen, seen));
    Ok(())
}

#[test]
fn sessions_compact_at_the_same_time() -> Result<()> {
    const SESSIONS: usize = 4;
    let scratch = Scratch::new()?;
    let (ask, asked) = channel();
    let mut releases = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for n in 0..SESSIONS {
            let (release, word) = channel::<()>();
            let (ask, word) = (Mutex::new(ask.clone()), Mutex::new(word));
            releases.push(release);
            let summarize = move |_: &str| -> Answer {
                ask.lock().unwrap().send(n)?;
                word.lock().unwrap().recv_timeout(PATIENCE)?;
                Ok(format!("of {n}"))
            };
            let chat = builder(&scratch.store, &n.to_string()).summarizer(summarize).open()?;
            threads.push(scope.spawn(move || -> Result<Session> {
                chat.append_all((0..20).map(message))?;
                Ok(chat)
            }));
        }
        // All summarizers run at the same time.
        let thinking: BTreeSet<usize> =
            (0..SESSIONS).map(|_| asked.recv_timeout(PATIENCE).unwrap()).collect();
        assert_eq!(thinking.len(), SESSIONS);
        for release in &releases {
            release.send(()).unwrap();
        }
        for (n, thread) in threads.into_iter().enumerate() {
            let chat = thread.join().unwrap()?;
            assert_eq!(chat.history()?[1].text(), format!("of {n}"));
            assert!(chat.visible_tokens()? <= THRESHOLD);
        }
        Ok(())
    })
}

/// Returns the marks `<id.version>` of the messages and summaries that a prompt quotes.
fn marks(prompt: &str) -> BTreeSet<String> {
    let starts = prompt.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    let marks = starts.map(|(mark, _)| mark.to_owned());
    marks.filter(|mark| mark.contains('.')).collect()
}

/// Counts every message the same, so that a long list of marks counts as short.
struct Flat;

impl TokenCounter for Flat {
    fn name(&self) -> &str {
        "flat"
    }

    fn count_text(&self, text: &str) -> f64 {
        if text.is_empty() { 0.0 } else { 24.0 }
    }

    fn count(&self, _: &Message) -> f64 {
        24.0
    }
}

/// What was done to messages, with the compactions that covered them at that time.
#[derive(Default)]
struct Log {
    updated: HashMap<String, HashSet<CompactionId>>,
    deleted: HashMap<String, HashSet<CompactionId>>,
    /// Removed compactions, with those that existed afterwards.
    removed: HashMap<CompactionId, HashSet<CompactionId>>,
}

/// Each summary lists what it was made from. With the log of what covered each message when it was updated or deleted,
/// it is known at the end whether a compaction covers anything else.
#[test]
fn among_many_writers_no_compaction_covers_what_it_was_not_made_from() -> Result<()> {
    const EACH: usize = 60;
    let scratch = Scratch::new()?;
    let log = Mutex::new(Log::default());
    let names = Arc::new(AtomicUsize::new(0));
    let summarizer = {
        let names = Arc::clone(&names);
        move |prompt: &str| -> Answer {
            thread::yield_now();
            let made_of: Vec<String> =
                marks(prompt).into_iter().map(|it| it.replace('.', ":")).collect();
            Ok(format!("<s{}.0> {}", names.fetch_add(1, Ordering::SeqCst), made_of.join(",")))
        }
    };
    let open = || {
        let builder = builder(&scratch.store, "s").summarizer(summarizer.clone());
        builder.token_counter(Flat).open()
    };
    let is_over = AtomicBool::new(false);
    let committed = AtomicUsize::new(0);
    thread::scope(|scope| -> Result<()> {
        let mut writers = Vec::new();
        for thread in 0..2 {
            let chat = open()?;
            writers.push(scope.spawn(move || -> Result<()> {
                (0..EACH * 2)
                    .try_for_each(|n| chat.append(message(format!("{thread}-{n}"))).map(drop))
            }));
        }
        let chat = open()?;
        let log = &log;
        writers.push(scope.spawn(move || -> Result<()> {
            let mut changed = HashSet::new();
            for n in 0..EACH {
                let path = chat.raw_history()?;
                // Near the end: messages that are compacted soon or right now.
                let place = path.len().saturating_sub(4 + n % 9);
                let Some(message) = path.get(place) else { continue };
                let id = message.id.to_string();
                if !changed.insert(id.clone()) {
                    continue;
                }
                if n % 3 == 0 {
                    let deleted = chat.delete([&message.id])?;
                    let over = deleted.covered_by.into_iter().chain(deleted.compactions_gone);
                    log.lock().unwrap().deleted.insert(id, over.collect());
                } else {
                    let text = message.text().replace(".0>", ".1>");
                    let updated = chat.update(Message::user(text).with_id(id.as_str()))?;
                    log.lock()
                        .unwrap()
                        .updated
                        .insert(id, updated.covered_by.into_iter().collect());
                }
            }
            Ok(())
        }));
        let chat = open()?;
        writers.push(scope.spawn(move || -> Result<()> {
            for _ in 0..EACH {
                let shown = chat.history()?;
                let shown = shown.iter().rev().find_map(|it| CompactionId::from_message(&it.id));
                let Some(id) = shown else { continue };
                match chat.remove_compaction(&id) {
                    Ok(()) => {
                        let left = chat.compactions()?.into_iter().map(|it| it.id).collect();
                        log.lock().unwrap().removed.insert(id, left);
                    }
                    // The compaction has disappeared with the messages it covered.
                    Err(Error::UnknownCompaction { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }));
        let compacting: Vec<_> = (0..2).map(|_| open()).collect::<Result<_>>()?;
        let (is_over, committed) = (&is_over, &committed);
        let compacting = compacting.into_iter().map(|chat| {
            scope.spawn(move || -> Result<()> {
                // On a busy machine the writers may end before any summary is stored.
                while !is_over.load(Ordering::SeqCst) || committed.load(Ordering::SeqCst) == 0 {
                    match chat.compact() {
                        Ok(Ok(_)) => {
                            committed.fetch_add(1, Ordering::SeqCst);
                        }
                        // By this counter a summary of one message is as long as the message.
                        Ok(Err(_))
                        | Err(
                            Error::Stale { .. }
                            | Error::SummaryRefused { .. }
                            | Error::CompactionInProgress { .. },
                        ) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            })
        });
        let compacting: Vec<_> = compacting.collect();
        let answers: Vec<_> = writers.into_iter().map(|thread| thread.join().unwrap()).collect();
        is_over.store(true, Ordering::SeqCst);
        let compacted = compacting.into_iter().map(|thread| thread.join().unwrap());
        answers.into_iter().chain(compacted).collect()
    })?;
    assert!(committed.into_inner() > 0);
    check_summaries(&scratch.store, &log.into_inner().unwrap())
}

fn check_summaries(store: &Store, log: &Log) -> Result<()> {
    let chat = plain(store)?;
    let all = chat.compactions()?;
    for compaction in &all {
        let (_, list) = compaction.summary.split_once("> ").unwrap();
        let made_of: HashMap<&str, &str> =
            list.split(',').filter_map(|mark| mark.split_once(':')).collect();
        for (id, version) in &made_of {
            if let Some(over) = log.deleted.get(*id) {
                assert!(over.contains(&compaction.id), "{id} was deleted before {compaction:?}");
            }
            if let Some(over) = log.updated.get(*id).filter(|_| *version == "0") {
                assert!(over.contains(&compaction.id), "{id} was updated before {compaction:?}");
            }
        }
        for (id, left) in log.removed.iter().filter(|(id, _)| compaction.nested.contains(id)) {
            assert!(left.contains(&compaction.id), "{id:?} was removed before {compaction:?}");
        }
        for item in chat.expand(&compaction.id)? {
            // Where a nested compaction was removed meanwhile, its contents are visible.
            let is_below = |id: &MessageId| made_of.contains_key(id.as_str());
            if compaction.nested.is_empty() && CompactionId::from_message(&item.id).is_none() {
                assert!(is_below(&item.id), "{} is covered by {compaction:?}", item.id);
            }
        }
    }
    let raw: usize = chat.raw_history()?.len();
    assert_eq!(raw + log.deleted.len(), 4 * 60);
    let seen: u64 = chat.history()?.iter().map(Message::tokens).sum();
    assert_eq!(chat.visible_tokens()?, seen);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((task, path)) = task() else { return Ok(()) };
    let store = Store::open(path)?;
    match task.split_once(' ').unwrap_or((&task, "")) {
        ("think", _) => think(&store),
        ("talk", name) => talk(&store, name),
        other => panic!("unknown task: {other:?}"),
    }
}

/// Compacts once; the parent process sends the summary.
fn think(store: &Store) -> Result<()> {
    let summarize = |_: &str| -> Answer {
        say("asked");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    };
    let chat = builder(store, "s").summarizer(summarize);
    let chat = chat.on_error(|error| say(format!("refused: {error}"))).open()?;
    chat.append(message("child"))?;
    say("appended");
    Ok(())
}

/// Appends, and compacts above the threshold.
fn talk(store: &Store, name: &str) -> Result<()> {
    let own = name.to_owned();
    let summarize = move |prompt: &str| Answer::Ok(format!("{} of {own}", marks(prompt).len()));
    let chat = builder(store, "s").summarizer(summarize);
    let chat = chat.on_error(|error| say(format!("refused: {error}"))).open()?;
    for n in 0..100 {
        chat.append(message(format!("{name}-{n}")))?;
    }
    Ok(())
}

fn store_with_child(task: &str) -> Result<(Scratch, Session, Other)> {
    let scratch = Scratch::new()?;
    let chat = filled(&scratch.store)?;
    let child = Other::start(task, &path_of(&scratch))?;
    Ok((scratch, chat, child))
}

fn path_of(scratch: &Scratch) -> std::path::PathBuf {
    Path::new(scratch.folder.path()).join("talk.db")
}

#[test]
fn the_summarizer_of_another_process_blocks_nobody_and_its_summary_is_refused_if_stale()
-> Result<()> {
    type Work = fn(&Session) -> Result<()>;
    let cases: [(Work, &str); 3] = [
        (|chat| chat.append(message("x")).map(drop), ""),
        (
            |chat| chat.delete([&"9".into()]).map(drop),
            "refused: the plan is stale: message \"9\" was deleted",
        ),
        (
            |chat| chat.add_compaction("mine", &"3".into(), &"15".into()).map(drop),
            "refused: the plan is stale: the range was compacted into the summary",
        ),
    ];
    for (work, refused) in cases {
        let (scratch, chat, mut child) = store_with_child("think")?;
        assert_eq!(child.hear().as_deref(), Some("asked"));
        work(&chat)?;
        child.tell("from the child");
        let lines = child.wait();
        let is_added = chat.history()?[1].text() == "from the child";
        match refused {
            "" => assert_eq!((lines, is_added), (vec!["appended".to_owned()], true)),
            _ => {
                assert!(lines[0].starts_with(refused), "{lines:?}");
                assert_eq!((lines[1].as_str(), lines.len(), is_added), ("appended", 2, false));
            }
        }
        assert!(chat.message(&"child".into())?.is_some());
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn processes_that_compact_one_conversation_lose_none_of_its_messages() -> Result<()> {
    let scratch = Scratch::new()?;
    let names = ["a", "b"];
    let path = path_of(&scratch);
    let children: Vec<Other> = names
        .iter()
        .map(|name| Other::start(&format!("talk {name}"), &path))
        .collect::<Result<_>>()?;
    for line in children.into_iter().flat_map(Other::wait) {
        assert!(line.starts_with("refused: the plan is stale"), "{line}");
    }
    let chat = plain(&scratch.store)?;
    let raw = chat.raw_history()?;
    assert_eq!(raw.len(), 200);
    for name in names {
        let own = raw.iter().filter_map(|it| it.id.as_str().strip_prefix(&format!("{name}-")));
        assert!(own.map(|n| n.parse::<u32>().unwrap()).eq(0..100));
    }
    let view = chat.history()?;
    let tokens: u64 = view.iter().map(Message::tokens).sum();
    assert_eq!(chat.visible_tokens()?, tokens);
    // Each may have skipped a compaction because the other one was compacting.
    assert!(tokens <= THRESHOLD + 100 * 24 && view.len() < 200, "{tokens} tokens are left");
    let shown = chat.compactions()?.pop().unwrap();
    assert_eq!(chat.expand_raw(&shown.id)?.len() as u64, shown.count);
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}
