//! The quick form of `hosts`, where PostgreSQL is installed.

use talktree_torture::{Report, Result, hosts};

#[test]
fn several_hosts_on_a_server_that_fails_lose_mix_and_keep_nothing() -> Result<()> {
    let _turn = crate::turn();
    let program = Some(env!("CARGO_BIN_EXE_talktree-torture").into());
    let mut report = Report::new("hosts", fastrand::u64(..1 << 32));
    hosts::run(&hosts::Args { program, ..hosts::Args::quick() }, &mut report)?;
    println!("{report}");
    assert_eq!(report.failures(), [""; 0]);
    Ok(())
}
