//! The arguments that name the copies which an erasure left.

use std::collections::BTreeSet;

use talktree::{MessageId, Session};

use super::RANGE;
use crate::failure::Result;

/// Returns arguments that name exactly these messages; those that follow each other on a path are one range.
pub(super) fn arguments(session: &Session, ids: &[MessageId]) -> Result<Vec<String>> {
    let mut left: BTreeSet<&MessageId> = ids.iter().collect();
    let mut arguments = Vec::new();
    // The newest first: a fork copies a path.
    for last in ids.iter().rev() {
        if !left.contains(last) {
            continue;
        }
        let path = session.at(last).raw().row_stats()?;
        let mut first = last;
        for row in path.iter().rev().take_while(|row| left.contains(&row.id)) {
            first = &row.id;
            // An id with two dots would not be read as the end of a range.
            if row.id.as_str().contains(RANGE) {
                break;
            }
        }
        if last.as_str().contains(RANGE) || first.as_str().contains(RANGE) {
            first = last;
        }
        let start = path.iter().position(|row| row.id == *first).unwrap_or_default();
        for row in &path[start..] {
            left.remove(&row.id);
        }
        arguments.push(match first == last {
            true => last.to_string(),
            false => format!("{first}{RANGE}{last}"),
        });
    }
    arguments.reverse();
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use talktree::{Message, Store};

    use super::*;

    #[test]
    fn messages_that_follow_each_other_are_one_range() -> Result<()> {
        let chat = Store::open_in_memory()?.session("s")?;
        let say = |id: &str| Message::user("hi").with_id(id);
        chat.append_all(["a", "b", "c", "d", "e..f", "g"].map(say))?;
        chat.append_to(&"c".into(), say("h"))?;
        for (ids, expected) in [
            ("a", "a"),
            ("a b c", "a..c"),
            ("a c", "a c"),
            ("a b d", "a..b d"),
            ("a b c d h", "d a..h"),
            ("c d e..f g", "c..d e..f g"),
            ("", ""),
        ] {
            let ids: Vec<MessageId> = ids.split_whitespace().map(MessageId::from).collect();
            assert_eq!(arguments(&chat, &ids)?.join(" "), expected);
        }
        Ok(())
    }
}
