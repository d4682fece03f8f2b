//! The short form of `imports`.

use talktree_torture::{Report, Result, imports};

#[test]
fn an_import_survives_kills_and_other_writers() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args =
        imports::Args { rounds: 6, conversations: 400, messages: 1_500, writers: 2, program };
    let mut report = Report::new("imports", fastrand::u64(..1 << 32));
    imports::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    let name = "messages acknowledged beside an import";
    assert!(report.value(name).is_some_and(|count| count != "0"), "{report}");
    Ok(())
}
