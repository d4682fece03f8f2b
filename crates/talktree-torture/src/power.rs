//! Power loss: what a store holds after a power cut at any moment.
//!
//! A workload runs on a layer that records every change of the disk. The disk is then rebuilt as a power cut at some
//! moment could leave it (writes that were not synced may be lost or torn), and the store is opened.
//! With [`Durability::Full`] every acknowledged verb must be there. With [`Durability::Normal`] the store must hold
//! what it held at some earlier moment. In either case it must be undamaged and keep working.

use std::sync::{Arc, Mutex, PoisonError};

use fastrand::Rng;
use talktree::{Durability, Message, Store};

use crate::scratch::scratch;
use crate::vfs::{self, Cut, Disk, Files, Record};
use crate::{Report, Result, Workload, digest, snapshot};

/// How the power is cut.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many disk images are opened, half for each durability.
    #[arg(long, default_value_t = 20_000)]
    pub images: usize,
    /// How many disk images are made from one run of the workload.
    #[arg(long, default_value_t = 100)]
    pub images_per_round: usize,
    /// How many verbs one run of the workload has.
    #[arg(long, default_value_t = 100)]
    pub verbs: usize,
    /// Run only this round.
    #[arg(long)]
    pub round: Option<u64>,
    /// Ignore syncs, as a lying disk does: work must be lost then.
    #[arg(long)]
    pub lying_disk: bool,
}

/// The record of one run of the workload.
struct Round {
    record: Record,
    /// After each acknowledged commit: the number of events so far and the digest of the store.
    marks: Vec<(usize, u64)>,
}

/// The figures of one durability.
#[derive(Default)]
struct Figures {
    images: u64,
    syncs: u64,
    cut: Cut,
    lost: Vec<u64>,
    ahead: u64,
}

/// Cuts the power at many moments.
///
/// # Errors
/// If the workload itself fails.
pub fn run(args: &Args, report: &mut Report) -> Result<()> {
    let _use = vfs::exclusive();
    let rounds = (args.images / args.images_per_round.max(1)).max(2) as u64;
    let mut figures = [Figures::default(), Figures::default()];
    for round in 0..rounds {
        if args.round.is_some_and(|only| only != round) {
            continue;
        }
        let durability = [Durability::Full, Durability::Normal][(round % 2) as usize];
        let seed = report.seed().wrapping_add(round);
        let done = work(durability, seed, args.verbs)?;
        let figures = &mut figures[(round % 2) as usize];
        figures.syncs += done.record.syncs() as u64;
        cut(args, &done, durability, round, figures, report)?;
        if round % 10 == 9 {
            eprintln!("power: {} of {rounds} rounds", round + 1);
        }
    }
    for (name, figures) in ["full", "normal"].iter().zip(figures) {
        let Figures { images, syncs, cut, mut lost, ahead } = figures;
        lost.sort_unstable();
        let most = lost.last().copied().unwrap_or(0);
        let median = lost.get(lost.len() / 2).copied().unwrap_or(0);
        report.fact(format!("{name}: images"), images);
        report.fact(format!("{name}: syncs"), syncs);
        report.fact(format!("{name}: writes dropped"), cut.dropped);
        report.fact(format!("{name}: writes torn"), cut.torn);
        report.fact(format!("{name}: acknowledged verbs lost, most"), most);
        report.fact(format!("{name}: acknowledged verbs lost, median"), median);
        report.fact(format!("{name}: images with a verb that was not acknowledged"), ahead);
    }
    Ok(())
}

/// Runs the workload on the recording layer.
fn work(durability: Durability, seed: u64, verbs: usize) -> Result<Round> {
    let folder = scratch()?;
    vfs::start_record();
    let marks = Arc::new(Mutex::new(Ok(Vec::new())));
    let worked = (|| -> Result<()> {
        let mut workload = Workload::open(&folder.path().join("talk.db"), durability, seed)?;
        let marked = Arc::clone(&marks);
        workload.observe(move |store| mark(&marked, store));
        mark(&marks, workload.store()?);
        for _ in 0..verbs {
            // A refused verb changes nothing; the mark checks that, too.
            let _ = workload.step();
            mark(&marks, workload.store()?);
        }
        Ok(())
    })();
    let record = vfs::end_record();
    worked?;
    let mut marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
    let marks = std::mem::replace(&mut *marks, Ok(Vec::new()))?;
    Ok(Round { record, marks })
}

