//! What is to be done: the works, the sizes, and the file that tells them to a rival's process.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Result, rivals, texts};

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    /// Its title; `{small}`, `{large}`, `{huge}` stand for the sizes.
    title: &'static str,
}

impl Work {
    pub(crate) fn title(&self, plan: &Plan) -> String {
        let short = |count: usize| {
            if count.is_multiple_of(1_000) {
                format!("{}k", count / 1_000)
            } else {
                count.to_string()
            }
        };
        self.title
            .replace("{small}", &short(plan.small))
            .replace("{large}", &short(plan.large))
            .replace("{huge}", &short(plan.huge))
    }
}

const fn work(name: &'static str, title: &'static str) -> Work {
    Work { name, title }
}

/// The rows in the order they are printed.
pub(crate) const WORKS: &[Work] = &[
    work("append", "append, one by one to {large}"),
    work("append-deep", "append at {large}, searched"),
    work("append-full", "append, synchronous=FULL"),
    work("branch", "branch off the middle of {large}"),
    work("history-small", "history of {small}"),
    work("history", "history of {large}"),
    work("compacted", "history of {large}, 20 summaries"),
    work("last", "last 50 of {large}, warm"),
    work("last-cold", "last 50 of {large}, cold"),
    work("resume-small", "open and read {small}"),
    work("resume", "open and read {large}"),
    work("fork-small", "fork at {small}"),
    work("fork", "fork at {large}"),
    work("search-first", "first search after {large} appends"),
    work("search", "search {large}, 1 of 99 fits"),
    work("search-huge", "search {huge}, 1 of 99 fits"),
    work("search-common", "search {huge}, 1 of 9 fits"),
];

/// What a rival's process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// A JSON array of messages, `huge` and a few more.
    pub(crate) texts: PathBuf,
    /// A folder of its own for the rival's files.
    pub(crate) folder: PathBuf,
    pub(crate) small: usize,
    pub(crate) large: usize,
    pub(crate) huge: usize,
    /// Appends at `large`, and under `synchronous=FULL`.
    pub(crate) deep: usize,
    pub(crate) recent: usize,
    pub(crate) compactions: usize,
    /// Messages that no summary covers, at the end.
    pub(crate) uncovered: usize,
    pub(crate) usual: String,
    pub(crate) common: String,
    /// How many of the first `large` and of the first `huge` say the usual word, and of the first
    /// `huge` the common one.
    pub(crate) usual_large: usize,
    pub(crate) usual_huge: usize,
    pub(crate) common_huge: usize,
    /// Rivals answer a search with so many at the most.
    pub(crate) hits: usize,
    /// How long a read is repeated, in seconds.
    pub(crate) seconds: f64,
    /// How many stores are filled one message at a time.
    pub(crate) rounds: usize,
    /// Only these works; all if there are none.
    pub(crate) only: Vec<String>,
}

impl Plan {
    /// Writes the texts into the folder and returns the plan.
    pub(crate) fn new(folder: &Path, is_quick: bool, only: &[String]) -> Result<Self> {
        let (small, large, huge, deep) =
            if is_quick { (200, 1_000, 4_000, 20) } else { (1_000, 10_000, 100_000, 200) };
        let texts = folder.join("texts.json");
        std::fs::write(&texts, serde_json::to_vec(&texts::say(huge + deep))?)?;
        let is_work = |name: &&String| rivals::RIVALS.iter().all(|rival| rival.name != **name);
        Ok(Self {
            texts,
            folder: folder.to_owned(),
            small,
            large,
            huge,
            deep,
            recent: 50,
            compactions: 20,
            uncovered: large / 50,
            usual: texts::USUAL.to_owned(),
            common: texts::COMMON.to_owned(),
            usual_large: texts::usual_in(large),
            usual_huge: texts::usual_in(huge),
            common_huge: texts::common_in(huge),
            hits: 20,
            seconds: if is_quick { 0.1 } else { 1.0 },
            rounds: if is_quick { 1 } else { 3 },
            only: only.iter().filter(is_work).cloned().collect(),
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Writes the plan for one rival, its files in a folder of its own; returns where it stands.
    pub(crate) fn write_for(&self, rival: &str) -> Result<PathBuf> {
        let folder = self.folder.join(rival);
        std::fs::create_dir_all(&folder)?;
        let path = self.folder.join(format!("{rival}.json"));
        let mut plan = serde_json::to_value(self)?;
        plan["folder"] = serde_json::to_value(folder)?;
        std::fs::write(&path, serde_json::to_vec(&plan)?)?;
        Ok(path)
    }

    pub(crate) fn wants(&self, work: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == work)
    }

    /// Returns how many messages one summary covers.
    pub(crate) fn stretch(&self) -> usize {
        (self.large - self.uncovered) / self.compactions
    }
}
