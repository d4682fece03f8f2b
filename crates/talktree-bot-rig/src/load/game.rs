//! Plays a run: people write and the bot is killed, until all is answered.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::talk::Talk;
use super::{PLACEHOLDER, Place, Provider, Report, Size};
use crate::process::{Api, ENDING, Process, Settings};
use crate::{Model, Result, Telegram, marks_in};

/// How often the game looks at what happened.
const LOOK: Duration = Duration::from_millis(3);

/// How long nothing may be answered before the run is given up.
const SILENCE: Duration = Duration::from_secs(60);

/// What was played.
pub(super) struct Played {
    pub(super) talks: Vec<Talk>,
    /// When the bot was killed.
    pub(super) kills: Vec<Instant>,
    /// Which of its processes were killed: their places in `starts`.
    pub(super) killed: HashSet<u32>,
    /// When it was started.
    pub(super) starts: Vec<Instant>,
    /// From when until when it was told to end.
    pub(super) restarts: Vec<(Instant, Instant)>,
    pub(super) slowest_ending: Duration,
    /// The memory of the bot when it had no chats, at the end, and at most; in bytes.
    pub(super) memory: (u64, u64, u64),
    pub(super) seconds: f64,
    /// The CPU time of all processes of the bot; `None` where the system cannot tell.
    pub(super) cpu: Option<Duration>,
}

pub(super) struct Game<'a> {
    size: &'a Size,
    api: Provider,
    settings: &'a Settings,
    telegram: &'a Telegram,
    model: &'a Model,
    rng: Rng,
    /// The calls that were looked at.
    seen: usize,
    /// When each message first showed a text.
    first_texts: HashMap<(i64, i64), Instant>,
    answered: u32,
    /// When something was last answered.
    heard: Instant,
    played: Played,
}

impl<'a> Game<'a> {
    pub(super) fn new(
        size: &'a Size,
        api: Provider,
        seed: u64,
        settings: &'a Settings,
        telegram: &'a Telegram,
        model: &'a Model,
    ) -> Self {
        let rng = Rng::with_seed(seed);
        let now = Instant::now();
        let talk = |number| Talk { place: Place { number }, turns: Vec::new(), due: now };
        let played = Played {
            talks: (0..size.chats).map(talk).collect(),
            kills: Vec::new(),
            killed: HashSet::new(),
            starts: Vec::new(),
            restarts: Vec::new(),
            slowest_ending: Duration::ZERO,
            memory: (0, 0, 0),
            seconds: 0.0,
            cpu: None,
        };
        Self {
            size,
            api,
            settings,
            telegram,
            model,
            rng,
            seen: 0,
            first_texts: HashMap::new(),
            answered: 0,
            heard: now,
            played,
        }
    }

    pub(super) fn play(mut self, report: &mut Report) -> Result<Played> {
        let mut bot = self.start()?;
        let is_there = |telegram: &Telegram| {
            let calls = telegram.calls_from(0);
            calls.iter().any(|call| call.method == "getUpdates").then_some(())
        };
        // The poll is recorded when it ends, and it waits five seconds for an update.
        self.telegram.wait_for(Duration::from_secs(30), is_there).ok_or_else(|| {
            format!("the bot does not poll: see {}", self.settings.log().display())
        })?;
        self.played.memory.0 = bot.memory().map_or(0, |memory| memory.0);
        let began = Instant::now();
        self.heard = began;
        // They do not all begin at once.
        for talk in &mut self.played.talks {
            talk.due = began + pause(self.size.think, &mut self.rng);
        }
        let all = self.size.chats * self.size.turns;
        let mut told = began;
        loop {
            std::thread::sleep(LOOK);
            self.look();
            let written = self.write();
            if told.elapsed() > Duration::from_secs(20) {
                told = Instant::now();
                let requests = self.model.asked_from(0).len();
                eprintln!(
                    "load: {written} of {all} messages written, {} answers, {requests} requests",
                    self.answered
                );
            }
            if let Some((_, most)) = bot.memory() {
                self.played.memory.2 = self.played.memory.2.max(most);
            }
            let is_over = written == all && !self.is_open();
            if is_over {
                break;
            }
            if self.heard.elapsed() > SILENCE {
                report.fault(format!("nothing was answered for {} s", SILENCE.as_secs()));
                break;
            }
            if let Some(status) = bot.has_ended()? {
                report.fault(format!("the bot ended by itself with {status}"));
                bot = self.start()?;
            }
            let happened = (self.played.restarts.len() + self.played.kills.len()) as u64;
            let kills = u64::from(self.size.kills);
            // Spread evenly over the messages; the moment is random. The last one leaves time for all chats to go on.
            let due = u64::from(written) * (kills + 2) / u64::from(all);
            if happened < kills && happened < due {
                std::thread::sleep(Duration::from_micros(self.rng.u64(..50_000)));
                self.restart(&mut bot, report)?;
            }
        }
        self.played.seconds = began.elapsed().as_secs_f64();
        self.drain(&mut bot, report)?;
        Ok(self.played)
    }

