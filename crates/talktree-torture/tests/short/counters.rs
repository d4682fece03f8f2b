//! The short form of `counters`.

use talktree_torture::{Report, Result, counters};

#[test]
fn faulty_counters_fail_no_verb_and_leave_no_wrong_count() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("counters", fastrand::u64(..1 << 32));
    let args = counters::Args { counters: 24, verbs: 60, counter: None };
    counters::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for what in ["counts that failed", "failures that the handler heard", "compactions"] {
        assert!(report.value(what).is_some_and(|count| count != "0"), "{what}: {report}");
    }
    Ok(())
}
