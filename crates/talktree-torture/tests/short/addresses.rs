//! The short form of `addresses`.

use talktree_torture::{Report, Result, addresses};

#[test]
fn verbs_with_unusual_names_agree_with_a_plain_list_of_parents() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("addresses", 7);
    addresses::run(&addresses::Args { cases: 30, case: None }, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    for fact in ["verbs done", "verbs refused", "reads compared"] {
        let count: u64 = report.value(fact).unwrap_or_default().parse()?;
        assert!(count > 500, "{fact}: {report}");
    }
    Ok(())
}
