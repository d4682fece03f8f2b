//! The options of the command.

use std::path::PathBuf;

use crate::Result;

pub(crate) const HELP: &str = "\
Measures how well and how fast search finds what people mean, and prints a table for each part.

Usage: cargo bench -p talktree-import --bench finding -- [OPTIONS]

      --only PART      Only this part; repeat it for several: developer, typos, tools, chats, times, languages, guard, age, speed
      --list           List the tuned queries and the probes that fail, with the place of the first answer
      --list-held      List the held queries that fail, too: not while tuning
      --messages N     Size of the store of the part `speed`, which is kept in the target folder, and of that of `age` [default: 1000000]
      --runs N         How often each query is timed [default: 11]
      --kind TEXT      Only the kinds of queries of the part `speed` whose names have this text, and the times of each query
      --snapshot FILE  Store the first ten hits of 200 queries that find enough
      --compare FILE   Print which of those queries have other hits now, and whether the grades call these better
      --pool FILE      With --compare, store the hits of both builds, to be graded
      --help           Print this

Reads conversations in the folder TALKTREE_DATA, or in ../shared/data; parts that need them are skipped where it is absent.
Half of the queries of a set is held: a change of search may be tuned on the other half only.";

#[derive(Debug)]
pub(crate) struct Options {
    only: Vec<String>,
    pub(crate) lists_failures: bool,
    pub(crate) lists_held: bool,
    pub(crate) messages: usize,
    pub(crate) runs: usize,
    pub(crate) kind: Option<String>,
    pub(crate) snapshot: Option<PathBuf>,
    pub(crate) compare: Option<PathBuf>,
    pub(crate) pool: Option<PathBuf>,
}

impl Options {
    /// Reads the arguments; `None` if help is asked for.
    pub(crate) fn read(
        mut args: impl Iterator<Item = String>,
        parts: &[&str],
    ) -> Result<Option<Self>> {
        let mut options = Self {
            only: Vec::new(),
            lists_failures: false,
            lists_held: false,
            messages: 1_000_000,
            runs: 11,
            kind: None,
            snapshot: None,
            compare: None,
            pool: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--help" => return Ok(None),
                // Cargo passes it to every benchmark.
                "--bench" => {}
                "--list" => options.lists_failures = true,
                "--list-held" => (options.lists_failures, options.lists_held) = (true, true),
                "--messages" => options.messages = value()?.parse::<usize>()?.max(1_000),
                "--runs" => options.runs = value()?.parse::<usize>()?.max(1),
                "--kind" => options.kind = Some(value()?),
                "--snapshot" => options.snapshot = Some(value()?.into()),
                "--compare" => options.compare = Some(value()?.into()),
                "--pool" => options.pool = Some(value()?.into()),
                "--only" => {
                    let part = value()?;
                    if !parts.contains(&part.as_str()) {
                        return Err(format!("no part {part:?}; there are {parts:?}").into());
                    }
                    options.only.push(part);
                }
                _ => return Err(format!("unknown argument {arg:?}; see --help").into()),
            }
        }
        if options.pool.is_some() && options.compare.is_none() {
            return Err("--pool needs --compare".into());
        }
        Ok(Some(options))
    }

    /// Returns whether a part is measured. A file of hits asks for the part that reads or writes it.
    pub(crate) fn wants(&self, part: &str) -> bool {
        let has_file = self.snapshot.is_some() || self.compare.is_some();
        match self.only.as_slice() {
            [] if has_file => part == "guard",
            [] => part != "guard",
            only => only.iter().any(|name| name == part),
        }
    }
}
