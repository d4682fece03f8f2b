//! The title of a session in lists: its name, or what a user said first.

use talktree::{Session, SessionInfo};
use talktree_import::Title;

use crate::failure::Result;
use crate::text::{cut, one_line};

/// The most columns of a title that is taken from a message.
const MAX_WIDTH: usize = 60;
/// How many of the first messages are read for a title.
const MAX_MESSAGES: usize = 16;

/// Returns the name of a session; else, in quotes, the title that an import would give it, or the first line that anyone wrote.
pub(crate) fn of(session: &Session, info: &SessionInfo) -> Result<String> {
    if let Some(name) = info.name.as_deref().map(one_line).filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    let (mut title, mut first) = (Title::default(), None);
    for message in session.path().raw().iter().take(MAX_MESSAGES) {
        let message = message?;
        title.add(&message);
        if title.is_final() {
            break;
        }
        let text = message.text();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        first = first.or_else(|| line.map(str::to_owned));
    }
    let line = title.line().or(first.as_deref());
    Ok(line.map(|line| format!("\"{}\"", cut(&one_line(line), MAX_WIDTH))).unwrap_or_default())
}
