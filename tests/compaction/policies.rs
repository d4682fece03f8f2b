//! A policy of the program chooses the range and writes its summary, held to the rules of talktree's own; and summarizers
//! and policies that decline, which is no failure.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::common::Scratch;
use serde_json::json;
use talktree::{
    BoxError, Change, CompactionId, CompactionOptions, CompactionPolicy, CompactionWindow, Error,
    Message, MessageId, NothingToCompact, Part, Phase, RangeSummary, Result, Session,
    SessionBuilder, Stale, Store, Summarized, Summarizer, Summary, SummaryRefused,
};

/// The token limit of these sessions; a message has 24, so 17 messages exceed it.
const THRESHOLD: u64 = 400;

type Chosen = std::result::Result<Option<RangeSummary>, BoxError>;

fn message(id: impl std::fmt::Display) -> Message {
    Message::user(format!("<{id}> {}", "word ".repeat(14))).with_id(id.to_string())
}

fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(48)
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a session reported, and how often its policy or summarizer was called.
#[derive(Clone, Default)]
struct Observed {
    errors: Arc<Mutex<Vec<String>>>,
    changes: Arc<Mutex<Vec<Change>>>,
    asked: Arc<AtomicUsize>,
}

impl Observed {
    fn handler(&self) -> impl Fn(&Error) + Send + Sync + use<> {
        let errors = Arc::clone(&self.errors);
        move |error| locked(&errors).push(error.to_string())
    }

    fn subscribe(&self, chat: &Session) -> talktree::Subscription {
        let changes = Arc::clone(&self.changes);
        chat.subscribe(move |event| locked(&changes).push(event.change.clone()))
    }

    /// Returns a policy that counts its calls.
    fn policy(
        &self,
        choose: impl Fn(&CompactionWindow<'_>) -> Chosen + Send + Sync + 'static,
    ) -> Counting {
        let asked = Arc::clone(&self.asked);
        Counting(asked, Box::new(choose))
    }

    fn errors(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.errors))
    }

    fn changes(&self) -> Vec<Change> {
        std::mem::take(&mut *locked(&self.changes))
    }

    fn asked(&self) -> usize {
        self.asked.swap(0, Ordering::SeqCst)
    }

    fn stuck(&self) -> Vec<String> {
        let why = |change| match change {
            Change::CannotShorten { why, .. } => Some(why),
            _ => None,
        };
        self.changes().into_iter().filter_map(why).collect()
    }
}

