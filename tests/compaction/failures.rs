//! A failure during automatic compaction leaves the conversation unchanged and the append acknowledged, and is reported.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::common::{self, Scratch, drawn};
use crate::tables::Tables;
use serde_json::json;
use talktree::{
    Block, BoxError, Change, CompactionOptions, Durability, Error, Message, Phase, Result, Session,
    SessionBuilder, Store, Subscription, TokenCounter,
};

/// The token limit of these sessions; a message has 24, so 17 messages exceed it.
const THRESHOLD: u64 = 400;

type Answer = std::result::Result<String, BoxError>;

fn message(id: impl std::fmt::Display) -> Message {
    Message::user(format!("<{id}> {}", "word ".repeat(14))).with_id(id.to_string())
}

fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(48)
}

/// What a session reported: to its handler and its subscribers, and how often its summarizer was called.
#[derive(Clone, Default)]
struct Observed {
    errors: Arc<Mutex<Vec<String>>>,
    changes: Arc<Mutex<Vec<Change>>>,
    asked: Arc<AtomicUsize>,
}

/// Locks shared data; some of these tests panic while the lock is held.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    fn handler(&self) -> impl Fn(&Error) + Send + Sync + use<> {
        let errors = Arc::clone(&self.errors);
        move |error| locked(&errors).push(error.to_string())
    }

    fn subscribe(&self, chat: &Session) -> Subscription {
        let changes = Arc::clone(&self.changes);
        chat.subscribe(move |event| locked(&changes).push(event.change.clone()))
    }

    fn summarizer(
        &self,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> impl Summarize {
        let asked = Arc::clone(&self.asked);
        move |prompt: &str| {
            asked.fetch_add(1, Ordering::SeqCst);
            answer(prompt)
        }
    }

    /// Returns the errors since the last call.
    fn errors(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.errors))
    }

    fn changes(&self) -> Vec<Change> {
        std::mem::take(&mut *locked(&self.changes))
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }
}

trait Summarize: Fn(&str) -> Answer + Send + Sync + 'static {}
impl<F: Fn(&str) -> Answer + Send + Sync + 'static> Summarize for F {}

fn builder(store: &Store, observed: &Observed) -> SessionBuilder {
    let builder = store.session_builder("s").compact_after(THRESHOLD).compaction_options(options());
    builder.on_error(observed.handler())
}

fn window(phase: Phase, tokens: u64) -> Change {
    Change::Window { phase, tokens, threshold: Some(THRESHOLD) }
}

fn appended(id: &str) -> Change {
    Change::Append { ids: vec![id.into()] }
}

