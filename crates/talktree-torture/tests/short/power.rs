//! The short form of `power`.

use talktree_torture::{Report, power};

fn args(lying_disk: bool) -> power::Args {
    power::Args { images: 120, images_per_round: 20, verbs: 50, round: None, lying_disk }
}

#[test]
fn nothing_acknowledged_is_lost_in_a_power_cut() -> talktree_torture::Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("power", 7);
    power::run(&args(false), &mut report)?;
    assert!(report.failures().is_empty(), "{report}");
    for durability in ["full", "normal"] {
        for fact in ["images", "syncs", "writes dropped", "writes torn"] {
            let value = report.value(&format!("{durability}: {fact}"));
            assert!(value.is_some_and(|value| value != "0"), "{durability}: {fact}\n{report}");
        }
    }
    Ok(())
}

#[test]
fn a_lying_disk_is_found_out() -> talktree_torture::Result<()> {
    let _turn = crate::turn();
    let mut report = Report::new("power", 7);
    power::run(&args(true), &mut report)?;
    assert!(!report.failures().is_empty(), "{report}");
    Ok(())
}
