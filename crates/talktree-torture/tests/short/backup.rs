//! The short form of `backup`.

use talktree_torture::{Report, Result, backup};

#[test]
fn a_backup_holds_every_message_acknowledged_before_it() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = backup::Args { seconds: 2.5, writers: 4, durability: "normal".to_owned(), program };
    let mut report = Report::new("backup", fastrand::u64(..1 << 32));
    backup::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for name in ["backups", "messages looked up in copies", "messages acknowledged during backups"]
    {
        let count: u64 =
            report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        assert!(count > 1, "{name}: {count}");
    }
    Ok(())
}