#[test]
fn each_failure_of_a_summarizer_is_reported_once_and_retried_when_the_window_has_grown()
-> Result<()> {
    type Answering = fn() -> Answer;
    let cases: [(Answering, &str); 8] = [
        (|| Err("out of credit".into()), "the summarizer failed: out of credit"),
        (
            || Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in 30 s").into()),
            "the summarizer failed: no answer in 30 s",
        ),
        (|| panic!("lost its key"), "the summarizer failed: it panicked: lost its key"),
        (|| panic!("lost {}", 7), "the summarizer failed: it panicked: lost 7"),
        (|| std::panic::panic_any(7), "the summarizer failed: it panicked: no message"),
        (|| Ok(" \u{200B}\n".to_owned()), "a summary needs text; the one given is blank"),
        (
            || Ok("word ".repeat(300)),
            "the summary (394 tokens) is not shorter than what it replaces (336)",
        ),
        // Few tokens, but more bytes than this store allows.
        (|| Ok("x".repeat(600)), "a summary is 600 bytes, over the store's limit of 500"),
    ];
    for (answer, why) in cases {
        let folder = common::folder()?;
        let store = Store::options().durability(Durability::Normal).max_message_bytes(500);
        let store = store.open(folder.path().join("talk.db"))?;
        let (observed, is_well) = (Observed::default(), Arc::new(AtomicBool::new(false)));
        let summarizer = {
            let is_well = Arc::clone(&is_well);
            observed.summarizer(move |_| {
                if is_well.load(Ordering::SeqCst) { Ok("short".into()) } else { answer() }
            })
        };
        let chat = builder(&store, &observed).summarizer(summarizer).open()?;
        chat.append_all((0..16).map(message))?;
        let _subscription = observed.subscribe(&chat);

        assert!(chat.append(message(16))?.is_new);
        assert_eq!((observed.asked(), observed.errors()), (1, vec![why.to_owned()]));
        let (idle, busy) = (window(Phase::Idle, 408), window(Phase::Compacting, 408));
        let failed = Change::CompactionFailed { why: why.to_owned() };
        assert_eq!(observed.changes(), [appended("16"), idle.clone(), busy, idle, failed]);
        assert_eq!((chat.history()?.len(), chat.compactions()?.len()), (17, 0));

        // The window has grown by less than a twentieth of the threshold.
        chat.append(Message::user("yes").with_id("17"))?;
        assert_eq!((observed.asked(), observed.errors().len()), (0, 0));
        assert_eq!(observed.changes(), [appended("17"), window(Phase::Idle, 414)]);
        chat.append(message(18))?;
        // The plan replaces two messages more now.
        let why = why.replace("replaces (336)", "replaces (384)");
        assert_eq!((observed.asked(), observed.errors()), (1, vec![why]));
        is_well.store(true, Ordering::SeqCst);
        chat.append(message(19))?;
        assert_eq!((observed.asked(), observed.errors().len()), (1, 0));
        assert_eq!(chat.history()?[1].text(), "short");
        assert_eq!(chat.raw_history()?.len(), 20);
        assert_eq!(store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

/// After a successful first step, the retry waited until the window was as large as before that step.
#[test]
fn a_failure_after_some_steps_is_retried_from_the_window_it_left() -> Result<()> {
    let scratch = Scratch::new()?;
    let observed = Observed::default();
    let count = AtomicUsize::new(0);
    let summarizer = observed.summarizer(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        1 => Err("too many requests".into()),
        n => Ok(format!("summary {n}")),
    });
    let small_steps = options().max_step_tokens(120);
    let chat = builder(&scratch.store, &observed).compaction_options(small_steps);
    let chat = chat.summarizer(summarizer).open()?;
    let _subscription = observed.subscribe(&chat);
    chat.append_all((0..40).map(message))?;

    assert_eq!(observed.errors(), ["the summarizer failed: too many requests"]);
    assert_eq!(observed.asked(), 2);
    let compaction = chat.compactions()?.remove(0);
    let left = 40 * 24 - 5 * 24 + compaction.tokens_after;
    assert_eq!(chat.visible_tokens()?, left);
    let expected = [
        window(Phase::Idle, 960),
        window(Phase::Compacting, 960),
        Change::Compact {
            id: compaction.id,
            messages: 5,
            tokens_before: 5 * 24,
            tokens_after: compaction.tokens_after,
        },
        window(Phase::Idle, left),
        window(Phase::Compacting, left),
        window(Phase::Idle, left),
        Change::CompactionFailed { why: "the summarizer failed: too many requests".to_owned() },
    ];
    assert_eq!(observed.changes()[1..], expected);
    chat.append(message(40))?;
    assert!(observed.asked() > 1 && chat.visible_tokens()? <= THRESHOLD);
    assert_eq!(observed.errors(), [""; 0]);
    Ok(())
}

#[test]
fn a_failure_of_the_storage_is_reported_and_the_append_remains() -> Result<()> {
    let folder = common::folder()?;
    let path = folder.path().join("talk.db");
    let options = Store::options().durability(Durability::Normal);
    let store = options.busy_timeout(Duration::from_millis(20)).open(&path)?;
    let observed = Observed::default();
    // Another program locks the store while the summarizer runs, and does not release it.
    let tables = Tables::of(&path);
    let other = Arc::new(Mutex::new(tables.locker()));
    let holder = Arc::clone(&other);
    let chat = builder(&store, &observed).summarizer(observed.summarizer(move |_| {
        holder.lock().unwrap().lock();
        Ok("short".into())
    }));
    let chat = chat.open()?;
    chat.append_all((0..16).map(message))?;
    assert!(chat.append(message(16))?.is_new);
    let errors = observed.errors();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("the store is busy"), "{errors:?}");
    other.lock().unwrap().unlock();
    assert_eq!((chat.history()?.len(), chat.compactions()?.len()), (17, 0));

    // A message can no longer be read.
    tables.run("UPDATE message SET parts = '[{' WHERE id = '5'");
    observed.asked();
    assert!(chat.append(message(17))?.is_new);
    let errors = observed.errors();
    assert_eq!((errors.len(), observed.asked()), (1, 0));
    assert!(errors[0].starts_with("the store is damaged"), "{errors:?}");
    assert!(chat.message(&"17".into())?.is_some());
    Ok(())
}

#[test]
fn a_session_removed_or_cleared_during_a_compaction_stays_so() -> Result<()> {
    for is_removed in [true, false] {
        let scratch = Scratch::new()?;
        let (observed, store) = (Observed::default(), scratch.store.clone());
        let chat = builder(&scratch.store, &observed).summarizer(observed.summarizer(move |_| {
            if is_removed {
                store.remove(&"s".into())?
            } else {
                store.session("s")?.clear()?
            };
            Ok("short".into())
        }));
        let chat = chat.open()?;
        chat.append_all((0..17).map(message))?;
        let why = match is_removed {
            true => "session \"s\" was removed; a new handle of this id begins a new session",
            false => "the plan is stale: message \"1\" was deleted",
        };
        assert_eq!(observed.errors(), [why]);
        assert_eq!((chat.info()?.is_some(), chat.history()?), (!is_removed, vec![]));
        if is_removed {
            let refused = chat.append(message("again"));
            assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
            continue;
        }
        assert!(chat.append(message("again"))?.is_new);
        assert_eq!((chat.visible_tokens()?, chat.history()?.len()), (24, 1));
    }
    Ok(())
}

#[test]
fn a_window_that_cannot_be_shortened_is_reported_once_until_it_is_within_the_threshold()
-> Result<()> {
    let scratch = Scratch::new()?;
    let observed = Observed::default();
    let chat = scratch.store.session_builder("s").compact_after(100);
    let chat =
        chat.compaction_options(CompactionOptions::default().keep_recent_tokens(0).min_tail(1));
    let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into()))).open()?;
    let _subscription = observed.subscribe(&chat);
    let stuck = |text: &str| -> Result<Option<String>> {
        chat.append(Message::user(text))?;
        Ok(observed.changes().into_iter().find_map(|change| match change {
            Change::CannotShorten { tokens, threshold, why } => {
                assert_eq!((tokens, threshold), (134, 100));
                Some(why)
            }
            _ => None,
        }))
    };
    // Each message exceeds the threshold; the first three are the head, and the last is the tail.
    let long = "word ".repeat(100);
    let short = "the view has 1 messages; at least 5 are needed to compact any".to_owned();
    assert_eq!(stuck(&long)?, Some(short.clone()));
    for _ in 0..5 {
        assert_eq!(stuck(&long)?, None);
    }
    // Everything between head and tail was compacted all the same.
    assert_eq!((observed.asked(), chat.raw_history()?.len(), chat.history()?.len()), (2, 6, 5));

    chat.clear()?;
    assert_eq!(stuck("within")?, None);
    chat.clear()?;
    assert_eq!(stuck(&long)?, Some(short));
    Ok(())
}

