//! The short form of `faults`.

use talktree_torture::{Report, Result, faults};

#[test]
fn after_a_failed_system_call_the_answer_is_true_and_the_store_keeps_working() -> Result<()> {
    let _turn = crate::turn();
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

/// FTS5 kept a total that it had failed to read, and wrote it with the next commit.
#[test]
fn a_read_that_failed_once_does_not_damage_the_index_with_the_next_commit() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("faults", 7);
    let only = |text: &str| Some(text.to_owned());
    let args = faults::Args { verb: only("clear"), kind: only("read"), after: None, step: 2 };
    faults::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    Ok(())
}

/// The commit was followed by a read of whether the summary is shown: if that read failed, a committed compaction was
/// reported as failed.
#[test]
fn a_compaction_reported_as_failed_was_not_committed() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("faults", 7);
    let (verb, kind) = ("commit a plan".to_owned(), "lock of shared memory".to_owned());
    let args = faults::Args { verb: Some(verb), kind: Some(kind), after: None, step: 1 };
    faults::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    let failed = report.value("lock of shared memory: calls failed").unwrap_or_default();
    assert!(failed.contains("committed all the same 0;"), "{report}");
    Ok(())
}
