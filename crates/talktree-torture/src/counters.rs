//! Faulty token counters: they answer NaN, infinities, negative and absurd counts, panic, and differ from call to call.
//!
//! While a counter fails, every verb succeeds, and the count of each message of a history is the counter's or the estimate.
//! When it works again, all counts are its own, and the history is compacted to its threshold.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use talktree::{
    BoxError, CompactionOptions, Durability, Error, Message, Session, Store, TokenCounter,
};

use crate::scratch::scratch;
use crate::{Report, Result};

/// The token limit after which the session compacts automatically.
const THRESHOLD: u64 = 1_500;

/// How much is tried.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many counters are tried, each on a store of its own.
    #[arg(long, default_value_t = 300)]
    pub counters: u64,
    /// How many verbs run with each of them.
    #[arg(long, default_value_t = 120)]
    pub verbs: usize,
    /// Run only this one.
    #[arg(long)]
    pub counter: Option<u64>,
}

/// Runs random verbs with faulty counters.
///
/// # Errors
/// If a store cannot be made.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let (mut failed, mut heard, mut compactions) = (0, 0, 0);
    for number in args.counter.map_or(0..args.counters, |number| number..number + 1) {
        let mut dice = Rng::with_seed(report.seed().wrapping_add(number));
        let faulty = Faulty::new(&mut dice);
        let outcome = catch_unwind(AssertUnwindSafe(|| play(&faulty, &mut dice, args.verbs)));
        let what = match outcome {
            Ok(Ok(played)) => {
                heard += played.heard;
                compactions += played.compactions;
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("a verb panicked".to_owned()),
        };
        failed += faulty.failures.load(Ordering::Relaxed);
        if let Some(what) = what {
            let replay = format!(
                "just torture counters --seed {} --counter {number} --verbs {}",
                report.seed(),
                args.verbs
            );
            report.failure(what, replay);
        }
    }
    report.fact("counts that failed", failed);
    report.fact("failures that the handler heard", heard);
    report.fact("compactions", compactions);
    Ok(())
}

/// A counter that fails in one call of a few.
#[derive(Clone)]
struct Faulty {
    dice: Arc<Mutex<Rng>>,
    /// It fails in one call of this many; 0: in none.
    sides: Arc<AtomicU64>,
    failures: Arc<AtomicU64>,
}

impl Faulty {
    fn new(dice: &mut Rng) -> Self {
        Self {
            dice: Arc::new(Mutex::new(dice.fork())),
            sides: Arc::new(AtomicU64::new([1, 2, 7, 40][dice.usize(..4)])),
            failures: Arc::default(),
        }
    }

    fn working(&self) -> Self {
        Self { sides: Arc::default(), ..self.clone() }
    }
}

impl TokenCounter for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn count_text(&self, text: &str) -> f64 {
        let count = text.len() as f64 / 3.0;
        let sides = self.sides.load(Ordering::Relaxed);
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        if sides == 0 || dice.u64(..sides) > 0 {
            return count;
        }
        let answer = match dice.u32(..8) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -1.0,
            4 => -1e-300,
            5 => f64::from(u32::MAX) + 1.0,
            6 => f64::MAX,
            _ => {
                drop(dice);
                self.failures.fetch_add(1, Ordering::Relaxed);
                // Without the message of the panic hook.
                resume_unwind(Box::new("a torture panic"))
            }
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        answer
    }
}

struct Played {
    heard: u64,
    compactions: usize,
}

fn open(store: &Store, faulty: &Faulty, heard: &Arc<AtomicU64>) -> talktree::Result<Session> {
    let heard = Arc::clone(heard);
    store
        .session_builder("s")
        .token_counter(faulty.clone())
        .summarizer(|_: &str| -> std::result::Result<&str, BoxError> { Ok("In brief: words.") })
        .compact_after(THRESHOLD)
        .compaction_options(CompactionOptions::default().protect_head(1).keep_recent_tokens(200))
        .on_error(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
        })
        .open()
}

