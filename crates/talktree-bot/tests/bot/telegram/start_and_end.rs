//! How the program starts, and how it ends.

use super::*;

#[test]
fn running_replies_are_finished_before_the_end() {
    let mut bot = Running::with(options(), |text| {
        thread::sleep(Duration::from_millis(700));
        Ok(format!("You said: {text}"))
    });
    bot.say(7, "one");
    bot.say(7, "two");
    let begun = bot.telegram.wait_for(LIMIT, |_| bot.bots(7).first().cloned());
    assert!(begun.is_some());
    let started = Instant::now();
    bot.stop().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let shown: Vec<_> = bot.bots(7).into_iter().map(|shown| shown.text).collect();
    assert_eq!(shown, ["You said: one"]);
    assert_eq!(bot.store().inbox("telegram").pending().unwrap(), 1);

    // What waited goes on with the next start.
    let (home, telegram) = (common::Home::new(), bot.telegram.clone());
    let home = common::Home { config: bot.home.config.clone(), ..home };
    let next = Running::start(home, telegram, Arc::new(Function(|text: &str| Ok(text.to_owned()))));
    assert_eq!(next.texts(7), ["You said: one", "two"]);
}

#[test]
fn a_refused_token_is_an_error_without_the_token() {
    let home = common::Home::new();
    let telegram = Telegram::start(options()).unwrap();
    let mut config = config(&home, &telegram);
    config.telegram.token = Secret::new("123:other-secret");
    let end = Arc::new(AtomicBool::new(false));
    let model = Arc::new(talktree_bot::models::offline::Offline);
    let store = Store::open(&config.store).unwrap();
    let error = telegram::run_until(&config, store, model.clone(), Arc::clone(&end)).unwrap_err();
    assert!(error.to_string().contains("refuses the token"), "{error}");
    assert!(!format!("{error:?} {error}").contains("other-secret"));
    for token in ["", "123:other-secret\n", "123:other secret", "123:other/secret"] {
        config.telegram.token = Secret::new(token);
        let store = Store::open(&config.store).unwrap();
        let error = telegram::run_until(&config, store, model.clone(), Arc::clone(&end));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("TELEGRAM_TOKEN") && !error.contains("other"), "{error}");
    }
}

#[test]
fn another_refusal_of_the_first_call_is_not_called_one_of_the_token() {
    let telegram = Telegram::start(options()).unwrap();
    telegram.fail_next("getMe", Fault::Status(403));
    let home = common::Home::new();
    let config = config(&home, &telegram);
    let store = Store::open(&config.store).unwrap();
    let model = Arc::new(talktree_bot::models::offline::Offline);
    let error = telegram::run_until(&config, store, model, Arc::default()).unwrap_err().to_string();
    assert!(!error.contains("token") && error.contains("getMe: status 403"), "{error}");
}

#[test]
fn the_program_ends_while_its_first_call_hangs() {
    let telegram = Telegram::start(options()).unwrap();
    telegram.fail_next("getMe", Fault::Hang(Duration::from_secs(60)));
    let mut bot =
        Running::start(common::Home::new(), telegram, Arc::new(Function(|_: &str| Ok("".into()))));
    bot.store(); // it has begun
    let start = Instant::now();
    bot.stop().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
