//! The short form of `contend`.

use talktree_torture::{Report, Result, contend};

#[test]
fn writers_of_one_file_neither_lose_nor_mix_messages() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let args = contend::Args {
        seconds: 1.5,
        writers: vec![2, 6],
        durability: "normal".to_owned(),
        program,
    };
    let mut report = Report::new("contend", fastrand::u64(..1 << 32));
    contend::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    for name in ["writes", "reads"] {
        let count: u64 =
            report.value(name).and_then(|value| value.parse().ok()).unwrap_or_default();
        assert!(count > 100, "{name}: {count}");
    }
    Ok(())
}
