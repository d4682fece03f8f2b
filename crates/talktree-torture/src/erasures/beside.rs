//! Erasures of the same words beside each other, each with its proof.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use talktree::{Message, Store};

use crate::scratch::scratch;
use crate::{Report, Result};

/// How many handles erase at once.
const HANDLES: u64 = 3;
/// The longest time for which the words stay, in milliseconds.
const MAX_STAY_MS: u64 = 100;
const WORDS: &str = "the same words in every message that anybody erases here";

/// Erases and proves.
pub(super) fn run(proofs: u64, report: &mut Report) -> Result<()> {
    for rewritten_up_to in [u64::MAX, 0] {
        let folder = scratch()?;
        let path = folder.path().join("talk.db");
        let seed = report.seed();
        let wrong: Vec<String> = std::thread::scope(|scope| {
            let path = &path;
            let handle = |number: u64| {
                let mut dice = Rng::with_seed(seed ^ number);
                scope.spawn(move || {
                    let mut proved =
                        (0..proofs).map(|_| prove(path, rewritten_up_to, number, &mut dice));
                    proved.find_map(|proof| proof.err().map(|error| error.to_string()))
                })
            };
            let handles: Vec<_> = (0..HANDLES).map(handle).collect();
            let ends = handles.into_iter().map(std::thread::ScopedJoinHandle::join);
            ends.filter_map(|end| end.unwrap_or_else(|_| Some("a panic".to_owned()))).collect()
        });
        for what in wrong {
            let what = format!("beside others, rewritten up to {rewritten_up_to} bytes: {what}");
            report.failure(what, format!("just torture erasures --proofs {proofs}"));
        }
    }
    report.fact("proofs beside other erasures", 2 * HANDLES * proofs);
    Ok(())
}

fn prove(path: &Path, rewritten_up_to: u64, number: u64, dice: &mut Rng) -> Result<()> {
    let store = Store::options().erasure_rewrites_up_to(rewritten_up_to).open(path)?;
    let chat = store.session(format!("chat{number}"))?;
    let texts = (0..dice.usize(1..4)).map(|_| Message::user(WORDS)).collect::<Vec<_>>();
    let ids: Vec<_> = texts.iter().map(|message| message.id.clone()).collect();
    chat.append_all(texts)?;
    std::thread::sleep(Duration::from_millis(dice.u64(..MAX_STAY_MS)));
    let erased = chat.erase(&ids)?;
    std::thread::sleep(Duration::from_millis(dice.u64(..MAX_STAY_MS)));
    erased.prove()?;
    Ok(())
}
