//! Searches in one block.

use super::{Contexts, put};
use crate::error::Result;
use crate::search::Matched;
use crate::storage::context::{BlockScope, NewEntry};

pub(super) fn finds(contexts: &Contexts) -> Result<()> {
    let (one, label) = (&contexts.one, contexts.label.as_str());
    for scope in BlockScope::ALL {
        let keys = |query: &str, limit: usize| -> Result<Vec<String>> {
            let (found, matched) = one.search(scope, label, query, limit)?;
            assert_eq!(matched, Matched::All);
            let mut keys: Vec<_> = found.into_iter().map(|entry| entry.key).collect();
            keys.sort();
            Ok(keys)
        };
        let titled = NewEntry {
            title: Some("Orchard"),
            description: Some("About harvests"),
            ..NewEntry::new("apples", "Pick them in autumn.")
        };
        one.put(scope, label, &[titled], true)?;
        contexts.put(scope, &[("pears", "Pick pears early."), ("bread", "Bake it slowly.")])?;
        one.put(scope, label, &[NewEntry::new("hidden", "Pick nothing.")], false)?;
        put(&**one, scope, &format!("{label}, another"), &[("plums", "Pick plums.")])?;

        assert_eq!(keys("PICK", 9)?, ["apples", "pears"]);
        for word in ["apples", "orchard", "harvests", "autumn"] {
            assert_eq!(
                keys(word, 9)?,
                ["apples"],
                "{word} is in key, title, description or content"
            );
        }
        assert_eq!(
            (keys("pick", 1)?.len(), keys("pick", 0)?.len(), keys("stone", 9)?.len()),
            (1, 0, 0)
        );
        contexts.put(scope, &[("pears", "Slice them.")])?;
        assert_eq!(keys("early", 9)?, [""; 0]);
        assert_eq!(keys("slice", 9)?, ["pears"]);
    }
    Ok(())
}

pub(super) fn relaxes(contexts: &Contexts) -> Result<()> {
    contexts.put(BlockScope::Session, &[("fox", "a red fox"), ("hen", "a brown hen")])?;
    let search = |query: &str| contexts.one.search(BlockScope::Session, &contexts.label, query, 9);
    let (found, matched) = search("red fox")?;
    assert_eq!((found.len(), matched), (1, Matched::All));
    let (found, matched) = search("red hen")?;
    assert_eq!((found.len(), matched), (2, Matched::Relaxed));
    assert_eq!(search("elephant")?, (Vec::new(), Matched::All));
    Ok(())
}

pub(super) fn odd_queries(contexts: &Contexts) -> Result<()> {
    contexts.put(BlockScope::Session, &[("k", "text")])?;
    for query in
        ["", " ", "\"", "AND", "a OR", "-", "*", "role:", "in:x", "\0", "') --", "NEAR(", "(((("]
    {
        contexts.one.search(BlockScope::Session, &contexts.label, query, 9)?;
    }
    for without_a_word in ["", " ", "\"\"", "-text"] {
        let (found, _) =
            contexts.one.search(BlockScope::Session, &contexts.label, without_a_word, 9)?;
        assert_eq!(found, [], "{without_a_word:?}");
    }
    Ok(())
}
