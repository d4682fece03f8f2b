//! The short form of `kill`.

use talktree_torture::{Report, Result, kill};

fn few_kills(writers: usize, kills: u64) -> Result<Report> {
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = kill::Args { kills, writers: Some(writers), durability: None, round: None, program };
    let mut report = Report::new("kill", fastrand::u64(..1 << 32));
    kill::run(&args, &mut report)?;
    println!("{report}");
    Ok(report)
}

fn figure(report: &Report, name: &str) -> u64 {
    report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

#[test]
fn a_killed_writer_loses_nothing() -> Result<()> {
    let report = few_kills(1, 15)?;
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(figure(&report, "kills"), 30);
    assert!(figure(&report, "verbs acknowledged") > 20);
    Ok(())
}

#[test]
fn killed_writers_of_one_file_lose_nothing() -> Result<()> {
    let report = few_kills(4, 24)?;
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(figure(&report, "kills"), 48);
    assert!(figure(&report, "verbs acknowledged") > 20);
    Ok(())
}
