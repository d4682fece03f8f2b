//! The fake Telegram: what it hands out, refuses, breaks and shows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use talktree_bot_rig::{Fault, Faults, Limits, Options, Outcome, Saying, Telegram};

use crate::client::{post, post_json};

fn start(options: Options) -> Telegram {
    Telegram::start(options).unwrap()
}

fn url(telegram: &Telegram, method: &str) -> String {
    format!("{}/bot4000000:rig-token/{method}", telegram.url())
}

fn call(telegram: &Telegram, method: &str, body: Value) -> (u16, Value) {
    post_json(&url(telegram, method), &body).unwrap()
}

/// Returns the texts of the updates from an offset on.
fn poll(telegram: &Telegram, offset: i64) -> Vec<String> {
    let (status, answer) = call(telegram, "getUpdates", json!({"offset": offset, "timeout": 0}));
    assert_eq!(status, 200, "{answer}");
    let text = |update: &Value| update["message"]["text"].as_str().unwrap().to_owned();
    answer["result"].as_array().unwrap().iter().map(text).collect()
}

fn shown(telegram: &Telegram, chat: i64) -> Vec<String> {
    telegram.messages(chat).into_iter().map(|message| message.text).collect()
}

#[test]
fn updates_are_handed_out_until_an_offset_confirms_them() {
    let telegram = start(Options::default());
    let first = telegram.say(&Saying::new(7, "one"));
    telegram.say(&Saying::new(7, "two"));
    telegram.say(&Saying::new(8, "three"));
    assert_eq!(poll(&telegram, 0), ["one", "two", "three"]);
    assert_eq!(poll(&telegram, 0), ["one", "two", "three"]);
    assert_eq!(poll(&telegram, first.update + 1), ["two", "three"]);
    assert_eq!(poll(&telegram, 0), ["two", "three"]); // the first one is forgotten
    assert_eq!(poll(&telegram, -1), ["three"]);
    assert_eq!(telegram.waiting(), 1);
    assert!(telegram.handed(first.update).is_some());
}

#[test]
fn a_poll_waits_for_an_update_and_the_next_poll_ends_it() {
    let telegram = start(Options::default());
    let poll = |telegram: &Telegram| {
        let url = url(telegram, "getUpdates");
        std::thread::spawn(move || post_json(&url, &json!({"timeout": 8})).unwrap())
    };
    let began = Instant::now();
    let first = poll(&telegram);
    std::thread::sleep(Duration::from_millis(100));
    let second = poll(&telegram);
    assert_eq!(first.join().unwrap().0, 409);
    telegram.say(&Saying::new(7, "hello"));
    assert_eq!(second.join().unwrap().1["result"][0]["message"]["text"], "hello");
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn texts_are_checked_as_telegram_does() {
    let telegram = start(Options::default());
    telegram.say(&Saying::new(7, "hello"));
    let send = |text: &str| call(&telegram, "sendMessage", json!({"chat_id": 7, "text": text}));
    let (status, answer) = send("  hi \n");
    assert_eq!((status, &answer["result"]["text"]), (200, &json!("hi")));
    let id = &answer["result"]["message_id"];
    let edit = |text: &str| {
        let body = json!({"chat_id": 7, "message_id": id, "text": text});
        call(&telegram, "editMessageText", body)
    };
    let description = |(status, answer): (u16, Value)| {
        assert_eq!(
            (status, &answer["ok"]),
            (answer["error_code"].as_u64().unwrap() as u16, &json!(false))
        );
        answer["description"].as_str().unwrap().to_owned()
    };
    assert!(description(edit("hi ")).starts_with("Bad Request: message is not modified"));
    assert_eq!(edit("hi there").0, 200);
    assert_eq!(description(edit(" ")), "Bad Request: message text is empty");
    assert_eq!(description(send("")), "Bad Request: message text is empty");
    // An emoji has two units of UTF-16.
    assert_eq!(send(&"🙂".repeat(2048)).0, 200);
    assert_eq!(description(send(&"🙂".repeat(2049))), "Bad Request: message is too long");
    let others = json!({"chat_id": 7, "message_id": 1, "text": "mine"});
    let others = call(&telegram, "editMessageText", others);
    assert_eq!(description(others), "Bad Request: message can't be edited");
    let unknown = call(&telegram, "sendMessage", json!({"chat_id": 99, "text": "hi"}));
    assert_eq!(description(unknown), "Bad Request: chat not found");
    assert_eq!(shown(&telegram, 7)[..2], ["hello", "hi there"]);
    assert_eq!(telegram.calls_from(0)[1].outcome, Outcome::Refused(400));
}

#[test]
fn another_token_is_refused() {
    let telegram = start(Options::default());
    let url = format!("{}/bot1:other/getMe", telegram.url());
    assert_eq!(post_json(&url, &json!({})).unwrap().0, 401);
    let (status, me) = call(&telegram, "getMe", json!({}));
    assert_eq!((status, &me["result"]["username"]), (200, &json!("rig_bot")));
}

#[test]
fn documents_arrive_in_forms() {
    let telegram = start(Options::default());
    telegram.say(&Saying::new(-7, "/export").from(42, "Ada").topic(3));
    let field = |name: &str, value: &str| {
        format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"{value}\r\n")
    };
    let body = field("chat_id", "\r\n\r\n-7")
        + &field("message_thread_id", "\r\n\r\n3")
        + &field("document", "; filename=\"talk.md\"\r\n\r\n# Talk")
        + "--b--\r\n";
    let kind = ("content-type", "multipart/form-data; boundary=b");
    let (status, answer) = post(&url(&telegram, "sendDocument"), &[kind], body).unwrap();
    assert_eq!(status, 200, "{answer}");
    let sent = &telegram.messages(-7)[1];
    assert_eq!(sent.file, Some(("talk.md".to_owned(), b"# Talk".to_vec())));
    assert_eq!((sent.topic, sent.is_bots), (Some(3), true));
}