#[test]
fn compacting_needs_a_summarizer() -> Result<()> {
    let store = Store::open_in_memory()?;
    let answer = store.session_builder("s").compact_after(10).open();
    assert!(matches!(answer, Err(Error::NoSummarizer { session }) if session.as_str() == "s"));
    let chat = store.session("s")?;
    chat.append_all((0..9).map(message))?;
    let to = "2".into();
    for answer in [
        chat.compact().map(drop),
        chat.at(&to).compact().map(drop),
        chat.checkout_summarized(&to).map(drop),
    ] {
        assert!(matches!(answer, Err(Error::NoSummarizer { .. })), "{answer:?}");
    }
    assert_eq!((chat.head()?, chat.history()?.len()), (Some("8".into()), 9));
    Ok(())
}

/// Returns the same count for everything.
struct Always(&'static str, f64);

impl TokenCounter for Always {
    fn name(&self) -> &str {
        self.0
    }

    fn count_text(&self, _: &str) -> f64 {
        self.1
    }

    fn count(&self, _: &Message) -> f64 {
        self.1
    }
}

#[test]
fn counts_and_thresholds_of_any_size_are_accepted() -> Result<()> {
    let most = u64::from(u32::MAX);
    for (name, count, each) in
        [("none", 0.0, 0), ("a little", f64::MIN_POSITIVE, 1), ("most", f64::from(u32::MAX), most)]
    {
        for threshold in [0, 1, most, u64::MAX] {
            let store = Store::open_in_memory()?;
            let observed = Observed::default();
            let all = CompactionOptions::default().keep_recent_tokens(0).max_step_tokens(u64::MAX);
            let chat = store.session_builder("s").compact_after(threshold).compaction_options(all);
            let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into())));
            let chat = chat.on_error(observed.handler());
            let chat = chat.token_counter(Always(name, count)).open()?;
            for n in 0..12 {
                assert!(chat.append(message(n))?.is_new);
                assert_eq!(chat.visible_tokens()?, chat.history()?.len() as u64 * each);
            }
            let usage = chat.window_usage()?;
            assert_eq!(usage.total, chat.visible_tokens()? + each);
            // If all messages have the same count, a summary of one message is not shorter.
            let is_harmless = |error: &String| error.contains("is not shorter than");
            assert!(observed.errors().iter().all(is_harmless), "{name} over {threshold}");
            let is_over = 12 * each > threshold;
            assert_eq!(
                (observed.asked() > 0, chat.history()?.len() < 12),
                (is_over, is_over),
                "{name}"
            );
        }
    }
    Ok(())
}

