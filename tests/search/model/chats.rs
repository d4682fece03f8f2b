//! Search of a store with more matches than a search lists and ranks, compared with a plain list of its messages.
//!
//! Every hit and every session is found, in pages without gaps and repetitions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use talktree::{
    Durability, Message, MessageId, Part, Search, Session, SessionChange, SessionDetails,
    SessionHit, SessionId, Store,
};

use super::Outcome;

/// The most messages that a search for sessions shows of each.
const SHOWN: usize = 3;

/// A message.
struct Line {
    chat: usize,
    owner: &'static str,
    id: MessageId,
    role: &'static str,
    at: DateTime<Utc>,
    text: String,
    on_path: bool,
    /// Whether it is on the path to [`Chats::leaf`].
    on_branch: bool,
    /// The number of the line that was written first; its own if this is no copy.
    origin: usize,
}

impl Line {
    fn has(&self, word: &str) -> bool {
        self.text.split(' ').any(|own| own == word)
    }
}

struct Chat {
    id: SessionId,
    owner: &'static str,
    is_in_trash: bool,
}

struct Chats {
    store: Store,
    reader: Store,
    chats: Vec<Chat>,
    lines: Vec<Line>,
    /// A message of the first chat that is not on the path to its head.
    leaf: MessageId,
    random: Random,
}

/// A linear congruential generator: the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }

    fn is_one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

type Holds = fn(&Line) -> bool;

/// Queries, whether a line has all that they want, and whether it has some, if that may be enough.
const QUERIES: [(&str, Holds, Option<Holds>); 9] = [
    ("fox", |line| line.has("fox"), None),
    ("fox den", |line| has_all(line, &["fox", "den"]), None),
    (
        // More than three messages in ten have a fox: such a word is ignored if any word is enough.
        "den owl elk bamz",
        |line| has_all(line, &["den", "owl", "elk", "bamz"]),
        Some(|line| has_any(line, &["den", "owl", "elk", "bamz"])),
    ),
    ("\"fox den\"", |line| format!("{} ", line.text).contains(" fox den "), None),
    ("den OR owl", |line| has_any(line, &["den", "owl"]), None),
    ("de*", |line| has_any(line, &["den", "demz"]), None),
    ("fox -den", |line| line.has("fox") && !line.has("den"), None),
    ("exact:\"ox de\"", |line| line.text.contains("ox de"), None),
    ("-owl", |line| !line.has("owl"), None),
];

/// Filters, and whether they hold.
const FILTERS: [(&str, Holds); 6] = [
    ("", |_| true),
    ("role:user", |line| line.role == "user"),
    ("role:critic", |line| line.role == "critic"),
    ("after:2026-02-01", |line| line.at >= day(31)),
    ("before:2026-01-11 role:assistant", |line| line.at < day(10) && line.role == "assistant"),
    ("after:2026-01-21 before:2026-01-22", |line| line.at >= day(20) && line.at < day(21)),
];

fn has_all(line: &Line, words: &[&str]) -> bool {
    words.iter().all(|word| line.has(word))
}

fn has_any(line: &Line, words: &[&str]) -> bool {
    words.iter().any(|word| line.has(word))
}

/// Words that no other spelling replaces.
fn rare_words() -> Vec<String> {
    let vowels = |a: char| "aeiou".chars().map(move |b| format!("{a}{b}mz"));
    "bcdgh".chars().flat_map(vowels).collect()
}

/// Returns the beginning of a day, counted from the first of January 2026.
fn day(number: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default() + TimeDelta::days(number)
}

