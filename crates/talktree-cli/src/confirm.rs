//! Asks for confirmation before something is deleted.

use std::io::{IsTerminal, Write};

use crate::failure::{Failure, Result};

/// Asks whether to do something that cannot be undone; fails without a terminal.
///
/// `nothing` is the error if the answer is no.
pub(crate) fn confirm(is_confirmed: bool, to_do: &str, nothing: &str) -> Result<()> {
    if is_confirmed {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!("{nothing}: pass --yes to {to_do}")));
    }
    let mut stderr = std::io::stderr();
    let mut question = to_do.to_owned();
    if let Some(first) = question.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    write!(stderr, "{}? [y/N] ", crate::text::escape(&question))?;
    stderr.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Usage(nothing.to_owned())),
    }
}