#[test]
fn options_of_any_size_are_accepted() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    chat.append_all((0..12).map(message))?;
    let base = || CompactionOptions::default().keep_recent_tokens(0);
    for (options, expected) in [
        (base().protect_head(usize::MAX), None),
        (base().protect_head(0), Some((0, 9))),
        (base().min_tail(usize::MAX), None),
        (base().min_tail(0), Some((3, 10))),
        (base().keep_recent_tokens(u64::MAX), None),
        (base().max_step_tokens(0), Some((3, 3))),
        (base().max_step_tokens(u64::MAX), Some((3, 9))),
        (base().max_tool_chars(0), Some((3, 9))),
        (base().max_tool_chars(usize::MAX), Some((3, 9))),
        (base().target_share(f64::NAN), Some((3, 9))),
        (base().target_share(f64::INFINITY), Some((3, 9))),
        (base().min_summary_tokens(u64::MAX), Some((3, 9))),
    ] {
        let found = match chat.plan_compaction(&options)? {
            Ok(plan) => {
                assert!(plan.expected_total() <= plan.usage().total, "{options:?}");
                let place = |id: &talktree::MessageId| id.as_str().parse::<usize>().unwrap();
                Some((place(plan.first()), place(plan.last())))
            }
            Err(_) => None,
        };
        assert_eq!(found, expected, "{options:?}");
        let observed = Observed::default();
        let store = Store::open_in_memory()?;
        let automatic = builder(&store, &observed).compaction_options(options.clone());
        let automatic = automatic.summarizer(observed.summarizer(|_| Ok("short".into()))).open()?;
        automatic.append_all((0..30).map(message))?;
        assert_eq!(
            (observed.errors(), automatic.raw_history()?.len()),
            (vec![], 30),
            "{options:?}"
        );
        assert_eq!(observed.asked() > 0, expected.is_some(), "{options:?}");
    }
    Ok(())
}

/// Counts letters; while it is broken, it panics on the word "boom".
#[derive(Clone, Default)]
struct Fragile(Arc<AtomicBool>);

impl Fragile {
    fn set_broken(&self, is_broken: bool) {
        self.0.store(is_broken, Ordering::SeqCst);
    }
}

impl TokenCounter for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn count_text(&self, text: &str) -> f64 {
        assert!(!(text.contains("boom") && self.0.load(Ordering::SeqCst)), "cannot count this");
        text.len() as f64 / 4.0
    }
}

fn tokens(chat: &Session) -> Result<u64> {
    let each = |message: &Message| Fragile::default().count(message).ceil() as u64;
    Ok(chat.history()?.iter().map(each).sum())
}