impl Chats {
    fn new(path: &Path) -> Outcome<Self> {
        let store = Store::options().durability(Durability::Normal).open(path)?;
        let reader = Store::open_read_only(path)?;
        let random = Random(29);
        let (chats, lines, leaf) = (Vec::new(), Vec::new(), MessageId::new());
        let mut made = Self { store, reader, chats, lines, leaf, random };
        let sizes = [[1_400, 900, 300].as_slice(), &[80; 24], &[5; 20], &[1; 8]].concat();
        for (number, size) in sizes.into_iter().enumerate() {
            let chat = made.open(number)?;
            made.write(number, &chat, size)?;
            if matches!(number, 0 | 1 | 5 | 28) {
                // A branch: what follows is off the path, unless the head stays in it.
                let middle = made.of(number).nth(size / 2).ok_or("no message")?.id.clone();
                let end = chat.head()?.ok_or("no head")?;
                chat.checkout(&middle)?;
                made.write(number, &chat, 40)?;
                if number != 1 {
                    chat.checkout(&end)?;
                }
            }
        }
        let first_fork = made.chats.len();
        for (from, depth) in [(0, 1_000), (5, 60), (first_fork, 650)] {
            made.fork(from, depth)?;
        }
        made.chats[7].is_in_trash = true;
        made.store.change_session(&made.chats[7].id, &SessionChange::Delete)?;
        made.leaf = made.of(0).last().ok_or("no branch")?.id.clone();
        let ids = |path: Vec<Message>| -> HashSet<MessageId> {
            path.into_iter().map(|message| message.id.clone()).collect()
        };
        let branch = ids(made.store.session("c0")?.at(&made.leaf).raw_history()?);
        for (number, chat) in made.chats.iter().enumerate().filter(|(_, chat)| !chat.is_in_trash) {
            let path = ids(made.store.session(&chat.id)?.raw_history()?);
            for line in made.lines.iter_mut().filter(|line| line.chat == number) {
                line.on_path = path.contains(&line.id);
                line.on_branch = number == 0 && branch.contains(&line.id);
            }
        }
        Ok(made)
    }

