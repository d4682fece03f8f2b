//! `talktree completions`: completion scripts for shells.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::Result;
use crate::output::Exact;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree completions [OPTIONS] <SHELL>")]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "talktree", &mut script);
    Ok(Exact::new(&mut context.out, false).write_all(&script)?)
}
