//! The log of the bot on Telegram: ids and counts. The token is a part of each URL, and must be in no line.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use talktree_bot_rig::{Fault, Limit, Options, Process, Saying, Telegram};

const TOKEN: &str = "4000000:rig-token-that-nobody-sees";

/// Runs the bot on this API until `until` is true; returns all that it wrote.
fn run(api: &str, log: &str, until: impl FnOnce()) -> String {
    let _limit = Limit::new(Duration::from_secs(300));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bot.toml");
    let config = format!(
        "store = {:?}\n[telegram]\napi_url = {api:?}\npoll_seconds = 1\nedit_interval_ms = 10\n\
         calls_per_second = 1000\n[http]\nlisten = \"\"\n[log]\n{log}\n",
        folder.path().join("bot.db")
    );
    fs::write(&file, config).unwrap();
    let log = folder.path().join("bot.log");
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_talktree-bot")));
    command.args(["telegram", "--config"]).arg(&file).env("TELEGRAM_TOKEN", TOKEN);
    let mut bot = Process::spawn(&mut command, fs::File::create(&log).unwrap()).unwrap();
    until();
    let _ = bot.kill(); // it may have ended by itself
    fs::read_to_string(log).unwrap()
}

#[test]
fn the_log_has_neither_the_token_nor_what_is_said() {
    for format in ["text", "json"] {
        let telegram = Telegram::start(Options { token: TOKEN.to_owned(), ..Options::default() });
        let telegram = telegram.unwrap();
        let log = run(&telegram.url(), &format!("level = \"trace\"\nformat = {format:?}"), || {
            for (n, (method, fault)) in [
                ("getMe", Fault::Status(500)),
                ("getUpdates", Fault::CutBefore),
                ("sendMessage", Fault::Status(502)),
                ("sendMessage", Fault::CutBefore),
                ("editMessageText", Fault::CutAfter),
                ("editMessageText", Fault::TooMany(1)),
            ]
            .into_iter()
            .enumerate()
            {
                telegram.fail_next(method, fault);
                telegram.say(&Saying::new(7, &format!("my secret pear {n}")));
                let answered = telegram.wait_for(Duration::from_secs(20), |telegram| {
                    let shown = telegram.messages(7);
                    let last = shown.last().filter(|shown| shown.is_bots && shown.text.len() > 5);
                    last.map(drop)
                });
                assert!(answered.is_some(), "{method}: {:?}", telegram.messages(7));
            }
        });
        assert!(log.contains("500000000"), "no update is named: {log}");
        assert!(log.contains("sendMessage"), "no call is named: {log}");
        assert!(!log.contains("rig-token"), "{log}");
        assert!(!log.contains("pear"), "{log}");
    }
}

#[test]
fn bodies_are_logged_if_that_is_set() {
    let telegram = Telegram::start(Options { token: TOKEN.to_owned(), ..Options::default() });
    let telegram = telegram.unwrap();
    let log = run(&telegram.url(), "bodies = true", || {
        telegram.say(&Saying::new(7, "a pear"));
        let answered = telegram.wait_for(Duration::from_secs(20), |telegram| {
            telegram.messages(7).last().filter(|shown| shown.is_bots).map(drop)
        });
        assert!(answered.is_some());
    });
    assert!(log.contains("a pear"), "{log}");
}

#[test]
fn an_api_that_is_not_there_is_reported_without_the_token() {
    for api in ["http://127.0.0.1:1", "https://127.0.0.1:1"] {
        let log = run(api, "level = \"trace\"", || {
            std::thread::sleep(Duration::from_millis(1_500));
        });
        assert!(log.contains("getMe"), "{api}: {log}");
        assert!(!log.contains("rig-token"), "{api}: {log}");
    }
}