/// A panic of the counter lost the append, and left the session uncompacted.
#[test]
fn a_counter_that_panics_fails_no_verb() -> Result<()> {
    let scratch = Scratch::new()?;
    let (observed, counter) = (Observed::default(), Fragile::default());
    // These rows were counted by the default estimate and must be recounted.
    scratch.store.session("s")?.append_all((0..12).map(message))?;
    scratch.store.session("s")?.append(Message::user("boom").with_id("boom"))?;
    let chat = builder(&scratch.store, &observed).token_counter(counter.clone());
    let chat = chat.summarizer(observed.summarizer(|_| Ok("boom, shortly".into()))).open()?;

    counter.set_broken(true);
    let fragile = "the token counter \"fragile\" failed: it panicked: cannot count this";
    // All rows but one are counted.
    let estimate = Message::user("boom").tokens();
    let exact = Fragile::default().count(&Message::user("boom")).ceil() as u64;
    assert_eq!(chat.visible_tokens()?, tokens(&chat)? - exact + estimate);
    assert_eq!(observed.errors(), [fragile]);
    assert!(chat.append(Message::user("boom again").with_id("again"))?.is_new);
    assert!(chat.update(Message::user("boom 2").with_id("3"))?.is_changed);
    assert!(chat.plan_compaction(&options())?.is_ok());
    assert_eq!(
        (chat.history()?.len(), chat.message(&"3".into())?.unwrap().text()),
        (14, "boom 2".into())
    );
    assert!(observed.errors().iter().all(|error| error == fragile));

    counter.set_broken(false);
    assert_eq!(chat.visible_tokens()?, tokens(&chat)?);
    chat.append_all((12..15).map(message))?;
    assert_eq!((chat.visible_tokens()?, observed.asked()), (tokens(&chat)?, 0));

    // The counter panics during an automatic compaction, which goes on with the estimate.
    counter.set_broken(true);
    chat.append_all((15..20).map(message))?;
    assert_eq!((chat.compactions()?.len(), chat.raw_history()?.len()), (1, 22));
    assert!(observed.errors().iter().all(|error| error == fragile));
    counter.set_broken(false);
    chat.append(message(20))?;
    assert_eq!(chat.visible_tokens()?, tokens(&chat)?);
    assert_eq!((observed.errors(), scratch.store.verify(|_| {})?.damages), (vec![], vec![]));
    Ok(())
}

#[test]
fn a_read_only_store_can_plan_and_count_but_not_compact() -> Result<()> {
    let scratch = Scratch::new()?;
    scratch.store.session("s")?.append_all((0..20).map(message))?;
    let path = scratch.folder.path().join("talk.db");
    let store = Store::open_read_only(&path)?;
    let observed = Observed::default();
    let chat = builder(&store, &observed).summarizer(observed.summarizer(|_| Ok("short".into())));
    let chat = chat.token_counter(Fragile::default()).open()?;

    assert_eq!(chat.visible_tokens()?, tokens(&chat)?);
    assert_eq!(chat.window_usage()?.total, tokens(&chat)?);
    assert!(matches!(chat.append(message("x")), Err(Error::ReadOnly)));
    let Ok(plan) = chat.plan_compaction(&options())? else { panic!("nothing to compact") };
    assert!(matches!(chat.commit(plan, "short"), Err(Error::ReadOnly)));
    assert!(matches!(chat.compact(), Err(Error::ReadOnly)));
    assert!(matches!(chat.checkout_summarized(&"3".into()), Err(Error::ReadOnly)));
    assert!(matches!(chat.compact_and_split("short"), Err(Error::ReadOnly)));
    assert_eq!((chat.history()?.len(), chat.head()?), (20, Some("19".into())));
    // The handler gets only the errors of automatic compactions.
    assert_eq!(observed.errors(), [""; 0]);
    Ok(())
}

#[test]
fn a_growing_prompt_counts_in_the_window() -> Result<()> {
    let scratch = Scratch::new()?;
    let observed = Observed::default();
    let plain = scratch.store.session_builder("plain").block("memory", Block::stored()).open()?;
    let tools = plain.request_tokens()?.tools;
    let threshold = THRESHOLD + tools;
    let chat = builder(&scratch.store, &observed).block("memory", Block::stored());
    let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into())));
    let chat = chat.compact_after(threshold).open()?;
    chat.append_all((0..10).map(message))?;
    let small = chat.window_usage()?;
    assert_eq!((small.total - small.prompt, observed.asked()), (240 + tools, 0));

    chat.context().set("memory", &"word ".repeat(120))?;
    let prompt = talktree::estimate_tokens(&chat.prompt()?);
    assert!(prompt > 160 && prompt < 240, "{prompt}");
    let _subscription = observed.subscribe(&chat);
    chat.append(message(10))?;
    let tokens = 264 + prompt + tools;
    let idle = Change::Window { phase: Phase::Idle, tokens, threshold: Some(threshold) };
    assert_eq!(observed.changes()[1], idle);
    assert_eq!((observed.asked(), chat.history()?[1].text()), (1, "short".to_owned()));
    let usage = chat.window_usage()?;
    assert_eq!((usage.prompt, usage.total), (prompt, prompt + tools + chat.visible_tokens()?));

    // A prompt that fills the window is not a failure of the summarizer.
    chat.context().set("memory", &"word ".repeat(400))?;
    chat.prompt()?;
    observed.changes();
    chat.append_all((11..14).map(message))?;
    let stuck =
        observed.changes().into_iter().filter(|it| matches!(it, Change::CannotShorten { .. }));
    assert_eq!((stuck.count(), observed.errors()), (1, vec![]));
    Ok(())
}

