//! Killing an erasure, or a retention, after each of its commits.
//!
//! An owner with chats, memory, keys and transcripts is erased on a layer that records every change of the disk. The disk
//! is then rebuilt as it is at each moment of the erasure, as if the process were killed there. A store that is opened on it
//! must be untouched, or must finish the erasure: then no byte of its files may have a mark of the owner, all else must be
//! there, and the table of terms must have those of all messages that are left. At some moments the process that finishes
//! the erasure is killed, too, after each of its commits. So it is with a retention that erases the sessions of the owner. What one
//! that removes them leaves over, the erasure of what was deleted deletes.
//!
//! At some moments another handle, which was opened and has searched before, appends and searches meanwhile, or a reader
//! keeps an old state of the log.
//!
//! The same is done to the command that erases, which is given again. At last several handles write the same words, erase them
//! and prove that, all at once: no proof may find what another one writes or erases.

mod again;
mod beside;
mod check;
mod fixture;

use std::path::{Path, PathBuf};
use std::time::Duration;

use talktree::Store;

use crate::scratch::scratch;
use crate::vfs::{self, Disk, Files, Record, write_files};
use crate::{Report, Result};
use check::{Left, Meanwhile};
use fixture::{Size, Verb};

/// At how many moments an erasure is killed.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Between two commits the erasure is also killed after every so many changes of the disk.
    #[arg(long, default_value_t = 5)]
    pub every: usize,
    /// After every so many commits the process that finishes the erasure is killed, too.
    #[arg(long, default_value_t = 2)]
    pub twice_every: usize,
    /// After every so many commits others use the store while the erasure is finished.
    #[arg(long, default_value_t = 2)]
    pub others_every: usize,
    /// The program that runs the command, if it is not this one.
    #[arg(long, hide = true)]
    pub program: Option<PathBuf>,
    /// How many erasures each of the handles proves beside the others.
    #[arg(long, default_value_t = 100)]
    pub proofs: u64,
}

impl Args {
    /// The short form.
    #[must_use]
    pub fn short() -> Self {
        Self { every: 100, twice_every: 25, others_every: 25, program: None, proofs: 8 }
    }
}

/// What was recorded on a disk.
struct Recorded {
    before: Files,
    record: Record,
    /// The position at which the erasure began.
    began: usize,
}

/// The figures of all kills.
#[derive(Debug, Default)]
struct Figures {
    changes: usize,
    commits: usize,
    kills: u64,
    of_retentions: u64,
    twice: u64,
    untouched: u64,
    complete: u64,
    beside: u64,
    again: u64,
}

/// Kills an erasure and retentions after each of their commits: in a file that an erasure rewrites, and in one that it does not.
///
/// # Errors
/// If the store cannot be filled or the erasure itself fails.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    beside::run(args.proofs, report)?;
    let _use = vfs::exclusive();
    let mut figures = Figures::default();
    for verb in Verb::ALL {
        for rewritten_up_to in [u64::MAX, 0] {
            let (size, figures) = (Size::default(), &mut figures);
            Kills { args, verb, rewritten_up_to, size, report, figures }.all()?;
        }
    }
    again::run(args, report, &mut figures)?;
    report.fact("changes of the disk by the erasures", figures.changes);
    report.fact("commits of the erasures", figures.commits);
    report.fact("kills", figures.kills);
    report.fact("of these, of retentions", figures.of_retentions);
    report.fact("kills that left all as it was", figures.untouched);
    report.fact("kills after the erasure was complete", figures.complete);
    report.fact("kills of those that finish it", figures.twice);
    report.fact("finished while others use the store", figures.beside);
    report.fact("kills after which the command was given again", figures.again);
    Ok(())
}

struct Kills<'a> {
    args: &'a Args,
    verb: Verb,
    rewritten_up_to: u64,
    size: Size,
    report: &'a mut Report,
    figures: &'a mut Figures,
}

