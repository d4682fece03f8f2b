//! What the threshold of automatic compaction is compared with: the tokens of the whole request, by part, or of the
//! messages alone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use talktree::{
    Block, BoxError, Change, CompactionOptions, Message, Result, Session, SessionBuilder, Store,
    TokenCounter, estimate_tokens,
};

fn message() -> Message {
    Message::user("word ".repeat(15)) // 24 tokens
}

fn builder(store: &Store) -> SessionBuilder {
    store
        .session_builder("s")
        .compaction_options(CompactionOptions::default().protect_head(1).keep_recent_tokens(48))
        .summarizer(|_: &str| -> Result<&str, BoxError> { Ok("short") })
}

fn tools_of(chat: &Session) -> u64 {
    estimate_tokens(&chat.tools().anthropic().to_string())
}

/// Returns the number of appends until the history is compacted.
fn appends_until_compacted(chat: &Session) -> Result<u64> {
    for n in 1..100 {
        chat.append(message())?;
        if !chat.compactions()?.is_empty() {
            return Ok(n);
        }
    }
    Ok(u64::MAX)
}

#[test]
fn a_request_is_its_prompt_its_tools_and_its_messages() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = builder(&store)
        .block("soul", Block::text("You are a helpful assistant."))
        .block("memory", Block::stored())
        .history_tools()
        .open()?;
    chat.append_all((0..5).map(|_| message()))?;
    let request = chat.request_tokens()?;
    assert_eq!(request.prompt, estimate_tokens(&chat.prompt()?));
    assert_eq!(request.tools, tools_of(&chat));
    assert_eq!((request.messages, request.messages), (120, chat.visible_tokens()?));
    assert_eq!(request.total, request.prompt + request.tools + request.messages);
    let usage = chat.window_usage()?;
    assert_eq!(
        (usage.prompt, usage.tools, usage.total),
        (request.prompt, request.tools, request.total)
    );

    // Each part follows its source.
    chat.context().set("memory", &"word ".repeat(100))?;
    let larger = chat.request_tokens()?;
    assert!(larger.prompt > request.prompt && larger.tools == request.tools);
    assert!(chat.context().remove("memory"));
    let smaller = chat.request_tokens()?;
    assert!(smaller.prompt < request.prompt && smaller.tools < request.tools);
    assert_eq!(smaller.tools, tools_of(&chat));
    chat.context().add("facts", Block::knowledge())?;
    assert_eq!(chat.request_tokens()?.tools, tools_of(&chat));

    let bare = store.session("t")?;
    assert_eq!((bare.request_tokens()?.total, bare.request_tokens()?.tools), (0, 0));
    Ok(())
}

#[test]
fn the_threshold_is_of_the_whole_request_unless_it_is_set_to_the_messages() -> Result<()> {
    let store = Store::open_in_memory()?;
    let with_blocks = |store: &Store| {
        builder(store)
            .block("rules", Block::text("rule ".repeat(40)))
            .block("memory", Block::stored())
            .compact_after(600)
    };
    let besides = {
        let request = with_blocks(&store).open()?.request_tokens()?;
        request.prompt + request.tools
    };
    assert!(besides > 100, "{besides}");
    let of_request = with_blocks(&Store::open_in_memory()?).open()?;
    assert_eq!(appends_until_compacted(&of_request)?, (600 - besides) / 24 + 1);
    assert!(of_request.request_tokens()?.total <= 600);

    let of_messages = with_blocks(&Store::open_in_memory()?).compact_after_history(600).open()?;
    assert_eq!(appends_until_compacted(&of_messages)?, 600 / 24 + 1);
    Ok(())
}

#[test]
fn subscribers_hear_the_figure_that_is_compared_with_the_threshold() -> Result<()> {
    for is_of_history in [false, true] {
        let store = Store::open_in_memory()?;
        let chat = builder(&store).block("memory", Block::stored());
        let chat = match is_of_history {
            false => chat.compact_after(1_000).open()?,
            true => chat.compact_after_history(1_000).open()?,
        };
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&heard);
        let _subscription = chat.subscribe(move |event| {
            if let Change::Window { tokens, .. } = &event.change {
                ear.lock().unwrap().push(*tokens);
            }
        });
        let id = chat.append(message())?.id;
        chat.update(message().with_id(id).with_part("x".into()))?;
        let (request, messages) = (chat.request_tokens()?, 24);
        let besides = if is_of_history { 0 } else { request.total - request.messages };
        let expected = [messages + besides, request.messages + besides];
        assert_eq!(*heard.lock().unwrap(), expected, "{is_of_history}");
    }
    Ok(())
}

