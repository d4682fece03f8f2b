//! Plans on branches, and what a refusal says: faults that random operations found.

mod common;

use common::drawn;
use talktree::testing::MemorySession;
use talktree::{
    Compaction, CompactionId, CompactionOptions, CompactionPlan, Error, Message, NothingToCompact,
    Planned, Result, Session, Stale, Store, SummaryRefused,
};

/// Messages of one letter each, long enough that a summary is worth it.
fn say(chat: &Session, letters: &str) -> Result<()> {
    for letter in letters.chars() {
        chat.append(Message::user("word ".repeat(20)).with_id(letter.to_string()))?;
    }
    Ok(())
}

/// Compacts from the second message on, up to the last.
fn options() -> CompactionOptions {
    CompactionOptions::default().protect_head(1).keep_recent_tokens(0).min_tail(1)
}

#[track_caller]
fn planned(plan: Result<Planned>) -> Result<CompactionPlan> {
    match plan? {
        Planned::Compact(plan) => Ok(plan),
        Planned::Nothing(why) => panic!("{why}"),
    }
}

#[track_caller]
fn why(answer: Result<talktree::Compacted>) -> Stale {
    match answer {
        Err(Error::Stale { why }) => why,
        other => panic!("{other:?}"),
    }
}

fn chats() -> Result<[Session; 2]> {
    let small = Session::over(MemorySession::new("s".into()));
    Ok([Store::open_in_memory()?.session("s")?, small])
}

/// A summary on the head's branch that reached beyond the stretch made every plan of the other branch stale from the
/// start.
#[test]
fn a_summary_on_another_branch_is_no_reason_to_refuse() -> Result<()> {
    for chat in chats()? {
        say(&chat, "abcd")?;
        chat.append_to(&"d".into(), Message::user("a long way ".repeat(20)).with_id("x"))?;
        chat.append_to(&"d".into(), Message::user("another way ".repeat(20)).with_id("e"))?;
        say(&chat, "f")?;
        chat.add_compaction("from b to e", &"b".into(), &"e".into())?;

        let plan = planned(chat.at(&"x".into()).plan_compaction(&options()))?;
        assert_eq!((plan.first().as_str(), plan.last().as_str()), ("b", "d"));
        let compacted = chat.commit(plan, "from b to d")?;
        assert!(!compacted.is_shown);
        let shown = compacted.id.as_message();
        assert_eq!(drawn(&chat.at(&"x".into()).history()?), format!("a {shown} x"));
        assert_eq!(chat.history()?[1].text(), "from b to e");
    }
    Ok(())
}

/// What was laid since where the conversation went on is a reason, wherever it ends.
#[test]
fn a_summary_further_on_is_a_reason_to_refuse() -> Result<()> {
    for chat in chats()? {
        say(&chat, "abcde")?;
        let plan = planned(chat.plan_compaction(&options()))?;
        assert_eq!(plan.last().as_str(), "d");
        say(&chat, "fg")?;
        let by = chat.add_compaction("all of it", &"a".into(), &"f".into())?;
        assert_eq!(why(chat.commit(plan, "from b to d")), Stale::Compacted { by });
    }
    Ok(())
}

/// The head may stand on a deleted message at which a summary ends: what was planned there was made of what lay under
/// the summary, and refused each time.
#[test]
fn where_the_head_is_a_deleted_message_what_it_shows_is_planned() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefgh")?;
    let compaction = chat.add_compaction("from b to d", &"b".into(), &"d".into())?;
    chat.checkout(&"d".into())?;
    chat.delete([&"d".into()])?;
    assert_eq!(drawn(&chat.history()?), format!("a {}", compaction.as_message()));

    let plan = chat.plan_compaction(&options())?;
    assert_eq!(plan, Planned::Nothing(NothingToCompact::TooShort { messages: 2, least: 3 }));
    assert_eq!(chat.window_usage()?.middle, 0);
    Ok(())
}

/// A summary of the stretch itself was told as the one that lay over it.
#[test]
fn a_deleted_message_before_a_summary_is_told() -> Result<()> {
    for chat in chats()? {
        say(&chat, "abcdefg")?;
        chat.add_compaction("from d to e", &"d".into(), &"e".into())?;
        let nothing = options().protect_head(0);
        let plan = planned(chat.plan_compaction(&nothing))?;
        chat.delete([&"c".into()])?;
        assert_eq!(why(chat.commit(plan, "all of it")), Stale::Deleted { id: "c".into() });
    }
    Ok(())
}

/// What came up where a summary was taken off was told as the one that lay over it.
#[test]
fn a_summary_that_was_removed_is_told_whatever_came_up() -> Result<()> {
    let chat = Store::open_in_memory()?.session("s")?;
    say(&chat, "abcdefg")?;
    chat.add_compaction("from c to d", &"c".into(), &"d".into())?;
    let outer: CompactionId = chat.add_compaction("from c to e", &"c".into(), &"e".into())?;
    let plan = planned(chat.plan_compaction(&options().protect_head(0)))?;
    assert_eq!(plan.first().as_str(), "a");
    chat.remove_compaction(&outer)?;
    assert_eq!(why(chat.commit(plan, "all of it")), Stale::CompactionRemoved { id: outer });
    Ok(())
}

#[test]
fn a_summary_by_hand_is_refused_too_if_nobody_would_see_it() -> Result<()> {
    for chat in chats()? {
        say(&chat, "ab")?;
        for blank in ["", " \n", "\u{200B}\u{FEFF}"] {
            let answer = chat.add_compaction(blank, &"a".into(), &"b".into());
            assert!(
                matches!(answer, Err(Error::SummaryRefused { why: SummaryRefused::Blank })),
                "{blank:?}: {answer:?}"
            );
        }
        assert_eq!(drawn(&chat.history()?), "a b");
    }
    Ok(())
}

#[test]
fn figures_from_elsewhere_of_any_size_are_taken() -> Result<()> {
    let [chat, _] = chats()?;
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
    let over = chat.add_compaction("all", &"a".into(), &"d".into())?;
    let over = chat.compaction(&over)?;
    assert_eq!((over.count, over.tokens_before), (4, i64::MAX as u64));
    assert_eq!(drawn(&chat.expand(&over.id)?), "compaction_1 compaction_2 compaction_3 d");
    Ok(())
}
