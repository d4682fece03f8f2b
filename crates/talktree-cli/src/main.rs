//! The `talktree` command: import, browse, branch, compact and search conversations.
//!
//! Each subcommand is one file in `commands`, with its arguments and what it does. They write
//! through [`output::Output`], which lets no control character of stored text through, and end with
//! a [`failure::Failure`], which is an exit code and a line for people.

mod clean;
mod cli;
mod commands;
mod context;
mod failure;
mod find;
mod output;
mod paint;
mod progress;
mod quote;
mod stdin;
mod summarizer;
mod table;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let mut context = context::Context::new(&cli);
    let done = commands::run(cli.command, &mut context).and_then(|done| {
        context.out.flush()?;
        Ok(done)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // What was found before the failure is still shown; that it cannot be is less news.
            let _ = context.out.flush();
            failure.report();
            failure.exit_code()
        }
    }
}
