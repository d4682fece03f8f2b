//! Threads that do the same at once.

use std::sync::Barrier;

use talktree::{Error, Result, SessionChange, SessionDetails};

use super::Probe;

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

#[test]
fn of_threads_that_create_one_session_one_succeeds() -> Result<()> {
    let probe = Probe::new()?;
    let created = at_once(|number| {
        let details = SessionDetails::named(number.to_string());
        match probe.create_as(&"s".into(), &details) {
            Ok(()) => Ok(Some(number.to_string())),
            Err(Error::SessionExists { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    let created: Vec<_> = created.into_iter().flatten().collect();
    assert_eq!(created.len(), 1, "{created:?}");
    assert_eq!(probe.info("s")?.name.as_ref(), created.first());
    probe.is_sound()
}

#[test]
fn threads_that_tag_a_session_do_not_exceed_the_limit() -> Result<()> {
    let probe = Probe::new()?;
    probe.create("s")?;
    let tagged = at_once(|thread| {
        let mut tagged = 0;
        for number in 0..20 {
            let tag = SessionChange::Tag(format!("{thread}.{number}"));
            match probe.store.change_session(&"s".into(), &tag) {
                Ok(()) => tagged += 1,
                Err(Error::InvalidValue { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(tagged)
    })?;
    assert_eq!((tagged.into_iter().sum::<usize>(), probe.info("s")?.tags.len()), (100, 100));
    probe.is_sound()
}
