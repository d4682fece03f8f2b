//! The results of a search, for people and as JSON.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use talktree::{CompactionId, Hit, SessionHit, SessionId, Snippet, Store};

use super::SearchArgs;
use crate::prelude::*;
use crate::text::cut;

/// The most columns of a session's name beside a hit.
const MAX_TITLE: usize = 62;
/// How many messages before and after a hit the proposed command shows.
const AROUND: usize = 3;

/// How many hits are put into groups: as many as most searches rank.
pub(super) const GROUPED: usize = 1_000;

/// The hits of one session.
#[derive(Debug, Serialize)]
pub(super) struct Group<'a> {
    pub(super) best: &'a Hit,
    /// How many other hits the session has.
    more: usize,
}

/// Returns the hits by session, the session with the best hit first.
pub(super) fn groups(hits: &[Hit]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<&SessionId, usize> = HashMap::new();
    for hit in hits {
        match places.entry(&hit.session) {
            Entry::Occupied(place) => groups[*place.get()].more += 1,
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push(Group { best: hit, more: 0 });
            }
        }
    }
    groups
}

/// Writes groups; returns how to show the best hit of the only one.
pub(super) fn print_groups(
    groups: &[Group<'_>],
    store: &Store,
    args: &SearchArgs,
    context: &mut Context,
) -> Result<Option<String>> {
    if context.is_json {
        groups.iter().try_for_each(|group| context.out.json(group))?;
        return Ok(None);
    }
    let names = Names::of(store, groups.iter().map(|group| group.best))?;
    for Group { best, more } in groups {
        write(&mut context.out, best, &names)?;
        if *more > 0 {
            let again = args.within(names.sessions.of(best.session.as_str())).line(false);
            let text = format!("  {more} more in this conversation: {again}");
            put!(context.out; FAINT &text)?;
        }
        context.out.line(&[])?;
    }
    Ok(only(groups).map(|group| names.show(group.best)))
}

/// Writes sessions with their best messages; returns how to show the best one of the only session.
pub(super) fn print_sessions(
    found: &[SessionHit],
    store: &Store,
    context: &mut Context,
) -> Result<Option<String>> {
    if context.is_json {
        found.iter().try_for_each(|session| context.out.json(session))?;
        return Ok(None);
    }
    let names = Names::of(store, found.iter().flat_map(|session| &session.hits))?;
    let out = &mut context.out;
    for session in found {
        let id = names.sessions.of(session.session.as_str());
        let title = names.title(&session.session);
        out.flow(&[(ID, id), (STRONG, title)], Some(1))?;
        for hit in &session.hits {
            let mut pieces = vec![(role_style(&hit.role), hit.role.as_str()), (PLAIN, "  ")];
            let text = hit.snippet.to_string();
            pieces.extend(snippet(&hit.snippet, &text, out));
            out.wrapped("  ", &pieces)?;
        }
        out.line(&[])?;
    }
    let hit = only(found).and_then(|session| session.hits.first());
    Ok(hit.map(|hit| names.show(hit)))
}

/// Writes messages; returns how to show the only one.
pub(super) fn print_hits(
    found: &[Hit],
    store: &Store,
    context: &mut Context,
) -> Result<Option<String>> {
    if context.is_json {
        found.iter().try_for_each(|hit| context.out.json(hit))?;
        return Ok(None);
    }
    let names = Names::of(store, found)?;
    for hit in found {
        write(&mut context.out, hit, &names)?;
        context.out.line(&[])?;
    }
    Ok(only(found).map(|hit| names.show(hit)))
}

/// Returns the only result. Of several, a reader knows which one to open.
fn only<T>(found: &[T]) -> Option<&T> {
    if let [only] = found { Some(only) } else { None }
}

/// What is printed beside hits: short ids and titles.
struct Names {
    sessions: ShortIds,
    messages: HashMap<SessionId, ShortIds>,
    titles: HashMap<SessionId, String>,
}

impl Names {
    fn of<'a>(store: &Store, hits: impl IntoIterator<Item = &'a Hit>) -> Result<Self> {
        let sessions = ShortIds::of_sessions(store)?;
        let (mut messages, mut titles) = (HashMap::new(), HashMap::new());
        for hit in hits {
            let Entry::Vacant(ids) = messages.entry(hit.session.clone()) else { continue };
            let session = store.session(hit.session.clone())?;
            ids.insert(ShortIds::of_messages(&session)?);
            if let Some(info) = session.info()? {
                let title = title_of(&session, &info)?;
                titles.insert(hit.session.clone(), cut(&title, MAX_TITLE).into_owned());
            }
        }
        Ok(Self { sessions, messages, titles })
    }

    fn message<'a>(&self, session: &SessionId, id: &'a str) -> &'a str {
        self.messages.get(session).map_or(id, |ids| ids.of(id))
    }

    fn title(&self, session: &SessionId) -> &str {
        self.titles.get(session).map_or("", String::as_str)
    }

    /// Returns the command that shows a hit in its surroundings.
    fn show(&self, hit: &Hit) -> String {
        let session = self.sessions.of(hit.session.as_str());
        let message = self.message(&hit.session, hit.id.as_str());
        verb("show", &[session, message], &format!("--around {AROUND}"))
    }
}

