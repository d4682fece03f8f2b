//! Search compared with a full scan, over random trees with branches, compactions, forks and deletes.
//!
//! The oracle reads every message with public methods and checks whether it contains the words. Hits, their flags, the
//! sessions of copies and the scopes must be equal, for a handle that indexes and for one that is read-only.

mod chats;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use crate::common::random;
use proptest::prelude::*;
use talktree::{CompactionId, Durability, Matched, Message, MessageId, Search, SessionId, Store};

type Outcome<T> = Result<T, Box<dyn Error>>;

const TEXTS: [&str; 6] = ["fox", "fox den", "den", "owl 北京", "fox owl", "red fox den"];
const QUERIES: [(&str, &[&str], &[&str]); 7] = [
    // The words that must match, and alternatives of which one must.
    ("fox", &["fox"], &["fox"]),
    ("fox den", &["fox", "den"], &["fox", "den"]),
    ("fox den owl red", &["fox", "den", "owl", "red"], &["fox", "den", "owl", "red"]),
    ("\"fox den\"", &["fox den"], &["fox den"]),
    ("北京", &["北京"], &["北京"]),
    ("fox nowhere", &["nowhere"], &["fox"]),
    ("role:user", &[""], &[""]),
];

#[derive(Debug, Clone)]
enum Change {
    Append(usize, usize, usize),
    Branch(usize, usize, usize, usize),
    Update(usize, usize, usize),
    Delete(usize, usize),
    DeleteBranch(usize, usize),
    Compact(usize, usize, usize),
    Checkout(usize, usize),
    Fork(usize, usize, usize),
    Index,
}

fn change() -> impl Strategy<Value = Change> {
    let (s, m, t) = (0..6_usize, 0..10_usize, 0..TEXTS.len());
    prop_oneof![
        6 => (s.clone(), m.clone(), t.clone()).prop_map(|(s, m, t)| Change::Append(s, m, t)),
        5 => (s.clone(), m.clone(), m.clone(), t.clone()).prop_map(|(s, p, m, t)| Change::Branch(s, p, m, t)),
        2 => (s.clone(), m.clone(), t).prop_map(|(s, m, t)| Change::Update(s, m, t)),
        3 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::Delete(s, m)),
        1 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::DeleteBranch(s, m)),
        4 => (s.clone(), m.clone(), m.clone()).prop_map(|(s, m, n)| Change::Compact(s, m, n)),
        2 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::Checkout(s, m)),
        5 => (s.clone(), m, s).prop_map(|(s, m, t)| Change::Fork(s, m, t)),
        1 => Just(Change::Index),
    ]
}

/// The store, and what its reads do not return: which messages are copies of which.
struct World {
    store: Store,
    reader: Store,
    /// In order of creation.
    sessions: Vec<SessionId>,
    /// The session of each original message, by the session and id of its copy.
    origins: HashMap<(SessionId, MessageId), (SessionId, MessageId, usize)>,
    count: usize,
}

/// A hit without its score.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    session: SessionId,
    id: MessageId,
    on_path: bool,
    under: Option<CompactionId>,
    sessions: Vec<SessionId>,
    is_whole: bool,
}

fn id(number: usize) -> MessageId {
    format!("m{number}").into()
}

impl World {
    fn new(path: &std::path::Path) -> Outcome<Self> {
        let store = Store::options().durability(Durability::Normal).open(path)?;
        let reader = Store::open_read_only(path)?;
        Ok(Self { store, reader, sessions: Vec::new(), origins: HashMap::new(), count: 0 })
    }

