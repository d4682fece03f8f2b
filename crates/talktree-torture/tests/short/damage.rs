//! The short form of `damage`.

use talktree_torture::{Report, damage};

#[test]
fn damage_is_reported_and_nothing_panics() {
    let _turn = crate::turn();
    let args = damage::Args {
        places: 30,
        lengths: 6,
        pages: 4,
        log_places: 10,
        threads: 2,
        limit: 60,
        round: None,
    };
    let mut report = Report::new("damage", 7);
    damage::run(&args, &mut report).unwrap();
    println!("{report}");
    assert_eq!(report.failures(), [] as [String; 0]);
    let count =
        |name: &str| report.value(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    assert_eq!(count("cases"), 30 + 6 + 2 * 4);
    assert!(count("truncated file: refused on opening") > 0);
    assert!(count("flipped byte: reported by reads and by verify") > 0);
    assert!(count("flipped byte: found only by verify") > 0);
    assert!(count("damaged logs: a beginning was read") > 0);
    assert!(count("stores that still accept appends") > 0);
}
