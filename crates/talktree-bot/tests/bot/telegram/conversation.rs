//! Who is answered, where and how often, and what the session holds then.

use super::*;

#[test]
fn a_message_is_answered_in_one_message() {
    let bot = Running::new(options());
    let sent = bot.say(7, "hello");
    let bots = bot.settled(7);
    assert_eq!(bots.len(), 1);
    assert_eq!(bots[0].text, "You said: hello");
    let chat = bot.session("telegram:7");
    let history = chat.raw_history().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0].id, id(7, sent));
    assert_eq!(history[1].id, id(7, bots[0].id));
    assert_eq!(chat.info().unwrap().unwrap().owner.as_deref(), Some("user:7"));
    let author = talktree::Author::of(&history[0]).unwrap();
    assert_eq!((author.id.as_deref(), author.name.as_deref()), (Some("user:7"), Some("Ada")));
}

#[test]
fn each_message_is_answered_once_and_in_order_whatever_is_delivered_twice() {
    let faults = Faults { seed: 5, duplicates: 0.4, shuffled: 0.5, ..Faults::default() };
    let bot = Running::new(Options { faults, ..options() });
    for n in 0..30 {
        for chat in 1..=4 {
            bot.say(chat, &format!("{chat}-{n}"));
        }
    }
    for chat in 1..=4 {
        let expected: Vec<_> = (0..30).map(|n| format!("You said: {chat}-{n}")).collect();
        assert_eq!(bot.texts(chat), expected);
        assert_eq!(texts(&bot.session(&format!("telegram:{chat}"))).len(), 60);
    }
}

#[test]
fn a_long_answer_is_split_and_each_part_is_the_answer() {
    let long = |text: &str| {
        let lines = if text.contains("long") { 300 } else { 1 };
        Ok((0..lines).map(|n| format!("Line {n} of an answer to this.\n")).collect())
    };
    let bot = Running::with(options(), long);
    bot.say(7, "long");
    let bots = bot.settled(7);
    assert_eq!(bots.len(), 3);
    assert!(bots.iter().all(|shown| shown.text.encode_utf16().count() <= 4_096));
    let shown: Vec<_> = bots.iter().flat_map(|shown| shown.text.lines()).collect();
    let stored = bot.session("telegram:7").raw_history().unwrap().pop().unwrap();
    assert_eq!(shown, stored.text().lines().collect::<Vec<_>>());
    let parts: Vec<_> = bots.iter().map(|shown| shown.id).collect();
    assert_eq!(stored.metadata.unwrap().value()["telegram"], json!(parts));
    assert_eq!(stored.id, id(7, parts[0]));

    bot.say(7, "another");
    bot.settled(7);
    let reply = bot.telegram.say(&Saying::new(7, "to the last part").reply_to(parts[2])).message;
    bot.settled(7);
    let chat = bot.session("telegram:7");
    assert_eq!(chat.message(&id(7, reply)).unwrap().unwrap().parent, Some(id(7, parts[0])));
}

#[test]
fn a_reply_to_an_older_message_branches_there() {
    let bot = Running::new(options());
    bot.say(7, "one");
    let first = bot.settled(7)[0].id;
    bot.say(7, "two");
    let second = bot.settled(7)[1].id;
    let branch = bot.telegram.say(&Saying::new(7, "instead of two").reply_to(first)).message;
    bot.settled(7);
    let newest = bot.settled(7)[2].id;
    bot.telegram.say(&Saying::new(7, "and on").reply_to(newest));
    bot.settled(7);
    let chat = bot.session("telegram:7");
    let parent = |message| chat.message(&id(7, message)).unwrap().unwrap().parent;
    assert_eq!(parent(branch), Some(id(7, first)));
    assert_eq!(
        texts(&chat),
        [
            "one",
            "You said: one",
            "instead of two",
            "You said: instead of two",
            "and on",
            "You said: and on"
        ]
    );
    assert!(!chat.is_on_path(&id(7, second)).unwrap());

    // What the session does not know is quoted.
    bot.say(7, "/new");
    bot.settled(7);
    bot.telegram.say(&Saying::new(7, "what of this?").reply_to(first));
    bot.settled(7);
    assert_eq!(texts(&bot.session("telegram:7"))[0], "> You said: one\n\nwhat of this?");
}

