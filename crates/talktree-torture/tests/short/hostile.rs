//! The short form of `hostile`.

use talktree_torture::{Report, Result, hostile};

#[test]
fn hostile_input_breaks_nothing() -> Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("hostile", 7);
    let args = hostile::Args { cases: 400, check: None, case: None, write_seeds: None };
    hostile::run(&args, &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    for (name, _) in hostile::CHECKS {
        assert_eq!(report.value(&format!("{name}: inputs")), Some("400"), "{report}");
    }
    Ok(())
}
