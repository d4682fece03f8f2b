//! The tasks of the rivals written in Rust. `rivals/tasks.mjs` and `rivals/tasks.py` run the same tasks in the same order
//! for the others.
//!
//! A store is filled one message at a time; tasks that change it run on copies of its files. Opening is timed only where
//! the task says so. Every result is checked outside the clock: the number of messages, and the text of the last one.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Result;
use crate::messages::TestMessage;
use crate::plan::{Plan, TASKS};
use crate::timing::{Line, Times, repeat};

/// What a rival does with a chat. A store is one folder with one chat and its forks.
pub(crate) trait Chat: Sized {
    /// A message as it is read.
    type Item;
    /// What identifies a message.
    type Id: Clone;

    /// The tasks it cannot run, and why.
    const LACKS: &'static [(&'static str, &'static str)];
    /// How its tasks differ from those of the others.
    const NOTES: &'static [(&'static str, &'static str)];
    /// How many of the 20 summaries its compacted history shows.
    const SUMMARIES: usize;

    fn versions() -> String;
    fn open(folder: &Path, is_full: bool) -> Result<Self>;
    fn append(&mut self, message: &TestMessage) -> Result<()>;
    /// Appends many messages as fast as possible.
    fn fill(&mut self, messages: &[TestMessage]) -> Result<()>;
    fn history(&mut self) -> Result<Vec<Self::Item>>;
    fn last(&mut self, count: usize) -> Result<Vec<Self::Item>>;
    fn text(item: &Self::Item) -> String;
    fn ids(&mut self) -> Result<Vec<Self::Id>>;
    /// Appends to a message that has a child.
    fn branch(&mut self, at: &Self::Id, message: &TestMessage) -> Result<()>;
    /// Creates a chat with the path to a message; returns its name.
    fn fork(&mut self, at: &Self::Id) -> Result<String>;
    fn fork_length(&mut self, name: &str) -> Result<usize>;
    fn compact(&mut self, ids: &[Self::Id], next: &Self::Id, summary: &str) -> Result<()>;
    fn search(&mut self, word: &str, limit: usize) -> Result<Vec<String>>;
}

struct Run<'a> {
    plan: &'a Plan,
    messages: Vec<TestMessage>,
}

/// Runs all tasks and prints their times.
pub(crate) fn run<C: Chat>(plan: &Plan) -> Result<()> {
    let messages: Vec<TestMessage> = serde_json::from_slice(&std::fs::read(&plan.texts)?)?;
    let run = Run { plan, messages };
    Line::Versions { versions: C::versions() }.print()?;
    for (task, why) in C::LACKS {
        if plan.wants(task) {
            Line::Why { task: (*task).to_owned(), why: (*why).to_owned() }.print()?;
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
    fn does<C: Chat>(&self, task: &str) -> bool {
        debug_assert!(TASKS.iter().any(|known| known.name == task), "{task}");
        self.plan.wants(task) && C::LACKS.iter().all(|lack| lack.0 != task)
    }

    fn print<C: Chat>(task: &str, times: Times) -> Result<()> {
        let note = C::NOTES.iter().find(|note| note.0 == task).map(|note| note.1.to_owned());
        times.line(task, note).print()
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.plan.folder.join(name);
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Copies a closed store.
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
        C::open(&folder, false)?.fill(&self.messages[..count])?;
        Ok(folder)
    }

    fn check<C: Chat>(&self, history: &[C::Item], count: usize, last: usize) -> Result<()> {
        let text = history.last().map(C::text).unwrap_or_default();
        if history.len() != count || text != self.messages[last].text {
            return Err(
                format!("{} messages, expected {count}; last {text:?}", history.len()).into()
            );
        }
        Ok(())
    }

    /// Fills stores one message at a time; returns the last one, closed.
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
            for message in &self.messages[..count] {
                chat.append(message)?;
            }
            times.push(start.elapsed().as_secs_f64() / count as f64);
            self.check::<C>(&chat.history()?, count, count - 1)?;
        }
        Self::print::<C>("append", Times::of(times))?;
        Ok(filled)
    }

    fn write<C: Chat>(&self, large: &Path) -> Result<()> {
        let Plan { large: count, deep, rounds, .. } = *self.plan;
        let next = &self.messages[count..count + deep];
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
                times[1].push(appends(&mut chat, &self.messages[..deep])?);
                self.check::<C>(&chat.history()?, deep, deep - 1)?;
            }
            if self.does::<C>("branch") {
                let mut chat = C::open(&self.copy(large, &format!("branch-{round}"))?, false)?;
                let middle = chat.ids()?[count / 2 - 1].clone();
                let start = Instant::now();
                for message in next {
                    chat.branch(&middle, message)?;
                }
                times[2].push(start.elapsed().as_secs_f64() / deep as f64);
                self.check::<C>(&chat.history()?, count / 2 + 1, count + deep - 1)?;
            }
        }
        for (task, times) in ["append-deep", "append-full", "branch"].into_iter().zip(times) {
            if !times.is_empty() {
                Self::print::<C>(task, Times::of(times))?;
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
        let (ids, covered) = (chat.ids()?, self.plan.covered());
        for number in 0..self.plan.compactions {
            let (first, end) = (number * covered, (number + 1) * covered);
            let summary = format!("Summary {number}: {}", self.messages[first].text);
            chat.compact(&ids[first..end], &ids[end], &summary)?;
        }
        let shown = self.plan.large - covered * self.plan.compactions + C::SUMMARIES;
        let times = repeat(
            &mut chat,
            self.plan.seconds,
            |_| Ok(()),
            |chat, ()| chat.history(),
            |_, history| self.check::<C>(&history, shown, self.plan.large - 1),
        )?;
        Self::print::<C>("compacted", times)
    }

    fn fork<C: Chat>(&self, store: &Path, count: usize, task: &str) -> Result<()> {
        if !self.does::<C>(task) {
            return Ok(());
        }
        let mut chat = C::open(&self.copy(store, task)?, false)?;
        let at = chat.ids()?[count - 1].clone();
        let times = repeat(
            &mut chat,
            self.plan.seconds,
            |_| Ok(()),
            |chat, ()| chat.fork(&at),
            |chat, name| match chat.fork_length(&name)? {
                length if length == count => Ok(()),
                length => Err(format!("the fork has {length} messages, expected {count}").into()),
            },
        )?;
        Self::print::<C>(task, times)
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
            for (task, word, expected) in [
                ("search-huge", &self.plan.usual, self.plan.usual_huge),
                ("search-common", &self.plan.common, self.plan.common_huge),
            ] {
                self.searches(&mut chat, task, word, expected)?;
            }
        }
        Ok(())
    }

    fn searches<C: Chat>(
        &self,
        chat: &mut C,
        task: &str,
        word: &str,
        expected: usize,
    ) -> Result<()> {
        if !self.does::<C>(task) {
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
        Self::print::<C>(task, times)
    }
}

fn check_hits(found: &[String], word: &str, expected: usize, limit: usize) -> Result<()> {
    if found.len() != expected.min(limit) || found.iter().any(|text| !text.contains(word)) {
        return Err(format!("{} hits for {word:?}: {found:?}", found.len()).into());
    }
    Ok(())
}

/// Appends messages and returns the mean time of one append, in seconds.
fn appends<C: Chat>(chat: &mut C, messages: &[TestMessage]) -> Result<f64> {
    let start = Instant::now();
    for message in messages {
        chat.append(message)?;
    }
    Ok(start.elapsed().as_secs_f64() / messages.len() as f64)
}
