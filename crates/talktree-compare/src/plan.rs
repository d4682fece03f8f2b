//! The tasks, their sizes, and the file that passes them to a rival's process.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Result, messages, rivals};

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    /// The title; `{small}`, `{large}` and `{huge}` are replaced by the sizes.
    title: &'static str,
}

impl Task {
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

const fn task(name: &'static str, title: &'static str) -> Task {
    Task { name, title }
}

/// The rows in the order in which they are printed.
pub(crate) const TASKS: &[Task] = &[
    task("append", "append, one by one to {large}"),
    task("append-deep", "append at {large}, searched"),
    task("append-full", "append, synchronous=FULL"),
    task("branch", "branch off the middle of {large}"),
    task("history-small", "history of {small}"),
    task("history", "history of {large}"),
    task("compacted", "history of {large}, 20 summaries"),
    task("last", "last 50 of {large}, warm"),
    task("last-cold", "last 50 of {large}, cold"),
    task("resume-small", "open and read {small}"),
    task("resume", "open and read {large}"),
    task("fork-small", "fork at {small}"),
    task("fork", "fork at {large}"),
    task("search-first", "first search after {large} appends"),
    task("search", "search {large}, 1 of 99 matches"),
    task("search-huge", "search {huge}, 1 of 99 matches"),
    task("search-common", "search {huge}, 1 of 9 matches"),
];

/// What a rival's process needs to know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The file with the messages, a JSON array of `huge + deep`.
    pub(crate) texts: PathBuf,
    /// The folder for the rival's files.
    pub(crate) folder: PathBuf,
    pub(crate) small: usize,
    pub(crate) large: usize,
    pub(crate) huge: usize,
    /// Appends at `large`, and with `synchronous=FULL`.
    pub(crate) deep: usize,
    pub(crate) recent: usize,
    pub(crate) compactions: usize,
    /// Messages at the end that no summary covers.
    pub(crate) uncovered: usize,
    pub(crate) usual: String,
    pub(crate) common: String,
    /// How many of the first `large` and `huge` messages contain the usual word, and how many of the first `huge`
    /// contain the common one.
    pub(crate) usual_large: usize,
    pub(crate) usual_huge: usize,
    pub(crate) common_huge: usize,
    /// The maximum number of hits of a search.
    pub(crate) hits: usize,
    /// How long a read is repeated, in seconds.
    pub(crate) seconds: f64,
    /// How many stores are filled one message at a time.
    pub(crate) rounds: usize,
    /// The tasks to run; all if empty.
    pub(crate) only: Vec<String>,
}

impl Plan {
    /// Writes the texts into the folder and returns the plan.
    pub(crate) fn new(folder: &Path, is_quick: bool, only: &[String]) -> Result<Self> {
        let (small, large, huge, deep) =
            if is_quick { (200, 1_000, 4_000, 20) } else { (1_000, 10_000, 100_000, 200) };
        let texts = folder.join("texts.json");
        std::fs::write(&texts, serde_json::to_vec(&messages::generate(huge + deep))?)?;
        let is_task = |name: &&String| rivals::RIVALS.iter().all(|rival| rival.name != **name);
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
            usual: messages::USUAL.to_owned(),
            common: messages::COMMON.to_owned(),
            usual_large: messages::usual_in(large),
            usual_huge: messages::usual_in(huge),
            common_huge: messages::common_in(huge),
            hits: 20,
            seconds: if is_quick { 0.1 } else { 1.0 },
            rounds: if is_quick { 1 } else { 3 },
            only: only.iter().filter(is_task).cloned().collect(),
        })
    }

    pub(crate) fn read(path: &Path) -> Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Writes the plan of one rival, with a folder for its files; returns the path of the plan.
    pub(crate) fn write_for(&self, rival: &str) -> Result<PathBuf> {
        let folder = self.folder.join(rival);
        std::fs::create_dir_all(&folder)?;
        let path = self.folder.join(format!("{rival}.json"));
        let mut plan = serde_json::to_value(self)?;
        plan["folder"] = serde_json::to_value(folder)?;
        std::fs::write(&path, serde_json::to_vec(&plan)?)?;
        Ok(path)
    }

    pub(crate) fn wants(&self, task: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == task)
    }

    /// Returns how many messages one summary covers.
    pub(crate) fn covered(&self) -> usize {
        (self.large - self.uncovered) / self.compactions
    }
}
