//! Failing system calls, in short.

use talktree_torture::{Report, Result, faults};

#[test]
fn whatever_call_fails_the_answer_is_true_and_the_store_goes_on() -> Result<()> {
    let mut report = Report::new("faults", 7);
    let args = faults::Args { verb: None, kind: None, after: None, step: 201 };
    faults::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    for kind in ["write EIO", "write ENOSPC", "sync", "read", "open"] {
        let failed = report.value(&format!("{kind}: calls failed"));
        assert!(failed.is_some_and(|failed| !failed.starts_with("0 ")), "{kind}: {report}");
    }
    Ok(())
}

/// FTS5 remembers sums that it could not read, and would write them with the next commit.
#[test]
fn a_read_that_failed_once_does_not_damage_the_index_with_the_next_commit() -> Result<()> {
    let mut report = Report::new("faults", 7);
    let only = |text: &str| Some(text.to_owned());
    let args = faults::Args { verb: only("clear"), kind: only("read"), after: None, step: 2 };
    faults::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    Ok(())
}

/// Whether the summary shows was asked after the commit: where that read failed, a compaction was told as failed that stood.
#[test]
fn a_compaction_that_is_told_as_failed_is_not_there() -> Result<()> {
    let mut report = Report::new("faults", 7);
    let (verb, kind) = ("commit of a plan".to_owned(), "lock of shared memory".to_owned());
    let args = faults::Args { verb: Some(verb), kind: Some(kind), after: None, step: 1 };
    faults::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    let failed = report.value("lock of shared memory: calls failed").unwrap_or_default();
    assert!(failed.contains("there as a whole 0;"), "{report}");
    Ok(())
}
