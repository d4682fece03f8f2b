//! The quick form of `soak`.

use talktree_torture::{Report, Result, soak};

#[test]
fn a_bot_for_many_people_loses_mixes_and_keeps_nothing() -> Result<()> {
    let _turn = crate::turn();
    let args = soak::Args {
        program: Some(env!("CARGO_BIN_EXE_talktree-torture").into()),
        ..soak::Args::quick()
    };
    let mut report = Report::new("soak", fastrand::u64(..1 << 32));
    soak::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    let figure = |name: &str| -> u64 {
        report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    assert!(figure("messages acknowledged") >= 5_500);
    assert!(figure("erasures") >= 16 && figure("summaries at the end") > 20);
    assert_eq!(figure("processes killed") + figure("processes restarted"), 6);
    Ok(())
}