#[test]
fn an_unreadable_prompt_is_reported_once_and_retried_when_the_window_has_grown() -> Result<()> {
    let scratch = Scratch::new()?;
    let (observed, tried) = (Observed::default(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&tried);
    let far = Block::from_fn(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Err("out of reach".into())
    });
    let chat = builder(&scratch.store, &observed).block("far", far);
    let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into()))).open()?;
    // A twentieth of the threshold is 20 tokens: less than one message of 24, more than two short ones.
    chat.append(message(0))?;
    assert_eq!((tried.swap(0, Ordering::SeqCst), observed.errors().len()), (1, 1));
    chat.append(Message::user("a word"))?;
    chat.append(Message::user("a word"))?;
    assert_eq!((tried.swap(0, Ordering::SeqCst), observed.errors()), (0, vec![]));
    chat.append(message(1))?;
    assert_eq!((tried.swap(0, Ordering::SeqCst), observed.errors().len()), (1, 1));
    assert_eq!(chat.raw_history()?.len(), 4);
    Ok(())
}

#[test]
fn only_a_compaction_refreshes_a_frozen_prompt() -> Result<()> {
    let scratch = Scratch::new()?;
    let observed = Observed::default();
    let is_well = Arc::new(AtomicBool::new(false));
    let summarizer = {
        let is_well = Arc::clone(&is_well);
        observed.summarizer(move |_| match is_well.load(Ordering::SeqCst) {
            true => Ok("short".into()),
            false => Err("not now".into()),
        })
    };
    let open = || {
        let chat = builder(&scratch.store, &observed).block("memory", Block::stored());
        chat.cached_prompt()
    };
    let chat = open().summarizer(summarizer).open()?;
    let other = open().summarizer(|_: &str| -> Answer { Ok("short".into()) }).open()?;
    let frozen = chat.prompt()?;
    chat.context().set("memory", "Likes coffee.")?;
    chat.append_all((0..20).map(message))?;
    assert_eq!(
        (observed.asked(), chat.prompt()?),
        (1, frozen.clone()),
        "a failure changes nothing"
    );
    is_well.store(true, Ordering::SeqCst);
    chat.append(message(20))?;
    assert_eq!(observed.asked(), 1);
    let refreshed = chat.prompt()?;
    assert!(refreshed.contains("Likes coffee.") && !frozen.contains("Likes coffee."));
    assert_eq!(other.prompt()?, refreshed);
    other.context().set("memory", "Likes tea.")?;
    assert_eq!(other.prompt()?, refreshed);
    Ok(())
}

#[test]
fn a_summarizer_and_a_handler_may_write_to_the_session() -> Result<()> {
    let scratch = Scratch::new()?;
    let observed = Observed::default();
    let slot: Arc<Mutex<Option<Session>>> = Arc::default();
    let (of_model, of_handler) = (Arc::clone(&slot), Arc::clone(&slot));
    let write = |slot: &Mutex<Option<Session>>, id: &str| {
        let chat = slot.lock().unwrap().clone().unwrap();
        chat.append(message(id)).map(drop)
    };
    let observed_too = observed.clone();
    let chat = scratch.store.session_builder("s").compact_after(THRESHOLD);
    let chat = chat
        .compaction_options(options())
        .summarizer(observed.summarizer(move |_| {
            write(&of_model, "by the summarizer")?;
            Err("out of credit".into())
        }))
        .on_error(move |error| {
            observed_too.handler()(error);
            write(&of_handler, "by the handler").unwrap();
        })
        .open()?;
    *slot.lock().unwrap() = Some(chat.clone());
    chat.append_all((0..17).map(message))?;
    // The handler's own append exceeds the threshold, and the window has grown, so there is one retry.
    let path = drawn(&chat.raw_history()?);
    assert!(path.ends_with("15 16 by the summarizer by the handler"), "{path}");
    assert_eq!(observed.errors(), ["the summarizer failed: out of credit"; 2]);
    assert_eq!(observed.asked(), 2);
    *slot.lock().unwrap() = None;
    Ok(())
}