impl Kills<'_> {
    fn all(&mut self) -> Result<()> {
        let mut size = Size::default();
        let erasure = record(Vec::new(), |path| {
            let store = self.open(path)?;
            fixture::fill(&store, self.verb)?;
            size = fixture::size(&store)?;
            let began = vfs::recorded();
            self.verb.run(&store)?;
            Ok(began)
        })?;
        self.size = size;
        let commits = erasure.record.commits(erasure.began);
        self.figures.changes += erasure.record.len() - erasure.began;
        self.figures.commits += commits.len();
        let mut has_begun = false;
        for moment in moments(&erasure, &commits, self.args.every) {
            let files = erasure.killed_at(moment);
            let of_commit = commits.iter().position(|commit| *commit == moment);
            self.figures.kills += 1;
            self.figures.of_retentions += u64::from(self.verb != Verb::Erasure);
            let place = format!("change {}", moment - erasure.began);
            match self.check(&files, Meanwhile::Nothing, &place)? {
                Some(Left::Untouched) if has_begun => {
                    self.fault(&place, "an erasure that had begun is forgotten")
                }
                Some(Left::Untouched) => self.figures.untouched += 1,
                Some(Left::Complete) => self.figures.complete += 1,
                Some(Left::Begun) => has_begun = true,
                None => continue,
            }
            if of_commit.is_some_and(|it| has_begun && it % self.args.twice_every.max(1) == 0) {
                self.twice(&files, &place)?;
            }
            if of_commit.is_some_and(|it| has_begun && it % self.args.others_every.max(1) == 0) {
                for meanwhile in [Meanwhile::Writer, Meanwhile::Reader] {
                    self.figures.beside += 1;
                    self.check(&files, meanwhile, &format!("{place}, {meanwhile:?}"))?;
                }
            }
        }
        Ok(())
    }

    /// Kills the process that finishes an erasure after each of its commits.
    fn twice(&mut self, files: &Files, first: &str) -> Result<()> {
        let finishing = record(files.clone(), |path| {
            let store = self.open(path)?;
            let began = vfs::recorded();
            store.finish_erasure()?;
            Ok(began)
        })?;
        let commits = finishing.record.commits(finishing.began);
        for moment in moments(&finishing, &commits, usize::MAX) {
            self.figures.twice += 1;
            let place = format!("{first}, then change {}", moment - finishing.began);
            let files = finishing.killed_at(moment);
            if let Some(Left::Untouched) = self.check(&files, Meanwhile::Nothing, &place)? {
                self.fault(&place, "an erasure that had begun is forgotten");
            }
        }
        Ok(())
    }

    fn fault(&mut self, place: &str, what: &str) {
        let Args { every, twice_every, others_every, .. } = self.args;
        let replay = format!(
            "just torture erasures --every {every} --twice-every {twice_every} --others-every {others_every}"
        );
        let (verb, up_to) = (self.verb, self.rewritten_up_to);
        let what = format!("{verb:?} killed at {place}, rewritten up to {up_to} bytes: {what}");
        self.report.failure(what, replay);
    }

    /// Checks what is left; `None` if that is a fault.
    fn check(&mut self, files: &Files, meanwhile: Meanwhile, place: &str) -> Result<Option<Left>> {
        let folder = scratch()?;
        let path = write_files(files, folder.path())?;
        let checked = self
            .open(&path)
            .and_then(|store| check::finished(store, &path, self.size, self.verb, meanwhile));
        match checked {
            Ok((left, wrong)) if wrong.is_empty() => Ok(Some(left)),
            Ok((_, wrong)) => {
                self.fault(place, &wrong.join("; "));
                Ok(None)
            }
            Err(error) => {
                self.fault(place, &error.to_string());
                Ok(None)
            }
        }
    }

    fn open(&self, path: &Path) -> Result<Store> {
        let options = Store::options().erasure_rewrites_up_to(self.rewritten_up_to);
        // A reader that keeps the log is waited for.
        Ok(options.busy_timeout(Duration::from_millis(200)).open(path)?)
    }
}

/// Records what `work` does to a disk with these files; it returns where the interesting part began.
fn record(before: Files, work: impl FnOnce(&Path) -> Result<usize>) -> Result<Recorded> {
    let folder = scratch()?;
    let path = write_files(&before, folder.path())?;
    vfs::start_record();
    let began = work(&path);
    let record = vfs::end_record();
    Ok(Recorded { before, record, began: began? })
}

impl Recorded {
    /// Returns the files that a process leaves that is killed at a moment.
    fn killed_at(&self, moment: usize) -> Files {
        let mut disk = Disk::with_files(&self.record, &self.before);
        disk.advance(moment);
        disk.kill()
    }
}

/// Returns the moments of the kills, in order: after each commit, and after every so many changes.
fn moments(recorded: &Recorded, commits: &[usize], every: usize) -> Vec<usize> {
    let end = recorded.record.len();
    let mut moments: Vec<usize> = (recorded.began..end).step_by(every.max(1)).collect();
    moments.extend(commits);
    moments.push(end);
    moments.sort_unstable();
    moments.dedup();
    moments
}
