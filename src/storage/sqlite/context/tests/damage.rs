//! Damage in the tables of the context.

use super::*;

#[test]
fn verify_reports_damage_in_every_table() -> Result<()> {
    for (sql, kinds) in [
        ("UPDATE context_entry SET content = 'other words'", &["search-index"][..]),
        (
            "UPDATE context_entry SET version = 0, searchable = 0",
            &["broken-context", "search-index", "wrong-version"],
        ),
        ("UPDATE context_entry SET changed_at = 9000000000000000000", &["broken-context"]),
        ("UPDATE context_version SET version = 5", &["wrong-version"]),
        ("UPDATE context_block SET next = 1", &["number-in-use"]),
        ("UPDATE context_block SET session = 77", &["stray-context"]),
        ("DELETE FROM context_block", &["stray-context"]),
        ("UPDATE frozen_prompt SET sections = '['", &["broken-prompt"]),
        ("UPDATE frozen_prompt SET session = 77", &["stray-context"]),
        ("UPDATE elision SET address = 1", &["lost-elision"]),
        ("UPDATE elision SET call = 'other'", &["lost-elision"]),
    ] {
        check(sql, kinds)?;
    }
    Ok(())
}

/// A server has no text that is no UTF-8, and no tables below its index.
#[test]
fn verify_reports_damage_that_only_a_file_has() -> Result<()> {
    let sql = "UPDATE context_entry SET content = CAST(x'ff' AS TEXT)";
    check(sql, &["broken-context", "search-index"])?;
    check("DELETE FROM context_search_data WHERE id > 10", &["search-index"])
}

fn check(sql: &'static str, kinds: &[&str]) -> Result<()> {
    let database = in_memory()?;
    with_result(&database)?;
    let context = database.context(&"s".into());
    put(&context, "k", "one")?;
    put(&context, "k", "two")?;
    context.set_frozen(Some(&section("one")))?;
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    sound(&database)?;
    database.write(|conn| conn.script(sql))?;
    let damages = damages(&database)?;
    let mut found: Vec<&str> =
        damages.iter().filter_map(|damage| damage.split(':').next()).collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|kind| *kind != "damaged-page");
    assert_eq!(found, kinds, "{sql}: {damages:?}");
    if sql.contains("content") && kinds == ["search-index"] {
        database.rebuild_search()?;
        sound(&database)?;
    }
    Ok(())
}

#[test]
fn a_damaged_text_is_an_error_that_names_it() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    put(&context, "k", "one")?;
    database.write(|conn| conn.script("UPDATE context_entry SET changed_at = 9e18"))?;
    let answer = context.entry(BlockScope::Session, "memory", "k");
    let Err(Error::Corrupt { what }) = answer else { panic!("{answer:?}") };
    assert!(what.starts_with("text 1 of context block 1: "), "{what}");
    Ok(())
}
