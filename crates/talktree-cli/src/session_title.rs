//! The title of a session in lists: its name, or what a user said first.

use talktree::{Role, Session, SessionInfo};

use crate::failure::Result;
use crate::text::{cut, one_line};

/// The most columns of a title that is taken from a message.
const MAX_WIDTH: usize = 60;
/// How many of the first messages are read for a title.
const MAX_MESSAGES: usize = 16;

/// Returns the name of a session, or else the first line that a user wrote, in quotes.
///
/// Programs put tagged text of their own into messages of a user, so a line that starts with `<` is the last choice.
pub(crate) fn of(session: &Session, info: &SessionInfo) -> Result<String> {
    if let Some(name) = info.name.as_deref().map(one_line).filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    let mut tagged = None;
    for message in session.path().raw().iter().take(MAX_MESSAGES) {
        let message = message?;
        let text = message.text();
        let Some(line) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
            continue;
        };
        if message.role == Role::User && !line.starts_with('<') {
            return Ok(quoted(line));
        }
        tagged.get_or_insert_with(|| quoted(line));
    }
    Ok(tagged.unwrap_or_default())
}

fn quoted(line: &str) -> String {
    format!("\"{}\"", cut(&one_line(line), MAX_WIDTH))
}
