//! Automatic compaction on an executor of the program: no append waits for a summary, whatever the executor does with a
//! job is harmless, and each failure is reported once.
//!
//! The executors and summarizers of these tests wait on channels, so the order of events is certain. [`child`] is what the
//! child process runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::common::process::{Other, say, task};
use crate::common::{Scratch, drawn};
use crate::tables::Tables;
use talktree::{
    BoxError, Change, CompactionOptions, Error, Message, Phase, Result, Session, SessionBuilder,
    Store,
};

/// The token limit of these sessions; a message has 24, so 17 messages exceed it.
const THRESHOLD: u64 = 400;
/// The time limit of a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const DROPPED: &str =
    "the executor of compactions failed: it dropped a compaction without running it";

type Answer = std::result::Result<String, BoxError>;

fn message(id: impl std::fmt::Display) -> Message {
    Message::user(format!("<{id}> {}", "word ".repeat(14))).with_id(id.to_string())
}

fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(48)
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a builder whose summaries are "short".
fn builder(store: &Store) -> SessionBuilder {
    store
        .session_builder("s")
        .compact_after(THRESHOLD)
        .compaction_options(options())
        .summarizer(|_: &str| Answer::Ok("short".into()))
}

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait until the test runs or drops them.
#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Vec<Job>>>);

impl Queue {
    fn executor(&self) -> impl Fn(Job) + Send + Sync + use<> {
        let jobs = Arc::clone(&self.0);
        move |job| locked(&jobs).push(job)
    }

    fn len(&self) -> usize {
        locked(&self.0).len()
    }

    fn take(&self) -> Job {
        locked(&self.0).pop().expect("a job")
    }
}

/// The errors that a session reported to its handler.
#[derive(Clone, Default)]
struct Errors(Arc<Mutex<Vec<String>>>);

impl Errors {
    fn handler(&self) -> impl Fn(&Error) + Send + Sync + use<> {
        let errors = Arc::clone(&self.0);
        move |error| locked(&errors).push(error.to_string())
    }

    /// Returns the errors since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.0))
    }
}

/// A summarizer in another thread that waits for the test.
struct Model {
    asked: Receiver<String>,
    answer: Sender<Answer>,
    /// Receives a word when a job has ended.
    ended: Receiver<()>,
    /// How many jobs the executor was given.
    jobs: Arc<AtomicUsize>,
}

impl Model {
    /// Gives a builder the summarizer, and an executor that starts a thread for each job.
    fn on(builder: SessionBuilder) -> (Self, SessionBuilder) {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        let (end, ended) = channel();
        let ends = (Mutex::new(ask), Mutex::new(answers));
        let summarize = move |prompt: &str| -> Answer {
            locked(&ends.0).send(prompt.to_owned())?;
            locked(&ends.1).recv_timeout(PATIENCE)?
        };
        let jobs = Arc::new(AtomicUsize::new(0));
        let given = Arc::clone(&jobs);
        let execute = move |job: Job| {
            given.fetch_add(1, Ordering::SeqCst);
            let end = end.clone();
            thread::spawn(move || {
                job();
                let _ = end.send(());
            });
        };
        (Self { asked, answer, ended, jobs }, builder.summarizer(summarize).compact_on(execute))
    }

    fn is_asked(&self) -> String {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }

    fn answers(&self, answer: Answer) {
        self.answer.send(answer).unwrap();
        self.ended.recv_timeout(PATIENCE).unwrap();
    }
}

fn appends(chat: &Session, ids: std::ops::Range<usize>) -> Result<()> {
    ids.map(message).try_for_each(|message| {
        assert!(chat.append(message)?.is_new);
        Ok(())
    })
}

