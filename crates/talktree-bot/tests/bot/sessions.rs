//! Which session a place has: after a restart, after a long silence, with a file that changed, in a group.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Home, group, private, say, session, texts};
use talktree::AuthorLine;
use talktree_model::{Provider, Request, validate_for};

#[test]
fn a_chat_goes_on_after_a_restart() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let first = {
        let bot = home.bot();
        say(&bot, &ada, "my cat is Mozart");
        session(&bot, &ada).id().clone()
    };
    let bot = home.bot();
    assert_eq!(*session(&bot, &ada).id(), first);
    assert!(say(&bot, &ada, "what is my cat called?").contains("Mozart"));
    assert_eq!(texts(&session(&bot, &ada)).len(), 4);
}

#[test]
fn a_silent_chat_begins_anew_and_still_remembers() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.session.expire_seconds = 1;
    let bot = home.bot();
    say(&bot, &ada, "my cat is Mozart");
    let first = session(&bot, &ada).id().clone();
    sleep(Duration::from_millis(1_100));
    assert_ne!(*session(&bot, &ada).id(), first);
    assert!(say(&bot, &ada, "what is my cat called?").contains("Mozart"));
}

#[test]
fn a_session_that_was_ended_or_has_another_owner_is_not_resumed() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot();
    say(&bot, &ada, "a secret of Ada");
    let first = session(&bot, &ada).id().clone();
    let mut other = ada.clone();
    other.owner = Some("user:43".to_owned());
    let second = session(&bot, &other).id().clone();
    assert_ne!(second, first);
    assert!(!say(&bot, &other, "what is the secret of Ada?").contains("You told me"));
    bot.sessions().delete(&second).unwrap();
    assert_ne!(*session(&bot, &other).id(), second);
}

#[test]
fn without_sessions_every_message_has_its_own() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.session.enabled = false;
    let bot = home.bot();
    let id = |message: &str| bot.chat(&ada, &message.into()).unwrap().id().clone();
    assert_ne!(id("telegram:42:1"), id("telegram:42:2"));
    assert_eq!(id("telegram:42:1"), id("telegram:42:1"));
}

#[test]
fn a_changed_system_text_counts_from_the_next_turn() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.system_file = home.path("soul.md");
    fs::write(&home.config.agent.system_file, "You are a cook.").unwrap();
    let bot = home.bot();
    let frozen = session(&bot, &ada).prompt().unwrap();
    assert!(frozen.contains("You are a cook."));
    assert_eq!(session(&bot, &ada).prompt().unwrap(), frozen);

    fs::write(&home.config.agent.system_file, "You are a gardener now.").unwrap();
    assert!(session(&bot, &ada).prompt().unwrap().contains("You are a gardener now."));
    fs::remove_file(&home.config.agent.system_file).unwrap();
    assert!(session(&bot, &ada).prompt().unwrap().contains("You are a gardener now."));
    drop(bot);
    fs::write(&home.config.agent.system_file, "You are a baker.").unwrap();
    assert!(session(&home.bot(), &ada).prompt().unwrap().contains("You are a baker."));
}

#[test]
fn memory_that_changed_does_not_change_the_frozen_prompt() {
    let (home, ada) = (Home::new(), private(42, "Ada"));
    let bot = home.bot();
    let frozen = session(&bot, &ada).prompt().unwrap();
    session(&bot, &ada).context().set("memory", "Likes tea.").unwrap();
    let chat = session(&bot, &ada);
    assert_eq!(chat.prompt().unwrap(), frozen);
    assert!(chat.reminder().unwrap().unwrap().contains("Likes tea."));
}

#[test]
fn the_files_of_a_folder_are_knowledge() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.knowledge_dir = home.path("knowledge");
    let file = |name: &str| home.path("knowledge").join(name);
    fs::create_dir(home.path("knowledge")).unwrap();
    fs::write(file("shop.md"), "# The shop\n\nThe shop opens at nine.\n").unwrap();
    fs::write(file("picture.png"), "The shop opens at ten.").unwrap();
    fs::write(file("broken.txt"), b"The shop \xff opens at eleven.").unwrap();
    let bot = home.bot();
    let asked = "when does the shop open?";
    let answer = say(&bot, &ada, asked);
    assert!(answer.contains("shop.md") && answer.contains("opens at nine"), "{answer}");
    let tools = session(&bot, &ada).tools().anthropic().to_string();
    assert!(tools.contains("knowledge") && tools.contains("search_context"), "{tools}");
    let write = serde_json::json!({"label": "knowledge", "key": "shop.md", "content": "closed"});
    assert!(session(&bot, &ada).tools().call("set_context", write).unwrap().starts_with("Error"));

    sleep(Duration::from_millis(1_050)); // the folder is looked at once a second
    fs::write(file("shop.md"), "The shop opens at half past eight.").unwrap();
    assert!(say(&bot, &ada, asked).contains("half past eight"));
    sleep(Duration::from_millis(1_050));
    fs::remove_file(file("shop.md")).unwrap();
    assert!(say(&bot, &ada, asked).contains("I do not know"));
}

#[test]
fn skills_are_listed_and_can_be_loaded() {
    let (mut home, ada) = (Home::new(), private(42, "Ada"));
    home.config.agent.skills_dir = home.path("skills");
    fs::create_dir(home.path("skills")).unwrap();
    fs::write(home.path("skills").join("tea.md"), "# How to make tea\n\nBoil water first.")
        .unwrap();
    let bot = home.bot();
    let chat = session(&bot, &ada);
    assert!(chat.prompt().unwrap().contains("How to make tea"));
    let call = serde_json::json!({"label": "skills", "key": "tea"});
    assert!(chat.tools().call("load_context", call).unwrap().contains("Boil water"));
}

#[test]
fn a_group_remembers_who_said_what() {
    let (home, ada, bob) = (Home::new(), group(9, 42, "Ada"), group(9, 7, "Bob"));
    let bot = home.bot();
    say(&bot, &ada, "I bring the bread");
    say(&bot, &bob, "I bring the cheese");
    let chat = session(&bot, &ada);
    assert_eq!(chat.id(), session(&bot, &bob).id());
    let answer = say(&bot, &bob, "who brings the bread?");
    assert!(
        answer.starts_with("Ada wrote on ") && answer.contains("I bring the bread"),
        "{answer}"
    );

    let request = Request::of(&chat).authors(AuthorLine::NameAndTime).anthropic().unwrap();
    let text = request["messages"].to_string();
    assert!(
        text.contains("[from Ada (id 42), 20") && text.contains("[from Bob (id 7), 20"),
        "{text}"
    );
    assert!(validate_for(Provider::Anthropic, &request).is_empty());
}

#[test]
fn chats_are_never_mixed() {
    let home = Home::new();
    let bot = home.bot();
    std::thread::scope(|scope| {
        for chat in 0..8_u64 {
            let bot = bot.clone();
            scope.spawn(move || {
                let place = private(chat, "Somebody");
                for turn in 0..10 {
                    say(&bot, &place, &format!("mark-{chat}-{turn} is a pebble"));
                    let answer = say(&bot, &place, &format!("which pebble is mark-{chat}-{turn}?"));
                    assert!(answer.contains(&format!("mark-{chat}-")), "{answer}");
                }
            });
        }
    });
    for chat in 0..8 {
        let texts = texts(&session(&bot, &private(chat, "Somebody")));
        assert_eq!(texts.len(), 40);
        assert!(
            texts
                .iter()
                .all(|text| !text.contains("mark-") || text.contains(&format!("mark-{chat}-")))
        );
    }
}
