//! Plans on branches, and the reasons of refusals: faults that random operations found.

use crate::common::{self, drawn};
use talktree::{
    Compaction, CompactionId, CompactionOptions, CompactionPlan, CompactionStatus, Error, Message,
    NothingToCompact, Result, Session, Stale, Store, SummaryRefused,
};

/// Appends one message per letter, long enough to be worth compacting.
fn say(chat: &Session, letters: &str) -> Result<()> {
    for letter in letters.chars() {
        chat.append(Message::user("word ".repeat(20)).with_id(letter.to_string()))?;
    }
    Ok(())
}

/// Compacts from the second message to the one before the last.
fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(0).min_tail(1)
}

#[track_caller]
fn planned(
    plan: Result<std::result::Result<CompactionPlan, NothingToCompact>>,
) -> Result<CompactionPlan> {
    match plan? {
        Ok(plan) => Ok(plan),
        Err(why) => panic!("{why}"),
    }
}

#[track_caller]
fn why(answer: Result<talktree::Compacted>) -> Stale {
    match answer {
        Err(Error::Stale { why }) => why,
        other => panic!("{other:?}"),
    }
}

/// A fork has the ids of its source, so a plan of one was committed to the other although its summarizer never read it:
/// the summary told what was said elsewhere.
#[test]
fn a_plan_is_committed_only_to_the_session_it_was_made_in() -> Result<()> {
    let (store, elsewhere) = (Store::open_in_memory()?, Store::open_in_memory()?);
    let chat = store.session("s")?;
    say(&chat, "abcdef")?;
    let same = elsewhere.session("s")?;
    say(&same, "abcdef")?;
    let others = [chat.fork(&"f".into(), "Fork")?, same, store.session("never written to")?];
    for other in &others {
        let refused = other.commit(planned(chat.plan_compaction(&options()))?, "short");
        assert!(
            matches!(&refused, Err(Error::PlanOfAnother { planned, session })
                if planned == chat.id() && session == other.id()),
            "{refused:?}"
        );
        assert!(other.compactions()?.is_empty());

        let plan = chat.plan_branch_summary(&"a".into(), &options())?.expect("five are left");
        let refused = other.checkout_with_summary(plan, "short");
        assert!(matches!(refused, Err(Error::PlanOfAnother { .. })), "{refused:?}");
    }
    // Another handle of the same session is the same session.
    let plan = planned(chat.plan_compaction(&options()))?;
    assert!(store.session("s")?.commit(plan, "short")?.is_shown());
    Ok(())
}

#[test]
fn a_plan_is_not_committed_to_a_session_that_was_begun_anew() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    say(&chat, "abcdef")?;
    let plan = planned(chat.plan_compaction(&options()))?;
    store.remove(chat.id())?;
    let again = store.session("s")?;
    say(&again, "abcdef")?;
    let refused = again.commit(plan, "short").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan was made in another session \"s\": of another store, or removed since"
    );
    Ok(())
}

/// The history of a removed session reads as empty, but a plan has nothing to be bound to.
#[test]
fn a_removed_session_is_not_planned() -> Result<()> {
    let store = Store::open_in_memory()?;
    let chat = store.session("s")?;
    say(&chat, "abcdef")?;
    let leaf = chat.head()?.unwrap();
    store.remove(chat.id())?;
    assert!(chat.history()?.is_empty());
    let refused = chat.plan_compaction(&options());
    assert!(matches!(refused, Err(Error::SessionRemoved { .. })), "{refused:?}");
    let refused = chat.at(&leaf).plan_compaction(&options());
    assert!(matches!(refused, Err(Error::UnknownMessage { .. })), "{refused:?}");
    Ok(())
}

#[test]
fn a_plan_is_bound_to_the_file_and_not_to_the_handle() -> Result<()> {
    let scratch = common::Scratch::new()?;
    let chat = scratch.store.session("s")?;
    say(&chat, "abcdef")?;
    let plan = planned(chat.plan_compaction(&options()))?;
    assert!(common::open(&scratch.folder)?.session("s")?.commit(plan, "short")?.is_shown());
    Ok(())
}