#[test]
fn an_append_returns_before_the_summary_and_later_messages_are_not_in_it() -> Result<()> {
    let scratch = Scratch::new()?;
    let errors = Errors::default();
    let (model, chat) = Model::on(builder(&scratch.store).on_error(errors.handler()));
    let chat = chat.open()?;
    appends(&chat, 0..17)?;
    let prompt = model.is_asked();
    assert!(prompt.contains("<14>") && !prompt.contains("<15>"));
    appends(&chat, 17..25)?;
    assert_eq!(chat.history()?.len(), 25);
    assert_eq!(model.jobs.load(Ordering::SeqCst), 1, "no other job begins while one runs");

    model.answers(Ok("from 1 to 14".into()));
    let id = chat.compactions()?.remove(0).id;
    let rest = (15..25).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(drawn(&chat.history()?), format!("0 {} {rest}", id.as_message()));
    assert_eq!((chat.raw_history()?.len(), errors.take()), (25, vec![]));
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_session_has_one_job_at_a_time_across_its_handles_and_stores_in_a_process() -> Result<()> {
    let scratch = Scratch::new()?;
    let queue = Queue::default();
    let again = Store::open(scratch.folder.path().join("talk.db"))?;
    let handles = [
        builder(&scratch.store).compact_on(queue.executor()).open()?,
        builder(&scratch.store).compact_on(queue.executor()).open()?,
        builder(&again).compact_on(queue.executor()).open()?,
    ];
    for n in 0..60 {
        handles[n % 3].append(message(n))?;
        assert_eq!(queue.len(), usize::from(n >= 16), "{n}");
    }
    // Another session has a job of its own.
    let other = scratch.store.session_builder("t").compact_after(THRESHOLD);
    let other = other.compaction_options(options()).compact_on(queue.executor());
    let other = other.summarizer(|_: &str| Answer::Ok("short".into())).open()?;
    appends(&other, 0..17)?;
    assert_eq!(queue.len(), 2);
    queue.take()();
    assert!(other.visible_tokens()? <= THRESHOLD);

    // The job reads the history when it runs.
    queue.take()();
    assert_eq!(chat_of(&handles[0])?, (60, 1, 4));
    appends(&handles[1], 60..80)?;
    assert_eq!(queue.len(), 1);
    Ok(())
}

/// Returns how many messages are stored, how many summaries there are, and how many items are visible.
fn chat_of(chat: &Session) -> Result<(usize, usize, usize)> {
    Ok((chat.raw_history()?.len(), chat.compactions()?.len(), chat.history()?.len()))
}

#[test]
fn a_failed_job_is_reported_once_and_retried_when_the_window_has_grown() -> Result<()> {
    type Answering = fn() -> Answer;
    let cases: [(Answering, &str); 4] = [
        (|| Err("out of credit".into()), "the summarizer failed: out of credit"),
        (|| panic!("lost its key"), "the summarizer failed: it panicked: lost its key"),
        (|| Ok(" \n".to_owned()), "a summary needs text; the one given is blank"),
        (
            || Ok("word ".repeat(300)),
            "the summary (394 tokens) is not shorter than what it replaces (336)",
        ),
    ];
    for (answer, why) in cases {
        let store = Store::open_in_memory()?;
        let (queue, errors) = (Queue::default(), Errors::default());
        let changes = Arc::new(Mutex::new(Vec::new()));
        let chat = builder(&store).compact_on(queue.executor()).on_error(errors.handler());
        let chat = chat.summarizer(move |_: &str| answer()).open()?;
        appends(&chat, 0..17)?;
        assert_eq!(errors.take(), [""; 0]);
        let heard = Arc::clone(&changes);
        let _subscription = chat.subscribe(move |event| locked(&heard).push(event.change.clone()));
        queue.take()();
        assert_eq!(errors.take(), [why]);
        let window = |phase| Change::Window { phase, tokens: 408, threshold: Some(THRESHOLD) };
        let failed = Change::CompactionFailed { why: why.to_owned() };
        let expected = [window(Phase::Compacting), window(Phase::Idle), failed];
        assert_eq!(*locked(&changes), expected);

        // The window has grown by less than a twentieth of the threshold.
        chat.append(Message::user("yes"))?;
        assert_eq!(queue.len(), 0);
        chat.append(message(18))?;
        assert_eq!(queue.len(), 1);
        assert_eq!(chat_of(&chat)?, (19, 0, 19));
    }
    Ok(())
}

#[test]
fn a_range_that_changes_while_a_job_runs_makes_it_stale_once() -> Result<()> {
    let scratch = Scratch::new()?;
    let errors = Errors::default();
    let (model, chat) = Model::on(builder(&scratch.store).on_error(errors.handler()));
    let chat = chat.open()?;
    appends(&chat, 0..17)?;
    model.is_asked();
    chat.delete([&"9".into()])?;
    model.answers(Ok("too late".into()));
    assert_eq!(errors.take(), ["the plan is stale: message \"9\" was deleted"]);
    assert_eq!(chat.compactions()?, []);

    // The next one sees the range as it is.
    appends(&chat, 17..18)?;
    assert!(!model.is_asked().contains("<9>"));
    model.answers(Ok("short".into()));
    assert_eq!((errors.take(), chat.history()?.len()), (vec![], 4));
    Ok(())
}

/// What an executor does with the job, and which failure is reported.
#[test]
fn whatever_an_executor_does_the_append_succeeds_and_the_next_job_comes() -> Result<()> {
    type Execute = fn(Job, &Queue);
    let panicked = "the executor of compactions failed: it panicked: no thread left";
    let cases: [(&str, Execute, &[&str], usize); 6] = [
        ("drops it", |job, _| drop(job), &[DROPPED], 0),
        ("panics with it", |_job, _| panic!("no thread left"), &[panicked], 0),
        (
            "panics after it ran",
            |job, _| {
                job();
                panic!("no thread left")
            },
            &[panicked],
            1,
        ),
        (
            "panics after it was queued",
            |job, queue| {
                locked(&queue.0).push(job);
                panic!("no thread left")
            },
            &[panicked],
            0,
        ),
        (
            "drops it in another thread",
            |job, _| thread::spawn(move || drop(job)).join().unwrap(),
            &[DROPPED],
            0,
        ),
        ("runs it", |job, _| job(), &[], 1),
    ];
    for (name, execute, expected, compactions) in cases {
        let store = Store::open_in_memory()?;
        let (errors, calls, queue) =
            (Errors::default(), Arc::new(AtomicUsize::new(0)), Queue::default());
        let (count, jobs) = (Arc::clone(&calls), queue.clone());
        let chat = builder(&store).on_error(errors.handler()).compact_on(move |job| {
            match count.fetch_add(1, Ordering::SeqCst) {
                0 => execute(job, &jobs),
                _ => job(),
            }
        });
        let chat = chat.open()?;
        appends(&chat, 0..17)?;
        assert_eq!(errors.take(), expected, "{name}");
        assert_eq!(chat.compactions()?.len(), compactions, "{name}");
        if queue.len() > 0 {
            queue.take()();
            assert_eq!(chat.compactions()?.len(), 1, "{name}");
        }
        // After a failure the window grows by a twentieth of the threshold before the next attempt.
        appends(&chat, 17..35)?;
        assert!(calls.load(Ordering::SeqCst) > 1, "{name}");
        assert!(chat.visible_tokens()? <= THRESHOLD, "{name}");
        assert_eq!((errors.take(), chat.raw_history()?.len()), (vec![], 35), "{name}");
    }
    Ok(())
}

#[test]
fn a_job_that_is_dropped_later_is_a_failure_too() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (queue, errors) = (Queue::default(), Errors::default());
    let chat = builder(&store).compact_on(queue.executor()).on_error(errors.handler()).open()?;
    appends(&chat, 0..17)?;
    assert_eq!(errors.take(), [""; 0]);
    drop(queue.take());
    assert_eq!(errors.take(), [DROPPED]);
    // The window has grown by less than a twentieth of the threshold.
    chat.append(Message::user("yes"))?;
    assert_eq!(queue.len(), 0);

    // A worker that panics drops its job while it unwinds.
    appends(&chat, 17..18)?;
    let job = queue.take();
    let worker = thread::spawn(move || {
        let _job = job;
        std::panic::resume_unwind(Box::new("the worker ends"));
    });
    assert!(worker.join().is_err());
    assert_eq!(errors.take(), [DROPPED]);
    appends(&chat, 18..19)?;
    queue.take()();
    assert_eq!((errors.take(), chat_of(&chat)?), (vec![], (20, 1, 4)));
    Ok(())
}

