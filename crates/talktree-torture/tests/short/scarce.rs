//! The short form of `scarce`.

use talktree_torture::{Report, Result, scarce};

#[test]
fn nothing_is_lost_without_space_or_memory() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("scarce", 7);
    scarce::run(&scarce::Args { mebibytes: 4, limits: 4 }, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    assert!(
        report.value("little memory: verb failed").is_some_and(|count| count != "0"),
        "{report}"
    );
    Ok(())
}
