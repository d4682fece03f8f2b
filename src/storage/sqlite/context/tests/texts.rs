//! Texts, their versions and their owners.

use super::*;

#[test]
fn a_text_is_read_back_and_counts_its_versions() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    for owner in SCOPES {
        assert_eq!(context.entry(owner, "memory", "")?, None);
        let new = text("", "one").titled("Title").described("What it is about");
        let answer = context.put_one(owner, "memory", &new, false, Some(0))?;
        assert_eq!(answer, Put::Stored { version: 1 });
        let again = context.put_one(owner, "memory", &new, false, None)?;
        assert_eq!(again, Put::Unchanged { version: 1 });
        let changed = Document { content: "two".to_owned(), ..new.clone() };
        let answer = context.put_one(owner, "memory", &changed, false, Some(1))?;
        assert_eq!(answer, Put::Stored { version: 2 });
        let late = context.put_one(
            owner,
            "memory",
            &Document { content: "three".to_owned(), ..new },
            false,
            Some(1),
        )?;
        assert_eq!(late, Put::Moved { found: 2 });

        let entry = context.entry(owner, "memory", "")?.unwrap();
        assert_eq!((entry.content.as_str(), entry.version), ("two", 2));
        assert_eq!(entry.title.as_deref(), Some("Title"));
        let versions = context.versions(owner, "memory", "")?;
        let texts: Vec<_> = versions.iter().map(|it| (it.version, it.content.as_deref())).collect();
        assert_eq!(texts, [(1, Some("one")), (2, Some("two"))]);
    }
    sound(&database)
}

#[test]
fn a_removed_text_keeps_its_versions_and_returns_as_the_next_one() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "colour", "red")?;
    assert!(context.remove(BlockScope::Session, "memory", "colour")?);
    assert!(!context.remove(BlockScope::Session, "memory", "colour")?);
    assert!(!context.remove(BlockScope::Session, "other", "colour")?);
    assert_eq!(context.entry(BlockScope::Session, "memory", "colour")?, None);
    assert_eq!(stored_labels(&context, BlockScope::Session)?, Vec::<String>::new());
    assert_eq!(keys(&context, "red")?.0, Vec::<String>::new());
    let moved =
        context.put_one(BlockScope::Session, "memory", &text("colour", "red"), true, Some(1))?;
    assert_eq!(moved, Put::Moved { found: 0 });
    let back =
        context.put_one(BlockScope::Session, "memory", &text("colour", "red"), true, Some(0))?;
    assert_eq!(back, Put::Stored { version: 3 });
    let versions = context.versions(BlockScope::Session, "memory", "colour")?;
    let texts: Vec<_> = versions.iter().map(|it| it.content.as_deref()).collect();
    assert_eq!(texts, [Some("red"), None, Some("red")]);
    assert_eq!(keys(&context, "red")?.0, ["colour"]);
    sound(&database)
}

#[test]
fn the_oldest_of_too_many_versions_are_removed() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    for n in 1..=MAX_VERSIONS + 2 {
        put(&context, "", &n.to_string())?;
    }
    let versions = context.versions(BlockScope::Session, "memory", "")?;
    assert_eq!((versions.len() as u64, versions[0].version), (MAX_VERSIONS, 3));
    assert_eq!(versions.last().map(|last| last.version), Some(MAX_VERSIONS + 2));
    sound(&database)
}

#[test]
fn labels_and_documents_are_sorted_and_the_blocks_own_text_is_not_a_document() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "", "own")?;
    for key in ["b", "a", "c"] {
        put(&context, key, key)?;
    }
    context.put_one(BlockScope::Session, "_system_prompt", &text("", "x"), false, None)?;
    context.put_one(BlockScope::Shared, "memory", &text("", "x"), false, None)?;
    assert_eq!(stored_labels(&context, BlockScope::Session)?, ["_system_prompt", "memory"]);
    assert_eq!(stored_labels(&context, BlockScope::Shared)?, ["memory"]);
    let documents = context.documents(BlockScope::Session, "memory")?;
    assert_eq!(documents.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(context.count(BlockScope::Session, "memory")?, 3);
    assert_eq!(context.count(BlockScope::Shared, "memory")?, 0);
    Ok(())
}

#[test]
fn sessions_do_not_see_each_others_texts_and_share_what_is_shared() -> Result<()> {
    let database = in_memory()?;
    let (one, two) = (database.context(&"one".into()), database.context(&"two".into()));
    put(&one, "k", "red fox")?;
    put(&two, "k", "blue fox")?;
    one.put_one(BlockScope::Shared, "memory", &text("k", "green fox"), true, None)?;
    assert_eq!(one.entry(BlockScope::Session, "memory", "k")?.unwrap().content, "red fox");
    assert_eq!(keys(&two, "red")?.0, Vec::<String>::new());
    let (found, _) = two.search(BlockScope::Shared, "memory", "fox", 10)?;
    assert_eq!(found[0].content, "green fox");
    Ok(())
}

