//! Frozen prompts.

use super::{Contexts, put};
use crate::error::Result;
use crate::storage::context::{BlockScope, PromptSection};

fn section(content: &str) -> Vec<PromptSection> {
    vec![PromptSection::new("memory".to_owned(), "MEMORY".to_owned(), content.to_owned())]
}

pub(super) fn frozen(contexts: &Contexts) -> Result<()> {
    let Contexts { one, free, .. } = contexts;
    for context in [one, free] {
        let odd = section("\0\n\u{202e}\"重");
        assert_eq!(context.freeze(&odd)?, odd);
        assert_eq!(context.freeze(&section("two"))?, odd, "a prompt is frozen");
        contexts.put(BlockScope::Session, &[("k", "a text that changes")])?;
        assert_eq!(context.frozen()?, Some(odd));
        context.set_frozen(Some(&section("three")))?;
        assert_eq!(context.frozen()?, Some(section("three")));
        context.set_frozen(None)?;
        context.set_frozen(None)?;
        assert_eq!(context.frozen()?, None);
        assert_eq!(context.freeze(&[])?, []);
        assert_eq!(context.freeze(&section("four"))?, [], "an empty prompt is frozen, too");
    }
    Ok(())
}

pub(super) fn apart(contexts: &Contexts) -> Result<()> {
    let Contexts { one, two, label, .. } = contexts;
    one.freeze(&section("one"))?;
    assert_eq!(two.frozen()?, None);
    assert_eq!(two.freeze(&section("two"))?, section("two"));
    put(&**two, BlockScope::Owner, label, &[("k", "text")])?;
    two.set_frozen(None)?;
    assert_eq!(one.of(one.session()).frozen()?, Some(section("one")));
    Ok(())
}
