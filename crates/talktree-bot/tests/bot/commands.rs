//! What people can do with a conversation, and that a step that is run twice has the effect of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Home, Scripted, command, done, private, say, session, texts};
use talktree::Message;
use talktree_bot::Bot;
use talktree_bot::commands::{Command, Step, resolve, run};

/// A bot that numbers its answers.
fn counting(home: &Home) -> Bot {
    let count = AtomicUsize::new(0);
    let answer = move |_: &talktree::Session| {
        Ok(Message::assistant(format!("answer {}", count.fetch_add(1, Ordering::Relaxed) + 1)))
    };
    home.bot_with(Arc::new(Scripted(answer, |prompt: &str| {
        Ok(format!("{} letters", prompt.len()))
    })))
}

#[test]
fn commands_are_told_from_texts() {
    let parse = |text| Command::parse(text, Some("tree_bot"));
    assert_eq!(parse("/retry"), Some(Command::Retry));
    assert_eq!(parse(" /Retry@Tree_Bot "), Some(Command::Retry));
    assert_eq!(parse("/retry@other_bot"), None);
    assert_eq!(parse("/branches 2"), Some(Command::Branches(Some(2))));
    assert_eq!(parse("/search two words"), Some(Command::Search("two words".to_owned())));
    assert_eq!(parse("/remember\nline"), Some(Command::Remember("line".to_owned())));
    assert!(matches!(parse("/branches two"), Some(Command::Unknown(_))));
    assert!(matches!(parse("/nonsense"), Some(Command::Unknown(_))));
    assert_eq!(parse("/forget "), Some(Command::Known));
    assert_eq!(parse("/forget Yes"), Some(Command::Forget));
    // It would erase all, not only that.
    assert!(matches!(parse("/forget that I like tea"), Some(Command::Unknown(_))));
    for text in ["hello", "and/or", "/", "/etc/passwd", "// a comment"] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn retry_undo_back_and_branches_move_the_head() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = counting(&home);
    assert!(command(&bot, &ada, "/retry").contains("nothing"));
    assert!(command(&bot, &ada, "/undo").contains("nothing"));
    say(&bot, &ada, "one");
    say(&bot, &ada, "two");
    assert_eq!(command(&bot, &ada, "/retry"), "answer 3");
    assert_eq!(texts(&session(&bot, &ada)), ["one", "answer 1", "two", "answer 3"]);

    assert!(command(&bot, &ada, "/undo").contains("answer 1"));
    assert_eq!(texts(&session(&bot, &ada)), ["one", "answer 1"]);
    assert!(command(&bot, &ada, "/back").contains("answer 3"));
    command(&bot, &ada, "/undo");
    say(&bot, &ada, "three");

    let list = command(&bot, &ada, "/branches");
    assert!(
        list.contains("3 branches") && list.contains("* 3.") && list.contains("answer 4"),
        "{list}"
    );
    assert!(command(&bot, &ada, "/branches 1").contains("answer 2"));
    assert_eq!(texts(&session(&bot, &ada)), ["one", "answer 1", "two", "answer 2"]);
    for wrong in ["/branches 0", "/branches 4"] {
        assert!(command(&bot, &ada, wrong).contains("no such branch"));
    }
    command(&bot, &ada, "/undo");
    command(&bot, &ada, "/undo");
    assert!(texts(&session(&bot, &ada)).is_empty());
    say(&bot, &ada, "anew");
    assert_eq!(texts(&session(&bot, &ada)), ["anew", "answer 5"]);
    assert_eq!(session(&bot, &ada).info().unwrap().unwrap().messages, 9); // nothing was deleted
}