    fn start(&mut self) -> Result<Process> {
        let is_even = self.played.starts.len().is_multiple_of(2);
        let api = match self.api {
            Provider::Anthropic => Api::Anthropic,
            Provider::Both if is_even => Api::Anthropic,
            Provider::Openai | Provider::Both => Api::Openai,
        };
        let telegram = format!("{}/{}", self.settings.telegram, self.played.starts.len());
        self.played.starts.push(Instant::now());
        Process::start(&Settings { telegram, ..self.settings.clone() }, api)
    }

    /// Kills the bot, or tells it to end; starts it again.
    fn restart(&mut self, bot: &mut Process, report: &mut Report) -> Result<()> {
        if self.rng.u32(..4) > 0 {
            self.played.kills.push(Instant::now());
            self.played.killed.insert(self.played.starts.len() as u32 - 1);
            bot.kill()?;
        } else {
            let began = Instant::now();
            self.end(bot, report)?;
            self.played.restarts.push((began, Instant::now()));
        }
        std::thread::sleep(Duration::from_millis(self.rng.u64(..300)));
        *bot = self.start()?;
        self.heard = Instant::now();
        Ok(())
    }

    fn end(&mut self, bot: &mut Process, report: &mut Report) -> Result<()> {
        let took = bot.end()?;
        if took > ENDING {
            report.fault(format!("the bot needed {:.1} s to end", took.as_secs_f64()));
        }
        self.played.slowest_ending = self.played.slowest_ending.max(took);
        Ok(())
    }

    /// Lets the bot handle what needs no answer, and ends it.
    fn drain(&mut self, bot: &mut Process, report: &mut Report) -> Result<()> {
        self.telegram.heal();
        let is_empty = |telegram: &Telegram| (telegram.waiting() == 0).then_some(());
        if self.telegram.wait_for(Duration::from_secs(20), is_empty).is_none() {
            report.fault(format!("{} updates were not confirmed", self.telegram.waiting()));
        }
        // Confirmed is not handled; and summaries may be on their way.
        std::thread::sleep(Duration::from_secs(1));
        if let Some((now, most)) = bot.memory() {
            self.played.memory.1 = now;
            self.played.memory.2 = self.played.memory.2.max(most);
        }
        self.end(bot, report)
    }

    fn is_open(&self) -> bool {
        self.played
            .talks
            .iter()
            .any(|talk| talk.turns.iter().rev().take(3).any(|turn| turn.is_open()))
    }

    /// Lets people write whose time has come; returns how many messages were written.
    fn write(&mut self) -> u32 {
        let (telegram, rng, turns) = (self.telegram, &mut self.rng, self.size.turns as usize);
        let now = Instant::now();
        let mut written = 0;
        for talk in &mut self.played.talks {
            let waits = talk.turns.iter().rev().take(3).any(super::talk::Turn::is_open);
            if talk.turns.len() < turns && !waits && talk.due <= now {
                talk.say(telegram, rng);
                // Some do not wait for the answer.
                if talk.turns.len() < turns && rng.u32(..10) == 0 && !self.size.is_long {
                    talk.say(telegram, rng);
                }
                // Without an answer to wait for, they think from now on.
                talk.due = now + pause(self.size.think, rng);
            }
            written += talk.turns.len() as u32;
        }
        written
    }

    /// Looks at what the bot has shown since.
    fn look(&mut self) {
        let calls = self.telegram.calls_from(self.seen);
        self.seen += calls.len();
        for call in calls.iter().filter(|call| call.had_effect()) {
            let (Some(chat), Some(message), Some(text)) = (call.chat, call.message, &call.text)
            else {
                continue;
            };
            if text == PLACEHOLDER {
                continue;
            }
            let first = *self.first_texts.entry((chat, message)).or_insert(call.at);
            let Some(place) = Place::of_chat(chat) else { continue };
            let Some(talk) = self.played.talks.get_mut(place.number as usize) else { continue };
            let begins = marked(text.lines().next(), "answer ", place);
            if let Some(turn) = begins.and_then(|number| talk.turns.get_mut(number)) {
                turn.first_text.get_or_insert((first, message));
            }
            let ends = marked(text.lines().last(), "end ", place);
            if let Some(turn) = ends.and_then(|number| talk.turns.get_mut(number))
                && turn.done.is_none()
            {
                turn.done = Some(call.at);
                self.answered += 1;
                self.heard = call.at;
                talk.due = call.at + pause(self.size.think, &mut self.rng);
            }
        }
    }
}

/// Draws how long someone thinks: with an exponential distribution around this mean, so that the messages of many people
/// arrive as independent ones do.
fn pause(mean: Duration, rng: &mut Rng) -> Duration {
    /// A longer pause is cut: it would only make the end of a run longer, when few chats are left.
    const MOST: f64 = 5.0;
    mean.mul_f64((-(1.0 - rng.f64()).ln()).min(MOST))
}

/// Returns the turn in the mark of a line that begins with a word, if the mark is of this place.
fn marked(line: Option<&str>, word: &str, place: Place) -> Option<usize> {
    let mark = marks_in(line?.strip_prefix(word)?).next()?;
    (mark.chat == place.number).then_some(mark.turn as usize)
}