#[test]
fn an_edit_makes_a_sibling_and_a_new_answer() {
    let bot = Running::new(options());
    let first = bot.say(7, "one");
    bot.settled(7);
    bot.say(7, "two");
    bot.settled(7);
    bot.telegram.edit(7, first, "one!").unwrap();
    assert_eq!(bot.texts(7), ["You said: one", "You said: two", "You said: one!"]);
    let chat = bot.session("telegram:7");
    assert_eq!(texts(&chat), ["one!", "You said: one!"]);
    assert_eq!(chat.roots().unwrap().len(), 2);

    // The same text, as when a preview is added; a message that is not known; a command.
    bot.telegram.edit(7, first, "one!").unwrap();
    let command = bot.say(7, "/help");
    bot.settled(7);
    bot.telegram.edit(7, command, "/usage").unwrap();
    let unknown = json!({"edited_message": {"message_id": 9_999, "date": 1, "edit_date": 2,
        "chat": {"id": 7, "type": "private"}, "text": "?",
        "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}});
    bot.telegram.push(unknown);
    assert_eq!(bot.texts(7).len(), 4);
    assert_eq!(texts(&bot.session("telegram:7")), ["one!", "You said: one!"]);

    // A reply to the message that was edited goes to its newest version.
    let reply = bot.telegram.say(&Saying::new(7, "of the first").reply_to(first)).message;
    bot.settled(7);
    let parent = bot.session("telegram:7").message(&id(7, reply)).unwrap().unwrap().parent;
    assert!(parent.unwrap().as_str().starts_with(&format!("telegram:7:{first}:e")));
}

#[test]
fn in_a_group_the_bot_answers_when_it_is_spoken_to() {
    let bot = Running::new(options());
    let say =
        |id, name, text: &str| bot.telegram.say(&Saying::new(-5, text).from(id, name)).message;
    let chatter = say(1, "Ada", "shall we meet on Friday?");
    say(2, "Bob", "/help@another_bot");
    say(2, "Bob", "/other");
    assert_eq!(bot.texts(-5), [""; 0]);
    let asked = say(2, "Bob", "🙂 @rig_bot, what do you think?");
    assert_eq!(bot.texts(-5), ["You said: 🙂 @rig_bot, what do you think?"]);
    let answer = bot.bots(-5)[0].clone();
    assert_eq!(answer.reply_to, Some(asked));

    bot.telegram.edit(-5, chatter, "shall we meet on Monday?").unwrap();
    say(1, "Ada", "good question");
    let reply = Saying::new(-5, "why?").from(1, "Ada").reply_to(answer.id);
    bot.telegram.say(&reply);
    assert_eq!(bot.texts(-5).len(), 2);
    let chat = bot.session("telegram:-5");
    assert_eq!(
        texts(&chat),
        [
            "shall we meet on Monday?",
            "/help@another_bot",
            "/other",
            "🙂 @rig_bot, what do you think?",
            "You said: 🙂 @rig_bot, what do you think?",
            "good question",
            "why?",
            "You said: why?"
        ]
    );
    assert_eq!(chat.info().unwrap().unwrap().owner.as_deref(), Some("chat:-5"));
    let authors: Vec<_> =
        chat.raw_history().unwrap().iter().filter_map(talktree::Author::of).collect();
    assert_eq!(authors[0].name.as_deref(), Some("Ada"));
    assert_eq!(authors[1].id.as_deref(), Some("user:2"));

    // Each topic is a conversation.
    bot.telegram.say(&Saying::new(-5, "@rig_bot hello").from(1, "Ada").topic(3));
    bot.settled(-5);
    assert_eq!(bot.bots(-5).last().unwrap().topic, Some(3));
    assert_eq!(texts(&bot.session("telegram:-5/3")).len(), 2);
}

#[test]
fn commands_answer_and_answers_can_be_retried() {
    let count = AtomicUsize::new(0);
    let bot = Running::with(options(), move |text| {
        Ok(format!("answer {} to {text}", count.fetch_add(1, Ordering::Relaxed)))
    });
    bot.say(7, "one");
    bot.say(7, "/retry");
    assert_eq!(bot.texts(7), ["answer 0 to one", "answer 1 to one"]);
    let chat = bot.session("telegram:7");
    assert_eq!(texts(&chat), ["one", "answer 1 to one"]);
    assert_eq!(chat.leaves().unwrap().len(), 2);

    bot.say(7, "/export");
    let bots = bot.settled(7);
    let (name, page) = bots.last().unwrap().file.clone().unwrap();
    assert!(name.ends_with(".md"), "{name}");
    assert!(String::from_utf8(page).unwrap().contains("answer 1 to one"));

    bot.say(7, "/forget yes");
    let bots = bot.settled(7);
    assert!(bots.last().unwrap().text.starts_with("Erased: "), "{:?}", bots.last());
    assert!(bot.store().sessions().unwrap().is_empty());
    bot.say(7, "two");
    assert_eq!(bot.texts(7).last().unwrap(), "answer 2 to two");
}

#[test]
fn what_is_not_understood_is_ignored() {
    let mut bot = Running::new(options());
    bot.telegram.push(json!({"brand_new_kind": {"x": [1, 2]}}));
    bot.telegram.push(json!({"message": {"message_id": "?"}}));
    let sticker = json!({"message": {"message_id": 5, "date": 1, "sticker": {"new": true},
        "chat": {"id": 7, "type": "private"},
        "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}});
    bot.telegram.push(sticker);
    bot.say(7, "hello");
    assert_eq!(bot.texts(7), ["You said: hello"]);
    bot.stop().unwrap();
}

#[test]
fn only_those_who_are_allowed_are_answered() {
    let home = common::Home::new();
    let telegram = Telegram::start(options()).unwrap();
    let mut config = config(&home, &telegram);
    config.telegram.allowed_users = vec![7];
    let home = common::Home { config, ..home };
    let bot = Running::start(home, telegram, Arc::new(Function(|text: &str| Ok(text.to_owned()))));
    bot.say(8, "hello");
    bot.say(7, "hello");
    assert_eq!(bot.texts(7).len(), 1);
    assert_eq!(bot.texts(8).len(), 0);
}

#[test]
fn two_edits_in_one_second_are_two_versions() {
    let bot = Running::new(options());
    let first = bot.say(7, "a");
    bot.settled(7);
    let edit = |text: &str| {
        bot.telegram.push(json!({"edited_message": {"message_id": first, "date": 1_700_000_000,
            "edit_date": 1_700_000_009, "chat": {"id": 7, "type": "private"}, "text": text,
            "from": {"id": 7, "is_bot": false, "first_name": "Ada"}}}));
    };
    edit("b");
    edit("c");
    assert_eq!(bot.texts(7), ["You said: a", "You said: b", "You said: c"]);
    assert_eq!(texts(&bot.session("telegram:7")), ["c", "You said: c"]);
}
