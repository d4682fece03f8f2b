//! `/forget yes`: no byte of what was erased is left, and nothing else is gone.

use std::fs;

use crate::common::{Home, command, group, private, say, session, texts};
use crate::tables::{Tables, is_on_server};
use talktree::{Message, Part, Role};

/// Returns whether a mark is in a file of the store, or in a row of its tables on a server.
fn has(home: &Home, mark: &str) -> bool {
    if let Some(rows) = Tables::of(&home.config.store).rows() {
        return rows.contains(mark);
    }
    let mut files = fs::read_dir(home.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mark = mark.as_bytes();
    files.any(|path| fs::read(path).unwrap().windows(mark.len()).any(|window| window == mark))
}

/// Returns whether the bot has said that something is erased: of a server's bytes it does not know.
pub(crate) fn is_erased(said: &str) -> bool {
    said.starts_with("Erased: ") && (is_on_server() || said.contains("nothing of it is left"))
}

#[test]
fn a_person_is_forgotten_to_the_last_byte() {
    let (home, ada, bob) = (Home::new(), private(42, "Ada"), private(7, "Bob"));
    let bot = home.bot();
    let mark = "xylophone-of-ada";
    say(&bot, &ada, &format!("my instrument is the {mark}"));
    say(&bot, &ada, "what is my instrument?");
    command(&bot, &ada, &format!("/remember {mark}"));
    command(&bot, &ada, &format!("/search {mark}"));
    command(&bot, &ada, "/new");
    say(&bot, &ada, &format!("again: {mark}"));
    session(&bot, &ada).prompt().unwrap();
    say(&bot, &bob, "my instrument is the trombone-of-bob");
    assert!(has(&home, mark));

    let known =
        "I know of you: 6 messages, 2 conversations, 1 text of memory, 0 summaries. /forget yes";
    assert!(command(&bot, &ada, "/forget").starts_with(known));
    assert!(has(&home, mark));
    let said = command(&bot, &ada, "/forget yes");
    assert!(said.contains("6 messages, 2 conversations, 1 text of memory, 0 summaries"), "{said}");
    assert!(is_erased(&said), "{said}");
    assert!(!has(&home, mark));
    assert!(has(&home, "trombone-of-bob"));
    assert!(say(&bot, &ada, "what is my instrument?").contains("I do not know"));
    assert!(command(&bot, &ada, "/remember").contains("nothing"));
    assert!(say(&bot, &bob, "what is my instrument?").contains("trombone-of-bob"));
    assert!(command(&bot, &ada, "/forget yes").contains("Erased")); // again, after a crash
}

#[test]
fn in_a_group_what_this_person_wrote_is_erased() {
    let (home, ada, bob) = (Home::new(), group(9, 42, "Ada"), group(9, 7, "Bob"));
    let bot = home.bot();
    let mark = "harpsichord-of-ada";
    for place in [&ada, &bob] {
        // Not answered, as most of what is said in a group.
        let message = talktree::Message::user(match place == &ada {
            true => format!("mine is the {mark}"),
            false => "mine is the tuba-of-bob".to_owned(),
        });
        session(&bot, place).append(message.from(&place.person)).unwrap();
    }
    assert!(has(&home, mark));
    let said = command(&bot, &ada, "/forget yes");
    assert!(said.contains("1 message, 0 conversations") && said.contains("stay."), "{said}");
    assert!(!has(&home, mark));
    assert_eq!(texts(&session(&bot, &bob)), ["mine is the tuba-of-bob"]);
}

#[test]
fn in_a_group_the_answers_below_what_is_erased_are_erased_too() {
    let (home, ada, bob) = (Home::new(), group(9, 42, "Ada"), group(9, 7, "Bob"));
    let bot = home.bot();
    let mark = "harpsichord-of-ada";
    let quoted = say(&bot, &ada, &format!("mine is the {mark}"));
    assert!(quoted.contains(mark), "{quoted}");
    let kept = say(&bot, &bob, "mine is the tuba-of-bob");
    // A second answer, after a tool, on a branch.
    let chat = session(&bot, &ada);
    chat.checkout(&chat.roots().unwrap()[0].id).unwrap();
    let call = Part::tool_call("session_search", "c1", serde_json::json!({"query": mark}));
    chat.append(Message::new(Role::Assistant, vec![call])).unwrap();
    let result =
        Part::tool_result("session_search", "c1", serde_json::json!(format!("found the {mark}")));
    chat.append(Message::new("tool", vec![result])).unwrap();
    chat.append(Message::assistant(format!("you have a {mark}"))).unwrap();
    assert!(has(&home, mark));

    let said = command(&bot, &ada, "/forget yes");
    assert!(said.contains("5 messages") && is_erased(&said), "{said}");
    assert!(said.contains("the memory of this group stay"), "{said}");
    assert!(!has(&home, mark));
    let left: Vec<String> =
        session(&bot, &bob).all_messages().map(|it| it.unwrap().text()).collect();
    assert_eq!(left, ["mine is the tuba-of-bob", &kept]);
}
