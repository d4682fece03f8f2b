//! The command of the load run.

use std::process::ExitCode;

use clap::Parser;
use talktree_bot_rig::{Result, load};

fn main() -> Result<ExitCode> {
    let args = load::Args::parse();
    let report = load::run(&args)?;
    print!("{report}");
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