    /// Applies a change, if it is possible.
    fn apply(&mut self, change: &Change) -> Outcome<()> {
        let number = match *change {
            Change::Append(s, ..) | Change::Branch(s, ..) | Change::Update(s, ..) => s,
            Change::Delete(s, _) | Change::DeleteBranch(s, _) | Change::Compact(s, ..) => s,
            Change::Checkout(s, _) | Change::Fork(s, ..) => s,
            Change::Index => {
                self.store.search("fox").run()?;
                return Ok(());
            }
        };
        let name: SessionId = format!("s{number}").into();
        let chat = self.store.session(&name)?;
        let message = |m: usize, t: usize| Message::user(TEXTS[t]).with_id(id(m));
        let answer = match *change {
            Change::Append(_, m, t) => {
                chat.append(message(m, t)).map(|done| self.written(&name, m, done.is_new))
            }
            Change::Branch(_, p, m, t) => chat
                .append_to(&id(p), message(m, t))
                .map(|done| self.written(&name, m, done.is_new)),
            Change::Update(_, m, t) => chat.update(message(m, t)).map(|_| ()),
            Change::Delete(_, m) => chat.delete([&id(m)]).map(|_| ()),
            Change::DeleteBranch(_, m) => chat.delete_branch(&id(m)).map(|_| ()),
            Change::Compact(_, m, n) => chat.add_compaction("summary", &id(m), &id(n)).map(|_| ()),
            Change::Checkout(_, m) => chat.checkout(&id(m)),
            Change::Fork(_, m, t) => {
                let target: SessionId = format!("s{t}").into();
                chat.fork_as(&target, &id(m), "fork").and_then(|fork| {
                    for message in fork.raw_history()? {
                        let origin = self.origins[&(name.clone(), message.id.clone())].clone();
                        self.origins.insert((target.clone(), message.id), origin);
                    }
                    self.sessions.push(target);
                    Ok(())
                })
            }
            Change::Index => Ok(()),
        };
        match answer {
            Err(error) if error.is_unknown() => Ok(()),
            Err(
                talktree::Error::NotAncestor { .. }
                | talktree::Error::InsideSummary { .. }
                | talktree::Error::SessionExists { .. },
            ) => Ok(()),
            answer => Ok(answer?),
        }
    }

    fn written(&mut self, session: &SessionId, m: usize, is_new: bool) {
        if !self.sessions.contains(session) {
            self.sessions.push(session.clone());
        }
        if is_new {
            self.count += 1;
            self.origins.insert((session.clone(), id(m)), (session.clone(), id(m), self.count));
        }
    }

    /// Returns every message of a session with its text, or those of one path.
    fn texts(
        &self,
        session: &SessionId,
        leaf: Option<&MessageId>,
    ) -> Outcome<BTreeMap<MessageId, String>> {
        let chat = self.store.session(session)?;
        let mut found = BTreeMap::new();
        match leaf {
            Some(leaf) => found
                .extend(chat.at(leaf).raw_history()?.into_iter().map(|m| (m.id.clone(), m.text()))),
            None => {
                for message in (0..14).map(id) {
                    found.extend(chat.message(&message)?.map(|m| (m.id.clone(), m.text())));
                }
            }
        }
        Ok(found)
    }