#[test]
fn a_step_that_is_run_twice_is_run_once() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = counting(&home);
    for text in ["one", "two", "three"] {
        say(&bot, &ada, text);
    }
    for text in ["/undo", "/back", "/retry", "/branches 1", "/remember tea", "/new"] {
        let chat = session(&bot, &ada);
        let step = resolve(&chat, &Command::parse(text, None).unwrap()).unwrap();
        // As the front end stores it.
        let kept: Step = serde_json::from_str(&serde_json::to_string(&step).unwrap()).unwrap();
        assert_eq!(kept, step);
        let first = run(&bot, &ada, &chat, &step).unwrap();
        let head = chat.head().unwrap();
        assert_eq!(run(&bot, &ada, &chat, &kept).unwrap(), first, "{text}");
        assert_eq!(chat.head().unwrap(), head, "{text}");
    }
    assert_eq!(session(&bot, &ada).block("memory").unwrap().unwrap().content, "- tea");
}

#[test]
fn what_was_said_is_found_drawn_exported_and_counted() {
    let (home, ada, bob) = (Home::new(), private(42, "Ada"), private(7, "Bob"));
    let bot = home.bot();
    say(&bot, &ada, "my cat is Mozart");
    say(&bot, &bob, "my cat is Bach");
    let found = command(&bot, &ada, "/search cat");
    assert!(found.contains("Mozart") && !found.contains("Bach"), "{found}");
    assert_eq!(command(&bot, &ada, "/search elephants"), "I find nothing.");
    assert!(command(&bot, &ada, "/tree").contains("my cat is Mozart"));

    let export = done(&bot, &ada, "/export");
    let (name, page) = export.file.unwrap();
    assert!(name.ends_with(".md") && page.contains("my cat is Mozart") && !page.contains("Bach"));

    let usage = command(&bot, &ada, "/usage");
    assert!(usage.starts_with("1 answer:") && usage.contains("2 messages"), "{usage}");
    say(&bot, &ada, "he is white");
    let summary = command(&bot, &ada, "/summary");
    assert!(summary.contains("my cat is Mozart"), "{summary}");
    assert!(command(&bot, &ada, "/help").contains("/branches"));
    assert!(command(&bot, &ada, "/nonsense").contains("/nonsense"));
}

#[test]
fn memory_is_that_of_a_person_in_all_chats() {
    let (home, ada, bob) = (Home::new(), private(42, "Ada"), private(7, "Bob"));
    let bot = home.bot();
    assert!(command(&bot, &ada, "/remember").contains("nothing"));
    let long = format!("{}ends with a lamp", "the way to the cellar is dark, ".repeat(5));
    command(&bot, &ada, &format!("/remember {long}"));
    assert!(command(&bot, &ada, "/remember").contains(&long)); // not cut
    command(&bot, &ada, "/remember the door code is 7194");
    command(&bot, &ada, "/new");
    assert!(command(&bot, &ada, "/remember").contains("7194"));
    assert!(!command(&bot, &bob, "/remember").contains("7194"));
    assert_eq!(say(&bot, &ada, "what is the door code?"), "I remember: “the door code is 7194”");
    let mut said = String::new();
    for number in 0..60 {
        said = command(&bot, &ada, &format!("/remember {number} {}", "word ".repeat(18)));
    }
    assert!(said.starts_with("No room: ") && said.contains("1100"), "{said}"); // names the limit
}

#[test]
fn a_new_conversation_can_search_the_old_ones() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot();
    say(&bot, &ada, "the boat leaves at nine");
    let old = session(&bot, &ada).id().clone();
    command(&bot, &ada, "/new");
    assert_ne!(*session(&bot, &ada).id(), old);
    let answer = say(&bot, &ada, "when does the boat leave?");
    assert!(answer.contains("nine") && answer.contains("another conversation"), "{answer}");
}

#[test]
fn a_name_with_line_breaks_stays_on_its_line() {
    let home = Home::new();
    let bot = home.bot();
    let eve = private(7, "Eve\n* 2. me, 01-31 14:05: yes");
    let hello = say(&bot, &eve, "hello");
    assert!(hello.starts_with("Hello, Eve * 2. me") && !hello.contains('\n'), "{hello}");
    // Without an answer the branch ends with what Eve wrote.
    session(&bot, &eve).append(Message::user("hi").from(&eve.person)).unwrap();
    let list = command(&bot, &eve, "/branches");
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("* 1. Eve * 2. me"), "{list}");
}
