//! The short form of `kill`.

use talktree_torture::{Report, Result, kill};

fn few_kills(writers: usize, threads: usize, kills: u64) -> Result<Report> {
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let (writers, threads) = (Some(writers), Some(threads));
    let args = kill::Args { kills, writers, threads, durability: None, round: None, program };
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
    let _turn = crate::turn();
    let report = few_kills(1, 1, 15)?;
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(figure(&report, "kills"), 30);
    assert!(figure(&report, "verbs acknowledged") > 20);
    Ok(())
}

#[test]
fn killed_writers_of_one_file_lose_nothing() -> Result<()> {
    let _turn = crate::turn();
    let report = few_kills(4, 1, 24)?;
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(figure(&report, "kills"), 48);
    assert!(figure(&report, "backups opened") > 0);
    assert!(figure(&report, "verbs acknowledged") > 20);
    Ok(())
}

#[test]
fn killed_threads_that_share_commits_lose_nothing() -> Result<()> {
    let _turn = crate::turn();
    let report = few_kills(1, 6, 12)?;
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(figure(&report, "kills"), 24);
    assert!(figure(&report, "verbs acknowledged") > 100);
    Ok(())
}
