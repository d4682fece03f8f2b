//! The example `turns` plays whole turns: tools, another answer, another question.

use talktree::{Role, Store, Usage};

use crate::common::example::printed;

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn the_turns_are_played_and_stored() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("turns.db");
    let output = printed("turns", [&path])?;
    for expected in [
        "assistant  One moment.\n",
        r#""output":{"celsius":24}"#,
        "assistant  Yes, Ada: 24 degrees.\n",
        r#""errorText":"no station in Oslo""#,
        "assistant  I cannot tell: there is no station in Oslo.\n",
        "6 answers, 720 tokens in, 60 out",
        "memory: Ada walks slowly.",
    ] {
        assert!(output.contains(expected), "{expected:?} is missing in:\n{output}");
    }

    let store = Store::open(&path)?;
    let chat = store.session("telegram:4711")?;
    let [question, edited] = &chat.roots()?[..] else { return Err("two questions".into()) };
    // The first turn and its retry are siblings.
    assert_eq!(chat.branches(&question.id)?.len(), 2);
    assert_eq!(chat.branches(&edited.id)?.len(), 1);
    let roles: Vec<Role> = chat.raw_history()?.into_iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    let last = chat.raw_history()?.pop().and_then(|message| Usage::of(&message));
    assert_eq!(last.map(|usage| (usage.input, usage.cache_read)), Some((120, 100)));
    Ok(())
}
