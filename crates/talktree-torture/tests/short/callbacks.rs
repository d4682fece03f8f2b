//! The short form of `callbacks`.

use talktree_torture::{Report, Result, callbacks};

#[test]
fn callbacks_that_panic_block_and_call_back_break_nothing() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("callbacks", fastrand::u64(..1 << 32));
    let args = callbacks::Args { rounds: 12, threads: 3, verbs: 40, round: None };
    callbacks::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for what in [
        "callbacks that panicked",
        "callbacks that failed",
        "callbacks that blocked",
        "callbacks that called back",
        "callbacks that waited for a thread that called back",
    ] {
        assert!(report.value(what).is_some_and(|count| count != "0"), "{what}: {report}");
    }
    Ok(())
}