/// The marks so far, or the error that prevented one.
type Marks = Mutex<talktree::Result<Vec<(usize, u64)>>>;

/// Records that what the store holds now has been acknowledged.
fn mark(marks: &Marks, store: &Store) {
    let events = vfs::recorded();
    let held = snapshot(store);
    let mut marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
    match (&mut *marks, held) {
        (Ok(marks), Ok(held)) => marks.push((events, digest(&held))),
        (marks, Err(error)) => *marks = Err(error),
        (Err(_), Ok(_)) => {}
    }
}

/// Cuts the power at many moments of a round and checks each image.
fn cut(
    args: &Args,
    round: &Round,
    durability: Durability,
    number: u64,
    figures: &mut Figures,
    report: &mut Report,
) -> Result<()> {
    let mut dice = Rng::with_seed(report.seed().wrapping_add(number).wrapping_mul(31));
    let mut moments: Vec<usize> =
        (0..args.images_per_round).map(|_| dice.usize(..=round.record.len())).collect();
    moments.sort_unstable();
    let mut disk = Disk::new(&round.record, args.lying_disk);
    for moment in moments {
        disk.advance(moment);
        let files = disk.power_cut(&mut dice, &mut figures.cut);
        figures.images += 1;
        let acknowledged = round.marks.partition_point(|mark| mark.0 <= moment);
        let replay = format!(
            "just torture power --seed {} --images {} --images-per-round {} --verbs {} --round {number}{}",
            report.seed(),
            args.images,
            args.images_per_round,
            args.verbs,
            if args.lying_disk { " --lying-disk" } else { "" }
        );
        let held = match open(&files) {
            Ok(held) => held,
            Err(error) => {
                report.failure(format!("cut at event {moment}, {durability:?}: {error}"), replay);
                continue;
            }
        };
        // The latest mark at which the store held exactly this; `None` if the file does not exist yet.
        let latest = match held {
            Some(held) => round.marks.iter().rposition(|mark| mark.1 == held),
            None if acknowledged == 0 => continue,
            None => None,
        };
        match (latest, held) {
            (None, Some(_)) => {
                let what = "the store holds something it never held before the cut";
                report.failure(format!("cut at event {moment}, {durability:?}: {what}"), replay);
            }
            (latest, _) => {
                let there = latest.map_or(0, |latest| latest + 1);
                figures.ahead += u64::from(there > acknowledged);
                let lost = acknowledged.saturating_sub(there);
                figures.lost.push(lost as u64);
                if lost > 0 && durability == Durability::Full {
                    let what = format!("{lost} of {acknowledged} acknowledged verbs are lost");
                    report.failure(format!("cut at event {moment}: {what}"), replay);
                }
            }
        }
    }
    Ok(())
}

/// Opens the store that a power cut left and returns its digest; `None` if there is no file.
fn open(files: &Files) -> Result<Option<u64>> {
    let folder = scratch()?;
    let path = vfs::write_files(files, folder.path())?;
    if !path.exists() {
        return Ok(None);
    }
    let store = Store::options().durability(Durability::Normal).open(&path)?;
    let held = digest(&snapshot(&store)?);
    let verified = store.verify(|_| {})?;
    if let Some(damage) = verified.damages.first() {
        return Err(format!("{}: {damage:?}", verified.damages.len()).into());
    }
    // The store must keep working.
    let session = store.session("afterwards")?;
    session.append(Message::user("the lights are back"))?;
    let found = store.search("lights back").run()?.hits.len();
    if found != 1 {
        return Err(format!("a search finds {found} of the 1 message appended afterwards").into());
    }
    Ok(Some(held))
}
