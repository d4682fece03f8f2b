//! The short form of `grow`.

use talktree_torture::{Report, Result, grow};

#[test]
fn neither_log_nor_memory_grows_with_what_is_written_and_read() -> Result<()> {
    let _turn = crate::turn();
    let args = grow::Args { messages: 6_000, megabytes: 8, path: 20_000, max_memory: 64 };
    let mut report = Report::new("grow", fastrand::u64(..1 << 32));
    grow::run(&args, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    assert_eq!(report.value("messages read"), Some("40000"));
    assert!(report.value("imported messages").is_some_and(|count| count != "0"));
    Ok(())
}
