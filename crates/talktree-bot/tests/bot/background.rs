//! Compaction in the background: no append waits for a summary, and nothing is lost to one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Home, Scripted, private, say, session, wait_for};
use talktree::{Message, Session};
use talktree_bot::models::Flow;

#[test]
fn appends_go_on_while_the_summarizer_sleeps() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.compact_after = 2_000;
    let (asleep, awake) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_asleep, may_wake) = (Arc::clone(&asleep), Arc::clone(&awake));
    let summarize = move |_: &str| {
        is_asleep.store(true, Ordering::Relaxed);
        wait_for("the summarizer is woken", || may_wake.load(Ordering::Relaxed));
        Ok("They talked about the weather.".to_owned())
    };
    let answer = |_: &Session| Ok(Message::assistant("Indeed."));
    let bot = home.bot_with(Arc::new(Scripted(answer, summarize)));
    let chat = session(&bot, &ada);
    let append = |day: usize| {
        let text = format!("Day {day}: {}", "rain and wind ".repeat(10));
        chat.append_all([Message::user(text), Message::assistant("Indeed.")]).map(drop)
    };
    let mut days = 0;
    while chat.request_tokens().unwrap().total <= 2_000 {
        append(days).unwrap();
        days += 1;
    }
    wait_for("the summarizer was asked", || asleep.load(Ordering::Relaxed));
    say(&bot, &ada, "Will it rain?"); // a little over the threshold a reply does not wait, either
    let start = Instant::now();
    for day in days..days + 40 {
        append(day).unwrap();
    }
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(chat.compactions().unwrap().is_empty()); // it still sleeps
    awake.store(true, Ordering::Relaxed);
    wait_for("a summary is stored", || !chat.compactions().unwrap().is_empty());
    assert_eq!(chat.raw_history().unwrap().len(), 2 * (days + 41));
}

#[test]
fn a_fact_from_before_the_summary_is_answered_by_the_offline_model() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.compact_after = 3_000;
    let bot = home.bot();
    say(&bot, &ada, "my cat is Mozart");
    for day in 0..80 {
        say(&bot, &ada, &format!("Day {day}: {}", "soup and bread ".repeat(10)));
    }
    let chat = session(&bot, &ada);
    wait_for("the conversation is short enough", || chat.request_tokens().unwrap().total <= 3_000);
    let seen = chat.history().unwrap();
    assert!(seen.len() < 160 && seen.iter().any(|message| message.text().contains("Day ")));
    assert_eq!(chat.raw_history().unwrap().len(), 162);
    assert!(say(&bot, &ada, "What is my cat called?").contains("my cat is Mozart"));
}

#[test]
fn the_caller_is_asked_before_a_reply_waits_for_a_summary() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.compact_after = 2_000;
    let heard = Arc::new(AtomicBool::new(false));
    let is_heard = Arc::clone(&heard);
    let summarize = move |_: &str| {
        wait_for("the caller is asked", || is_heard.load(Ordering::Relaxed));
        Ok("They talked about the weather.".to_owned())
    };
    let answer = |_: &Session| Ok(Message::assistant("Indeed."));
    let bot = home.bot_with(Arc::new(Scripted(answer, summarize)));
    let chat = session(&bot, &ada);
    while chat.request_tokens().unwrap().total <= 3_000 {
        let text = "rain and wind ".repeat(10);
        chat.append_all([Message::user(text), Message::assistant("Indeed.")]).unwrap();
    }
    chat.append(Message::user("Will it rain?")).unwrap();
    let mut on_text = |_: &str| {
        heard.store(true, Ordering::Relaxed);
        Flow::Continue
    };
    bot.reply(&chat, &"answer".into(), None, &mut on_text).unwrap();
    wait_for("a summary is stored", || !chat.compactions().unwrap().is_empty());
}