    /// Returns the expected hits.
    fn expected(
        &self,
        (query, all, any): (&str, &[&str], &[&str]),
        scope: &[SessionId],
        leaf: Option<&MessageId>,
    ) -> Outcome<Vec<Drawn>> {
        let holds = |text: &str, words: &[&str], is_all: bool| {
            let here = |word: &&str| text.contains(*word);
            if is_all { words.iter().all(here) } else { words.iter().any(here) }
        };
        let mut everywhere: HashMap<SessionId, BTreeMap<MessageId, String>> = HashMap::new();
        for session in &self.sessions {
            everywhere.insert(session.clone(), self.texts(session, None)?);
        }
        let mut inside: Vec<(&SessionId, MessageId, String)> = Vec::new();
        for session in scope {
            inside.extend(
                self.texts(session, leaf)?.into_iter().map(|(id, text)| (session, id, text)),
            );
        }
        let is_relaxed = !inside.iter().any(|(_, _, text)| holds(text, all, true));
        inside.retain(
            |(_, _, text)| {
                if is_relaxed { holds(text, any, false) } else { holds(text, all, true) }
            },
        );
        let origin =
            |session: &SessionId, id: &MessageId| &self.origins[&(session.clone(), id.clone())];
        let mut drawn = Vec::new();
        for (session, id, text) in &inside {
            let this = origin(session, id);
            let is_copy = |other: &SessionId, other_id: &MessageId, other_text: &String| {
                other_text == text && origin(other, other_id) == this
            };
            let is_home = |session: &SessionId, id: &MessageId| (session, id) == (&this.0, &this.1);
            let age = |session: &SessionId| self.sessions.iter().position(|known| known == session);
            let is_behind = inside.iter().any(|(other, other_id, other_text)| {
                other != session
                    && is_copy(other, other_id, other_text)
                    && !is_home(session, id)
                    && (is_home(other, other_id) || age(other) > age(session))
            });
            if is_behind {
                continue;
            }
            let sessions = self
                .sessions
                .iter()
                .filter(|other| scope.contains(other))
                .filter(|other| {
                    everywhere[*other].iter().any(|(id, text)| is_copy(other, id, text))
                })
                .cloned()
                .collect();
            let (on_path, under) = self.flags(session, id)?;
            let is_whole = query == "role:user" || holds(text, all, true);
            drawn.push(Drawn {
                session: (*session).clone(),
                id: id.clone(),
                on_path,
                under,
                sessions,
                is_whole,
            });
        }
        drawn.sort();
        Ok(drawn)
    }

    fn flags(&self, session: &SessionId, id: &MessageId) -> Outcome<(bool, Option<CompactionId>)> {
        let chat = self.store.session(session)?;
        if !chat.raw_history()?.iter().any(|message| message.id == *id) {
            return Ok((false, None));
        }
        for shown in chat.history()? {
            if let Some(compaction) = CompactionId::from_message(&shown.id)
                && chat.expand_raw(&compaction)?.iter().any(|message| message.id == *id)
            {
                return Ok((true, Some(compaction)));
            }
        }
        Ok((true, None))
    }

    fn check(&self, store: &Store) -> Outcome<()> {
        for query in QUERIES {
            let text = query.0;
            same(&store.search(text), self.expected(query, &self.sessions, None)?)?;
            for session in &self.sessions {
                let chat = store.session(session)?;
                let scope = std::slice::from_ref(session);
                same(&chat.search(text), self.expected(query, scope, None)?)?;
                let leaf = self.texts(session, None)?.into_keys().next_back();
                if let Some(leaf) = leaf {
                    let search = chat.at(&leaf).search(text);
                    same(&search, self.expected(query, scope, Some(&leaf))?)?;
                }
            }
        }
        Ok(())
    }
}

