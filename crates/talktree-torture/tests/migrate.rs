//! The short form of `migrate`.

use talktree_torture::{Report, Result, migrate};

#[test]
fn a_killed_migration_leaves_the_old_version_or_the_new_one() -> Result<()> {
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = migrate::Args { rounds: 20, messages: 10_000, large: 20_000, program };
    let mut report = Report::new("migrate", fastrand::u64(..1 << 32));
    migrate::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    assert!(report.value("version 1: stores left old").is_some_and(|count| count != "0"));
    Ok(())
}
