//! The works, for the rivals written in Rust. `rivals/works.mjs` and `rivals/works.py` do the same
//! in the same order for the others.
//!
//! A store is filled one message at a time; copies of its files serve the works that change it.
//! Opening is timed only where a work says so. Every answer is checked outside the clock: how many
//! messages, and what the last one says.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Result;
use crate::plan::{Plan, WORKS};
use crate::texts::Said;
use crate::timing::{Line, Times, repeat};

/// What a rival does with a chat. A store is one folder and holds one chat and its forks.
pub(crate) trait Chat: Sized {
    /// A message as it is read.
    type Item;
    /// What names a message.
    type Id: Clone;

    /// Works it cannot do, and why.
    const LACKS: &'static [(&'static str, &'static str)];
    /// Works that are not the same work, and how.
    const NOTES: &'static [(&'static str, &'static str)];
    /// How many of the 20 summaries its compacted history shows.
    const SUMMARIES: usize;

    fn versions() -> String;
    fn open(folder: &Path, is_full: bool) -> Result<Self>;
    fn append(&mut self, said: &Said) -> Result<()>;
    /// Appends many, as fast as it can.
    fn fill(&mut self, said: &[Said]) -> Result<()>;
    fn history(&mut self) -> Result<Vec<Self::Item>>;
    fn last(&mut self, count: usize) -> Result<Vec<Self::Item>>;
    fn text(item: &Self::Item) -> String;
    fn ids(&mut self) -> Result<Vec<Self::Id>>;
    /// Appends to a message that has a child.
    fn branch(&mut self, at: &Self::Id, said: &Said) -> Result<()>;
    /// Makes a chat of the path to a message; returns its name.
    fn fork(&mut self, at: &Self::Id) -> Result<String>;
    fn fork_length(&mut self, name: &str) -> Result<usize>;
    fn compact(&mut self, ids: &[Self::Id], next: &Self::Id, summary: &str) -> Result<()>;
    fn search(&mut self, word: &str, limit: usize) -> Result<Vec<String>>;
}

struct Run<'a> {
    plan: &'a Plan,
    said: Vec<Said>,
}

/// Does all works and prints what they took.
pub(crate) fn run<C: Chat>(plan: &Plan) -> Result<()> {
    let said: Vec<Said> = serde_json::from_slice(&std::fs::read(&plan.texts)?)?;
    let run = Run { plan, said };
    Line::Versions { versions: C::versions() }.print()?;
    for (work, why) in C::LACKS {
        if plan.wants(work) {
            Line::Why { work: (*work).to_owned(), why: (*why).to_owned() }.print()?;
        }
    }
    let large = run.append::<C>()?;
    let small = run.filled::<C>("small", plan.small)?;
    run.write::<C>(&large)?;
    run.read::<C>(&small, plan.small, "history-small", "resume-small")?;
    run.read::<C>(&large, plan.large, "history", "resume")?;
    run.recent::<C>(&large)?;
    run.compacted::<C>(&large)?;
    run.search::<C>(&large)?;
    run.fork::<C>(&small, plan.small, "fork-small")?;
    run.fork::<C>(&large, plan.large, "fork")
}