/// A compaction on the head's branch that reached beyond the planned range made every plan of the other branch stale
/// from the start.
#[test]
fn a_compaction_on_another_branch_is_no_reason_to_refuse() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcd")?;
    chat.append_to(&"d".into(), Message::user("a long way ".repeat(20)).with_id("x"))?;
    chat.append_to(&"d".into(), Message::user("another way ".repeat(20)).with_id("e"))?;
    say(&chat, "f")?;
    chat.add_compaction("from b to e", &"b".into(), &"e".into())?;

    let plan = planned(chat.at(&"x".into()).plan_compaction(&options()))?;
    assert_eq!((plan.first().as_str(), plan.last().as_str()), ("b", "d"));
    let compacted = chat.commit(plan, "from b to d")?;
    assert!(!compacted.is_shown());
    let shown = compacted.id.as_message();
    assert_eq!(drawn(&chat.at(&"x".into()).history()?), format!("a {shown} x"));
    assert_eq!(chat.history()?[1].text(), "from b to e");
    Ok(())
}

/// A compaction added later on the continued path is a reason, wherever it ends.
#[test]
fn a_later_compaction_that_covers_the_range_is_a_reason_to_refuse() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcde")?;
    let plan = planned(chat.plan_compaction(&options()))?;
    assert_eq!(plan.last().as_str(), "d");
    say(&chat, "fg")?;
    let by = chat.add_compaction("all of it", &"a".into(), &"f".into())?.id;
    assert_eq!(why(chat.commit(plan, "from b to d")), Stale::Compacted { by });
    Ok(())
}

/// The head may be a deleted message at which a compaction ends. A plan there was made from the messages inside that
/// compaction, and every commit was refused.
#[test]
fn a_plan_at_a_deleted_head_is_made_from_what_is_visible() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefgh")?;
    let compaction = chat.add_compaction("from b to d", &"b".into(), &"d".into())?.id;
    chat.checkout(&"d".into())?;
    chat.delete([&"d".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("a {}", compaction.as_message()));

    let plan = chat.plan_compaction(&options())?;
    assert_eq!(plan, Err(NothingToCompact::TooShort { messages: 2, least: 3 }));
    assert_eq!(chat.window_usage()?.middle, 0);
    Ok(())
}

/// The reason named a compaction inside the range as the one that covers it.
#[test]
fn the_reason_names_a_deleted_message_before_a_compaction() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefg")?;
    chat.add_compaction("from d to e", &"d".into(), &"e".into())?;
    let nothing = options().protect_head(0);
    let plan = planned(chat.plan_compaction(&nothing))?;
    chat.delete([&"c".into()])?;
    assert_eq!(why(chat.commit(plan, "all of it")), Stale::Deleted { id: "c".into() });
    Ok(())
}

/// The reason named the compaction that became visible as the one that covers the range.
#[test]
fn the_reason_names_the_removed_compaction_whatever_became_visible() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefg")?;
    chat.add_compaction("from c to d", &"c".into(), &"d".into())?;
    let outer: CompactionId = chat.add_compaction("from c to e", &"c".into(), &"e".into())?.id;
    let plan = planned(chat.plan_compaction(&options().protect_head(0)))?;
    assert_eq!(plan.first().as_str(), "a");
    chat.remove_compaction(&outer)?;
    assert_eq!(why(chat.commit(plan, "all of it")), Stale::CompactionRemoved { id: outer });
    Ok(())
}

#[test]
fn a_given_summary_without_visible_text_is_refused() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "ab")?;
    for blank in ["", " \n", "\u{200B}\u{FEFF}"] {
        let answer = chat.add_compaction(blank, &"a".into(), &"b".into());
        assert!(
            matches!(answer, Err(Error::SummaryRefused { why: SummaryRefused::Blank })),
            "{blank:?}: {answer:?}"
        );
    }
    assert_eq!(drawn(&chat.history()?), "a b");
    Ok(())
}

