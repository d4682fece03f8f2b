//! Frozen prompts.

use super::*;

#[test]
fn a_prompt_is_frozen_once_until_it_is_thawed() -> Result<()> {
    let database = in_memory()?;
    let context = database.context(&"s".into());
    let odd = section("tab\t, quote\", \u{0}, 故宫, \u{1F600}\r\n");
    assert_eq!(context.frozen()?, None);
    assert_eq!(freeze(&context, &odd)?, odd);
    assert_eq!(freeze(&context, &section("two"))?, odd);
    put(&context, "", "a block that changes")?;
    assert_eq!(context.frozen()?, Some(odd));
    context.set_frozen(Some(&section("three")))?;
    assert_eq!(context.frozen()?, Some(section("three")));
    context.set_frozen(None)?;
    assert_eq!(context.frozen()?, None);
    assert_eq!(freeze(&context, &[])?, []);
    assert_eq!(freeze(&context, &section("four"))?, []);
    Ok(())
}

#[test]
fn a_compaction_and_a_clear_thaw_the_prompt_and_blocks_stay() -> Result<()> {
    let database = in_memory()?;
    let chat = with_result(&database)?;
    let context = database.context(&"s".into());
    put(&context, "k", "fox")?;
    let compaction = Compaction::new("summary", "q".into(), "r".into());
    context.set_frozen(Some(&section("one")))?;
    chat.add_compaction(&compaction)?;
    assert_eq!(context.frozen()?, None);
    context.set_frozen(Some(&section("one")))?;
    chat.add_compaction(&compaction)?;
    assert_eq!(context.frozen()?, Some(section("one")), "a known compaction is a no-op");
    context.elide(&[("r".into(), "call".into())], "unloaded")?;
    chat.clear()?;
    assert_eq!(context.frozen()?, None);
    assert_eq!(keys(&context, "fox")?.0, ["k"]);
    assert_eq!(database.stats()?.elisions, 0);
    sound(&database)
}
