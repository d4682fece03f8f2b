//! The program `talktree`.

use std::process::ExitCode;

fn main() -> ExitCode {
    talktree_cli::run(std::env::args_os().collect())
}
