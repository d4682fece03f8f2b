//! Callbacks of every kind may panic, block, and call the library, from their own thread and from another. The verb
//! reports correctly whether it completed, no lock stays held, and the error handler gets what no verb returns.
//!
//! Providers once ran under locks of their block: one that called its own block waited for itself forever. A panic of a
//! provider in an automatic compaction made the append look failed.

mod bench;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use bench::{Bench, Kind, Outcome, Verb, cases, locked};
use talktree::{
    Block, BoxError, Change, Document, Error, Message, ReadProvider, Result, Session, Store,
};

/// How long a case may take; a deadlock takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

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
fn after_a_panic_of_a_callback_the_verb_has_its_outcome_and_nothing_is_locked() {
    for (verb, kind, work, outcome) in cases() {
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

/// Accepts that a compaction is stale, because a callback has changed the history.
fn done_or_stale(answer: Result<()>) -> Result<()> {
    match answer {
        Err(Error::Stale { .. }) => Ok(()),
        answer => answer,
    }
}

#[test]
fn a_callback_may_call_every_verb_from_its_own_thread() {
    for (verb, kind, work, _) in cases() {
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
fn a_callback_may_wait_for_another_thread_that_calls_every_verb() {
    for (verb, kind, work, _) in cases() {
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
    for (verb, kind, work, _) in cases() {
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

/// Each callback called another until the stack overflowed, which ends the process.
#[test]
fn a_callback_that_calls_itself_without_end_is_refused() {
    type Call = fn(&Session) -> Result<()>;
    let cases: [(Kind, Call, Verb); 11] = [
        (Kind::Listener, append_inside, |it| it.append()),
        (Kind::Counter, append_inside, |it| it.append()),
        (Kind::Counter, |chat| chat.visible_tokens().map(drop), |it| it.update()),
        (Kind::Summarizer, |chat| chat.compact().map(drop), |it| it.overfill()),
        (Kind::Policy, |chat| chat.compact().map(drop), |it| it.overfill()),
        (Kind::Executor, append_inside, |it| it.overfill()),
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
