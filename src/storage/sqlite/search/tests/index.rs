//! Whether the index stays in step with the messages.

use proptest::prelude::*;

use super::*;

#[test]
fn an_index_of_another_version_is_rebuilt_chunk_by_chunk() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    {
        let database = Arc::new(Database::open(&path, Config::default())?);
        append(&session(&database, "s"), (0..3_000).map(|n| format!("fox {n}")))?;
        assert_eq!(count(&database, "fox")?, 3_000);
        database.write(|conn| {
            conn.command("UPDATE setting SET value = '0' WHERE name = 'index_version'")?;
            Index::Messages.clear(conn)
        })?;
    }
    let database = Database::open(&path, Config::default())?;
    let reader = Database::open_read_only(&path, Config::default())?;
    assert_eq!(count(&reader, "fox")?, 3_000);
    check_index(&database)?;
    assert_eq!(count(&database, "fox")?, 3_000);
    check_index(&database)?;
    assert_eq!(pending(&database)?, 0);
    Ok(())
}

#[test]
fn the_copies_of_a_fork_are_indexed_by_the_next_search() -> Result<()> {
    let database = Arc::new(Database::open_in_memory(Config::default())?);
    let chat = session(&database, "s");
    append(&chat, (0..2_000).map(|n| format!("fox {n}")))?;
    assert_eq!((count(&database, "fox")?, pending(&database)?), (2_000, 0));

    let last = chat.head()?.expect("a message");
    chat.fork(&last, &"fork".into(), &SessionDetails::default())?;
    assert_eq!(pending(&database)?, 2_000);
    let scope = Scope::session("fork");
    let request = SearchRequest { limit: 3_000, ..SearchRequest::new("fox", scope) };
    assert_eq!((database.search(&request)?.hits.len(), pending(&database)?), (2_000, 0));
    check_index(&database)
}

#[test]
fn a_search_finds_what_is_pending_while_another_writes() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    let config = Config { busy_timeout: Duration::from_secs(5), ..Config::default() };
    let database = Arc::new(Database::open(&path, config.clone())?);
    append(&session(&database, "s"), ["fox".to_owned(), "den".to_owned()])?;
    let other = Database::open(&path, config)?;
    other.write(|conn| {
        conn.command("UPDATE session SET name = 'held'")?;
        assert_eq!(count(&database, "fox")?, 1);
        assert_eq!(count(&database, "fox OR den")?, 2);
        Ok(())
    })?;
    assert_eq!(count(&other, "fox")?, 1);
    check_index(&other)
}

#[test]
fn pages_of_conversations_come_from_one_order_while_some_are_pending() -> Result<()> {
    let range = tempfile::tempdir().map_err(|source| Error::Io { path: "tmp".into(), source })?;
    let path = range.path().join("store.db");
    let database = Arc::new(Database::open(&path, Config::default())?);
    database.deferred.suspend();
    for number in 0..600 {
        if number == 300 {
            count(&database, "fox")?;
        }
        append(&session(&database, &format!("s{number}")), (0..6).map(|n| format!("fox {n}")))?;
    }
    assert_eq!(pending(&database)?, 1_800);
    let reader = Database::open_read_only(&path, Config::default())?;
    let ids = |offset, limit| -> Result<Vec<SessionId>> {
        let request = SearchRequest { limit, offset, ..SearchRequest::new("fox", Scope::Store) };
        let found = reader.search_sessions(&request)?.hits;
        Ok(found.into_iter().map(|found| found.session).collect())
    };
    let whole = ids(0, 240)?;
    for offset in [0, 60, 200, 210, 220] {
        assert_eq!(ids(offset, 10)?, whole[offset..offset + 10], "{offset}");
    }
    Ok(())
}

/// One write to a session; the ids are those of three messages.
#[derive(Debug, Clone)]
enum Change {
    Append(usize, usize, usize),
    Update(usize, usize, usize),
    Delete(usize, usize),
    DeleteBranch(usize, usize),
    Clear(usize),
    Fork(usize, usize, usize),
    Remove(usize),
    Search,
}

fn change() -> impl Strategy<Value = Change> {
    let (s, m, w) = (0..3_usize, 0..12_usize, 0..4_usize);
    prop_oneof![
        6 => (s.clone(), m.clone(), w.clone()).prop_map(|(s, m, w)| Change::Append(s, m, w)),
        4 => (s.clone(), m.clone(), w).prop_map(|(s, m, w)| Change::Update(s, m, w)),
        3 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::Delete(s, m)),
        1 => (s.clone(), m.clone()).prop_map(|(s, m)| Change::DeleteBranch(s, m)),
        1 => s.clone().prop_map(Change::Clear),
        1 => (s.clone(), m, s.clone()).prop_map(|(s, m, t)| Change::Fork(s, m, t)),
        1 => s.prop_map(Change::Remove),
        3 => Just(Change::Search),
    ]
}

const WORDS: [&str; 4] = ["fox", "red fox", "北京", "owl"];

fn apply(database: &Arc<Database>, change: &Change) -> Result<()> {
    let chat = |number: usize| session(database, ["a", "b", "c"][number]);
    let id = |number: usize| crate::id::MessageId::from(format!("m{number}"));
    let message = |m: usize, w: usize| Message::user(WORDS[w]).with_id(id(m));
    match *change {
        Change::Append(s, m, w) => {
            chat(s).append(&Parent::Head, &ExpectedHead::Any, &[message(m, w)], None).map(|_| ())
        }
        Change::Update(s, m, w) => chat(s).update(&message(m, w)).map(|_| ()),
        Change::Delete(s, m) => chat(s).delete(&[id(m)]).map(|_| ()),
        Change::DeleteBranch(s, m) => chat(s).delete_branch(&id(m)).map(|_| ()),
        Change::Clear(s) => chat(s).clear(),
        Change::Fork(s, m, t) => {
            let target = SessionId::from(format!("fork {t}"));
            chat(s).fork(&id(m), &target, &crate::outcome::SessionDetails::default()).map(|_| ())
        }
        Change::Remove(s) => database.remove(chat(s).id()),
        Change::Search => count(database, "fox").map(|_| ()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(talktree_on_postgres) { 16 } else { 64 }))]

    #[test]
    fn random_changes_keep_the_index_in_step(changes in prop::collection::vec(change(), 1..60)) {
        let database = Arc::new(Database::open_in_memory(Config::default()).map_err(fail)?);
        for change in &changes {
            match apply(&database, change) {
                Ok(()) => {}
                Err(error) if error.is_unknown() => {}
                Err(Error::SessionExists { .. }) => {}
                Err(error) => return Err(fail(error)),
            }
        }
        check_index(&database).map_err(fail)?;
        count(&database, "fox").map_err(fail)?;
        check_index(&database).map_err(fail)?;
    }
}

fn fail(error: Error) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}