    fn open(&mut self, number: usize) -> Outcome<Session> {
        let owner = ["ann", "bob", "cyd"][number % 3];
        let id = SessionId::from(format!("c{number}"));
        let details = SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() };
        let session = self.store.create_session_as(&id, details)?;
        self.chats.push(Chat { id, owner, is_in_trash: false });
        Ok(session)
    }

    fn of(&self, chat: usize) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.chat == chat)
    }

    fn text(&mut self, rare: &[String]) -> String {
        let mut words = vec!["a"];
        let mut add = |word, is_said| words.extend(Some(word).filter(|_| is_said));
        add("fox", !self.random.is_one_in(3));
        add("den", self.random.is_one_in(5));
        add("owl", self.random.is_one_in(6));
        add("elk", self.random.is_one_in(40));
        let rare = &rare[self.random.below(rare.len())];
        add(rare, self.random.is_one_in(6));
        (0..self.random.below(4)).for_each(|_| add("long", true));
        words.join(" ")
    }

    /// Appends lines to the head.
    fn write(&mut self, chat: usize, session: &Session, count: usize) -> Outcome<()> {
        let (rare, owner) = (rare_words(), self.chats[chat].owner);
        let mut messages = Vec::with_capacity(count);
        for _ in 0..count {
            let text = self.text(&rare);
            let role = ["user", "assistant", "user", "assistant", "critic"][self.random.below(5)];
            let at = day(0) + TimeDelta::minutes(self.random.below(60 * 24 * 60) as i64);
            let message = Message::new(role, vec![Part::text(text.as_str())]).at(at);
            let (id, origin) = (message.id.clone(), self.lines.len());
            self.lines.push(Line {
                chat,
                owner,
                id,
                role,
                at,
                text,
                on_path: true,
                on_branch: false,
                origin,
            });
            messages.push(message);
        }
        session.append_all(messages)?;
        Ok(())
    }

    /// Forks a chat, changes one of the copies, and appends some lines.
    fn fork(&mut self, from: usize, depth: usize) -> Outcome<()> {
        let chat = self.chats.len();
        let (id, owner) = (SessionId::from(format!("c{chat}")), self.chats[from].owner);
        let source = self.store.session(&self.chats[from].id)?;
        let last = &source.raw_history()?[depth].id;
        let fork = source.fork_as(&id, last, "fork")?;
        let known: HashMap<MessageId, usize> =
            self.lines.iter().enumerate().map(|(at, line)| (line.id.clone(), at)).collect();
        for message in fork.raw_history()? {
            let Line { role, at, origin, .. } = self.lines[known[&message.id]];
            let (id, text) = (message.id.clone(), message.text());
            self.lines.push(Line {
                chat,
                owner,
                id,
                role,
                at,
                text,
                on_path: true,
                on_branch: false,
                origin,
            });
        }
        self.chats.push(Chat { id, owner, is_in_trash: false });
        let changed = self.lines.iter_mut().filter(|line| line.chat == chat).nth(depth / 2);
        let changed = changed.ok_or("no copy")?;
        changed.text = "a fox den owl".to_owned();
        let parts = vec![Part::text(changed.text.as_str())];
        fork.update(Message::new(changed.role, parts).with_id(changed.id.clone()))?;
        self.write(chat, &fork, 30)
    }

    /// Returns the lines that a search should find: of copies the one that was written first or, out of scope, the last.
    fn expected(&self, holds: impl Fn(&Line) -> bool) -> Vec<&Line> {
        let mut copies: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
        for (number, line) in self.lines.iter().enumerate() {
            if !self.chats[line.chat].is_in_trash && holds(line) {
                copies.entry((line.origin, &line.text)).or_default().push(number);
            }
        }
        let one = |((first, _), of): ((usize, &str), Vec<usize>)| match of.contains(&first) {
            true => &self.lines[first],
            false => &self.lines[of[of.len() - 1]],
        };
        copies.into_iter().map(one).collect()
    }

    /// Returns a search of each scope, with what is in it.
    fn scopes(&self, store: &Store, text: &str) -> Outcome<[(Search, Holds); 8]> {
        let ids = |range: std::ops::Range<usize>| -> Vec<SessionId> {
            self.chats[range].iter().map(|chat| chat.id.clone()).collect()
        };
        let (search, first) = (|| store.search(text), store.session("c0")?);
        Ok([
            (search(), |_| true),
            (search().owner("bob"), |line| line.owner == "bob"),
            (search().sessions(ids(1..4)), |line| (1..4).contains(&line.chat)),
            (search().sessions(ids(0..30)), |line| line.chat < 30),
            (search().sessions(ids(20..58)).owner("ann"), |line| {
                (20..58).contains(&line.chat) && line.owner == "ann"
            }),
            (search().session("c0"), |line| line.chat == 0),
            (first.search(text).on_path(), |line| line.chat == 0 && line.on_path),
            (first.at(&self.leaf).search(text), |line| line.on_branch),
        ])
    }

    /// Compares what a search finds with what it should find, and its pages with all of it.
    fn check(&mut self, search: &Search, expected: &[(SessionId, MessageId)]) -> Outcome<()> {
        let all = search.clone().limit(100_000).run()?;
        let found: Vec<_> =
            all.hits.iter().map(|hit| (hit.session.clone(), hit.id.clone())).collect();
        same(found.clone(), expected.to_vec(), search)?;
        assert!(!all.is_partial && is_falling(all.hits.iter().map(|hit| hit.score)), "{search:?}");
        for limit in [1, 20, 300] {
            let offset = self.random.below(found.len() + 1);
            let page = search.clone().limit(limit).offset(offset).run()?;
            let page: Vec<_> = page.hits.into_iter().map(|hit| (hit.session, hit.id)).collect();
            let end = found.len().min(offset + limit);
            assert_eq!(page, found[offset..end], "{search:?} {limit} {offset}");
        }
        self.check_sessions(search, expected)
    }

    fn check_sessions(
        &mut self,
        search: &Search,
        expected: &[(SessionId, MessageId)],
    ) -> Outcome<()> {
        let mut matches: BTreeMap<SessionId, HashSet<MessageId>> = BTreeMap::new();
        for (session, id) in expected {
            matches.entry(session.clone()).or_default().insert(id.clone());
        }
        let all = search.clone().limit(1_000).run_by_session()?;
        let found = all.hits.iter().map(|found| found.session.clone()).collect();
        same(found, matches.keys().cloned().collect(), search)?;
        assert!(!all.is_partial && is_falling(all.hits.iter().map(|hit| hit.score)), "{search:?}");
        for SessionHit { session, hits, .. } in &all.hits {
            let ids: HashSet<_> = hits.iter().map(|hit| hit.id.clone()).collect();
            let of = &matches[session];
            assert_eq!(ids.len(), SHOWN.min(of.len()), "{search:?} {session}");
            assert!(
                ids.is_subset(of) && hits.iter().all(|hit| hit.session == *session),
                "{search:?}"
            );
            assert!(is_falling(hits.iter().map(|hit| hit.score)), "{search:?} {session}");
        }
        let (mut paged, size) = (Vec::new(), 5 + self.random.below(20));
        loop {
            let page = search.clone().limit(size).offset(paged.len()).run_by_session()?;
            assert!(!page.is_partial, "{search:?}");
            let count = page.hits.len();
            paged.extend(page);
            if count < size {
                break;
            }
        }
        let drawn = |found: &[SessionHit]| -> Vec<(SessionId, Vec<MessageId>)> {
            let ids = |found: &SessionHit| found.hits.iter().map(|hit| hit.id.clone()).collect();
            found.iter().map(|found| (found.session.clone(), ids(found))).collect()
        };
        assert_eq!(drawn(&paged), drawn(&all.hits), "{search:?} in pages of {size}");
        Ok(())
    }
}

