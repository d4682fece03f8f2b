//! Many chats at once with a real bot, which is killed now and then.
//!
//! The people of each chat write, wait for the answer, think, and write again; some write twice at once. The bot has a fake
//! Telegram and a scripted model, which fail on purpose. At the end every message must have one answer, in its chat: in what
//! Telegram shows and in the store.

mod check;
mod game;
mod report;
mod talk;

use std::path::PathBuf;
use std::time::Duration;

use crate::model::{self, Model};
use crate::process::{self, Settings};
use crate::telegram::{self, Telegram};
use crate::{Mark, Result};
use game::Game;

pub use report::Report;

/// Plays many chats with a real bot, kills it, and checks every message.
#[derive(Debug, Clone, clap::Parser)]
#[allow(clippy::struct_excessive_bools, reason = "they are options of a command")]
pub struct Args {
    /// The small form, with the same checks: 20 chats, 15 turns, 4 kills; less than 40 seconds.
    #[arg(long, conflicts_with = "long")]
    pub quick: bool,
    /// One long chat instead: 10 000 turns, without kills and faults.
    #[arg(long)]
    pub long: bool,
    /// How many chats there are [default: 200; quick: 20; long: 1].
    #[arg(long)]
    pub chats: Option<u32>,
    /// How many turns each chat has [default: 150; quick: 15; long: 10 000].
    #[arg(long)]
    pub turns: Option<u32>,
    /// How often the bot is killed or restarted [default: 30; quick: 4; long: 0].
    #[arg(long)]
    pub kills: Option<u32>,
    /// How long people think between an answer and their next message, on average, in milliseconds: a random time, most often
    /// short [default: 2600, so that 200 chats write 60 to 70 messages a second; quick: 300; long: 0].
    #[arg(long)]
    pub think_ms: Option<u64>,
    /// No faults of Telegram and the model; only kills.
    #[arg(long)]
    pub no_faults: bool,
    /// The API that the bot uses for the model.
    #[arg(long, value_enum, default_value_t = Provider::Both)]
    pub api: Provider,
    /// The tokens of a request over which the bot compacts [default: 6 000; quick: 3 500].
    #[arg(long)]
    pub compact_after: Option<u64>,
    /// The most tokens that a request may have [default: 2 000 over --compact-after, because replies do not wait for summaries].
    #[arg(long)]
    pub window: Option<u64>,
    /// The limit of the p99 from an update to the first byte of its reply, in milliseconds.
    #[arg(long, default_value_t = 50)]
    pub max_p99_ms: u64,
    /// The seed of all random choices; one is drawn and printed if it is absent.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The bot's program [default: `talktree-bot` beside this one].
    #[arg(long)]
    pub bot: Option<PathBuf>,
    /// A folder for the store, the configuration and the log, which are kept.
    #[arg(long)]
    pub keep: Option<PathBuf>,
}

/// Which API of models the bot uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Provider {
    /// Anthropic messages.
    Anthropic,
    /// `OpenAI` chat completions.
    Openai,
    /// Both in turn: the other one after each restart.
    Both,
}

/// How many tokens a request may be over the threshold: a long answer and some turns, while a summary is written.
const BESIDES: u64 = 2_000;

/// The size of a run.
#[derive(Debug, Clone)]
struct Size {
    chats: u32,
    turns: u32,
    kills: u32,
    think: Duration,
    is_long: bool,
    has_faults: bool,
}

impl Size {
    fn of(args: &Args) -> Self {
        let (chats, turns, kills, think) = match args {
            Args { quick: true, .. } => (20, 15, 4, 300),
            Args { long: true, .. } => (1, 10_000, 0, 0),
            _ => (200, 150, 30, 2600),
        };
        Self {
            chats: args.chats.unwrap_or(chats).max(1),
            turns: args.turns.unwrap_or(turns).max(1),
            kills: args.kills.unwrap_or(kills),
            think: Duration::from_millis(args.think_ms.unwrap_or(think)),
            is_long: args.long,
            has_faults: !args.no_faults && !args.long,
        }
    }
}