/// Compares the hits of a search, and those that it finds by session, with the expected ones.
fn same(search: &Search, expected: Vec<Drawn>) -> Outcome<()> {
    let found = search.clone().limit(1000).run()?;
    let is_whole = |matched: Matched| matched == Matched::All;
    let mut drawn: Vec<Drawn> = found
        .hits
        .iter()
        .map(|hit| Drawn {
            session: hit.session.clone(),
            id: hit.id.clone(),
            on_path: hit.on_path,
            under: hit.under.clone(),
            sessions: hit.sessions.clone(),
            is_whole: is_whole(hit.matched),
        })
        .collect();
    drawn.sort();
    let is_falling = found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score);
    if drawn != expected || !is_falling {
        return Err(format!("{search:?}: found {drawn:#?}, expected {expected:#?}").into());
    }
    let mut counts: BTreeMap<SessionId, usize> = BTreeMap::new();
    expected.into_iter().for_each(|hit| *counts.entry(hit.session).or_default() += 1);
    let mut by_session = BTreeMap::new();
    for offset in (0..=counts.len()).step_by(2) {
        let page = search.clone().limit(2).offset(offset).run_by_session()?;
        by_session.extend(page.into_iter().map(|found| (found.session, found.hits.len())));
    }
    counts.values_mut().for_each(|count| *count = (*count).min(3));
    if by_session != counts {
        return Err(format!("{search:?}: found {by_session:?}, expected {counts:?}").into());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: random::cases(20), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_full_scan_finds(changes in prop::collection::vec(change(), 1..70)) {
        let run = || -> Outcome<()> {
            let place = tempfile::tempdir()?;
            let mut world = World::new(&place.path().join("model.db"))?;
            for (number, change) in changes.iter().enumerate() {
                world.apply(change)?;
                if number % 25 == 24 {
                    world.check(&world.reader)?;
                }
            }
            world.check(&world.reader)?;
            world.check(&world.store)
        };
        run().map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}

/// The authors and tags of the messages of a store, by text; each original message has a text of its own.
type Marked = Vec<(SessionId, MessageId, String, Option<usize>, Vec<usize>)>;

const MARKS: [&str; 3] = ["spam", "asked", "seen"];

/// Fills sessions with messages of four people or of nobody, with tags, and forks some of them.
fn fill_marked(store: &Store, number: &mut impl FnMut(usize) -> usize) -> Outcome<Marked> {
    let mut marked = Marked::new();
    for session in 0..6 {
        let chat = store.session(format!("s{session}"))?;
        for n in 0..60 {
            let text = format!("{} number{session}x{n}", TEXTS[number(TEXTS.len())]);
            let role = if number(3) == 0 { "assistant" } else { "user" };
            let mut message = Message::new(role, vec![talktree::Part::text(text)]);
            // The first of them is rare.
            let author = number(9);
            if author < 4 && (author > 0 || number(12) == 0) {
                message = message.from(&talktree::Author::new(format!("p{author}")));
            }
            let done = chat.append(message)?;
            if number(4) == 0 {
                chat.tag(&done.id, MARKS[number(3)])?;
            }
            if number(6) == 0 {
                chat.tag(&done.id, MARKS[number(3)])?;
            }
        }
        if session % 2 == 1 {
            let at = &chat.raw_history()?[30 + number(20)].id;
            let fork = chat.fork_as(&format!("f{session}").into(), at, "fork")?;
            for message in fork.raw_history()? {
                // So a copy has a tag that the original does not have, or the other way round.
                match number(8) {
                    0 => fork.tag(&message.id, MARKS[number(3)])?,
                    1 => fork.untag(&message.id, MARKS[number(3)])?,
                    _ => {}
                }
            }
        }
    }
    for info in store.sessions()? {
        let chat = store.session(&info.id)?;
        for message in chat.raw_history()? {
            let author = talktree::Author::of(&message);
            let author = author.and_then(|it| it.key()?.strip_prefix('p')?.parse().ok());
            let tags = chat.tags(&message.id)?;
            let tags = tags.iter().filter_map(|tag| MARKS.iter().position(|mark| mark == tag));
            let (text, tags) = (message.text(), tags.collect());
            marked.push((info.id.clone(), message.id, text, author, tags));
        }
    }
    Ok(marked)
}

/// Searches by author and by tag were possible only by reading everything.
#[test]
fn filters_of_authors_and_tags_find_what_a_full_scan_finds() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let store =
        Store::options().durability(Durability::Normal).open(folder.path().join("marked.db"))?;
    let mut state = 7_u64;
    let mut number = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let marked = fill_marked(&store, &mut number)?;
    let reader = Store::open_read_only(folder.path().join("marked.db"))?;
    let mut compared = 0;
    for case in 0..400 {
        let author = (number(3) > 0).then(|| number(4));
        let tags: Vec<usize> = (0..number(3)).map(|_| number(3)).collect();
        let session = (number(3) == 0).then(|| marked[number(marked.len())].0.clone());
        let word = ["", "fox", "den", "owl"][number(4)];
        if author.is_none() && tags.is_empty() {
            continue;
        }
        let mut expected: Vec<&str> = marked
            .iter()
            .filter(|(of, _, text, by, with)| {
                session.as_ref().is_none_or(|session| session == of)
                    && author.is_none_or(|author| *by == Some(author))
                    && tags.iter().all(|tag| with.contains(tag))
                    && text.contains(word)
            })
            .map(|(_, _, text, ..)| text.as_str())
            .collect();
        expected.sort_unstable();
        expected.dedup();
        let store = if case % 2 == 0 { &store } else { &reader };
        // As arguments, and in the query.
        let mut by_arguments = store.search(word).limit(1000);
        let mut query = word.to_owned();
        if let Some(author) = author {
            by_arguments = by_arguments.author(format!("p{author}"));
            query += &format!(" author:p{author}");
        }
        for tag in &tags {
            by_arguments = by_arguments.tag(MARKS[*tag]);
            query += &format!(" tag:{}", MARKS[*tag]);
        }
        let mut by_query = store.search(query.clone()).limit(1000);
        if let Some(session) = &session {
            by_arguments = by_arguments.session(session.clone());
            by_query = by_query.session(session.clone());
        }
        for search in [by_arguments, by_query] {
            let found = search.clone().run()?;
            let mut texts = Vec::new();
            for hit in &found.hits {
                let (.., text, by, with) = marked
                    .iter()
                    .find(|(of, id, ..)| (of, id) == (&hit.session, &hit.id))
                    .expect("a hit is a message");
                assert!(author.is_none_or(|author| *by == Some(author)), "{query}");
                assert!(tags.iter().all(|tag| with.contains(tag)), "{query}");
                texts.push(text.as_str());
            }
            texts.sort_unstable();
            assert_eq!(texts, expected, "{query} in {session:?}");
            // Pages without gaps.
            let mut paged = Vec::new();
            loop {
                let page = search.clone().limit(7).offset(paged.len()).run()?.hits;
                if page.is_empty() {
                    break;
                }
                paged.extend(page.into_iter().map(|hit| (hit.session, hit.id)));
            }
            let whole: Vec<_> = found.hits.into_iter().map(|hit| (hit.session, hit.id)).collect();
            assert_eq!(paged, whole, "{query}");
            compared += 1;
        }
    }
    assert!(compared > 400, "{compared}");
    Ok(())
}

