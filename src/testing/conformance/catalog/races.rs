//! Threads that do the same at once.

use std::sync::Barrier;

use super::Probe;
use crate::catalog::{BindingFilter, ResumeRequest, SessionChange, SessionFilter};
use crate::error::{Error, Result};
use crate::outcome::SessionDetails;

const THREADS: usize = 8;

/// Runs `work` in threads that start together, and returns what each of them returned.
fn at_once<T: Send>(work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (barrier, work) = (&Barrier::new(THREADS), &work);
    std::thread::scope(|scope| {
        let run = |number| {
            move || {
                barrier.wait();
                work(number)
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|number| scope.spawn(run(number))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| match thread.join() {
            Ok(answer) => answer,
            Err(_) => panic!("a thread panicked"),
        };
        threads.into_iter().map(join).collect()
    })
}

pub(super) fn resumes(probe: &Probe) -> Result<()> {
    for round in 1..=3 {
        let resumed = at_once(|_| probe.catalog.resume(&ResumeRequest::new("key")))?;
        let first = &resumed[0].session;
        assert!(resumed.iter().all(|one| one.session == *first), "one session: {resumed:?}");
        let new = resumed.iter().filter(|one| one.is_new).count();
        assert_eq!(new, 1, "one thread created it");
        assert_eq!(
            resumed.iter().filter(|one| one.former.is_some()).count(),
            usize::from(round > 1)
        );
        assert_eq!(probe.listed(&SessionFilter::default())?.len(), round);
        let open = BindingFilter { is_open: true, ..BindingFilter::default() };
        assert_eq!(probe.catalog.bindings(&open, None, 99)?.len(), 1);
        probe.catalog.change(first, &SessionChange::End("over".to_owned()))?;
    }
    Ok(())
}

pub(super) fn creates(probe: &Probe) -> Result<()> {
    let created = at_once(|number| {
        let details = SessionDetails::named(number.to_string());
        match probe.catalog.create(&"s".into(), &details) {
            Ok(()) => Ok(Some(number.to_string())),
            Err(Error::SessionExists { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    let created: Vec<_> = created.into_iter().flatten().collect();
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(probe.info("s")?.name.as_ref(), created.first());
    Ok(())
}

pub(super) fn tags(probe: &Probe) -> Result<()> {
    probe.create("s")?;
    let tagged = at_once(|thread| {
        let mut tagged = 0;
        for number in 0..20 {
            let tag = SessionChange::Tag(format!("{thread}.{number}"));
            match probe.catalog.change(&"s".into(), &tag) {
                Ok(()) => tagged += 1,
                Err(Error::InvalidValue { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(tagged)
    })?;
    assert_eq!((tagged.into_iter().sum::<usize>(), probe.info("s")?.tags.len()), (100, 100));
    Ok(())
}