/// Returns the events of a conversation.
fn events_of(chat: SessionBuilder) -> Result<Vec<String>> {
    let chat = chat.open()?;
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let _subscription = chat.subscribe(move |event| {
        locked(&heard).push(match &event.change {
            // The ids differ.
            Change::Compact { messages, tokens_before, tokens_after, .. } => {
                format!("compact {messages} {tokens_before} {tokens_after}")
            }
            other => format!("{other:?}"),
        });
    });
    appends(&chat, 0..60)?;
    Ok(std::mem::take(&mut *locked(&events)))
}

#[test]
fn an_executor_that_runs_the_job_at_once_is_the_same_as_none() -> Result<()> {
    let in_place = events_of(builder(&Store::open_in_memory()?))?;
    let inline = events_of(builder(&Store::open_in_memory()?).compact_on(|job| job()))?;
    assert_eq!(in_place, inline);
    assert!(in_place.iter().any(|event| event.starts_with("compact ")));
    Ok(())
}

#[test]
fn an_executor_may_use_the_session() -> Result<()> {
    let store = Store::open_in_memory()?;
    let queue = Queue::default();
    let (jobs, other) = (queue.executor(), store.session("s")?);
    let chat = builder(&store).compact_on(move |job| {
        other.append(Message::user("from the executor")).unwrap();
        assert!(other.history().unwrap().len() > 17);
        jobs(job);
    });
    let chat = chat.open()?;
    appends(&chat, 0..17)?;
    queue.take()();
    assert_eq!(chat_of(&chat)?, (18, 1, 4));
    Ok(())
}