#[test]
fn the_model_and_details_of_a_summary_are_stored() -> Result<()> {
    let store = Store::open_in_memory()?;
    let summarize = |_: &str| -> std::result::Result<talktree::Summary, BoxError> {
        Ok(talktree::Summary::new("short").by("small-1").details(json!({"cost": 0.5})))
    };
    let chat = store.session_builder("s").summarizer(summarize).compaction_options(options());
    let chat = chat.open()?;
    chat.append_all((0..17).map(message))?;
    let Ok(compacted) = chat.compact()? else { panic!("nothing to compact") };
    let compaction = chat.compaction(&compacted.id)?;
    assert_eq!(compaction.model.as_deref(), Some("small-1"));
    assert_eq!(compaction.details.map(|json| json.value()), Some(json!({"cost": 0.5})));
    assert_eq!(
        (compaction.tokens_before, compaction.tokens_after),
        (compacted.tokens_before, compacted.tokens_after)
    );
    Ok(())
}

#[test]
fn without_a_size_for_the_tail_a_compaction_leaves_room_below_the_threshold() -> Result<()> {
    for options in [
        CompactionOptions::default().protect_head(1),
        CompactionOptions::default().target_share(0.1),
        CompactionOptions::default().max_step_tokens(10_000),
    ] {
        let store = Store::open_in_memory()?;
        let chat = store
            .session_builder("s")
            .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("They said words.") })
            .compact_after(2_000)
            .compaction_options(options)
            .open()?;
        for _ in 0..100 {
            chat.append(Message::user("word ".repeat(50)))?;
            assert!(chat.visible_tokens()? <= 2_000);
        }
    }
    Ok(())
}

#[test]
fn a_head_longer_than_the_threshold_does_not_call_the_summarizer_each_turn() -> Result<()> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .summarizer(move |_: &str| -> Result<&str, BoxError> {
            count.fetch_add(1, Ordering::Relaxed);
            Ok("They said words.")
        })
        .compact_after(2_000)
        .open()?;
    let stuck = Arc::new(AtomicUsize::new(0));
    let observed = Arc::clone(&stuck);
    let _subscription = chat.subscribe(move |event| {
        if matches!(event.change, Change::CannotShorten { .. }) {
            observed.fetch_add(1, Ordering::Relaxed);
        }
    });
    chat.append(Message::user("word ".repeat(3_000)))?;
    for _ in 0..400 {
        chat.append(Message::user("word ".repeat(10)))?;
    }
    // 400 messages of 17 tokens grow by 500 tokens 14 times.
    let asked = asked.load(Ordering::Relaxed);
    assert!((1..=14).contains(&asked), "{asked}");
    assert_eq!(stuck.load(Ordering::Relaxed), 1);
    assert!(chat.visible_tokens()? < 3_904 + 1_000 + 500 + 100);
    Ok(())
}

#[test]
fn a_handler_that_panics_does_not_fail_the_append() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store
        .session_builder("s")
        .summarizer(|_: &str| -> Result<String, BoxError> { Err("out of credit".into()) })
        .compact_after(300)
        .on_error(|_| panic!("the handler fails"))
        .open()?;
    assert_eq!(chat.append_all((1..=9).map(|_| Message::user("word ".repeat(50))))?.len(), 9);
    assert_eq!(chat.history()?.len(), 9);
    Ok(())
}

/// Appends messages until the summarizer is asked, and returns how many.
fn appends_until_asked(options: CompactionOptions, first: Message) -> Result<usize> {
    let store = Store::open_in_memory()?;
    let observed = Observed::default();
    let chat = store.session_builder("s").compact_after(1_000).compaction_options(options);
    let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into()))).open()?;
    chat.append(first)?;
    for n in 2..=100 {
        chat.append(Message::user("a word"))?;
        if observed.asked() > 0 {
            assert!(chat.visible_tokens()? <= 1_000);
            return Ok(n);
        }
    }
    Ok(usize::MAX)
}

