//! The short form of `paths`.

use talktree_torture::{Report, Result, paths};

#[test]
fn what_is_acknowledged_is_in_the_file_that_the_path_leads_to() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = paths::Args { rounds: 150, round: None, program };
    let mut report = Report::new("paths", fastrand::u64(..1 << 32));
    paths::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for name in ["stores that were moved", "writes acknowledged", "calls refused after a move"] {
        let count: u64 =
            report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        assert!(count > 30, "{name}: {count}");
    }
    Ok(())
}
