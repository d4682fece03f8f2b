//! Text from standard input.

use std::io::Read;

use crate::failure::{Failure, Result};

/// Returns all of stdin; the error names the text as `what`.
pub(crate) fn read(what: &str) -> Result<String> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Input(format!("{what} cannot be read from stdin: {error}"))),
    }
}
