//! The short form of `imports`.

use talktree_torture::{Report, Result, imports};

#[test]
fn an_import_survives_kills_other_writers_and_files_of_other_programs() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = imports::Args {
        rounds: 6,
        conversations: 400,
        messages: 1_500,
        writers: 2,
        mixtures: 1_000,
        program,
    };
    let mut report = Report::new("imports", fastrand::u64(..1 << 32));
    imports::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for name in
        ["messages acknowledged beside an import", "mixed files refused", "mixed files imported"]
    {
        let count: u64 =
            report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        assert!(count > 1, "{name}: {count}");
    }
    Ok(())
}