#[test]
fn imported_figures_of_any_size_are_accepted() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefgh")?;
    for (id, at) in [("1", "a"), ("2", "b"), ("3", "c")] {
        let mut compaction = Compaction::new("short", at.into(), at.into());
        compaction.id = id.into();
        for figure in
            [&mut compaction.count, &mut compaction.tokens_before, &mut compaction.tokens_after]
        {
            *figure = u64::MAX;
        }
        chat.import_compaction(&compaction)?;
    }
    let over = chat.add_compaction("all", &"a".into(), &"d".into())?.id;
    let over = chat.compaction(&over)?;
    assert_eq!((over.count, over.tokens_before), (4, i64::MAX as u64));
    assert_eq!(drawn(&chat.expand(&over.id)?), "compaction_1 compaction_2 compaction_3 d");
    Ok(())
}

/// Nothing said that a summary that was added does not show.
#[test]
fn adding_a_compaction_says_whether_it_shows() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcde")?;
    let y = chat.add_compaction("Y", &"b".into(), &"d".into())?;
    assert!(y.is_shown());
    let x = chat.add_compaction("X", &"a".into(), &"c".into())?;
    assert_eq!(x.status, CompactionStatus::Under { id: y.id.clone() });
    assert_eq!(drawn(&chat.at(&"c".into()).history()?), x.id.as_message().as_str());
    chat.append_to(&"a".into(), Message::user("another way").with_id("x"))?;
    let off = chat.add_compaction("Z", &y.id.as_message(), &"e".into())?;
    assert_eq!((off.status.clone(), off.is_shown()), (CompactionStatus::OffPath, false));
    assert_eq!(chat.compaction_status(&off.id)?, off.status);
    Ok(())
}

/// The summary of a branch was stored although a message that it quotes was erased while the model wrote it.
#[test]
fn a_branch_summary_of_changed_messages_is_refused() -> Result<()> {
    type Change = fn(&Session) -> Result<()>;
    let gone = |id: &str| Some(Stale::Deleted { id: id.into() });
    let changes: [(&str, Change, Option<Stale>); 6] = [
        ("deleted", |chat| chat.delete(&["c".into()]).map(drop), gone("c")),
        (
            "updated",
            |chat| chat.update(Message::user("other").with_id("d")).map(drop),
            Some(Stale::Updated { id: "d".into() }),
        ),
        ("erased", |chat| chat.erase(&["d".into()]).map(drop), gone("d")),
        // What it quotes still reads as it did.
        ("the shared part", |chat| chat.delete(&["a".into()]).map(drop), None),
        (
            "compacted",
            |chat| chat.add_compaction("brief", &"c".into(), &"d".into()).map(drop),
            None,
        ),
        ("nothing", |_| Ok(()), None),
    ];
    for (what, change, stale) in changes {
        let chat = Store::open_in_memory()?.session("s")?;
        say(&chat, "abcde")?;
        let plan = chat.plan_branch_summary(&"b".into(), &CompactionOptions::default())?;
        let plan = plan.unwrap_or_else(|| panic!("three messages are left"));
        match change(&chat) {
            // The small session has no erasure.
            Err(Error::Unsupported { .. }) => continue,
            changed => changed?,
        }
        let answer = chat.checkout_with_summary(plan, "Of c, d and e.");
        match &stale {
            None => _ = answer?,
            Some(why) => {
                let is_it = matches!(&answer, Err(Error::Stale { why: found }) if found == why);
                assert!(is_it, "{what}: {answer:?}");
                assert_eq!(chat.head()?, Some("e".into()), "{what}");
            }
        }
    }
    // The same while the summarizer writes.
    let store = Store::open_in_memory()?;
    let other = store.session("s")?;
    let erasing = move |_: &str| -> std::result::Result<&'static str, talktree::BoxError> {
        let _ = other.erase(&["d".into()])?;
        Ok("Of c, d and e.")
    };
    let chat = store.session_builder("s").summarizer(erasing).open()?;
    say(&chat, "abcde")?;
    let answer = chat.checkout_summarized(&"b".into());
    assert!(matches!(answer, Err(Error::Stale { why: Stale::Deleted { .. } })), "{answer:?}");
    assert_eq!(chat.history()?.len(), 4);
    Ok(())
}
