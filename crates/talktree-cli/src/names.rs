//! Short forms of ids, which [`lookup`] finds again, and the titles of sessions in lists.

use std::cmp::Ordering;

use talktree::{Compaction, Session, SessionInfo, Store};
use talktree_import::Title;

use crate::failure::Result;
use crate::lookup;
use crate::text::{cut, one_line};

/// The minimum length of a short form, in characters. An id that would lose no more than that is not shortened.
const MIN_LENGTH: usize = 8;
/// Up to this many messages of a session are compared; in a longer session ids are shown whole.
const MAX_COMPARED: u64 = 20_000;

/// Ids, to shorten each to an end that no other has. Those that are made at one time have the same start.
#[derive(Default)]
pub(crate) struct ShortIds {
    by_start: Vec<String>,
    by_end: Vec<usize>,
}

impl ShortIds {
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut by_start: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        by_start.sort_unstable();
        by_start.dedup();
        let mut by_end: Vec<usize> = (0..by_start.len()).collect();
        by_end.sort_unstable_by(|one, other| compare_ends(&by_start[*one], &by_start[*other]));
        Self { by_start, by_end }
    }

    /// Returns the short ids of all sessions, those in the trash included.
    pub(crate) fn of_sessions(store: &Store) -> Result<Self> {
        let (present, trash) = (store.sessions()?, lookup::trash(store)?);
        Ok(Self::new(present.iter().chain(&trash).map(|info| info.id.as_str())))
    }

    /// Returns the short ids of the messages and summaries of a session. A label is no short id of another message.
    pub(crate) fn of_messages(session: &Session) -> Result<Self> {
        if session.info()?.is_none_or(|info| info.messages > MAX_COMPARED) {
            return Ok(Self::default());
        }
        let mut names: Vec<String> =
            session.labels()?.into_iter().map(|label| label.name).collect();
        lookup::each_id(session, |id| names.push(id.to_string()))?;
        let summaries = session.compactions().unwrap_or_default();
        names.extend(summaries.iter().map(|Compaction { id, .. }| id.as_message().to_string()));
        Ok(Self::new(names.iter().map(String::as_str)))
    }

    /// Returns the shortest end of at least eight characters that no other id has, or begins with. It begins with a letter or a digit.
    pub(crate) fn of<'a>(&self, id: &'a str) -> &'a str {
        if self.by_start.is_empty() {
            return id;
        }
        let found = self.by_end.binary_search_by(|at| compare_ends(&self.by_start[*at], id));
        let (before, after) = match found {
            Ok(at) => (at.checked_sub(1), at + 1),
            Err(at) => (at.checked_sub(1), at),
        };
        let neighbours = [before, Some(after)].into_iter().flatten();
        let others = neighbours.filter_map(|at| self.by_start.get(*self.by_end.get(at)?));
        let common = others.map(|other| {
            id.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count()
        });
        let length = (common.max().unwrap_or(0) + 1).max(MIN_LENGTH);
        // One that begins with a hyphen would be an option.
        let mut starts = id.char_indices().rev().skip(length - 1);
        let Some((at, _)) = starts.find(|(_, c)| c.is_alphanumeric()) else { return id };
        let form = &id[at..];
        // A lookup tries what starts with a form before what ends with it.
        let first = self.by_start.partition_point(|other| other.as_str() < form);
        let is_a_start = self.by_start.get(first).is_some_and(|other| other.starts_with(form));
        if is_a_start || at <= MIN_LENGTH { id } else { form }
    }
}

fn compare_ends(one: &str, other: &str) -> Ordering {
    one.chars().rev().cmp(other.chars().rev())
}

/// The most columns of a title that is taken from a message.
const MAX_TITLE: usize = 60;
/// How many of the first messages are read for a title.
const MAX_MESSAGES: usize = 16;

/// Returns the name of a session; else, in quotes, the title that an import would give it, or the first line that anyone wrote.
pub(crate) fn title_of(session: &Session, info: &SessionInfo) -> Result<String> {
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
    Ok(line.map(|line| format!("\"{}\"", cut(&one_line(line), MAX_TITLE))).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use talktree::{Message, MessageId};

    use super::*;

    #[test]
    fn ids_are_shortened_to_ends_that_no_other_has() {
        let ids = [
            "7f3a0c12-1111-4222-8333-444455556666",
            "7f3a0c12-2222-4222-8333-444455556666",
            "7f3a0c12-2222-4222-8333-444477778888",
            "telegram:4711",
            "博物馆的一个很长很长的会话标识符号码一",
        ];
        let short = ShortIds::new(ids);
        assert_eq!(
            ids.map(|id| short.of(id)),
            [
                "1-4222-8333-444455556666",
                "2-4222-8333-444455556666",
                "77778888",
                "telegram:4711",
                "会话标识符号码一"
            ]
        );
        assert_eq!(ShortIds::new([ids[0]]).of(ids[0]), "55556666");
        let named = "the-long-log-of-results";
        assert_eq!(ShortIds::new([named]).of(named), "f-results");
    }

    #[test]
    fn a_short_form_is_found_again() -> Result<()> {
        let store = Store::open_in_memory()?;
        let chat = store.session("s")?;
        let ids = [
            "019c1000-aaaa-7000-8000-111122223333",
            "019c1000-aaaa-7000-8000-444422223333",
            // It starts as the next one ends.
            "55556666-bbbb-7000-8000-000000000000",
            "019c1000-bbbb-7000-8000-777755556666",
            "019c1000-cccc-7000-8000-888888888888",
            "head-of-the-table-xx",
            "m1",
        ];
        chat.append_all(ids.map(|id| Message::user("x").with_id(id)))?;
        chat.label("a-88888888", &ids[5].into())?;
        let short = ShortIds::of_messages(&chat)?;
        let forms = ids.map(|id| short.of(id));
        let expected =
            ["122223333", "422223333", "00000000", ids[3], "888888888", "table-xx", "m1"];
        assert_eq!(forms, expected);
        for (form, id) in forms.into_iter().zip(&ids) {
            assert_eq!(lookup::message(&chat, form)?, MessageId::from(*id), "{form}");
        }
        Ok(())
    }
}
