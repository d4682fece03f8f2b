//! The rivals written in Rust run all tasks. The tasks check their own results, and a cell without a time says why.

use std::process::Command;

use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn compare(cache: &std::path::Path, args: &[&str]) -> Result<Vec<Value>> {
    let program = env!("CARGO_BIN_EXE_talktree-compare");
    let answer = Command::new(program)
        .args(["--quick", "--json", "--cache"])
        .arg(cache)
        .args(args)
        .output()?;
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let lines = String::from_utf8(answer.stdout)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?)
}

fn cells<'a>(lines: &'a [Value], rival: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["rival"] == rival && line["task"].is_string())
}

#[test]
fn each_task_has_a_time_or_a_reason() -> Result<()> {
    let cache = tempfile::tempdir()?;
    let lines = compare(cache.path(), &["--only", "bare", "--only", "jsonl"])?;
    assert_eq!(cells(&lines, "talktree").count(), 17);
    assert!(cells(&lines, "talktree").all(|cell| cell["seconds"].as_f64() > Some(0.0)));
    for (rival, missing) in [("bare", 2), ("jsonl", 1)] {
        let (measured, missing_cells): (Vec<_>, Vec<_>) =
            cells(&lines, rival).partition(|cell| cell["seconds"].as_f64() > Some(0.0));
        assert_eq!((measured.len(), missing_cells.len()), (17 - missing, missing));
        assert!(measured.iter().all(|cell| cell["ratio"].as_f64() > Some(0.0)));
        assert!(missing_cells.iter().all(|cell| cell["why"].is_string()), "{missing_cells:?}");
    }
    assert_eq!(std::fs::read_dir(cache.path())?.count(), 0, "files were left behind");
    Ok(())
}

#[test]
fn a_rival_that_is_not_installed_is_reported() -> Result<()> {
    let cache = tempfile::tempdir()?;
    let lines = compare(cache.path(), &["--only", "llm", "--only", "history"])?;
    let cells_of_llm: Vec<_> = cells(&lines, "llm").collect();
    assert_eq!(cells_of_llm.len(), 1);
    assert!(
        cells_of_llm[0]["why"].as_str().is_some_and(|why| why.contains("not installed")),
        "{cells_of_llm:?}"
    );
    assert!(cells(&lines, "talktree").all(|cell| cell["seconds"].as_f64() > Some(0.0)));
    Ok(())
}