#[test]
fn groups_have_mentions_replies_and_topics() {
    let telegram = start(Options::default());
    let first = telegram.say(&Saying::new(-7, "Is it warm, @rig_bot?").from(42, "Ada").topic(3));
    telegram.say(&Saying::new(-7, "No").from(43, "Bo").topic(3).reply_to(first.message));
    let edited = telegram.edit(-7, first.message, "Is it cold?").unwrap();
    assert!(telegram.edit(-7, 99, "never sent").is_none());
    let (_, answer) = call(&telegram, "getUpdates", json!({"offset": 0}));
    let result = &answer["result"];
    let message = &result[0]["message"];
    assert_eq!(message["chat"]["type"], "supergroup");
    assert_eq!(message["message_thread_id"], 3);
    assert_eq!(message["entities"], json!([{"type": "mention", "offset": 12, "length": 8}]));
    assert_eq!(result[1]["message"]["reply_to_message"]["from"]["first_name"], "Ada");
    assert_eq!(result[2]["update_id"], edited.update);
    assert_eq!(result[2]["edited_message"]["text"], "Is it cold?");
    assert!(result[2]["edited_message"]["edit_date"].is_u64());
}

#[test]
fn limits_refuse_with_the_time_to_wait() {
    let telegram = start(Options { limits: Some(Limits::default()), ..Options::default() });
    telegram.say(&Saying::new(7, "hello"));
    let send = || call(&telegram, "sendMessage", json!({"chat_id": 7, "text": "hi"}));
    assert_eq!(send().0, 200);
    let (status, answer) = send();
    assert_eq!((status, &answer["parameters"]["retry_after"]), (429, &json!(1)));
    assert_eq!(answer["description"], "Too Many Requests: retry after 1");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(send().0, 200);
    assert_eq!(shown(&telegram, 7), ["hello", "hi", "hi"]);
}

#[test]
fn a_fault_comes_before_or_after_the_effect() {
    let telegram = start(Options::default());
    telegram.say(&Saying::new(7, "hello"));
    let send = |text: &str| {
        post_json(&url(&telegram, "sendMessage"), &json!({"chat_id": 7, "text": text}))
    };
    telegram.fail_next("sendMessage", Fault::CutBefore);
    assert!(send("lost").is_err());
    telegram.fail_next("sendMessage", Fault::CutAfter);
    assert!(send("made").is_err());
    telegram.fail_next("sendMessage", Fault::TooMany(3));
    let (status, answer) = send("refused").unwrap();
    assert_eq!((status, &answer["parameters"]["retry_after"]), (429, &json!(3)));
    telegram.fail_next("sendMessage", Fault::Status(502));
    assert_eq!(send("refused").unwrap().0, 502);
    telegram.fail_next("sendMessage", Fault::Hang(Duration::from_millis(200)));
    let began = Instant::now();
    assert!(send("hung").is_err());
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(send("well").unwrap().0, 200);
    assert_eq!(shown(&telegram, 7), ["hello", "made", "well"]);
    let had_effect: Vec<bool> =
        telegram.calls_from(0).iter().map(|call| call.had_effect()).collect();
    assert_eq!(had_effect, [false, true, false, false, false, true]);
}

#[test]
fn shares_of_calls_and_updates_go_wrong_by_the_seed() {
    let faults = Faults {
        seed: 7,
        server_error: 0.2,
        too_many: 0.2,
        duplicates: 0.5,
        shuffled: 0.5,
        ..Faults::default()
    };
    let outcomes = || {
        let telegram = start(Options { faults: faults.clone(), ..Options::default() });
        for n in 0..20 {
            telegram.say(&Saying::new(7, &n.to_string()));
        }
        let statuses: Vec<u16> = (0..30)
            .map(|_| call(&telegram, "sendMessage", json!({"chat_id": 7, "text": "hi"})).0)
            .collect();
        telegram.heal();
        (statuses, telegram)
    };
    let (statuses, _) = outcomes();
    assert_eq!(statuses, outcomes().0);
    assert!(statuses.contains(&429) && statuses.iter().any(|status| *status >= 500));
    assert!(!statuses.windows(2).any(|two| two[0] != 200 && two[1] != 200), "one in a row");

    let telegram = start(Options {
        faults: Faults { too_many: 0.0, server_error: 0.0, ..faults.clone() },
        ..Options::default()
    });
    let texts: Vec<String> = (10..30).map(|n| n.to_string()).collect();
    let updates: Vec<i64> =
        texts.iter().map(|text| telegram.say(&Saying::new(7, text)).update).collect();
    let batches: Vec<Vec<String>> = (0..8).map(|_| poll(&telegram, 0)).collect();
    assert!(batches.iter().any(|batch| !batch.is_sorted()));
    for mut batch in batches {
        assert!(batch.len() > texts.len());
        batch.sort();
        batch.dedup();
        assert_eq!(batch, texts);
    }
    // Confirmed updates come again, now and then.
    let late: Vec<String> = (0..20)
        .flat_map(|_| {
            telegram.say(&Saying::new(7, "x"));
            poll(&telegram, updates[19] + 1)
        })
        .collect();
    assert!(late.iter().any(|text| texts.contains(text)));
}
