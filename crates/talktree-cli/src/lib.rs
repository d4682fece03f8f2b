//! The `talktree` command: import, browse, branch, compact and search conversations.
//!
//! Each subcommand has its arguments and its function in `commands`. Commands write through [`output::Output`], which escapes
//! control characters in stored text. A command that fails returns a [`failure::Failure`]: an exit code and a message for
//! people.

#[cfg(feature = "browse")]
mod browse;
mod cli;
mod commands;
mod context;
mod failure;
mod input;
mod last_list;
mod lookup;
mod names;
mod new_file;
mod output;
mod pager;
mod prelude;
mod suggestion;
mod summarizer;
mod table;
mod text;
mod time;
mod whole;
mod work;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;

/// Runs the command with the arguments of a process, the program's name first.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if let Some(code) = commands::completed(&arguments) {
        return code;
    }
    // A bare `talktree` is a question.
    if arguments.len() < 2 {
        return printed(cli::Cli::command().print_help());
    }
    let arguments = match commands::with_queries(arguments) {
        Ok(arguments) => arguments,
        Err(failure) => {
            failure.report();
            return failure.exit_code();
        }
    };
    let cli = match cli::Cli::parse_coloured(arguments.iter().cloned()) {
        Ok(cli) => cli,
        // Help and version are errors to the parser, too.
        Err(error) if error.use_stderr() => {
            report_usage(&error, &arguments);
            return ExitCode::from(2);
        }
        Err(help) => return printed(help.print()),
    };
    suggestion::set_store(cli.store.as_deref());
    let mut context = context::Context::new(&cli);
    let done = cli.command.run(&mut context).and_then(|done| {
        context.out.flush()?;
        Ok(done)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Output from before the failure is still written. If that fails too, the first failure
            // is the one to report.
            let _ = context.out.flush();
            failure.report();
            failure.exit_code()
        }
    }
}

/// Writes an error of the parser to stderr.
///
/// It quotes arguments as they are, control characters and any length included. So the parser reads the arguments once more, as
/// they may be shown.
fn report_usage(error: &clap::Error, arguments: &[OsString]) {
    use std::io::Write;
    let shown = arguments.iter().map(|argument| {
        let argument = argument.to_string_lossy();
        text::escape(&text::without_middle(&argument)).into_owned().into()
    });
    match cli::Cli::parse_coloured(shown) {
        Err(shown) if shown.kind() == error.kind() => {
            let _ = shown.print();
        }
        // The argument is wrong because of what is not shown: it is not UTF-8.
        _ => {
            let mut stderr = std::io::stderr().lock();
            for line in error.render().to_string().lines() {
                let _ = writeln!(stderr, "{}", text::escape(&text::without_middle(line)));
            }
        }
    }
}

/// Returns the exit code of a text that was printed.
fn printed(result: std::io::Result<()>) -> ExitCode {
    use std::io::Write;
    // The standard library ignores a failure to write what is left when the process ends.
    match result.and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = failure::Failure::Output(error);
            failure.report();
            failure.exit_code()
        }
    }
}
