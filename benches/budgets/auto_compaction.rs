//! What does automatic compaction cost? The floor is a session without it.
//!
//! Both sessions begin with the same messages, all but the newest 20 compacted. The summarizer returns at once, so the cost is
//! that of planning, checking and committing, spread over the appends between two compactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use talktree::{BoxError, Durability, Message, Session, Store};

use crate::measure::Times;
use crate::messages::{Length, RARE, Speaker};
use crate::stores::{Sized, open};
use crate::table::Row;
use crate::{Bench, Result, short};

/// Suits a model with a window of 128 000 tokens; the newest 20 000 are kept.
const THRESHOLD: u64 = 100_000;
/// A page and a half: about 1 300 tokens.
const SUMMARY_WORDS: usize = 1_000;

/// A session that is appended to.
struct Chat {
    session: Session,
    compactions: Arc<AtomicUsize>,
    times: Times,
    /// The times of the appends that compacted.
    compaction: Times,
}

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let sizes = [1_000, bench.million / 10, bench.million];
    for (durability, count) in [(Durability::Full, 3_000), (Durability::Normal, 20_480)] {
        let mut chats = Vec::new();
        for size in sizes {
            let sized = bench.stores.sized(size)?;
            for compacts_itself in [false, true] {
                let store = copy(bench, &sized, durability, compacts_itself)?;
                chats.push(Chat::over(&store, &sized, compacts_itself)?);
            }
        }
        append_in_turns(&mut chats, count)?;
        print(bench, &sizes, &chats, durability);
    }
    Ok(())
}

/// Copies a store and indexes everything in it.
fn copy(
    bench: &Bench,
    sized: &Sized,
    durability: Durability,
    compacts_itself: bool,
) -> Result<Store> {
    let name = format!("auto-compaction-{compacts_itself}-{}.db", sized.size);
    let path = bench.stores.fresh(&name)?;
    sized.store.backup(&path, |_| {})?;
    let store = open(&path, durability)?;
    store.search(RARE).run()?;
    Ok(store)
}

impl Chat {
    fn over(store: &Store, sized: &Sized, compacts_itself: bool) -> Result<Self> {
        let summary = Speaker::new(17, Length::Chat).words(SUMMARY_WORDS);
        let compactions = Arc::new(AtomicUsize::new(0));
        let mut builder = store.session_builder(sized.long.id().clone());
        if compacts_itself {
            let (summary, compactions) = (summary.clone(), Arc::clone(&compactions));
            builder = builder.compact_after(THRESHOLD).summarizer(
                move |_: &str| -> std::result::Result<String, BoxError> {
                    compactions.fetch_add(1, Ordering::Relaxed);
                    Ok(summary.clone())
                },
            );
        }
        let session = builder.open()?;
        session.add_compaction(summary, &sized.first, &sized.before_last_20)?;
        Ok(Self { session, compactions, times: Times::default(), compaction: Times::default() })
    }

    fn append(&mut self, message: Message) -> Result<()> {
        let before = self.compactions.load(Ordering::Relaxed);
        let start = Instant::now();
        self.session.append(message)?;
        let time = start.elapsed();
        self.times.push(time);
        if self.compactions.load(Ordering::Relaxed) > before {
            self.compaction.push(time);
        }
        Ok(())
    }
}

/// Appends the same messages to all chats; each turn begins with another chat.
fn append_in_turns(chats: &mut [Chat], count: usize) -> Result<()> {
    let mut speaker = Speaker::new(16, Length::Chat);
    for turn in 0..count {
        let message = speaker.message();
        for at in 0..chats.len() {
            let at = (turn + at) % chats.len();
            chats[at].append(message.clone())?;
        }
    }
    Ok(())
}

fn print(bench: &mut Bench, sizes: &[usize], chats: &[Chat], durability: Durability) {
    let work = |size: usize| {
        format!("append with automatic compaction, {durability:?}, at {}", short(size))
    };
    for (size, pair) in sizes.iter().zip(chats.chunks(2)) {
        let [floor, ours] = pair else { continue };
        let (work, compactions) = (work(*size), ours.compactions.load(Ordering::Relaxed));
        let median = Row::seconds(work.as_str(), ours.times.median());
        bench.table.add(median.floor(floor.times.median()).within(1.2));
        let mean = Row::seconds(format!("{work}: mean per append"), ours.times.mean());
        bench.table.add(mean.floor(floor.times.mean()).within(1.2));
        bench.table.add(Row::seconds(
            format!("{work}: the {compactions} that compacted"),
            ours.compaction.median(),
        ));
    }
    let ([first, .., last], [_, small, .., large]) = (sizes, chats) else { return };
    let work = format!("{}: mean; floor: at {}", work(*last), short(*first));
    bench.table.add(Row::seconds(work, large.times.mean()).floor(small.times.mean()).within(1.2));
}
