//! The program with a fake Telegram and a scripted model: killed in the middle of a reply, told to end, slowed by rate limits,
//! with several groups at once. Each message has one answer, and a reply that a kill cut off is finished.

use std::path::{Path, PathBuf};
use std::time::Duration;

use talktree::{Author, Message, Role, SessionManager, Store};
use talktree_bot_rig::model::{self, Kind};
use talktree_bot_rig::process::ENDING;
use talktree_bot_rig::{
    Api, Limit, Limits, Model, Options, Outcome, Process, Saying, Settings, Shown, Telegram,
};

const LIMIT: Duration = Duration::from_secs(30);

struct Rig {
    _limit: Limit,
    _folder: tempfile::TempDir,
    telegram: Telegram,
    model: Model,
    settings: Settings,
}

impl Rig {
    fn new(telegram: Options, model: model::Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let telegram = Telegram::start(telegram).unwrap();
        let model = Model::start(model).unwrap();
        let settings = Settings {
            program: PathBuf::from(env!("CARGO_BIN_EXE_talktree-bot")),
            folder: folder.path().to_owned(),
            telegram: telegram.url(),
            token: Options::default().token,
            model: model.url(),
            compact_after: 100_000,
            edit_interval_ms: 50,
        };
        Self { _limit: Limit::new(10 * LIMIT), _folder: folder, telegram, model, settings }
    }

    fn start(&self) -> Process {
        Process::start(&self.settings, Api::Anthropic).unwrap()
    }

    fn bots(&self, chat: i64) -> Vec<Shown> {
        self.telegram.messages(chat).into_iter().filter(|shown| shown.is_bots).collect()
    }

    /// Waits until a message of the bot has this text.
    fn wait_for(&self, chat: i64, text: &str) {
        let found = self.telegram.wait_for(LIMIT, |_| {
            self.bots(chat).iter().any(|shown| shown.text.contains(text)).then_some(())
        });
        assert!(found.is_some(), "no {text:?}: {:#?}", self.telegram.messages(chat));
    }

    /// Returns the messages of a chat, as they are stored.
    fn stored(&self, key: &str) -> Vec<Message> {
        stored(&self.settings.store(), key)
    }
}

fn stored(store: &Path, key: &str) -> Vec<Message> {
    let sessions = SessionManager::builder(&Store::open(store).unwrap()).build().unwrap();
    let binding = sessions.bindings(key).unwrap().remove(0);
    sessions.session(binding.session).unwrap().raw_history().unwrap()
}

fn slow(between_pieces: u64) -> model::Options {
    let between_pieces = Duration::from_millis(between_pieces);
    model::Options { between_pieces, ..model::Options::default() }
}

#[test]
fn a_reply_that_a_kill_cut_off_is_finished_in_its_message() {
    let rig = Rig::new(Options::default(), slow(150));
    let mut bot = rig.start();
    rig.telegram.say(&Saying::new(7, "chat7-turn0 hello"));
    rig.wait_for(7, "Line 1");
    assert!(!rig.bots(7)[0].text.contains("end chat7-turn0"));
    bot.kill().unwrap();
    let left = rig.stored("telegram:7");
    assert_eq!(left.iter().map(|it| it.role.clone()).collect::<Vec<_>>(), [Role::User]);
    rig.model.change(|model| model.between_pieces = Duration::ZERO);
    let mut bot = rig.start();
    rig.wait_for(7, "end chat7-turn0");
    bot.end().unwrap();
    let shown = rig.bots(7);
    assert_eq!(shown.len(), 1);
    let stored = rig.stored("telegram:7");
    assert_eq!(
        stored.iter().map(|it| it.role.clone()).collect::<Vec<_>>(),
        [Role::User, Role::Assistant]
    );
    assert_eq!(stored[1].text(), shown[0].text);
    // The model was asked the question again, without what it had said.
    let asked = rig.model.asked_from(0);
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.messages == 1), "{asked:?}");
    assert_eq!(rig.model.violations(), (vec![], 0));
}