#[test]
fn a_job_that_is_run_when_nothing_is_left_to_do_does_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (queue, errors) = (Queue::default(), Errors::default());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let chat = builder(&store).compact_on(queue.executor()).on_error(errors.handler());
    let chat = chat.summarizer(move |_: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        Answer::Ok("short".into())
    });
    let chat = chat.open()?;
    appends(&chat, 0..17)?;
    // While the job waits, `compact` does its work.
    assert!(chat.compact()?.is_ok());
    queue.take()();
    assert_eq!((asked.load(Ordering::SeqCst), errors.take()), (1, vec![]));
    assert_eq!(chat_of(&chat)?, (17, 1, 4));
    Ok(())
}

#[test]
fn compact_while_a_job_asks_its_model_makes_the_job_stale() -> Result<()> {
    let scratch = Scratch::new()?;
    let errors = Errors::default();
    let (model, chat) = Model::on(builder(&scratch.store).on_error(errors.handler()));
    let chat = chat.open()?;
    let other = builder(&scratch.store).open()?;
    appends(&chat, 0..17)?;
    model.is_asked();
    assert!(other.compact()?.is_ok());
    model.answers(Ok("too late".into()));
    let heard = errors.take();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].starts_with("the plan is stale: the range was compacted into"), "{heard:?}");
    assert_eq!(chat.history()?[1].text(), "short");
    // The window is within its threshold, so nothing waits.
    appends(&chat, 17..31)?;
    model.is_asked();
    model.answers(Ok("the next".into()));
    assert_eq!((errors.take(), chat.history()?[1].text().as_str()), (vec![], "the next"));
    Ok(())
}

