//! What must hold for any input bytes.
//!
//! Each check takes bytes and returns what is wrong. A panic is a failure, too; the caller catches it.

use std::collections::HashSet;
use std::io::Cursor;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use talktree::search::{Filters, Search, Step};
use talktree::{Error, Hit, Message, MessageId, Part, Query, Role, Store, Summary, TokenCounter};
use talktree_import::export::{content_hash, export_jsonl};
use talktree_import::{Format, ImportOptions, import_reader};

use crate::compaction::options;
use crate::workload::{Place, Workload};

/// A check of any bytes.
pub type Check = fn(&[u8]) -> Result<(), String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Bad input must not be reported as a storage error.
fn is_of_input(error: &Error) -> Result<(), String> {
    match error {
        Error::Storage { .. } | Error::Corrupt { .. } | Error::Busy { .. } | Error::DiskFull => {
            Err(format!("reported as a storage error: {error}"))
        }
        _ => Ok(()),
    }
}

fn is_sound(store: &Store) -> Result<(), String> {
    match store.verify(|_| {}).map_err(text)?.damages.first() {
        Some(damage) => Err(format!("damage: {damage:?}")),
        None => Ok(()),
    }
}

/// What queries misspell, cut and join, and forms of words in several languages.
const TEXTS: &[&str] = &[
    "The session manager restarts the deployment after a compaction of the history.",
    "A hard link and a sessionstore: the garden gate is yellow.",
    "Die Häuser haben Gärten, und das Haus hat einen Garten.",
    "Les chevaux mangent dans le jardin; un cheval mange.",
    "Собаки играют в саду, собака играет с мячом.",
    "w0o3m7 k77 k7 C++ naïve ﬁnal 한국어 故宫 北京天气 คำถาม",
];
/// How long a search may take.
const SEARCH_TIME: Duration = Duration::from_millis(200);
/// How much longer a search took on a busy machine: it looks at the clock now and then.
const GRACE: Duration = Duration::from_secs(2);

/// Returns a store on which every kind of verb has run.
fn searched() -> Result<&'static Store, String> {
    static STORE: OnceLock<Result<Store, String>> = OnceLock::new();
    let made = STORE.get_or_init(|| {
        let store = Store::open_in_memory().map_err(text)?;
        let mut workload = Workload::resume(store.clone(), Place::new("", 1));
        for _ in 0..400 {
            let _ = workload.step();
        }
        let session = store.session("ann").map_err(text)?;
        session.append_all(TEXTS.iter().map(|text| Message::user(*text))).map_err(text)?;
        let input = serde_json::json!({"command": "kubectl apply"});
        let call = Part::tool_call("shell", "call", input);
        session.append(Message::new(Role::Assistant, vec![call])).map_err(text)?;
        Ok(store)
    });
    made.as_ref().map_err(Clone::clone)
}

/// Any text is a query: it finds existing messages, each once, that match its filters.
///
/// # Errors
/// The first thing that is wrong.
pub fn queries(data: &[u8]) -> Result<(), String> {
    let query = String::from_utf8_lossy(data);
    let store = searched()?;
    let found = store.search(query.as_ref()).limit(50).run().map_err(text)?;
    let mut seen = HashSet::new();
    for hit in &found.hits {
        if !seen.insert((hit.session.clone(), hit.id.clone())) {
            return Err(format!("{:?} is found twice", hit.id));
        }
        let session = store.session(hit.session.clone()).map_err(text)?;
        if session.message(&hit.id).map_err(text)?.is_none() {
            return Err(format!("{:?} is found but does not exist", hit.id));
        }
    }
    if found.hits.len() > 50 {
        return Err(format!("{} hits, over the limit of 50", found.hits.len()));
    }
    found.hits.iter().try_for_each(|hit| passes(hit, &Query::parse(&query).filters))?;
    let next = store.search(query.as_ref()).offset(10).limit(15).run().map_err(text)?;
    let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.id.clone()).collect::<Vec<_>>();
    let rest = found.hits.iter().skip(10).take(15).cloned().collect::<Vec<_>>();
    if ids(&next.hits) != ids(&rest) {
        return Err("the second page does not continue the first".to_owned());
    }
    store.search(query.as_ref()).limit(5).run_by_session().map_err(text)?;
    are_found(&found.steps, |query| store.search(query))?;
    ends_in_time(store.search(query.as_ref()))?;
    let session = store.session("ann").map_err(text)?;
    for found in [session.search(query.as_ref()), session.search(query.as_ref()).on_path()] {
        let found = found.limit(20).run().map_err(text)?;
        if let Some(hit) = found.hits.iter().find(|hit| hit.session.as_str() != "ann") {
            return Err(format!("{:?} of session {:?} is found in another", hit.id, hit.session));
        }
        are_found(&found.steps, |query| session.search(query))?;
    }
    Ok(())
}