#[test]
fn tools_that_ran_before_a_kill_do_not_run_again() {
    let rig = Rig::new(Options::default(), slow(150));
    let mut bot = rig.start();
    rig.telegram.say(&Saying::new(7, "chat7-turn0 remember this"));
    // The answer comes after the round of tools.
    rig.wait_for(7, "answer chat7-turn0");
    bot.kill().unwrap();
    let mut bot = rig.start();
    rig.wait_for(7, "end chat7-turn0");
    bot.end().unwrap();
    let asked = rig.model.asked_from(0);
    assert_eq!(asked.iter().filter(|asked| asked.kind == Kind::Tool).count(), 1);
    assert_eq!(rig.bots(7).len(), 1);
    assert_eq!(rig.model.violations(), (vec![], 0));
}

#[test]
fn the_end_comes_within_ten_seconds_and_the_reply_after_the_next_start() {
    let rig = Rig::new(Options::default(), slow(0));
    rig.model.change(|model| model.first_text_after = Duration::from_secs(15));
    let mut bot = rig.start();
    rig.telegram.say(&Saying::new(7, "chat7-turn0 hello"));
    rig.wait_for(7, "…");
    let took = bot.end().unwrap();
    assert!(took < ENDING, "{took:?}");
    assert_eq!(rig.bots(7)[0].text, "…");
    rig.model.change(|model| model.first_text_after = Duration::ZERO);
    let mut bot = rig.start();
    rig.wait_for(7, "end chat7-turn0");
    assert_eq!(rig.bots(7).len(), 1);
    assert!(bot.end().unwrap() < Duration::from_secs(2), "nothing runs");
}

#[test]
fn answers_arrive_within_the_limits_of_telegram() {
    let limits = Options { limits: Some(Limits::default()), ..Options::default() };
    let rig = Rig::new(limits, slow(20));
    let _bot = rig.start();
    for chat in 1..=5 {
        rig.telegram.say(&Saying::new(chat, &format!("chat{chat}-turn0 at length")));
    }
    for chat in 1..=5 {
        rig.wait_for(chat, &format!("end chat{chat}-turn0"));
        let text: String = rig.bots(chat).into_iter().map(|shown| shown.text + "\n").collect();
        assert_eq!(text.matches("Line ").count(), 75, "{text}");
        assert_eq!(rig.bots(chat).len(), 2);
    }
    let calls = rig.telegram.calls_from(0);
    let refused = calls.iter().filter(|call| call.outcome == Outcome::Refused(429)).count();
    assert!(refused > 0, "the limits were reached");
    assert!(refused < 60, "{refused} calls were refused");
}

#[test]
fn groups_at_once_are_answered_in_their_place() {
    let rig = Rig::new(Options::default(), slow(5));
    let mut bot = rig.start();
    let mut said = Vec::new();
    for turn in 0..6 {
        for group in 1..=5 {
            let (id, name) = [(101, "Ada"), (102, "Bo"), (103, "Cy")][turn % 3];
            let text = format!("@rig_bot chat{group}-turn{turn}");
            let topic = i64::from(group % 2) * 7;
            let mut saying = Saying::new(-i64::from(group), &text).from(id, name);
            if topic > 0 {
                saying = saying.topic(topic);
            }
            said.push((group, turn, rig.telegram.say(&saying).message));
        }
    }
    for (group, turn, message) in said {
        rig.wait_for(-i64::from(group), &format!("end chat{group}-turn{turn}"));
        let end = format!("end chat{group}-turn{turn}");
        let answers = rig.bots(-i64::from(group));
        let answers: Vec<&Shown> = answers.iter().filter(|it| it.text.ends_with(&end)).collect();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].reply_to, Some(message));
        assert_eq!(answers[0].topic, (group % 2 == 1).then_some(7));
    }
    bot.end().unwrap();
    assert_eq!(rig.model.violations(), (vec![], 0));
    for key in ["telegram:-1/7", "telegram:-2"] {
        let stored = rig.stored(key);
        assert_eq!(stored.len(), 12);
        // Who said what, in the order in which it was said.
        let names: Vec<_> = stored.iter().filter_map(Author::of).filter_map(|it| it.name).collect();
        assert_eq!(names, ["Ada", "Bo", "Cy", "Ada", "Bo", "Cy"], "{key}");
    }
}
