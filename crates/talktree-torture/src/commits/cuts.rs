//! The power is cut while threads share commits: what any of them was told must be there.

use std::time::Duration;

use talktree::{Durability, Store};

use super::{Args, THREADS, count, in_threads, message, session};
use crate::scratch::scratch;
use crate::vfs::{self, Cut, Disk, Files, Record};
use crate::{Report, Result};

/// How many messages each thread appends in a round.
const EACH: usize = 25;
/// How many disk images are made from one round.
const IMAGES: usize = 50;
/// How much longer a sync takes, so that threads wait for it together on any machine, also a busy one.
const SLOWER: Duration = Duration::from_millis(1);

pub(super) fn run(args: &Args, report: &mut Report) -> Result<()> {
    let rounds = args.cuts.div_ceil(IMAGES) as u64;
    let (mut cut, mut syncs, mut appended) = (Cut::default(), 0, 0);
    for round in 0..rounds {
        let (record, told) = work()?;
        syncs += record.syncs();
        appended += THREADS * EACH;
        let mut dice = fastrand::Rng::with_seed(report.seed().wrapping_add(round));
        let mut moments: Vec<usize> = (0..IMAGES).map(|_| dice.usize(..=record.len())).collect();
        moments.sort_unstable();
        let mut disk = Disk::new(&record, false);
        for moment in moments {
            disk.advance(moment);
            let files = disk.power_cut(&mut dice, &mut cut);
            let told: Vec<usize> =
                told.iter().map(|marks| marks.partition_point(|mark| *mark <= moment)).collect();
            let answer = check(&files, &told);
            for wrong in answer.unwrap_or_else(|error| vec![error.to_string()]) {
                let replay = format!("just torture commits --seed {}", report.seed());
                report.failure(format!("cut at event {moment}: {wrong}"), replay);
            }
        }
    }
    report.fact("power cuts", rounds * IMAGES as u64);
    report.fact("appends before them", appended);
    report.fact("syncs before them", syncs);
    report.fact("writes dropped", cut.dropped);
    report.fact("writes torn", cut.torn);
    Ok(())
}

/// Lets threads append on the recording layer; returns for each thread how many events there were after each append.
fn work() -> Result<(Record, Vec<Vec<usize>>)> {
    let folder = scratch()?;
    vfs::start_record();
    let worked = (|| -> Result<Vec<talktree::Result<Vec<usize>>>> {
        let path = folder.path().join("talk.db");
        let store = Store::options().durability(Durability::Full).open(path)?;
        vfs::slow_syncs(SLOWER);
        in_threads(THREADS, |thread| {
            let chat = session(&store, thread)?;
            let append = |number| chat.append(message(thread, number)).map(|_| vfs::recorded());
            (0..EACH).map(append).collect()
        })
    })();
    vfs::slow_syncs(Duration::ZERO);
    let record = vfs::end_record();
    Ok((record, worked?.into_iter().collect::<talktree::Result<_>>()?))
}

/// Opens what a cut left; returns what is wrong.
fn check(files: &Files, told: &[usize]) -> Result<Vec<String>> {
    let folder = scratch()?;
    let path = vfs::write_files(files, folder.path())?;
    if !path.exists() && told.iter().all(|told| *told == 0) {
        return Ok(Vec::new());
    }
    let store = Store::open(path)?;
    let mut wrong = Vec::new();
    for (thread, told) in told.iter().enumerate() {
        match count(&store, thread)? {
            Err(what) => wrong.push(what),
            Ok(held) if held < *told => {
                wrong.push(format!("thread {thread}: {held} of {told} acknowledged are there"));
            }
            Ok(_) => {}
        }
    }
    wrong.extend(store.verify(|_| {})?.damages.iter().map(|damage| format!("{damage:?}")));
    Ok(wrong)
}