fn is_falling(scores: impl Iterator<Item = f64>) -> bool {
    scores.collect::<Vec<_>>().windows(2).all(|pair| pair[0] >= pair[1])
}

/// Returns an error that says what is missing and what is too much, if these are not the same.
fn same<T: Ord + std::fmt::Debug>(
    mut found: Vec<T>,
    mut expected: Vec<T>,
    search: &Search,
) -> Outcome<()> {
    found.sort();
    expected.sort();
    if found == expected {
        return Ok(());
    }
    let missing = expected.iter().filter(|one| found.binary_search(one).is_err()).count();
    let wrong: Vec<_> =
        found.iter().filter(|one| expected.binary_search(one).is_err()).take(5).collect();
    let counts = (found.len(), expected.len());
    Err(format!("{search:?}: {counts:?} found and expected, {missing} missing, wrong {wrong:?}")
        .into())
}

#[test]
fn every_match_and_every_session_is_found_in_pages_without_gaps() -> Outcome<()> {
    let place = tempfile::tempdir()?;
    let mut made = Chats::new(&place.path().join("many.db"))?;
    let (writer, reader) = (made.store.clone(), made.reader.clone());
    let question = format!("which of the den owl elk {}?", rare_words().join(" "));
    let is_asked: Holds = |line| {
        has_any(line, &["den", "owl", "elk"])
            || line.text.split(' ').any(|word| word.ends_with("mz"))
    };
    let mut queries = QUERIES.to_vec();
    queries.extend([(question.as_str(), is_asked, None), ("", |_| true, None)]);
    for (number, &(query, all, any)) in queries.iter().enumerate() {
        for (turn, (filter, is_wanted)) in FILTERS.into_iter().enumerate() {
            // A query needs something that it wants.
            if filter.is_empty() && (query.is_empty() || query.starts_with('-')) {
                continue;
            }
            // What is pending the reader finds in an index of its own, until the writer has indexed it.
            let store = if number < 2 { &reader } else { &writer };
            let scopes = made.scopes(store, &format!("{query} {filter}"))?;
            // Each query meets each scope and each filter.
            let is_chosen = |place: usize| (place + number) % FILTERS.len() == turn;
            for (_, (search, is_in_scope)) in
                scopes.into_iter().enumerate().filter(|(place, _)| is_chosen(*place))
            {
                let is_inside = |line: &Line| is_in_scope(line) && is_wanted(line);
                let mut expected = made.expected(|line| is_inside(line) && all(line));
                if let (true, Some(any)) = (expected.is_empty(), any) {
                    expected = made.expected(|line| is_inside(line) && any(line));
                }
                let id = |line: &&Line| (made.chats[line.chat].id.clone(), line.id.clone());
                let expected: Vec<_> = expected.iter().map(id).collect();
                made.check(&search, &expected)?;
            }
        }
    }
    Ok(())
}