fn write(out: &mut Output, hit: &Hit, names: &Names) -> Result<()> {
    let time = out.ago(hit.created_at);
    let note = match (&hit.under, hit.on_path) {
        (Some(id), _) => {
            let id = id.as_message();
            let id = names.message(&hit.session, id.as_str());
            let id = id.strip_prefix(CompactionId::PREFIX).unwrap_or(id);
            format!("in compaction {}", one_line(id))
        }
        (None, true) => String::new(),
        (None, false) => "on another branch".to_owned(),
    };
    let head = [
        (ID, names.sessions.of(hit.session.as_str())),
        (STRONG, names.title(&hit.session)),
        (role_style(&hit.role), hit.role.as_str()),
        (FAINT, &time),
        (ID, names.message(&hit.session, hit.id.as_str())),
        (COMPACTION, &note),
    ];
    out.flow(&head, Some(1))?;
    let text = hit.snippet.to_string();
    out.wrapped("  ", &snippet(&hit.snippet, &text, out))?;
    if hit.sessions.len() > 1 {
        let others = plural(hit.sessions.len() as u64 - 1, "other session");
        put!(out; FAINT &format!("  also in {others}"))?;
    }
    Ok(())
}

/// Returns the pieces of a snippet. On a terminal without colour they are its `text`, in which matches are between `**`; a file
/// gets the words as they are.
fn snippet<'a>(snippet: &'a Snippet, text: &'a str, out: &Output) -> Vec<Piece<'a>> {
    if out.is_terminal() && !out.is_coloured() {
        return vec![(PLAIN, text)];
    }
    let style = |is_match| if is_match { MATCH } else { PLAIN };
    snippet.pieces().map(|(text, is_match)| (style(is_match), text)).collect()
}

#[cfg(test)]
mod tests {
    use talktree::{Message, Role};
    use unicode_width::UnicodeWidthStr;

    use super::*;

    /// Hits used to be as wide as a session's name and the ids of a message and a compaction together.
    #[test]
    fn hits_fit_sixty_columns() -> Result<()> {
        let store = Store::open_in_memory()?;
        let chat = store.session("019c1000-aaaa-7000-8000-111122223333")?;
        let text = "Do we **need** tickets for the planetarium? ".repeat(9);
        let question = chat.append(Message::user(&*text))?.id;
        store.rename(chat.id(), &"A long name 博物馆 ".repeat(9))?;
        chat.append(Message::new(Role::Assistant, vec![text.as_str().into()]))?;
        chat.append_to(&question, Message::user("Tickets?"))?;
        chat.add_compaction("They plan.", &question, &question)?;
        let found = store.search("tickets").run()?;
        for width in [60, 80, 120] {
            let (mut out, written) = Output::of_width(width);
            let names = Names::of(&store, &found.hits)?;
            found.hits.iter().try_for_each(|hit| write(&mut out, hit, &names))?;
            out.flush()?;
            let written = String::from_utf8_lossy(&written.borrow()).into_owned();
            let widest = written.lines().map(UnicodeWidthStr::width).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{written}");
            for part in ["in compaction ", "on another branch", "A long name", "…"] {
                assert!(written.contains(part), "{part}: {written}");
            }
            assert!(!written.contains(question.as_str()), "{written}");
        }
        Ok(())
    }
}
