//! The short form of `neighbours`.

use talktree_torture::{Report, Result, neighbours};

#[test]
fn what_other_programs_write_is_refused_by_name_and_found_by_verify() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("neighbours", 7);
    neighbours::run(&neighbours::Args { rounds: 4, step: 7, messages: 400 }, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for name in [
        "clients between two openings",
        "statements of clients during writes",
        "verbs that answered",
        "verbs that refused with a named error",
    ] {
        let count: u64 =
            report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        assert!(count > 5, "{name}: {count}");
    }
    Ok(())
}