#[test]
fn names_and_sizes_are_limited() -> Result<()> {
    let config = Config { max_message_bytes: 100, ..Config::default() };
    let database = Arc::new(Database::open_in_memory(config)?);
    let context = database.context(&"s".into());
    let long = "x".repeat(10_000);
    for (label, key) in [("", "k"), (long.as_str(), "k"), ("memory", long.as_str())] {
        let answer = context.put_one(BlockScope::Session, label, &text(key, ""), false, None);
        assert!(matches!(answer, Err(Error::InvalidValue { .. })), "{answer:?}");
    }
    let fits = "x".repeat(100);
    put(&context, "k", &fits)?;
    let answer = put(&context, "k", &"x".repeat(101));
    assert!(matches!(answer, Err(Error::TooLarge { bytes: 101, max: 100, .. })), "{answer:?}");
    let answer = context.set_frozen(Some(&section(&fits)));
    assert!(matches!(answer, Err(Error::TooLarge { .. })), "{answer:?}");
    assert_eq!(context.entry(BlockScope::Session, "memory", "k")?.unwrap().content, fits);
    Ok(())
}

#[test]
fn reading_creates_no_session_and_the_first_write_does() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    context.entry(BlockScope::Session, "memory", "")?;
    context.remove(BlockScope::Session, "memory", "")?;
    context.set_frozen(None)?;
    context.put_one(BlockScope::Session, "memory", &text("", "x"), false, Some(7))?;
    context.put_one(BlockScope::Shared, "memory", &text("", "x"), false, None)?;
    assert_eq!(database.sessions()?.len(), 0);
    put(&context, "", "x")?;
    assert_eq!(database.sessions()?.len(), 1);
    Ok(())
}

#[test]
fn a_new_session_with_a_removed_id_has_no_old_context() -> Result<()> {
    let database = in_memory()?;
    with_result(&database)?;
    let context = database.context(&"s".into());
    put(&context, "k", "one")?;
    put(&context, "k", "two")?;
    context.put_one(BlockScope::Shared, "memory", &text("k", "shared"), true, None)?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    context.set_frozen(Some(&section("one")))?;
    database.remove(&"s".into())?;
    with_result(&database)?;
    assert_eq!((stored_labels(&context, BlockScope::Session)?.len(), context.frozen()?), (0, None));
    let stats = database.stats()?;
    assert_eq!((stats.context_entries, stats.context_versions, stats.elisions), (1, 0, 0));
    sound(&database)
}

#[test]
fn writers_that_pass_the_version_they_saw_lose_nothing() -> Result<()> {
    const EACH: u64 = 50;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.db");
    let database = Arc::new(Database::open(&path, Config::default())?);
    let other = Arc::new(Database::open(&path, Config::default())?);
    std::thread::scope(|scope| {
        for database in [&database, &database, &other] {
            scope.spawn(move || {
                let context = database.context(&"s".into());
                let mut done = 0;
                while done < EACH {
                    let seen = context.entry(BlockScope::Session, "count", "").unwrap();
                    let count = seen.as_ref().map_or(0, |it| it.content.parse::<u64>().unwrap());
                    let version = seen.map_or(0, |it| it.version);
                    let next = (count + 1).to_string();
                    let put = context
                        .put_one(
                            BlockScope::Session,
                            "count",
                            &text("", &next),
                            false,
                            Some(version),
                        )
                        .unwrap();
                    done += u64::from(matches!(put, Put::Stored { .. }));
                }
            });
        }
    });
    let last = database.context(&"s".into()).entry(BlockScope::Session, "count", "")?.unwrap();
    assert_eq!((last.content.parse::<u64>().unwrap(), last.version), (3 * EACH, 3 * EACH));
    Ok(())
}

#[test]
fn a_write_reads_its_own_puts_and_is_done_as_a_whole_or_not_at_all() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    for scope in SCOPES {
        context.write(|texts| {
            texts.put(scope, "memory", &text("a", "1"), false)?;
            texts.put(scope, "memory", &text("b", "1"), false)?;
            texts.put(scope, "memory", &text("a", "2"), false)?;
            assert_eq!(texts.texts(scope, "memory")?.count()?, 2);
            let first = texts.texts(scope, "memory")?.version("a", 1)?;
            assert_eq!(first.and_then(|version| version.content).as_deref(), Some("1"));
            Ok(())
        })?;
        let failed = context.write(|texts| -> BackendResult<()> {
            texts.freeze(&section("one"))?;
            texts.put(scope, "memory", &text("a", "3"), false)?;
            assert!(texts.remove(scope, "memory", "b")?);
            texts.put(scope, "", &text("a", "4"), false)
        });
        assert!(matches!(failed, Err(Error::InvalidValue { .. })), "{failed:?}");
        assert_eq!(context.versions(scope, "memory", "a")?.len(), 2);
        assert!(context.entry(scope, "memory", "b")?.is_some());
        assert_eq!(context.frozen()?, None);
    }
    sound(&database)
}
