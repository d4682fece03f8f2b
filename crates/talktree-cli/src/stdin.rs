//! Texts that come by standard input.

use std::io::Read;

use crate::failure::{Failure, Result};

/// Returns all of stdin; `what` names the text where it cannot be read.
pub(crate) fn read(what: &str) -> Result<String> {
    let mut text = String::new();
    match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Input(format!("{what} cannot be read from stdin: {error}"))),
    }
}
