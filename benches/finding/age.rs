//! Are old chats found as well as new ones?
//!
//! The labelled chats of LongMemEval, among as many others as `--messages` says: once as the oldest, once as the newest. The others
//! have the same words.

use talktree::{Durability, Store};

use crate::corpus::Corpus;
use crate::options::Options;
use crate::{Result, data, speed_store};

/// How many hits a person looks at.
const FIRST: usize = 10;

pub(crate) fn run(options: &Options) -> Result<()> {
    let Some(folder) = data::folder() else { return Ok(()) };
    let (corpus, questions) = (Corpus::read(&folder)?, data::questions(&folder)?);
    println!("\nChats of {} questions among {} messages", questions.len(), options.messages);
    println!("  {:<22}{:>10}{:>10}", "share in the first ten", "tuned", "held");
    for (name, is_oldest) in [("as the oldest", true), ("as the newest", false)] {
        let place = tempfile::tempdir()?;
        let store =
            Store::options().durability(Durability::Normal).open(place.path().join("age.db"))?;
        if is_oldest {
            data::add_chats(&store, &folder)?;
        }
        speed_store::add(&store, &corpus, options.messages)?;
        if !is_oldest {
            data::add_chats(&store, &folder)?;
        }
        let mut shares = [Vec::new(), Vec::new()];
        for (number, question) in questions.iter().enumerate() {
            let search = store.search(&question.question).limit(FIRST).now(question.asked_at()?);
            let found = search.run_by_session()?;
            let gold = &question.answer_session_ids;
            let is_found = |id: &&String| found.hits.iter().any(|hit| hit.session.as_str() == *id);
            shares[number % 2]
                .push(gold.iter().filter(is_found).count() as f64 / gold.len() as f64);
        }
        let [tuned, held] = shares.map(|of| of.iter().sum::<f64>() / of.len() as f64);
        println!("  {name:<22}{tuned:>10.3}{held:>10.3}");
    }
    Ok(())
}