struct Counting(Arc<AtomicUsize>, Box<dyn Fn(&CompactionWindow<'_>) -> Chosen + Send + Sync>);

impl CompactionPolicy for Counting {
    fn compact(&self, window: &CompactionWindow<'_>) -> Chosen {
        self.0.fetch_add(1, Ordering::SeqCst);
        (self.1)(window)
    }
}

fn builder(store: &Store) -> SessionBuilder {
    store.session_builder("s")
}

/// Returns the answer for the items from one place of a view to another.
fn between(window: &CompactionWindow<'_>, first: usize, last: usize, summary: &str) -> Chosen {
    let messages = window.messages();
    Ok(Some(RangeSummary::new(&messages[first].id, &messages[last].id, summary)))
}

fn append(chat: &Session, ids: std::ops::Range<usize>) -> Result<()> {
    chat.append_all(ids.map(message)).map(drop)
}

#[test]
fn a_policy_is_asked_by_compact_on_any_path_by_automatic_compaction_and_in_the_background()
-> Result<()> {
    let policy = |window: &CompactionWindow<'_>| between(window, 1, 3, "three");
    let store = Store::open_in_memory()?;
    let chat = builder(&store).compaction_policy(policy).open()?;
    append(&chat, 0..9)?;
    let Ok(done) = chat.at(&"6".into()).compact()? else { panic!() };
    assert_eq!((done.messages, done.tokens_before, done.is_shown()), (3, 72, true));
    let compaction = chat.compaction(&done.id)?;
    assert_eq!((compaction.first.as_str(), compaction.last.as_str()), ("1", "3"));
    // A summary is an item like a message, and is compacted as a whole.
    assert!(chat.compact()?.is_ok());
    let compaction = chat.compactions()?.remove(1);
    assert_eq!((compaction.nested, compaction.last.as_str()), (vec![done.id], "5"));

    for is_background in [false, true] {
        let store = Store::open_in_memory()?;
        let observed = Observed::default();
        let chat = builder(&store).compact_after(THRESHOLD).on_error(observed.handler());
        let chat = chat.compaction_policy(policy);
        let chat = if is_background { chat.compact_on(|job| job()) } else { chat };
        let chat = chat.open()?;
        append(&chat, 0..60)?;
        assert!(chat.visible_tokens()? <= THRESHOLD);
        assert_eq!((chat.raw_history()?.len(), observed.errors()), (60, vec![]));
    }
    Ok(())
}

#[test]
fn a_policy_sees_the_window_with_its_tokens() -> Result<()> {
    let store = Store::open_in_memory()?;
    let observed = Observed::default();
    let chat = builder(&store).block("rules", talktree::Block::text("Be brief."));
    let chat = chat.compact_after(THRESHOLD).compaction_options(options());
    let policy = observed.policy(|window| {
        assert_eq!(window.tokens(window.messages().len()), 0);
        let sum: u64 = (0..window.messages().len()).map(|at| window.tokens(at)).sum();
        assert_eq!(window.usage().total, window.usage().prompt + sum);
        assert_eq!(
            (window.threshold(), window.options().clone() == options().keep_recent_tokens(7)),
            (Some(THRESHOLD), false)
        );
        let range = window.suggested()?;
        assert!(range.start == 1 && range.end == window.messages().len() - 2);
        assert!(window.summary_prompt(range.clone()).is_some_and(|prompt| prompt.contains("<1>")));
        assert_eq!(window.summary_prompt(1..1), None);
        assert_eq!(window.summary_prompt(1..1_000), None);
        between(window, range.start, range.end - 1, "short")
    });
    let chat = chat.compaction_policy(policy).on_error(observed.handler()).open()?;
    append(&chat, 0..40)?;
    assert_eq!((observed.asked(), observed.errors(), chat.history()?.len()), (1, vec![], 4));
    Ok(())
}

/// What a policy answers to a view of nine messages with a call in 4 and its result in 5, and why it is refused.
#[test]
fn an_answer_that_breaks_a_rule_is_refused_with_its_reason() -> Result<()> {
    type Choose = fn(&CompactionWindow<'_>) -> Chosen;
    let id = |id: &str| MessageId::from(id);
    let refused = |why| Error::SummaryRefused { why }.to_string();
    let cases: [(&str, Choose, Option<CompactionOptions>, String); 9] = [
        (
            "an unknown message",
            |_| Ok(Some(RangeSummary::new(&"1".into(), &"elsewhere".into(), "x"))),
            None,
            refused(SummaryRefused::NotShown { id: id("elsewhere") }),
        ),
        (
            "a range in reverse",
            |window| between(window, 3, 2, "x"),
            None,
            refused(SummaryRefused::Reversed { first: id("3"), last: id("2") }),
        ),
        (
            "a call without its result",
            |window| between(window, 2, 4, "x"),
            None,
            refused(SummaryRefused::PartsPair { call: id("4"), result: id("5") }),
        ),
        (
            "a result without its call",
            |window| between(window, 5, 6, "x"),
            None,
            refused(SummaryRefused::PartsPair { call: id("4"), result: id("5") }),
        ),
        (
            "the protected start",
            |window| between(window, 0, 2, "x"),
            Some(options()),
            refused(SummaryRefused::Protected { id: id("0") }),
        ),
        (
            "the protected end",
            |window| between(window, 6, window.messages().len() - 1, "x"),
            Some(options()),
            refused(SummaryRefused::Protected { id: id("7") }),
        ),
        (
            "a blank summary",
            |window| between(window, 1, 3, " \u{200B}"),
            None,
            refused(SummaryRefused::Blank),
        ),
        (
            "a summary that lengthens",
            |window| between(window, 1, 1, &"word ".repeat(16)),
            None,
            refused(SummaryRefused::NotShorter { tokens: 25, replaced: 24 }),
        ),
        (
            "a failure",
            |_| Err("no idea".into()),
            None,
            "the compaction policy failed: no idea".to_owned(),
        ),
    ];
    for (name, choose, options, why) in cases {
        let store = Store::open_in_memory()?;
        let observed = Observed::default();
        let chat = builder(&store).compaction_policy(observed.policy(choose));
        let chat = chat.compact_after(THRESHOLD).on_error(observed.handler());
        let chat = match options {
            Some(options) => chat.compaction_options(options),
            None => chat,
        };
        let chat = chat.open()?;
        chat.append_all((0..9).map(|n| match n {
            4 => message(n).with_part(Part::tool_call("t", "c", json!({}))),
            5 => message(n).with_part(Part::tool_result("t", "c", json!("done"))),
            _ => message(n),
        }))?;
        let answer = chat.compact().unwrap_err();
        assert_eq!(answer.to_string(), why, "{name}");
        assert_eq!(
            (chat.history()?.len(), observed.errors(), observed.asked()),
            (9, vec![], 1),
            "{name}"
        );
        // After an append it is a failure: reported once, and tried again when the window has grown.
        append(&chat, 9..17)?;
        assert_eq!((observed.errors().len(), observed.asked()), (1, 1), "{name}");
        chat.append(Message::user("yes"))?;
        assert_eq!((observed.errors().len(), observed.asked()), (0, 0), "{name}");
        append(&chat, 17..18)?;
        assert_eq!((observed.errors().len(), observed.asked()), (1, 1), "{name}");
        assert_eq!(chat.compactions()?, [], "{name}");
    }
    Ok(())
}

#[test]
fn a_policy_that_panics_is_an_error_and_changes_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    let policy = |_: &CompactionWindow<'_>| -> Chosen { panic!("lost its way") };
    let chat = builder(&store).compaction_policy(policy).open()?;
    append(&chat, 0..9)?;
    let answer = chat.compact().unwrap_err();
    assert!(matches!(answer, Error::CompactionPolicy { .. }));
    assert_eq!(answer.to_string(), "the compaction policy failed: it panicked: lost its way");
    assert_eq!(chat.history()?.len(), 9);
    Ok(())
}

#[test]
fn without_options_a_policy_may_compact_the_first_and_the_last_message() -> Result<()> {
    let store = Store::open_in_memory()?;
    let policy =
        |window: &CompactionWindow<'_>| between(window, 0, window.messages().len() - 1, "all");
    let chat = builder(&store).compaction_policy(policy).open()?;
    append(&chat, 0..3)?;
    assert!(chat.compact()?.is_ok());
    assert_eq!(chat.history()?.len(), 1);
    Ok(())
}

#[test]
fn a_change_of_the_range_while_a_policy_decides_makes_its_answer_stale() -> Result<()> {
    type Work = fn(&Session) -> Result<()>;
    let cases: [(Work, Option<Stale>); 4] = [
        (|chat| append(chat, 20..21), None),
        (|chat| chat.delete([&"1".into()]).map(drop), None),
        (|chat| chat.delete([&"3".into()]).map(drop), Some(Stale::Deleted { id: "3".into() })),
        (
            |chat| chat.update(Message::user("other").with_id("3")).map(drop),
            Some(Stale::Updated { id: "3".into() }),
        ),
    ];
    for (work, expected) in cases {
        let scratch = Scratch::new()?;
        let other = scratch.store.session("s")?;
        let policy = move |window: &CompactionWindow<'_>| -> Chosen {
            work(&other)?;
            between(window, 2, 5, "short")
        };
        let chat = builder(&scratch.store).compaction_policy(policy).open()?;
        append(&chat, 0..9)?;
        match (chat.compact(), expected) {
            (Ok(Ok(done)), None) => assert_eq!(done.messages, 4),
            (Err(Error::Stale { why }), Some(expected)) => assert_eq!(why, expected),
            (answer, expected) => panic!("{answer:?}, but {expected:?}"),
        }
        assert_eq!(scratch.store.verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn beside_a_policy_the_summarizer_writes_branch_summaries_only() -> Result<()> {
    let store = Store::open_in_memory()?;
    let policy = |window: &CompactionWindow<'_>| between(window, 1, 3, "by the policy");
    let chat = builder(&store).compaction_policy(policy);
    let chat = chat.summarizer(|_: &str| -> Result<&str, BoxError> { Ok("by the summarizer") });
    let chat = chat.open()?;
    append(&chat, 0..9)?;
    let _ = chat.compact()?;
    assert_eq!(chat.history()?[1].text(), "by the policy");
    chat.checkout_summarized(&"0".into())?;
    assert_eq!(chat.history()?[1].text(), "by the summarizer");
    // The policy replaces neither the summarizer nor the plan for it.
    let without = builder(&store).compaction_policy(policy).open()?;
    assert!(matches!(without.checkout_summarized(&"8".into()), Err(Error::NoSummarizer { .. })));
    Ok(())
}

/// Declines a prompt while it is told to.
#[derive(Clone, Default)]
struct Reluctant(Arc<AtomicUsize>);

impl Summarizer for Reluctant {
    fn summarize(&self, _: &str) -> std::result::Result<Summarized, BoxError> {
        match self.0.load(Ordering::SeqCst) {
            0 => Ok(Summarized::Declined),
            _ => Ok(Summary::new("short").by("small-1").into()),
        }
    }
}

#[test]
fn a_summarizer_that_declines_is_no_failure() -> Result<()> {
    let store = Store::open_in_memory()?;
    let (observed, is_willing) = (Observed::default(), Reluctant::default());
    let chat = builder(&store).compaction_options(options()).on_error(observed.handler());
    let chat = chat.summarizer(is_willing.clone()).open()?;
    append(&chat, 0..9)?;
    let _subscription = observed.subscribe(&chat);
    let declined = NothingToCompact::Declined;
    assert_eq!(chat.compact()?, Err(declined.clone()));
    assert_eq!(chat.at(&"8".into()).compact()?, Err(declined.clone()));
    assert_eq!(declined.to_string(), "the summarizer or the compaction policy declined");
    assert_eq!(
        (observed.errors(), chat.compactions()?.len(), chat.history()?.len()),
        (vec![], 0, 9)
    );
    let window = |phase| Change::Window { phase, tokens: 216, threshold: None };
    let twice = [Phase::Compacting, Phase::Idle, Phase::Compacting, Phase::Idle].map(window);
    assert_eq!(observed.changes(), twice);

    // A checkout with a summary becomes a plain one.
    assert_eq!(chat.checkout_summarized(&"5".into())?, None);
    assert_eq!(
        (chat.head()?, chat.history()?.len(), observed.errors()),
        (Some("5".into()), 6, vec![])
    );
    chat.checkout(&"8".into())?;
    is_willing.0.store(1, Ordering::SeqCst);
    assert!(chat.compact()?.is_ok());
    assert_eq!(chat.compactions()?[0].model.as_deref(), Some("small-1"));
    Ok(())
}

#[test]
fn after_declining_automatic_compaction_waits_for_a_quarter_of_the_threshold_or_another_change()
-> Result<()> {
    type Build = fn(SessionBuilder, Arc<AtomicUsize>) -> SessionBuilder;
    let by_summarizer: Build = |chat, asked| {
        chat.summarizer(move |_: &str| -> Result<Option<String>, BoxError> {
            asked.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        })
    };
    let by_policy: Build = |chat, asked| {
        chat.compaction_policy(move |_: &CompactionWindow<'_>| -> Chosen {
            asked.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        })
    };
    for build in [by_summarizer, by_policy] {
        for is_background in [false, true] {
            let store = Store::open_in_memory()?;
            let observed = Observed::default();
            let chat = builder(&store).compact_after(THRESHOLD).compaction_options(options());
            let chat = build(chat.on_error(observed.handler()), Arc::clone(&observed.asked));
            let chat = if is_background { chat.compact_on(|job| job()) } else { chat };
            let chat = chat.open()?;
            let _subscription = observed.subscribe(&chat);
            append(&chat, 0..17)?;
            assert_eq!(observed.asked(), 1);
            assert_eq!(observed.stuck(), ["the summarizer or the compaction policy declined"]);
            // 4 messages are less than 100 tokens, 5 are more.
            append(&chat, 17..20)?;
            append(&chat, 20..21)?;
            assert_eq!(observed.asked(), 0);
            append(&chat, 21..22)?;
            assert_eq!((observed.asked(), observed.stuck().len()), (1, 0));
            // A change that is no append ends the wait.
            chat.update(Message::user("other words").with_id("3"))?;
            append(&chat, 22..23)?;
            assert_eq!((observed.asked(), observed.errors()), (1, vec![]));
            assert_eq!((chat.raw_history()?.len(), chat.compactions()?.len()), (23, 0));
        }
    }
    Ok(())
}

#[test]
fn a_summarizer_may_be_a_closure_of_any_kind_of_answer() -> Result<()> {
    let answers: [fn(SessionBuilder) -> SessionBuilder; 6] = [
        |chat| chat.summarizer(|_: &str| -> Result<&str, BoxError> { Ok("short") }),
        |chat| chat.summarizer(|_: &str| -> Result<String> { Ok("short".to_owned()) }),
        |chat| chat.summarizer(|_: &str| -> Result<Summary, BoxError> { Ok("short".into()) }),
        |chat| chat.summarizer(|_: &str| -> Result<Option<&str>, BoxError> { Ok(Some("short")) }),
        |chat| {
            chat.summarizer(|_: &str| -> Result<Option<Summary>, std::io::Error> {
                Ok(Some(Summary::new("short")))
            })
        },
        |chat| chat.summarizer(|_: &str| -> Result<Summarized, BoxError> { Ok("short".into()) }),
    ];
    for with_summarizer in answers {
        let store = Store::open_in_memory()?;
        let chat = with_summarizer(builder(&store).compaction_options(options())).open()?;
        append(&chat, 0..9)?;
        assert!(chat.compact()?.is_ok());
        assert_eq!(chat.history()?[1].text(), "short");
    }
    Ok(())
}

#[test]
fn a_policy_that_makes_no_progress_toward_the_threshold_ends_with_its_refusal() -> Result<()> {
    let store = Store::open_in_memory()?;
    let observed = Observed::default();
    // It compacts everything again and again, below the first message, which alone exceeds the threshold.
    let policy = observed.policy(|window| {
        let last = window.messages().len() - 1;
        let summaries = window.messages().iter();
        let summaries = summaries.filter(|it| CompactionId::from_message(&it.id).is_some()).count();
        between(window, 1, last, if summaries == 0 { "a first summary" } else { "again" })
    });
    let chat = builder(&store).compact_after_history(THRESHOLD);
    let chat = chat.compaction_policy(policy).on_error(observed.handler()).open()?;
    chat.append(Message::user("word ".repeat(600)).with_id("long"))?;
    let errors = observed.errors();
    assert_eq!(errors.len(), 1, "{errors:?}");
    observed.asked();
    append(&chat, 0..1)?;
    // Twice it gets shorter; the third summary is as long as the second.
    assert_eq!(observed.asked(), 3);
    let errors = observed.errors();
    assert_eq!(errors, ["the summary (6 tokens) is not shorter than what it replaces (6)"]);
    assert_eq!((chat.history()?.len(), chat.compactions()?.len()), (2, 2));
    Ok(())
}

#[test]
fn a_retry_after_an_automatic_compaction_has_the_question() -> Result<()> {
    for length in (100..1_000).step_by(50) {
        let chat = Store::open_in_memory()?
            .session_builder("s")
            .summarizer(|_: &str| Ok::<_, BoxError>("They chatted."))
            .compact_after(2_000)
            .open()?;
        for turn in 0..12 {
            chat.append(Message::user(format!("Question {turn}")))?;
            chat.append(Message::assistant("word ".repeat(length)))?;
        }
        let question = chat.retry()?.unwrap();
        let shown = chat.history()?;
        assert_eq!(shown.last().map(|message| &message.id), Some(&question), "{length}");
    }
    Ok(())
}
