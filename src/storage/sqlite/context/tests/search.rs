//! Searching the texts of a block.

use super::super::super::index::find_context;
use super::super::entry;
use super::*;

#[test]
fn all_words_are_searched_first_then_any_word() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "deploy", "How to deploy on a Friday")?;
    put(&context, "bake", "How to bake bread")?;
    put(&context, "beijing", "故宫在北京")?;
    for (query, expected, matched) in [
        ("deploying fridays", &["deploy"][..], Matched::All),
        ("bread friday", &["bake", "deploy"], Matched::Relaxed),
        ("\"deploy on\"", &["deploy"], Matched::All),
        ("\"on deploy\"", &[], Matched::All),
        ("how -bread", &["deploy"], Matched::All),
        ("brea*", &["bake"], Matched::All),
        ("北京", &["beijing"], Matched::All),
        ("宫", &["beijing"], Matched::All),
        ("bake role:user in:tools", &["bake"], Matched::All),
        ("nowhere", &[], Matched::All),
        ("", &[], Matched::All),
        ("-bread", &[], Matched::All),
        ("\" OR AND ( *", &[], Matched::All),
    ] {
        let (mut found, how) = keys(&context, query)?;
        found.sort();
        assert_eq!(
            (found.as_slice(), how),
            (&expected.iter().map(|it| it.to_string()).collect::<Vec<_>>()[..], matched),
            "{query}"
        );
    }
    Ok(())
}

#[test]
fn keys_titles_and_descriptions_are_found_and_weigh_more() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "one", "a word on sailing among other words of this long text")?;
    let titled = text("boats", "the first words of a text that is as long as that")
        .titled("Sailing")
        .described("for beginners");
    context.put_one(BlockScope::Session, "memory", &titled, true, None)?;
    assert_eq!(keys(&context, "sailing")?.0, ["boats", "one"]);
    assert_eq!(keys(&context, "beginner")?.0, ["boats"]);
    assert_eq!(keys(&context, "boat")?.0, ["boats"]);
    Ok(())
}

#[test]
fn a_text_is_found_only_while_it_is_searchable() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    let set = |is_searchable| {
        context.put_one(BlockScope::Session, "memory", &text("k", "fox"), is_searchable, None)
    };
    set(false)?;
    assert_eq!(keys(&context, "fox")?.0.len(), 0);
    assert_eq!(set(true)?, Put::Unchanged { version: 1 });
    assert_eq!(keys(&context, "fox")?.0, ["k"]);
    set(false)?;
    assert_eq!(keys(&context, "fox")?.0.len(), 0);
    sound(&database)
}

#[test]
fn the_best_of_very_many_matches_are_found() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    database.write(|conn| {
        let block = entry::create_block(conn, &super::super::ScopeKey::SHARED, "memory")?;
        for n in 0..1_500 {
            let (key, content) = (n.to_string(), format!("fox number {n} in a row of foxes"));
            entry::insert(conn, block, &text(&key, &content), true)?;
        }
        entry::insert(conn, block, &text("fox", "a den"), true)?;
        entry::insert(conn, block, &text("last", "fox den"), true)?;
        Ok(())
    })?;
    let search = |query: &str, limit| context.search(BlockScope::Shared, "memory", query, limit);
    let first = |query: &str| -> Result<(String, Matched)> {
        let (found, matched) = search(query, 1)?;
        Ok((found[0].key.clone(), matched))
    };
    assert_eq!(first("fox")?, ("fox".to_owned(), Matched::All));
    assert_eq!(first("fox 777")?, ("777".to_owned(), Matched::All));
    assert_eq!(first("row 1234 nowhere")?, ("1234".to_owned(), Matched::Relaxed));
    assert_eq!(search("fox", 0)?.0.len(), 0);
    assert_eq!(search("fox", 1_200)?.0.len(), 1_000);
    Ok(())
}

#[test]
fn a_search_asks_the_index_within_the_blocks_range() -> Result<()> {
    let database = in_memory()?;
    put(&database.context(&"s".into()), "k", "fox")?;
    let (is_far, plan) =
        database.read(|conn| Ok((conn.is_far(), conn.plan(find_context(conn))?.join("\n"))))?;
    // The plan of SQLite shows the constraints that FTS5 was given: M is a match, > and < are the ends of a range of
    // rowids.
    let parts = match is_far {
        true => ["terms @@", "Index Cond: ((address >= $2) AND (address <= $3))"],
        false => ["VIRTUAL TABLE INDEX", "M3><"],
    };
    assert!(parts.iter().all(|part| plan.contains(part)), "{plan}");
    Ok(())
}

#[test]
fn every_text_is_a_query() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "k", "text")?;
    for query in ["AND", "a OR", "*", "role:", "in:x", "\0", "') --", "NEAR(", "(((("] {
        keys(&context, query)?;
    }
    for without_a_word in ["", " ", "\"", "\"\"", "-", "-text"] {
        assert!(keys(&context, without_a_word)?.0.is_empty(), "{without_a_word:?}");
    }
    Ok(())
}
