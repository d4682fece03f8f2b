//! Random verbs on two sessions have the same effect on a store as on plain maps.

use super::*;

/// One verb on one of two sessions.
#[derive(Debug, Clone)]
enum Act {
    Put {
        scope: usize,
        label: usize,
        key: usize,
        content: String,
        is_searchable: bool,
        seen: Option<u64>,
    },
    Remove {
        scope: usize,
        label: usize,
        key: usize,
    },
    Search {
        scope: usize,
        label: usize,
        word: usize,
    },
    Freeze(String),
    Refreeze(String),
    Thaw,
    Clear,
    RemoveSession,
    Fork,
    Reopen,
}

const LABELS: [&str; 3] = ["memory", "memory_s", "_system_prompt"];
const KEYS: [&str; 4] = ["", "a", "b", "../x"];
const WORDS: [&str; 4] = ["fox", "den", "重", "river"];

fn acts() -> impl Strategy<Value = Vec<(usize, Act)>> {
    let words = || {
        prop::collection::vec(0..WORDS.len(), 1..4)
            .prop_map(|words| words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" "))
    };
    let put = (
        0..3usize,
        0..LABELS.len(),
        0..KEYS.len(),
        words(),
        any::<bool>(),
        prop::option::of(0..4u64),
    );
    let act = prop_oneof![
        12 => put.prop_map(|(scope, label, key, content, is_searchable, seen)| Act::Put { scope, label, key, content, is_searchable, seen }),
        4 => (0..3usize, 0..LABELS.len(), 0..KEYS.len()).prop_map(|(scope, label, key)| Act::Remove { scope, label, key }),
        6 => (0..3usize, 0..LABELS.len(), 0..WORDS.len()).prop_map(|(scope, label, word)| Act::Search { scope, label, word }),
        2 => words().prop_map(Act::Freeze),
        1 => words().prop_map(Act::Refreeze),
        1 => Just(Act::Thaw),
        1 => Just(Act::Clear),
        1 => Just(Act::RemoveSession),
        1 => Just(Act::Fork),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec((0..2usize, act), 1..40)
}

/// A text in the model: every version, and whether the last one is searchable.
type ModelEntry = (Vec<(u64, Option<String>)>, bool);
/// Whose, besides the two sessions.
const OF_OWNER: usize = 2;
const OF_ALL: usize = 3;
/// Whose, label and key.
type Place = (usize, usize, usize);
type ModelTexts = BTreeMap<Place, ModelEntry>;

#[derive(Default)]
struct Model {
    texts: ModelTexts,
    frozen: [Option<String>; 2],
}

impl Model {
    fn present(&self, at: Place) -> Option<(&str, u64)> {
        let (version, content) = self.texts.get(&at)?.0.last()?;
        content.as_deref().map(|content| (content, *version))
    }

    fn push(&mut self, at: Place, content: Option<String>, is_searchable: bool) -> u64 {
        let entry = self.texts.entry(at).or_default();
        let version = entry.0.last().map_or(1, |last| last.0 + 1);
        entry.0.push((version, content));
        entry.1 = is_searchable;
        version
    }
}

/// Returns whose the texts of a scope are for one of the sessions.
fn scope_key(scope: BlockScope, who: usize) -> usize {
    match scope {
        BlockScope::Session => who,
        BlockScope::Owner => OF_OWNER,
        BlockScope::Shared => OF_ALL,
    }
}

/// Gives the session the owner of both before the owner's texts are used; returns whether it had none.
fn own(database: &Arc<Database>, name: &str, scope: BlockScope) -> Result<bool> {
    if scope != BlockScope::Owner {
        return Ok(false);
    }
    let session = session(database, name);
    let had_none = session.info()?.is_none_or(|info| info.owner.is_none());
    let owner = Some("ann".to_owned());
    let details = SessionDetails { owner, ..SessionDetails::default() };
    session.write(|conn, name| {
        crate::storage::sqlite::catalog::set_details(
            conn,
            name.find_or_create(conn)?.key,
            &details,
            usize::MAX,
        )
    })?;
    Ok(had_none)
}

