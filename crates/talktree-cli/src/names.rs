//! Short forms of ids, which [`lookup`] finds again, and the titles of sessions in lists.

use std::collections::HashMap;

use talktree::{MessageId, Session, SessionId, SessionInfo, Store};
use talktree_import::Title;

use crate::failure::Result;
use crate::lookup;
use crate::text::{cut, one_line};

/// The minimum length of a shortened id.
const MIN_PREFIX: usize = 8;

/// A set of ids, to shorten each to a unique prefix.
pub(crate) struct ShortIds(Vec<String>);

impl ShortIds {
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        ids.sort_unstable();
        Self(ids)
    }

    /// Returns the shortest prefix of at least eight characters that no other id has.
    pub(crate) fn of<'a>(&self, id: &'a str) -> &'a str {
        let Ok(at) = self.0.binary_search_by(|other| other.as_str().cmp(id)) else { return id };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let others = neighbours.into_iter().flatten().filter_map(|at| self.0.get(at));
        let common =
            others.map(|other| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count());
        let mut len = (common.max().unwrap_or(0) + 1).max(MIN_PREFIX);
        while len < id.len() && !id.is_char_boundary(len) {
            len += 1;
        }
        // An id that would lose only a few characters is not shortened.
        if len + 8 >= id.len() { id } else { &id[..len] }
    }
}

/// The minimum length of a short form. Ids that are created together differ at the end.
const MIN_LENGTH: usize = 8;
/// An id up to this length is shown whole.
const MAX_WHOLE: usize = 16;
/// Up to this many messages of a session are compared; in a longer session ids are shown whole.
const MAX_COMPARED: u64 = 20_000;

/// The short forms of some ids, by session.
pub(crate) struct ShortMessageIds(HashMap<(SessionId, MessageId), String>);

impl ShortMessageIds {
    /// Returns the short forms of the messages of these sessions.
    pub(crate) fn of<'a>(
        store: &Store,
        ids: impl IntoIterator<Item = (&'a SessionId, &'a MessageId)>,
    ) -> Result<Self> {
        let mut wanted: HashMap<&SessionId, Vec<&MessageId>> = HashMap::new();
        for (session, id) in ids.into_iter().filter(|(_, id)| id.as_str().len() > MAX_WHOLE) {
            wanted.entry(session).or_default().push(id);
        }
        let mut short = HashMap::new();
        for (session, ids) in wanted {
            for (id, form) in shortened(&store.session(session.clone())?, &ids)? {
                short.insert((session.clone(), id), form);
            }
        }
        Ok(Self(short))
    }

    /// Returns the short form, or the id itself if it has none.
    pub(crate) fn get<'a>(&'a self, session: &SessionId, id: &'a MessageId) -> &'a str {
        self.0.get(&(session.clone(), id.clone())).map_or(id.as_str(), String::as_str)
    }
}

/// Returns `…` and the shortest end of each id that no other id and no label of the session has.
fn shortened(session: &Session, ids: &[&MessageId]) -> Result<Vec<(MessageId, String)>> {
    if session.tree()?.messages > MAX_COMPARED {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> = session.labels()?.into_iter().map(|label| label.name).collect();
    lookup::each_id(session, |id| names.push(id.as_str().to_owned()))?;
    let forms = ids.iter().filter_map(|id| {
        // An id that would lose only a few characters is not shortened.
        let lengths = MIN_LENGTH..id.as_str().len().saturating_sub(MIN_LENGTH);
        // A lookup tries what starts with a form before what ends with it.
        let is_unique = |form: &&str| {
            let others = names.iter().filter(|name| *name != id.as_str());
            others.clone().all(|name| !name.ends_with(form) && !name.starts_with(form))
        };
        let form = lengths.filter_map(|length| end(id, length)).find(is_unique)?;
        Some(((*id).clone(), format!("…{form}")))
    });
    Ok(forms.collect())
}

/// Returns the last bytes of an id, as whole characters.
fn end(id: &MessageId, length: usize) -> Option<&str> {
    let id = id.as_str();
    (0..=id.len().checked_sub(length)?).rev().find_map(|from| id.get(from..))
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
    use talktree::Message;

    use super::*;

    #[test]
    fn ids_are_shortened_to_unique_prefixes() {
        let ids = [
            "7f3a0c12-1111-4222-8333-444455556666",
            "7f3a0c12-2222-4222-8333-444455556666",
            "telegram:4711",
        ];
        let short = ShortIds::new(ids);
        assert_eq!(ids.map(|id| short.of(id)), ["7f3a0c12-1", "7f3a0c12-2", "telegram:4711"]);
        assert_eq!(ShortIds::new([ids[0]]).of(ids[0]), "7f3a0c12");
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
        let ids = ids.map(MessageId::from);
        let short = ShortMessageIds::of(&store, ids.iter().map(|id| (chat.id(), id)))?;
        let forms = ids.each_ref().map(|id| short.get(chat.id(), id));
        let expected = [
            "…122223333",
            "…422223333",
            "…00000000",
            "…755556666",
            "…888888888",
            "…table-xx",
            "m1",
        ];
        assert_eq!(forms, expected);
        for (form, id) in forms.into_iter().zip(&ids) {
            assert_eq!(&lookup::message(&chat, form)?, id, "{form}");
        }
        Ok(())
    }
}
