//! The short form of `commits`.

use talktree_torture::{Report, Result, commits};

#[test]
fn threads_that_share_commits_are_told_the_truth() -> Result<()> {
    let _turn = crate::turn();
    // In how many rounds the call that fails is reached depends on how the threads take turns: about one in five.
    let args =
        commits::Args { sync_ms: 1.0, seconds: 0.2, threads: vec![1, 8], faults: 240, cuts: 100 };
    let mut report = Report::new("commits", 7);
    commits::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    let figure = |name: &str| -> u64 {
        report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    assert!(figure("rounds in which a call failed") > 20);
    assert!(figure("appends failed") > 20);
    // Commits are shared: one failure reaches several threads, and there are fewer syncs than appends.
    assert!(figure("appends failed by one call, most") > 1);
    assert!(figure("syncs before them") < figure("appends before them"));
    Ok(())
}