/// Checks that what a step searched for instead is in scope: otherwise it would tell what others wrote.
fn are_found(steps: &[Step], search: impl Fn(&str) -> Search) -> Result<(), String> {
    for step in steps {
        let query = match step.searched.ends_with('*') {
            true => format!("{} in:all", step.searched),
            false => format!("\"{}\" in:all", step.searched),
        };
        if search(&query).limit(1).run().map_err(text)?.hits.is_empty() {
            return Err(format!("{step:?} is not found by {query:?}"));
        }
    }
    Ok(())
}

/// Checks that a search ends in time, and says so if it is not done.
fn ends_in_time(search: Search) -> Result<(), String> {
    for limit in [Duration::ZERO, SEARCH_TIME] {
        let began = Instant::now();
        let found = search.clone().timeout(limit).run().map_err(text)?;
        let took = began.elapsed();
        if took > limit + GRACE {
            return Err(format!("a search took {took:?}, its limit is {limit:?}"));
        }
        if limit.is_zero() && !found.is_partial && !found.hits.is_empty() {
            return Err("a search without time is said to be complete".to_owned());
        }
    }
    Ok(())
}

/// Checks that a hit matches the filters of its query.
fn passes(hit: &Hit, filters: &Filters) -> Result<(), String> {
    let has_role =
        filters.roles.is_empty() || filters.roles.iter().any(|role| hit.role.as_str() == role);
    let is_after = filters.after.is_none_or(|time| hit.created_at >= time);
    let is_before = filters.before.is_none_or(|time| hit.created_at < time);
    let is_there = filters.sessions.is_empty()
        || filters
            .sessions
            .iter()
            .any(|id| hit.sessions.iter().any(|session| session.as_str() == id));
    match has_role && is_after && is_before && is_there {
        true => Ok(()),
        false => Err(format!("{:?} does not match {filters:?}", hit.id)),
    }
}

/// Any bytes are imported or refused. After an import the store is sound, a second import adds nothing, and an export
/// imports to the same content.
///
/// # Errors
/// The first thing that is wrong.
pub fn importers(data: &[u8]) -> Result<(), String> {
    let Some((format, bytes)) = data.split_first() else { return Ok(()) };
    let format = Format::ALL.get(usize::from(*format).wrapping_sub(1)).copied();
    let options = ImportOptions { format, ..ImportOptions::default() };
    let store = Store::open_in_memory().map_err(text)?;
    let import = |store: &Store, bytes: &[u8], options: &ImportOptions| {
        import_reader(store, "hostile", Cursor::new(bytes.to_vec()), options, |_| {})
    };
    let report = match import(&store, bytes, &options) {
        Ok(report) => report,
        Err(error) => {
            is_of_input(&error)?;
            return is_sound(&store);
        }
    };
    is_sound(&store)?;
    if report.records != report.kept + report.converted + report.dropped {
        return Err(format!("the counts do not add up: {report:?}"));
    }
    let again = import(&store, bytes, &options).map_err(text)?;
    if again.added > 0 {
        return Err(format!(
            "{} added, then {} more on the second import",
            report.added, again.added
        ));
    }
    let mut exported = Vec::new();
    export_jsonl(&store, &mut exported).map_err(text)?;
    let other = Store::open_in_memory().map_err(text)?;
    let own =
        ImportOptions { format: Some(Format::Own), is_strict: true, ..ImportOptions::default() };
    if !exported.is_empty() {
        import(&other, &exported, &own).map_err(text)?;
    }
    let hashes = (content_hash(&store).map_err(text)?, content_hash(&other).map_err(text)?);
    if hashes.0 != hashes.1 {
        return Err(format!(
            "an export imports differently: {}",
            String::from_utf8_lossy(&exported)
        ));
    }
    Ok(())
}

