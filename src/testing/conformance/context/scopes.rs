//! Scopes: whose a text is.

use super::{Contexts, put};
use crate::error::{Error, Result};
use crate::storage::context::{BlockScope, NewEntry};

pub(super) fn apart(contexts: &Contexts) -> Result<()> {
    let one = &contexts.one;
    let texts = [
        (BlockScope::Session, "text of the session"),
        (BlockScope::Owner, "text of the owner"),
        (BlockScope::Shared, "text of all"),
    ];
    for (scope, content) in texts {
        contexts.put(scope, &[("", content), ("k", content)])?;
    }
    for (scope, content) in texts {
        assert_eq!(contexts.read(&**one, scope, "k")?, content);
        let (found, _) = one.search(scope, &contexts.label, "text", 9)?;
        assert!(found.iter().all(|entry| entry.content == content), "{found:?}");
    }
    assert!(one.remove(BlockScope::Owner, &contexts.label, "k")?);
    for (scope, content) in texts {
        let left = if scope == BlockScope::Owner { "" } else { content };
        assert_eq!(contexts.read(&**one, scope, "k")?, left);
    }
    Ok(())
}

pub(super) fn of_owner(contexts: &Contexts) -> Result<()> {
    let Contexts { one, two, other, free, label } = contexts;
    contexts.put(BlockScope::Owner, &[("k", "red fox")])?;
    contexts.put(BlockScope::Shared, &[("k", "grey fox")])?;
    put(&**other, BlockScope::Owner, label, &[("k", "blue fox")])?;
    for (context, expected) in [(one, "red fox"), (two, "red fox"), (other, "blue fox")] {
        assert_eq!(contexts.read(&**context, BlockScope::Owner, "k")?, expected);
        let (found, _) = context.search(BlockScope::Owner, label, "fox", 9)?;
        let found: Vec<_> = found.iter().map(|entry| entry.content.as_str()).collect();
        assert_eq!(found, [expected]);
        assert_eq!(contexts.read(&**context, BlockScope::Shared, "k")?, "grey fox");
        assert_eq!(contexts.read(&**context, BlockScope::Session, "k")?, "");
    }
    assert_eq!(contexts.read(&**free, BlockScope::Shared, "k")?, "grey fox");
    assert!(two.remove(BlockScope::Owner, label, "k")?);
    assert_eq!(contexts.versions(BlockScope::Owner, "k")?.len(), 2);
    assert_eq!(contexts.read(&**other, BlockScope::Owner, "k")?, "blue fox");
    Ok(())
}

pub(super) fn without_owner(contexts: &Contexts) -> Result<()> {
    let Contexts { free, label, .. } = contexts;
    contexts.put(BlockScope::Owner, &[("k", "text of another")])?;
    put(&**free, BlockScope::Shared, label, &[("s", "text of all")])?;
    for _ in 0..2 {
        let new = [NewEntry::new("k", "text")];
        for answer in [
            free.put(BlockScope::Owner, label, &new, false),
            free.remove(BlockScope::Owner, label, "k").map(drop),
        ] {
            match answer {
                Err(Error::NoOwner { session }) => assert_eq!(session, *free.session()),
                other => panic!("a write should be Error::NoOwner, not {other:?}"),
            }
        }
        assert_eq!(free.labels(BlockScope::Owner)?, []);
        assert_eq!(contexts.read(&**free, BlockScope::Owner, "k")?, "");
        assert_eq!(free.versions(BlockScope::Owner, label, "k")?, []);
        // The same for a session that was written to.
        put(&**free, BlockScope::Session, label, &[("k", "text of the session")])?;
    }
    Ok(())
}

pub(super) fn of_another(contexts: &Contexts) -> Result<()> {
    let Contexts { one, two, free, label, .. } = contexts;
    contexts.put(BlockScope::Session, &[("k", "one")])?;
    put(&**two, BlockScope::Session, label, &[("k", "two")])?;
    let (again, next, new) = (two.of(one.session()), one.of(two.session()), one.of(free.session()));
    assert_eq!(again.session(), one.session());
    let read = |context| contexts.read(context, BlockScope::Session, "k");
    assert_eq!(
        (read(&*again)?, read(&*next)?, read(&*new)?),
        ("one".into(), "two".into(), String::new())
    );
    put(&*new, BlockScope::Session, label, &[("k", "free")])?;
    assert_eq!(read(&**free)?, "free");
    Ok(())
}
