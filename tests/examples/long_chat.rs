//! The example `long_chat` keeps 5 000 turns within its threshold and loses nothing.

use crate::common::example::{Turn, printed};
use talktree::{Message, Store};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn five_thousand_turns_stay_within_the_threshold_and_nothing_is_lost() -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("long.db");
    let output = printed("long_chat", [&path])?;

    let turns: Vec<Turn> = output.lines().filter_map(Turn::read).collect();
    assert!(turns.iter().map(|turn| turn.number).eq(1..=5_000));
    for turn in &turns {
        assert!(turn.total <= turn.threshold, "{turn:?}");
        assert_eq!(
            turn.head.tokens + turn.summary.tokens + turn.tail.tokens,
            turn.total,
            "{turn:?}"
        );
    }
    // Summaries are updated, not added, so they do not fill the window.
    let last = turns[turns.len() - 1];
    assert_eq!((last.head.messages, last.summary.messages), (3, 1));
    assert!(turns.iter().all(|turn| turn.summary.tokens <= 150), "{last:?}");
    let compactions = output.lines().filter(|line| line.starts_with("compacted: ")).count();

    let store = Store::open(&path)?;
    let chat = store.session("workshop")?;
    assert_eq!(chat.compactions()?.len(), compactions);
    let stored = chat.raw_history()?;
    assert_eq!(stored.len(), 10_000);
    for (number, pair) in (1..).zip(stored.chunks(2)) {
        assert!(pair[0].text().starts_with(&format!("Order {number}: ")));
        assert!(pair[1].text().starts_with(&format!("Order {number} is noted: ")));
    }

    // The one summary covers every other message exactly once.
    let view = chat.history()?;
    assert_eq!(view.iter().map(Message::tokens).sum::<u64>(), last.total);
    let (shown, hidden) =
        (view.len() - 1, chat.expand_raw(&chat.compactions()?[compactions - 1].id)?);
    assert_eq!(shown + hidden.len(), 10_000);
    assert_eq!(hidden[0].id, stored[3].id);
    assert_eq!(hidden[hidden.len() - 1].id, stored[3 + hidden.len() - 1].id);
    assert_eq!(store.verify(|_| {})?.damages, []);
    Ok(())
}

#[test]
fn a_message_from_long_ago_is_found_inside_its_compactions() -> Outcome {
    let output = printed("long_chat", [] as [&str; 0])?;
    assert!(output.contains("All 10 000 messages are stored unchanged"), "{output}");
    let (_, recalled) =
        output.split_once("Where is the spare key?").ok_or("the question is missing")?;
    assert!(recalled.contains("The **spare** **key** hangs behind the blue clock"), "{recalled}");
    assert!(recalled.contains("A workshop takes orders, "), "{recalled}");
    assert!(recalled.contains("level   1: 9 9"), "{recalled}");
    let (_, found) = recalled.split_once("The message itself:").ok_or("the message is missing")?;
    assert!(found.trim_start().starts_with("Order 1234: "), "{recalled}");
    Ok(())
}