/// Plays a run and returns its result.
///
/// # Errors
/// If the bot cannot be started, or the run itself fails.
pub fn run(args: &Args) -> Result<Report> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let size = Size::of(args);
    let compact_after = args.compact_after.unwrap_or(if args.quick { 3_500 } else { 6_000 });
    let window = args.window.unwrap_or(compact_after + BESIDES);
    // Printed first: if the run dies, its seed is known.
    eprintln!("load: seed {seed}, {} chats, {} turns each", size.chats, size.turns);
    let temporary = tempfile::tempdir()?;
    let folder = args.keep.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let program = match &args.bot {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("talktree-bot"),
    };
    if !program.is_file() {
        return Err(format!("{} is missing: build talktree-bot first", program.display()).into());
    }
    let telegram = Telegram::start(telegram::Options {
        faults: if size.has_faults { telegram_faults(seed) } else { telegram::Faults::default() },
        ..telegram::Options::default()
    })?;
    let model = Model::start(model::Options {
        window: Some(window),
        first_text_after: Duration::from_millis(if size.is_long { 0 } else { 30 }),
        between_pieces: Duration::from_millis(if size.is_long { 0 } else { 10 }),
        summary_after: Duration::from_millis(if size.is_long { 0 } else { 500 }),
        faults: if size.has_faults { model_faults(seed) } else { model::Faults::default() },
    })?;
    let settings = Settings {
        program,
        folder: folder.clone(),
        telegram: telegram.url(),
        token: telegram::Options::default().token,
        model: model.url(),
        compact_after,
        edit_interval_ms: if size.is_long { 0 } else { 200 },
    };
    let mut report = Report::new(seed, &size);
    let game = Game::new(&size, args.api, seed, &settings, &telegram, &model);
    let before = process::children_cpu();
    let mut played = game.play(&mut report)?;
    played.cpu = process::children_cpu().zip(before).map(|(after, before)| after - before);
    check::run(&played, &size, args, &settings, &telegram, &model, &mut report)?;
    Ok(report)
}

fn telegram_faults(seed: u64) -> telegram::Faults {
    telegram::Faults {
        seed: seed.wrapping_add(1), // not the draws of the people or of the model
        too_many: 0.004,
        server_error: 0.008,
        hang: 0.001,
        cut_before: 0.008,
        cut_after: 0.008,
        duplicates: 0.05,
        shuffled: 0.2,
        ..telegram::Faults::default()
    }
}

fn model_faults(seed: u64) -> model::Faults {
    model::Faults {
        seed: seed.wrapping_add(2),
        too_many: 0.008,
        server_error: 0.008,
        overloaded: 0.008,
        cut: 0.008,
        broken: 0.008,
        slow: 0.004,
        ..model::Faults::default()
    }
}

/// What the bot shows before it has any text.
const PLACEHOLDER: &str = "…";

/// A place where people talk with the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// Its number in the marks.
    number: u32,
}

/// The number of the first chat, as Telegram knows it.
const FIRST_CHAT: i64 = 10_000;

/// The topic of the groups with topics.
const TOPIC: i64 = 7;

impl Place {
    /// Returns the number by which Telegram knows it; groups have negative ones.
    fn chat(self) -> i64 {
        let chat = FIRST_CHAT + i64::from(self.number);
        if self.is_group() { -chat } else { chat }
    }

    fn of_chat(chat: i64) -> Option<Self> {
        u32::try_from(chat.abs() - FIRST_CHAT).ok().map(|number| Self { number })
    }

    fn is_group(self) -> bool {
        matches!(self.number % 10, 3 | 7)
    }

    fn topic(self) -> Option<i64> {
        (self.number % 10 == 7).then_some(TOPIC)
    }

    /// Returns the key of its session.
    fn key(self) -> String {
        match self.topic() {
            Some(topic) => format!("telegram:{}/{topic}", self.chat()),
            None => format!("telegram:{}", self.chat()),
        }
    }

    fn mark(self, turn: u32) -> Mark {
        Mark { chat: self.number, turn }
    }
}
