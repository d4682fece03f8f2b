//! The short form of `extremes`.

use talktree_torture::{Report, extremes};

#[test]
fn large_trees_foreign_ids_and_wrong_clocks_are_handled() {
    let _turn = crate::turn();
    let args = extremes::Args {
        messages: 20_000,
        children: 10_000,
        branches: 400,
        foreign_ids: 400,
        times: 300,
    };
    let mut report = Report::new("extremes", 7);
    extremes::run(&args, &mut report).unwrap();
    println!("{report}");
    assert_eq!(report.failures(), [] as [String; 0]);
    let count =
        |name: &str| report.value(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    assert!(count("verbs called with foreign ids") > 40);
    assert_eq!(count("messages with times out of order"), 300);
    assert!(count("orders compared") > 20);
    assert!(count("messages given again") > 1_000);
    for shape in ["path", "children", "branches"] {
        assert!(report.value(&format!("{shape}: verify at the end")).is_some(), "{shape}");
    }
}
