//! Does a word find its other forms, in twenty languages?
//!
//! Each language is a session of sentences. A probe names the sentences that hold a form of its word, and others that
//! only look alike. Recall is the share of the former that are found; precision is the share of what is found that
//! holds a form.

use serde::Deserialize;
use talktree::{Message, Store};

use crate::options::Options;
use crate::{Result, judged};

#[derive(Deserialize)]
struct Language {
    language: String,
    probes: Vec<Probe>,
}

#[derive(Deserialize)]
struct Probe {
    query: String,
    /// What the probe is about.
    about: String,
    holds: Vec<String>,
    /// Sentences that look alike and hold no form.
    others: Vec<String>,
}

#[derive(Default, Clone, Copy)]
struct Figures {
    probes: usize,
    recall: f64,
    right: usize,
    found: usize,
    whole: usize,
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.probes += other.probes;
        self.recall += other.recall;
        self.right += other.right;
        self.found += other.found;
        self.whole += other.whole;
    }

    fn print(&self, name: &str) {
        let precision = self.right as f64 / self.found.max(1) as f64;
        let recall = self.recall / self.probes as f64;
        println!("  {name:<14}{:>8}{recall:>9.2}{precision:>11.2}{:>12}", self.probes, self.whole);
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let languages: Vec<Language> = judged::read("languages.json")?;
    let store = Store::open_in_memory()?;
    for language in &languages {
        let chat = store.session(language.language.as_str())?;
        let mut sentences: Vec<&String> = Vec::new();
        for sentence in language.probes.iter().flat_map(|it| it.holds.iter().chain(&it.others)) {
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        chat.append_all(sentences.into_iter().map(|text| Message::user(text.as_str())))?;
    }
    println!("\nWord forms, inside one session for each language");
    println!("  {:<14}{:>8}{:>9}{:>11}{:>12}", "", "probes", "recall", "precision", "complete");
    let mut all = Figures::default();
    let mut missed = Vec::new();
    for language in &languages {
        let chat = store.session(language.language.as_str())?;
        let mut figures = Figures::default();
        for probe in &language.probes {
            let hits = chat.search(probe.query.as_str()).limit(100).run()?.hits;
            let mut texts = Vec::new();
            for hit in hits {
                texts.extend(chat.message(&hit.id)?.map(|message| message.text()));
            }
            let right = probe.holds.iter().filter(|text| texts.contains(text)).count();
            figures.add(Figures {
                probes: 1,
                recall: right as f64 / probe.holds.len() as f64,
                right,
                found: texts.len(),
                whole: usize::from(right == probe.holds.len()),
            });
            if right < probe.holds.len() || right < texts.len() {
                missed.push((language, probe, right, texts.len()));
            }
        }
        figures.print(&language.language);
        all.add(figures);
    }
    all.print("all");
    if options.lists_failures {
        for (language, Probe { query, about, holds, .. }, right, found) in missed {
            println!(
                "  {:<12} {query} ({about}): {right} of {} found, {} wrong",
                language.language,
                holds.len(),
                found - right
            );
        }
    }
    Ok(())
}
