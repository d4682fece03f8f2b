//! The results of a search, for people and as JSON.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use talktree::{CompactionId, Hit, SessionHit, SessionId, Snippet, Store};

use super::SearchArgs;
use crate::names::ShortMessageIds;
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
    best: &'a Hit,
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

/// Writes groups; returns how to show the best hit of the first.
pub(super) fn print_groups(
    groups: &[Group<'_>],
    store: &Store,
    args: &SearchArgs,
    context: &mut Context,
) -> Result<Option<String>> {
    let first = groups.first().map(|group| group.best);
    if context.is_json {
        groups.iter().try_for_each(|group| context.out.json(group))?;
        return Ok(first.map(|hit| show(hit.session.as_str(), hit.id.as_str())));
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
    Ok(first.map(|hit| names.show(hit)))
}

/// Writes sessions with their best messages; returns how to show the first.
pub(super) fn print_sessions(
    found: &[SessionHit],
    store: &Store,
    context: &mut Context,
) -> Result<Option<String>> {
    let first = found.iter().flat_map(|session| &session.hits).next();
    if context.is_json {
        found.iter().try_for_each(|session| context.out.json(session))?;
        return Ok(first.map(|hit| show(hit.session.as_str(), hit.id.as_str())));
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
            pieces.extend(snippet(&hit.snippet, &text, out.is_coloured()));
            out.wrapped("  ", &pieces)?;
        }
        out.line(&[])?;
    }
    Ok(first.map(|hit| names.show(hit)))
}

/// Writes messages; returns how to show the first.
pub(super) fn print_hits(
    found: &[Hit],
    store: &Store,
    context: &mut Context,
) -> Result<Option<String>> {
    if context.is_json {
        found.iter().try_for_each(|hit| context.out.json(hit))?;
        return Ok(found.first().map(|hit| show(hit.session.as_str(), hit.id.as_str())));
    }
    let names = Names::of(store, found)?;
    for hit in found {
        write(&mut context.out, hit, &names)?;
        context.out.line(&[])?;
    }
    Ok(found.first().map(|hit| names.show(hit)))
}

/// Returns the command that shows a message in its surroundings, without `talktree`.
fn show(session: &str, message: &str) -> String {
    verb("show", &[session, message.trim_matches('…')], &format!("--around {AROUND}"))
}

/// What is printed beside hits: short ids and titles.
struct Names {
    sessions: ShortIds,
    messages: ShortMessageIds,
    titles: HashMap<SessionId, String>,
    compactions: HashMap<CompactionId, String>,
}

impl Names {
    fn of<'a>(store: &Store, hits: impl IntoIterator<Item = &'a Hit> + Clone) -> Result<Self> {
        let infos = store.sessions()?;
        let sessions = ShortIds::new(infos.iter().map(|info| info.id.as_str()));
        let ids = hits.clone().into_iter().map(|hit| (&hit.session, &hit.id));
        let messages = ShortMessageIds::of(store, ids)?;
        let (mut titles, mut compactions) = (HashMap::new(), HashMap::new());
        for hit in hits {
            let session = store.session(hit.session.clone())?;
            if !titles.contains_key(&hit.session)
                && let Some(info) = infos.iter().find(|info| info.id == hit.session)
            {
                let title = title_of(&session, info)?;
                titles.insert(hit.session.clone(), cut(&title, MAX_TITLE).into_owned());
            }
            if let Some(id) = &hit.under
                && !compactions.contains_key(id)
            {
                let all = session.compactions()?;
                let short = ShortIds::new(all.iter().map(|compaction| compaction.id.as_str()));
                compactions.insert(id.clone(), short.of(id.as_str()).to_owned());
            }
        }
        Ok(Self { sessions, messages, titles, compactions })
    }

    fn title(&self, session: &SessionId) -> &str {
        self.titles.get(session).map_or("", String::as_str)
    }

    /// Returns the command that shows a hit in its surroundings.
    fn show(&self, hit: &Hit) -> String {
        show(self.sessions.of(hit.session.as_str()), self.messages.get(&hit.session, &hit.id))
    }
}

fn write(out: &mut Output, hit: &Hit, names: &Names) -> Result<()> {
    let time = minute(hit.created_at);
    let note = match (&hit.under, hit.on_path) {
        (Some(id), _) => {
            let id = names.compactions.get(id).map_or(id.as_str(), String::as_str);
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
        (ID, names.messages.get(&hit.session, &hit.id)),
        (COMPACTION, &note),
    ];
    out.flow(&head, Some(1))?;
    let text = hit.snippet.to_string();
    out.wrapped("  ", &snippet(&hit.snippet, &text, out.is_coloured()))?;
    if hit.sessions.len() > 1 {
        let others = plural(hit.sessions.len() as u64 - 1, "other session");
        put!(out; FAINT &format!("  also in {others}"))?;
    }
    Ok(())
}

/// Returns the pieces of a snippet; without colour they are its `text`, in which matches are between `**`.
fn snippet<'a>(snippet: &'a Snippet, text: &'a str, is_coloured: bool) -> Vec<Piece<'a>> {
    if !is_coloured {
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
