//! The short form of `erasures`.

use talktree_torture::{Report, Result, erasures};

#[test]
fn a_killed_erasure_is_finished_and_leaves_no_byte() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("erasures", 7);
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    erasures::run(&erasures::Args { program, ..erasures::Args::short() }, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    let figure = |name: &str| -> u64 {
        report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    assert!(figure("commits of the erasures") > 12);
    assert!(figure("kills") > figure("commits of the erasures"));
    assert!(figure("kills that left all as it was") > 1);
    assert!(figure("kills after the erasure was complete") > 1);
    assert!(figure("kills of those that finish it") > 12);
    assert!(figure("finished while others use the store") > 2);
    assert!(figure("kills after which the command was given again") > 60);
    assert!(figure("proofs beside other erasures") > 40);
    Ok(())
}