fn play(faulty: &Faulty, dice: &mut Rng, verbs: usize) -> Result<Played> {
    let folder = scratch()?;
    let store = Store::options().durability(Durability::Normal);
    let store = store.open(folder.path().join("talk.db"))?;
    let heard = Arc::default();
    let chat = open(&store, faulty, &heard)?;
    let plain = store.session("s")?;
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..verbs {
        verb(&chat, &plain, &mut ids, dice)?;
        check_bounds(&chat, faulty)?;
    }
    faulty.sides.store(0, Ordering::Relaxed);
    chat.append(Message::user("well again"))?;
    chat.append(Message::user("and one more"))?;
    let expected: u64 = counts(&chat, &faulty.working())?.iter().sum();
    let (visible, usage) = (chat.visible_tokens()?, chat.window_usage()?);
    if visible != expected || usage.total != expected {
        return Err(format!("{visible} visible tokens, {usage}; by the counter {expected}").into());
    }
    if visible > THRESHOLD {
        return Err(format!("{visible} visible tokens after an append").into());
    }
    store.recount_tokens()?;
    if chat.visible_tokens()? != expected {
        return Err("other figures after `recount_tokens`".into());
    }
    let mut present = 0;
    for message in chat.all_messages() {
        message?;
        present += 1;
    }
    if present != ids.len() + 2 {
        return Err(format!("{} messages acknowledged, {present} present", ids.len() + 2).into());
    }
    if let Some(damage) = store.verify(|_| {})?.damages.first() {
        return Err(format!("{}: {}", damage.kind, damage.what).into());
    }
    Ok(Played { heard: heard.load(Ordering::Relaxed), compactions: chat.compactions()?.len() })
}

fn verb(chat: &Session, plain: &Session, ids: &mut Vec<String>, dice: &mut Rng) -> Result<()> {
    let message = |ids: &mut Vec<String>, dice: &mut Rng| {
        ids.push(format!("m{}", ids.len()));
        let words = "word ".repeat(dice.usize(1..60));
        Message::user(words).with_id(ids[ids.len() - 1].as_str())
    };
    if ids.is_empty() {
        chat.append(message(ids, dice))?;
    }
    let any = ids[dice.usize(..ids.len())].as_str().into();
    match dice.u32(..12) {
        0..=4 => drop(chat.append(message(ids, dice))?),
        5 => {
            let messages: Vec<_> = (0..3).map(|_| message(ids, dice)).collect();
            chat.append_all(messages)?;
        }
        // By the estimate alone.
        6 => drop(plain.append(message(ids, dice))?),
        7 => drop(chat.update(Message::user("word ".repeat(dice.usize(1..60))).with_id(any))?),
        8 => chat.checkout(&any)?,
        9 => drop(chat.upsert(message(ids, dice))?),
        10 => {
            let message = message(ids, dice);
            chat.import_message(Some(&any), message)?;
        }
        _ => match chat.compact() {
            // A short range may have no shorter summary.
            Ok(_) | Err(Error::SummaryRefused { .. }) => {}
            Err(error) => return Err(error.into()),
        },
    }
    Ok(())
}

/// Checks that each visible message counts as by the counter or as by the estimate.
fn check_bounds(chat: &Session, faulty: &Faulty) -> Result<()> {
    let history = chat.history()?;
    let estimates = history.iter().map(Message::tokens);
    let counts = counts(chat, &faulty.working())?;
    let (mut least, mut most) = (0, 0);
    for (estimate, count) in estimates.zip(counts) {
        least += estimate.min(count);
        most += estimate.max(count);
    }
    let visible = chat.visible_tokens()?;
    if visible < least || visible > most {
        return Err(format!("{visible} visible tokens, not {least} to {most}").into());
    }
    Ok(())
}

fn counts(chat: &Session, counter: &Faulty) -> Result<Vec<u64>> {
    Ok(chat.history()?.iter().map(|message| counter.count(message) as u64).collect())
}
