//! Short forms of message ids, which [`lookup::message`](crate::lookup::message) finds again.

use std::collections::HashMap;

use talktree::{MessageId, Session, SessionId, Store};

use crate::failure::Result;
use crate::lookup;

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

#[cfg(test)]
mod tests {
    use talktree::Message;

    use super::*;

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