/// Without the prompt in the threshold, a provider that cannot be reached is no failure of compaction.
#[test]
fn a_threshold_of_messages_reads_no_prompt() -> Result<()> {
    let store = Store::open_in_memory()?;
    let errors = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&errors);
    let chat = builder(&store)
        .block("far", Block::from_fn(|| Err("out of reach".into())))
        .compact_after_history(400)
        .on_error(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        })
        .open()?;
    assert_eq!(appends_until_compacted(&chat)?, 17);
    assert_eq!(errors.load(Ordering::SeqCst), 0);
    assert!(chat.request_tokens().is_err());
    Ok(())
}

/// Counts by the estimate, and counts its calls with texts.
#[derive(Clone, Default)]
struct Slow(Arc<AtomicUsize>);

impl TokenCounter for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn count_text(&self, text: &str) -> f64 {
        self.0.fetch_add(1, Ordering::SeqCst);
        estimate_tokens(text) as f64
    }

    fn count(&self, message: &Message) -> f64 {
        message.tokens() as f64
    }
}

#[test]
fn prompt_and_tools_are_counted_only_when_they_change() -> Result<()> {
    let store = Store::open_in_memory()?;
    let slow = Slow::default();
    let counted = || slow.0.swap(0, Ordering::SeqCst);
    let chat = builder(&store)
        .block("memory", Block::stored())
        .cached_prompt()
        .token_counter(slow.clone())
        .compact_after(5_000)
        .open()?;
    chat.append(message())?;
    assert_eq!(counted(), 2);
    for _ in 0..20 {
        chat.append(message())?;
        chat.prompt()?;
        chat.request_tokens()?;
        chat.window_usage()?;
    }
    assert_eq!(counted(), 0);
    // The frozen prompt shows the new text when it is refreshed.
    chat.context().set("memory", "Likes coffee.")?;
    counted();
    chat.prompt()?;
    assert_eq!(counted(), 0);
    chat.refresh_prompt()?;
    chat.append(message())?;
    assert_eq!(counted(), 1);
    // Another block is another tool, in the next append.
    chat.context().add("facts", Block::knowledge())?;
    counted();
    chat.append(message())?;
    chat.append(message())?;
    assert_eq!(counted(), 1);
    Ok(())
}

/// A counter that fails is asked again: an estimate is not kept.
#[test]
fn an_estimate_of_the_prompt_is_replaced_when_the_counter_works() -> Result<()> {
    struct Doubtful(Arc<AtomicUsize>);
    impl TokenCounter for Doubtful {
        fn name(&self) -> &str {
            "doubtful"
        }
        fn count_text(&self, _: &str) -> f64 {
            match self.0.load(Ordering::SeqCst) {
                0 => f64::NAN,
                _ => 7.0,
            }
        }
    }
    let store = Store::open_in_memory()?;
    let is_well = Arc::new(AtomicUsize::new(0));
    let chat = builder(&store).block("soul", Block::text("You are a helpful assistant."));
    let chat = chat.token_counter(Doubtful(Arc::clone(&is_well))).open()?;
    let estimate = estimate_tokens(&chat.prompt()?);
    assert_eq!(chat.request_tokens()?.prompt, estimate);
    is_well.store(1, Ordering::SeqCst);
    assert_eq!((chat.request_tokens()?.prompt, estimate == 7), (7, false));
    Ok(())
}

/// What is appended to a session with tools over its threshold must not ask the summarizer each time.
#[test]
fn tools_that_fill_the_window_are_reported_once_and_do_not_ask_at_each_append() -> Result<()> {
    let store = Store::open_in_memory()?;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let chat =
        builder(&store).block("memory", Block::stored()).block("skills", Block::stored_skills());
    let chat = chat.history_tools().session_search().compact_after(200);
    let chat = chat.summarizer(move |_: &str| -> Result<&str, BoxError> {
        count.fetch_add(1, Ordering::SeqCst);
        Ok("short")
    });
    let chat = chat.open()?;
    assert!(chat.request_tokens()?.tools > 200);
    let stuck = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&stuck);
    let _subscription = chat.subscribe(move |event| {
        if let Change::CannotShorten { why, .. } = &event.change {
            ear.lock().unwrap().push(why.clone());
        }
    });
    for _ in 0..40 {
        chat.append(message())?;
    }
    assert_eq!(stuck.lock().unwrap().len(), 1);
    // A quarter of the threshold is 50 tokens: three messages.
    assert!(asked.load(Ordering::SeqCst) <= 40 / 3, "{asked:?}");
    Ok(())
}