/// Any JSON is a message or refused. A message is equal after it was serialized and after it was stored.
///
/// # Errors
/// The first thing that is wrong.
pub fn messages(data: &[u8]) -> Result<(), String> {
    let Ok(message) = serde_json::from_slice::<Message>(data) else { return Ok(()) };
    let json = serde_json::to_string(&message).map_err(text)?;
    let back: Message = serde_json::from_str(&json).map_err(|error| format!("{error}: {json}"))?;
    if back != message {
        return Err(format!("serialized it differs: {json}"));
    }
    let store = Store::open_in_memory().map_err(text)?;
    let session = store.session("s").map_err(text)?;
    if let Err(error) = session.append(message.clone()) {
        return is_of_input(&error);
    }
    let stored = session.message(&message.id).map_err(text)?.ok_or("the message is missing")?;
    let mut expected = message;
    expected.parent = None;
    if stored != expected {
        return Err(format!("stored it differs: {stored:?}, not {expected:?}"));
    }
    store.search("hi").run().map_err(text)?;
    is_sound(&store)
}

/// A token counter with any name.
struct Named(String);

impl TokenCounter for Named {
    fn name(&self) -> &str {
        &self.0
    }

    fn count_text(&self, text: &str) -> f64 {
        text.len() as f64
    }
}

/// Any text is accepted as a name or refused, by verbs that the bytes choose.
///
/// # Errors
/// The first thing that is wrong.
pub fn names(data: &[u8]) -> Result<(), String> {
    let store = Store::open_in_memory().map_err(text)?;
    let words: Vec<String> =
        data.chunks(7).map(|chunk| String::from_utf8_lossy(&chunk[1..]).into_owned()).collect();
    for (chunk, word) in data.chunks(7).zip(&words) {
        let other = &words[usize::from(chunk[0]) % words.len()];
        let id = MessageId::from(other.as_str());
        let session = if chunk[0] & 64 == 0 { "s" } else { word.as_str() };
        let done = (|| -> talktree::Result<()> {
            let session = store.session(session)?;
            let message = Message::user(other.as_str()).with_id(word.as_str());
            match chunk[0] % 19 {
                0..4 => drop(session.append(message)?),
                4 => drop(session.append_to(&id, message)?),
                5 => drop(session.upsert(message)?),
                6 => drop(session.delete([&id])?),
                7 => session.label(word, &id)?,
                8 => session.checkout(&id)?,
                9 => drop(session.fork(&id, word)?),
                10 => drop(session.add_compaction(word.as_str(), &id, &word.as_str().into())?),
                11 => drop(session.delete_branch(&id)?),
                12 => drop(session.at(&id).history()?),
                13 => {
                    if let Ok(plan) = session.at(&id).plan_compaction(&options())? {
                        let summary = Summary::new(word.as_str()).by(other.as_str());
                        drop(session.commit(plan, summary)?);
                    }
                }
                14 => {
                    drop(session.compact_and_split_as(&word.as_str().into(), other.as_str())?);
                }
                15 => {
                    if let Some(plan) = session.plan_branch_summary(&id, &options())? {
                        drop(session.checkout_with_summary(plan, word.as_str())?);
                    }
                }
                16 => drop(session.remove_compaction(&word.as_str().into())?),
                17 => {
                    let counter = Named(word.clone());
                    let id = session.id().clone();
                    let counted = store.session_builder(id).token_counter(counter).open()?;
                    counted.visible_tokens()?;
                }
                _ => drop(store.create_session(word)?),
            }
            Ok(())
        })();
        if let Err(error) = done {
            is_of_input(&error)?;
        }
    }
    is_sound(&store)
}
