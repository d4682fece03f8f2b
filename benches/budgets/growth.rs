//! Do the verbs of every turn cost the same in a session that is a thousand times as long?

use std::time::Duration;

use crate::measure::{Rounds, alternate, timed, timed_each};
use crate::messages::{Length, Speaker};
use crate::stores::Sized;
use crate::table::Row;
use crate::{Bench, Result, short};

/// A verb: its name, and a function that times one call.
pub(crate) type Verb = (&'static str, fn(&Sized, &mut Speaker) -> Result<Duration>);

pub(crate) const VERBS: [Verb; 5] = [
    ("append", append),
    ("head", |sized, _| timed_each(10, || Ok(sized.long.head()?))),
    ("checkout", checkout),
    ("last 50", |sized, _| timed(|| Ok(sized.long.page().limit(50).run()?))),
    ("path_length", |sized, _| timed_each(10, || Ok(sized.long.path_length()?))),
];

fn append(sized: &Sized, speaker: &mut Speaker) -> Result<Duration> {
    let message = speaker.message();
    timed(|| Ok(sized.long.append(message)?))
}

/// Checks out the middle and the leaf; returns the mean time.
fn checkout(sized: &Sized, _: &mut Speaker) -> Result<Duration> {
    let time = timed(|| {
        sized.long.checkout(&sized.middle)?;
        Ok(sized.long.checkout(&sized.last)?)
    })?;
    Ok(time / 2)
}

pub(crate) fn run(bench: &mut Bench) -> Result<()> {
    let small = bench.stores.sized(1_000)?;
    let large = bench.stores.sized(bench.million)?;
    let (mut here, mut there) = (Speaker::new(6, Length::Short), Speaker::new(6, Length::Short));
    let rounds = Rounds { most: 5_000, ..Rounds::default() };
    for (name, verb) in VERBS {
        let pair = alternate(rounds, || verb(&small, &mut here), || verb(&large, &mut there))?;
        let work = format!("{name} at {}; floor: at 1k", short(large.size));
        let row = Row::seconds(work, pair.ours.median()).floor(pair.floor.median());
        bench.table.add(if name == "path_length" { row } else { row.within(1.1) });
    }
    for sized in [small, large] {
        sized.long.checkout(&sized.last)?;
    }
    Ok(())
}