/// The few matches of an author must not be cut off behind the many of others, for which the search lists a part only.
#[test]
fn a_rare_author_is_found_behind_many_newer_matches_of_others() -> Outcome<()> {
    let store = Store::open_in_memory()?;
    let group = store.session("group")?;
    let ada = talktree::Author::new("ada");
    let mut wanted = Vec::new();
    for n in 0..3 {
        let done = group.append(Message::user(format!("the red fox {n}")).from(&ada))?;
        group.tag(&done.id, "kept")?;
        wanted.push(done.id);
    }
    let bob = talktree::Author::new("bob");
    for chunk in 0..30 {
        let many = (0..1000).map(|n| Message::user(format!("the red fox {chunk} {n}")).from(&bob));
        group.append_all(many)?;
    }
    for query in ["red fox", "which fox is red?", "fox nowhere", "", "role:user fox"] {
        for search in [store.search(query).author("ada"), group.search(query).tag("kept")] {
            let found = search.limit(10).run()?;
            let mut ids: Vec<_> = found.hits.into_iter().map(|hit| hit.id).collect();
            ids.sort();
            let mut wanted = wanted.clone();
            wanted.sort();
            assert_eq!(ids, wanted, "{query:?}");
            assert!(!found.is_partial);
        }
    }
    let total = store.search("fox").author("bob").limit(50_000).run()?.hits.len();
    assert_eq!(total, 30_000);
    Ok(())
}