/// A first message over the threshold cannot be compacted while it is in the tail. Then the next attempt waited until the
/// window had grown by a quarter of the threshold: 37 messages.
#[test]
fn a_history_that_could_not_be_shortened_is_compacted_as_soon_as_it_can_be() -> Result<()> {
    let long = || Message::user("word ".repeat(997)); // 1 301 tokens
    let options = || CompactionOptions::default().protect_head(0);
    assert_eq!(appends_until_asked(options().min_tail(1), long())?, 2);
    assert_eq!(appends_until_asked(options(), long())?, 3);
    assert_eq!(appends_until_asked(options().min_tail(5), long())?, 6);
    // The tail has room for eight messages of 7 tokens beside the first one.
    let tail = options().keep_recent_tokens(1_360);
    assert_eq!(appends_until_asked(tail, long())?, 10);
    Ok(())
}

/// What is not an append can make a plan possible, too.
#[test]
fn a_change_of_the_history_ends_the_wait_for_growth() -> Result<()> {
    type Work = fn(&Session) -> Result<()>;
    let cases: [(&str, Work); 3] = [
        ("update", |chat| chat.update(message("1")).map(drop)),
        ("delete", |chat| chat.delete([&"1".into()]).map(drop)),
        ("another branch", |chat| chat.checkout(&"0".into())),
    ];
    for (name, work) in cases {
        let store = Store::open_in_memory()?;
        let observed = Observed::default();
        // Two messages at the head are protected; the second alone exceeds the threshold.
        let options = options().protect_head(2);
        let chat = builder(&store, &observed).compaction_options(options);
        let chat = chat.summarizer(observed.summarizer(|_| Ok("short".into()))).open()?;
        chat.append(message("0"))?;
        chat.append(Message::user("word ".repeat(600)).with_id("1"))?;
        chat.append_all((2..5).map(message))?;
        observed.asked();
        work(&chat)?;
        chat.append_all((10..24).map(message))?;
        chat.append_all((24..27).map(message))?;
        assert!(observed.asked() > 0, "{name}");
        assert!(chat.visible_tokens()? <= THRESHOLD, "{name}");
    }
    Ok(())
}

/// A summarizer waited for a thread that compacted its session, whose summarizer did the same: neither ever ended, until
/// there was no memory for another thread.
#[test]
fn a_summarizer_that_compacts_its_own_session_is_refused() -> Result<()> {
    type Call = fn(&Session) -> Result<()>;
    let calls: [(&str, Call); 3] = [
        ("compact", |chat| chat.compact().map(drop)),
        ("compact a path", |chat| chat.at(&"7".into()).compact().map(drop)),
        ("check out with a summary", |chat| chat.checkout_summarized(&"1".into()).map(drop)),
    ];
    for (outer, start) in calls {
        for (inner, call) in calls {
            let store = Store::open_in_memory()?;
            let chat: Arc<OnceLock<Session>> = Arc::default();
            let (inside, asked) = (Arc::clone(&chat), Arc::new(AtomicUsize::new(0)));
            let times = Arc::clone(&asked);
            let summarizer = move |_: &str| -> Result<&'static str, BoxError> {
                assert!(times.fetch_add(1, Ordering::SeqCst) == 0, "{outer}: {inner} asked again");
                let chat = inside.get().unwrap();
                let answer = thread::scope(|scope| scope.spawn(|| call(chat)).join().unwrap());
                assert!(
                    matches!(&answer, Err(Error::CompactionInProgress { session }) if session == chat.id()),
                    "{inner} in {outer}: {answer:?}"
                );
                // An append goes on without a compaction.
                chat.append(Message::user("meanwhile"))?;
                Ok("Short.")
            };
            let options = CompactionOptions::default().keep_recent_tokens(0);
            let opened = store.session_builder("s").summarizer(summarizer);
            let opened = opened.compaction_options(options).open()?;
            opened.append_all((0..9).map(message))?;
            let chat = chat.get_or_init(|| opened);
            match start(chat) {
                Ok(()) | Err(Error::HeadMoved { .. }) => {}
                Err(error) => return Err(error),
            }
            assert_eq!(asked.load(Ordering::SeqCst), 1, "{outer}");
            // The next one may begin.
            let again = store
                .session_builder("s")
                .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("Again.") });
            let _ = again.open()?.compact()?;
        }
    }
    Ok(())
}