impl Run<'_> {
    fn does<C: Chat>(&self, work: &str) -> bool {
        debug_assert!(WORKS.iter().any(|known| known.name == work), "{work}");
        self.plan.wants(work) && C::LACKS.iter().all(|lack| lack.0 != work)
    }

    fn print<C: Chat>(work: &str, times: Times) -> Result<()> {
        let note = C::NOTES.iter().find(|note| note.0 == work).map(|note| note.1.to_owned());
        times.line(work, note).print()
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.plan.folder.join(name);
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Returns a copy of a closed store.
    fn copy(&self, of: &Path, name: &str) -> Result<PathBuf> {
        let folder = self.folder(name)?;
        for file in std::fs::read_dir(of)? {
            let file = file?;
            std::fs::copy(file.path(), folder.join(file.file_name()))?;
        }
        Ok(folder)
    }

    fn filled<C: Chat>(&self, name: &str, count: usize) -> Result<PathBuf> {
        let folder = self.folder(name)?;
        C::open(&folder, false)?.fill(&self.said[..count])?;
        Ok(folder)
    }

    fn check<C: Chat>(&self, history: &[C::Item], count: usize, last: usize) -> Result<()> {
        let text = history.last().map(C::text).unwrap_or_default();
        if history.len() != count || text != self.said[last].text {
            return Err(format!("{} messages for {count}, the last {text:?}", history.len()).into());
        }
        Ok(())
    }

    /// Fills stores one message at a time; returns the last of them, closed.
    fn append<C: Chat>(&self) -> Result<PathBuf> {
        let count = self.plan.large;
        if !self.does::<C>("append") {
            return self.filled::<C>("large", count);
        }
        let mut times = Vec::new();
        let mut filled = PathBuf::new();
        for round in 0..self.plan.rounds {
            filled = self.folder(&format!("append-{round}"))?;
            let mut chat = C::open(&filled, false)?;
            let start = Instant::now();
            for said in &self.said[..count] {
                chat.append(said)?;
            }
            times.push(start.elapsed().as_secs_f64() / count as f64);
            self.check::<C>(&chat.history()?, count, count - 1)?;
        }
        Self::print::<C>("append", Times::of(times))?;
        Ok(filled)
    }

    fn write<C: Chat>(&self, large: &Path) -> Result<()> {
        let Plan { large: count, deep, rounds, .. } = *self.plan;
        let next = &self.said[count..count + deep];
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds {
            if self.does::<C>("append-deep") {
                let mut chat = C::open(&self.copy(large, &format!("deep-{round}"))?, false)?;
                chat.last(1)?;
                if self.does::<C>("search") {
                    chat.search(&self.plan.usual, self.plan.hits)?;
                }
                times[0].push(appends(&mut chat, next)?);
                self.check::<C>(&chat.history()?, count + deep, count + deep - 1)?;
            }
            if self.does::<C>("append-full") {
                let mut chat = C::open(&self.folder(&format!("full-{round}"))?, true)?;
                times[1].push(appends(&mut chat, &self.said[..deep])?);
                self.check::<C>(&chat.history()?, deep, deep - 1)?;
            }
            if self.does::<C>("branch") {
                let mut chat = C::open(&self.copy(large, &format!("branch-{round}"))?, false)?;
                let middle = chat.ids()?[count / 2 - 1].clone();
                let start = Instant::now();
                for said in next {
                    chat.branch(&middle, said)?;
                }
                times[2].push(start.elapsed().as_secs_f64() / deep as f64);
                self.check::<C>(&chat.history()?, count / 2 + 1, count + deep - 1)?;
            }
        }
        for (work, times) in ["append-deep", "append-full", "branch"].into_iter().zip(times) {
            if !times.is_empty() {
                Self::print::<C>(work, Times::of(times))?;
            }
        }
        Ok(())
    }

    fn read<C: Chat>(&self, store: &Path, count: usize, warm: &str, cold: &str) -> Result<()> {
        if self.does::<C>(warm) {
            let times = repeat(
                &mut C::open(store, false)?,
                self.plan.seconds,
                |_| Ok(()),
                |chat, ()| chat.history(),
                |_, history| self.check::<C>(&history, count, count - 1),
            )?;
            Self::print::<C>(warm, times)?;
        }
        if self.does::<C>(cold) {
            let times = repeat(
                &mut (),
                self.plan.seconds,
                |()| Ok(()),
                |(), ()| {
                    let mut chat = C::open(store, false)?;
                    Ok((chat.history()?, chat))
                },
                |(), (history, _)| self.check::<C>(&history, count, count - 1),
            )?;
            Self::print::<C>(cold, times)?;
        }
        Ok(())
    }

    fn recent<C: Chat>(&self, store: &Path) -> Result<()> {
        let Plan { large, recent, seconds, .. } = *self.plan;
        if self.does::<C>("last") {
            let times = repeat(
                &mut C::open(store, false)?,
                seconds,
                |_| Ok(()),
                |chat, ()| chat.last(recent),
                |_, last| self.check::<C>(&last, recent, large - 1),
            )?;
            Self::print::<C>("last", times)?;
        }
        if self.does::<C>("last-cold") {
            let times = repeat(
                &mut (),
                seconds,
                |()| Ok(()),
                |(), ()| {
                    let mut chat = C::open(store, false)?;
                    Ok((chat.last(recent)?, chat))
                },
                |(), (last, _)| self.check::<C>(&last, recent, large - 1),
            )?;
            Self::print::<C>("last-cold", times)?;
        }
        Ok(())
    }

    fn compacted<C: Chat>(&self, large: &Path) -> Result<()> {
        if !self.does::<C>("compacted") {
            return Ok(());
        }
        let mut chat = C::open(&self.copy(large, "compacted")?, false)?;
        let (ids, stretch) = (chat.ids()?, self.plan.stretch());
        for place in 0..self.plan.compactions {
            let (first, end) = (place * stretch, (place + 1) * stretch);
            let summary = format!("Summary {place}: {}", self.said[first].text);
            chat.compact(&ids[first..end], &ids[end], &summary)?;
        }
        let shown = self.plan.large - stretch * self.plan.compactions + C::SUMMARIES;
        let times = repeat(
            &mut chat,
            self.plan.seconds,
            |_| Ok(()),
            |chat, ()| chat.history(),
            |_, history| self.check::<C>(&history, shown, self.plan.large - 1),
        )?;
        Self::print::<C>("compacted", times)
    }

    fn fork<C: Chat>(&self, store: &Path, count: usize, work: &str) -> Result<()> {
        if !self.does::<C>(work) {
            return Ok(());
        }
        let mut chat = C::open(&self.copy(store, work)?, false)?;
        let at = chat.ids()?[count - 1].clone();
        let times = repeat(
            &mut chat,
            self.plan.seconds,
            |_| Ok(()),
            |chat, ()| chat.fork(&at),
            |chat, name| match chat.fork_length(&name)? {
                length if length == count => Ok(()),
                length => Err(format!("a fork of {length} messages for {count}").into()),
            },
        )?;
        Self::print::<C>(work, times)
    }

    fn search<C: Chat>(&self, large: &Path) -> Result<()> {
        let Plan { huge, hits, rounds, .. } = *self.plan;
        if self.does::<C>("search-first") {
            let mut times = Vec::new();
            for round in 0..rounds {
                let mut chat = C::open(&self.copy(large, &format!("first-{round}"))?, false)?;
                chat.last(1)?;
                let start = Instant::now();
                let found = chat.search(&self.plan.usual, hits)?;
                times.push(start.elapsed().as_secs_f64());
                check_hits(&found, &self.plan.usual, self.plan.usual_large, hits)?;
            }
            Self::print::<C>("search-first", Times::of(times))?;
        }
        if self.does::<C>("search") {
            let mut chat = C::open(&self.copy(large, "search")?, false)?;
            self.searches(&mut chat, "search", &self.plan.usual, self.plan.usual_large)?;
        }
        if self.does::<C>("search-huge") || self.does::<C>("search-common") {
            let mut chat = C::open(&self.filled::<C>("huge", huge)?, false)?;
            for (work, word, expected) in [
                ("search-huge", &self.plan.usual, self.plan.usual_huge),
                ("search-common", &self.plan.common, self.plan.common_huge),
            ] {
                self.searches(&mut chat, work, word, expected)?;
            }
        }
        Ok(())
    }

    fn searches<C: Chat>(
        &self,
        chat: &mut C,
        work: &str,
        word: &str,
        expected: usize,
    ) -> Result<()> {
        if !self.does::<C>(work) {
            return Ok(());
        }
        let hits = self.plan.hits;
        let times = repeat(
            chat,
            self.plan.seconds,
            |_| Ok(()),
            |chat, ()| chat.search(word, hits),
            |_, found| check_hits(&found, word, expected, hits),
        )?;
        Self::print::<C>(work, times)
    }
}

fn check_hits(found: &[String], word: &str, expected: usize, limit: usize) -> Result<()> {
    if found.len() != expected.min(limit) || found.iter().any(|text| !text.contains(word)) {
        return Err(format!("{} hits for {word:?}: {found:?}", found.len()).into());
    }
    Ok(())
}

/// Returns the time of one append, in seconds.
fn appends<C: Chat>(chat: &mut C, said: &[Said]) -> Result<f64> {
    let start = Instant::now();
    for said in said {
        chat.append(said)?;
    }
    Ok(start.elapsed().as_secs_f64() / said.len() as f64)
}