fn play(acts: &[(usize, Act)]) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.db");
    let config = || Config { is_synchronous: false, ..Config::default() };
    let open = || -> Result<Arc<Database>> { Ok(Arc::new(Database::open(&path, config())?)) };
    let mut database = open()?;
    let mut model = Model::default();
    let names = ["s", "t"];
    for (who, act) in acts {
        let context = database.context(&names[*who].into());
        let frozen = &mut model.frozen[*who];
        let mut scope_key = |scope: usize| {
            if own(&database, names[*who], BlockScope::ALL[scope])? {
                *frozen = None;
            }
            Ok::<_, Error>(scope_key(BlockScope::ALL[scope], *who))
        };
        match act {
            Act::Put { scope, label, key, content, is_searchable, seen } => {
                let at = (scope_key(*scope)?, *label, *key);
                let found = model.present(at).map_or(0, |present| present.1);
                let expected = if seen.is_some_and(|seen| seen != found) {
                    Put::Moved { found }
                } else if model.present(at).is_some_and(|present| present.0 == content) {
                    model.texts.entry(at).or_default().1 = *is_searchable;
                    Put::Unchanged { version: found }
                } else {
                    let version = model.push(at, Some(content.clone()), *is_searchable);
                    Put::Stored { version }
                };
                let new = text(KEYS[*key], content);
                let put = context.put_one(
                    BlockScope::ALL[*scope],
                    LABELS[*label],
                    &new,
                    *is_searchable,
                    *seen,
                )?;
                assert_eq!(put, expected);
            }
            Act::Remove { scope, label, key } => {
                let at = (scope_key(*scope)?, *label, *key);
                let is_there = model.present(at).is_some();
                if is_there {
                    model.push(at, None, false);
                }
                assert_eq!(
                    context.remove(BlockScope::ALL[*scope], LABELS[*label], KEYS[*key])?,
                    is_there
                );
            }
            Act::Search { scope, label, word } => {
                let scope_key = scope_key(*scope)?;
                let holds = |key: &usize| {
                    let at = (scope_key, *label, *key);
                    model.texts.get(&at).is_some_and(|entry| entry.1)
                        && model.present(at).is_some_and(|present| present.0.contains(WORDS[*word]))
                };
                let mut expected: Vec<_> =
                    (0..KEYS.len()).filter(holds).map(|key| KEYS[key]).collect();
                expected.sort_unstable();
                let (found, _) =
                    context.search(BlockScope::ALL[*scope], LABELS[*label], WORDS[*word], 10)?;
                let mut found: Vec<_> = found.iter().map(|entry| entry.key.as_str()).collect();
                found.sort_unstable();
                assert_eq!(found, expected);
            }
            Act::Freeze(content) => {
                let now = model.frozen[*who].get_or_insert_with(|| content.clone());
                assert_eq!(freeze(&context, &section(content))?, section(now));
            }
            Act::Refreeze(content) => {
                model.frozen[*who] = Some(content.clone());
                context.set_frozen(Some(&section(content)))?;
            }
            Act::Thaw => {
                model.frozen[*who] = None;
                context.set_frozen(None)?;
            }
            Act::Clear => {
                model.frozen[*who] = None;
                session(&database, names[*who]).clear()?;
            }
            Act::RemoveSession => {
                model.frozen[*who] = None;
                model.texts.retain(|at, _| at.0 != *who);
                match database.remove(&names[*who].into()) {
                    Ok(()) | Err(Error::UnknownSession { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Act::Fork => {
                // The fork takes the other session's name, so that session is removed first.
                let other = 1 - *who;
                let chat = session(&database, names[*who]);
                let id = chat
                    .append(&Parent::Head, &ExpectedHead::Any, &[Message::user("fork here")], None)?
                    .appended[0]
                    .id
                    .clone();
                match database.remove(&names[other].into()) {
                    Ok(()) | Err(Error::UnknownSession { .. }) => {}
                    Err(error) => return Err(error),
                }
                chat.fork(&id, &names[other].into(), &SessionDetails::default())?;
                model.frozen[other] = None;
                model.texts.retain(|at, _| at.0 != other);
                let copies: Vec<_> = model
                    .texts
                    .iter()
                    .filter(|(at, _)| at.0 == *who)
                    .map(|(at, entry)| (*at, entry.clone()))
                    .collect();
                for ((_, label, key), (versions, is_searchable)) in copies {
                    let last = versions.into_iter().next_back().filter(|last| last.1.is_some());
                    if let Some(last) = last {
                        model.texts.insert((other, label, key), (vec![last], is_searchable));
                    }
                }
            }
            Act::Reopen => {
                drop(context);
                drop(database);
                database = open()?;
            }
        }
    }
    for (who, name) in names.iter().enumerate() {
        let context = database.context(&(*name).into());
        assert_eq!(context.frozen()?, model.frozen[who].as_deref().map(section));
        for scope in BlockScope::ALL {
            own(&database, name, scope)?;
            let scope_key = scope_key(scope, who);
            let mut labels = Vec::new();
            for (label, name) in LABELS.iter().enumerate() {
                let mut documents = 0;
                let mut is_held = false;
                for (key, key_name) in KEYS.iter().enumerate() {
                    let at = (scope_key, label, key);
                    let found = context.entry(scope, name, key_name)?;
                    let found = found.as_ref().map(|entry| (entry.content.as_str(), entry.version));
                    assert_eq!(found, model.present(at));
                    is_held |= found.is_some();
                    documents += u64::from(found.is_some() && !key_name.is_empty());
                    let versions = context.versions(scope, name, key_name)?;
                    let versions: Vec<_> = versions
                        .into_iter()
                        .map(|version| (version.version, version.content))
                        .collect();
                    assert_eq!(
                        versions,
                        model.texts.get(&at).map_or(vec![], |entry| entry.0.clone())
                    );
                }
                assert_eq!(context.count(scope, name)?, documents);
                assert_eq!(context.documents(scope, name)?.len() as u64, documents);
                labels.extend(is_held.then_some(*name));
            }
            labels.sort_unstable();
            assert_eq!(stored_labels(&context, scope)?, labels);
        }
    }
    sound(&database)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(talktree_on_postgres) { 12 } else { 48 }, ..ProptestConfig::default() })]

    #[test]
    fn random_verbs_have_the_same_effect_as_on_a_plain_map(acts in acts()) {
        play(&acts).map_err(|error| TestCaseError::fail(error.to_string()))?;
    }
}