#[test]
fn a_job_of_a_removed_session_does_nothing_and_keeps_no_new_session_waiting() -> Result<()> {
    let scratch = Scratch::new()?;
    let (queue, errors) = (Queue::default(), Errors::default());
    let open =
        || builder(&scratch.store).compact_on(queue.executor()).on_error(errors.handler()).open();
    let old = open()?;
    appends(&old, 0..17)?;
    let late = queue.take();
    scratch.store.remove(&"s".into())?;
    let new = open()?;
    appends(&new, 0..17)?;
    // The job of the old session has not ended, and may never end.
    queue.take()();
    assert_eq!(chat_of(&new)?, (17, 1, 4));
    late();
    assert_eq!(chat_of(&new)?, (17, 1, 4));
    let removed = "session \"s\" was removed; a new handle of this id begins a new session";
    assert_eq!(errors.take(), [removed]);
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_job_keeps_the_store_open_until_it_has_run() -> Result<()> {
    let scratch = Scratch::new()?;
    let path = scratch.folder.path().join("talk.db");
    let tables = Tables::of(&path);
    let Scratch { store, folder: _folder, .. } = scratch;
    let queue = Queue::default();
    let chat = builder(&store).compact_on(queue.executor()).open()?;
    appends(&chat, 0..17)?;
    drop((chat, store));
    assert!(tables.is_open());
    queue.take()();
    assert!(!tables.is_open());

    let store = Store::open(&path)?;
    assert_eq!(chat_of(&store.session("s")?)?, (17, 1, 4));
    // Dropped instead, it lets go of the store, too.
    let queue = Queue::default();
    let chat = builder(&store).compact_on(queue.executor()).open()?;
    appends(&chat, 17..33)?;
    drop((chat, store));
    drop(queue.take());
    assert!(!tables.is_open());
    Ok(())
}

#[test]
fn a_job_that_never_ends_blocks_nobody() -> Result<()> {
    let scratch = Scratch::new()?;
    let errors = Errors::default();
    let (model, chat) = Model::on(builder(&scratch.store).on_error(errors.handler()));
    let chat = chat.open()?;
    let plain = scratch.store.session_builder("s").compaction_options(options());
    let plain = plain.summarizer(|_: &str| Answer::Ok("short".into())).open()?;
    appends(&chat, 0..17)?;
    model.is_asked();
    appends(&chat, 17..40)?;
    chat.update(Message::user("other").with_id("3"))?;
    assert!(plain.compact()?.is_ok());
    assert_eq!(chat.history()?.len(), 4);
    // To drop the store does not wait for the job.
    drop((chat, plain, scratch.store));
    assert!(model.ended.try_recv().is_err());
    Ok(())
}

/// Runs the task of a child process; does nothing as a test.
#[test]
fn child() -> Result<()> {
    let Some((_, path)) = task() else { return Ok(()) };
    let store = Store::open(path)?;
    let (end, ended) = channel();
    let chat = builder(&store).summarizer(|_: &str| -> Answer {
        say("asked");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    });
    let chat = chat.compact_on(move |job| {
        let end = end.clone();
        thread::spawn(move || {
            job();
            let _ = end.send(());
        });
    });
    let chat = chat.on_error(|error| say(format!("refused: {error}"))).open()?;
    chat.append(message("child"))?;
    say("appended");
    ended.recv_timeout(PATIENCE).unwrap();
    for n in 0..5 {
        chat.append(message(format!("child-{n}")))?;
    }
    Ok(())
}

#[test]
fn of_two_processes_the_later_job_is_stale_and_says_so_once() -> Result<()> {
    let scratch = Scratch::new()?;
    let chat = builder(&scratch.store).compact_on(|job| job()).open()?;
    appends(&chat, 0..16)?;
    let mut child = Other::start("compact", &scratch.folder.path().join("talk.db"))?;
    let heard = [child.hear(), child.hear()].map(Option::unwrap_or_default);
    assert!(heard.contains(&"asked".to_owned()) && heard.contains(&"appended".to_owned()));
    // This process compacts the same range first.
    chat.append(message(16))?;
    assert_eq!(chat.history()?[1].text(), "short");
    child.tell("from the child");
    let lines = child.wait();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("refused: the plan is stale: the range was compacted"),
        "{lines:?}"
    );
    assert_eq!(chat_of(&chat)?.0, 23);
    assert_eq!(chat.compactions()?.len(), 1);
    assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    Ok(())
}
