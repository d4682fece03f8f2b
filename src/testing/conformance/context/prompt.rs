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
        context.set_frozen(Some(&odd))?;
        contexts.put(BlockScope::Session, &[("k", "a text that changes")])?;
        assert_eq!(context.frozen()?, Some(odd));
        context.set_frozen(Some(&section("three")))?;
        assert_eq!(context.frozen()?, Some(section("three")));
        context.set_frozen(None)?;
        context.set_frozen(None)?;
        assert_eq!(context.frozen()?, None);
        context.set_frozen(Some(&[]))?;
        assert_eq!(context.frozen()?, Some(Vec::new()), "an empty prompt is frozen, too");
        context.write(&mut |texts| {
            assert_eq!(texts.frozen()?, Some(Vec::new()));
            texts.set_frozen(Some(&section("four")))?;
            assert_eq!(texts.frozen()?, Some(section("four")));
            texts.set_frozen(None)?;
            assert_eq!(texts.frozen()?, None);
            Ok(())
        })?;
    }
    Ok(())
}

pub(super) fn apart(contexts: &Contexts) -> Result<()> {
    let Contexts { one, two, label, .. } = contexts;
    one.set_frozen(Some(&section("one")))?;
    assert_eq!(two.frozen()?, None);
    two.set_frozen(Some(&section("two")))?;
    assert_eq!(two.frozen()?, Some(section("two")));
    put(&**two, BlockScope::Owner, label, &[("k", "text")])?;
    two.set_frozen(None)?;
    assert_eq!(one.of(one.session()).frozen()?, Some(section("one")));
    Ok(())
}
