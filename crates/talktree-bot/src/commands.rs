//! Commands: what people can do with a conversation.
//!
//! A command is first resolved to a [`Step`], which names every message that it will touch, and then run. A front end stores
//! the step before it runs it, and runs it again after a crash.
//!
//! Invariant: a step that is run twice has the effect of one that is run once.

use std::collections::HashSet;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use talktree::{
    Author, Budget, CompactionOptions, Erasure, ErasureExtent, Error as StoreError, Message,
    MessageId, Role, Session, SessionId, UsageTotal,
};
use talktree_import::export::export_markdown;

use crate::core::{Bot, MEMORY, Place};
use crate::error::Result;
use crate::line::{count, line};

/// How many hits `/search` shows.
const HITS: usize = 8;

/// How many branches `/branches` shows.
const BRANCHES: usize = 30;

/// How many lines `/tree` shows.
const LINES: usize = 80;

/// How many characters of a message a list shows, and how many `/remember` keeps.
const SHORT: usize = 80;

/// What `/forget WORDS` says: someone who names one thing may not mean all.
const NOT_FORGOTTEN: &str = "Nothing is erased. /forget says what I know of you, and /forget yes erases all of it, for good.";

const HELP: &str = "\
Write, and I answer. I remember our conversations; you can branch them and go back.
/retry - another answer to your last question
/undo - take your last question and its answer back
/back - undo the last move: a retry, an undo, another branch
/branches - list the branches; /branches 2 goes to the second
/tree - draw the conversation
/search WORDS - find what was said, in all our conversations
/remember TEXT - keep something in mind; without a text: what I keep
/summary - the conversation in short
/export - the conversation as a file
/new - begin a new conversation; the old ones can be searched
/usage - how much was said
/forget - what I know of you; /forget yes erases it, for good
/help - this list";

/// A command as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Another answer to the last question.
    Retry,
    /// Lists the branches, or goes to one.
    Branches(Option<usize>),
    /// Undoes the last move of the head.
    Back,
    /// Takes the last question and its answer back.
    Undo,
    /// Searches everything that was said.
    Search(String),
    /// Writes into the memory, or shows it.
    Remember(String),
    /// Says what is stored of a person.
    Known,
    /// Erases what is stored of a person.
    Forget,
    /// The conversation in short.
    Summary,
    /// Draws the conversation.
    Tree,
    /// The conversation as a Markdown page.
    Export,
    /// Begins a new conversation.
    New,
    /// How much was asked and answered.
    Usage,
    /// What can be done.
    Help,
    /// A command that does not exist, or is written in a way that is not understood; with what to say.
    Unknown(String),
}

/// What a command will do, with every message named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Runs a command that moves nothing: it reads, or may be repeated.
    Do(Command),
    /// Says this.
    Say(String),
    /// Moves the head there, and says this.
    Go {
        /// The message; before the first one if `None`.
        to: Option<MessageId>,
        /// What to say.
        said: String,
        /// Whether the model answers then.
        then_reply: bool,
    },
    /// Undoes the last move of the head, which leads to this message.
    Back(Option<MessageId>),
    /// Ends this session.
    End(SessionId),
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Done {
    /// What to say; empty if there is only the model's reply.
    pub text: String,
    /// A file to send: its name and content. It is not stored with the rest, because it may be large.
    #[serde(skip)]
    pub file: Option<(String, String)>,
    /// Whether the model is to answer what is at the head now.
    pub then_reply: bool,
}

impl Command {
    /// Returns the command of a message; `None` if it is none, or one for another bot (`/help@other_bot`).
    #[must_use]
    pub fn parse(text: &str, bot_name: Option<&str>) -> Option<Self> {
        let text = text.trim().strip_prefix('/')?;
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let (word, to) = word.split_once('@').map_or((word, None), |(word, to)| (word, Some(to)));
        if let (Some(to), Some(bot)) = (to, bot_name)
            && !to.eq_ignore_ascii_case(bot)
        {
            return None;
        }
        let rest = rest.trim();
        // A path or `/` alone is a text.
        if word.is_empty() || !word.chars().all(|it| it.is_ascii_alphanumeric() || it == '_') {
            return None;
        }
        let word = word.to_ascii_lowercase();
        Some(match word.as_str() {
            "retry" | "back" | "undo" | "summary" | "tree" | "export" | "new" | "usage"
                if !rest.is_empty() =>
            {
                Self::Unknown(format!("Nothing is done: /{word} takes no words after it."))
            }
            "retry" => Self::Retry,
            "branches" => match rest.parse() {
                _ if rest.is_empty() => Self::Branches(None),
                Ok(number) => Self::Branches(Some(number)),
                Err(_) => Self::Unknown("/branches takes a number: /branches 2".to_owned()),
            },
            "back" => Self::Back,
            "undo" => Self::Undo,
            "search" if rest.is_empty() => Self::Unknown("What for? /search WORDS".to_owned()),
            "search" => Self::Search(rest.to_owned()),
            "remember" => Self::Remember(rest.to_owned()),
            "forget" if rest.is_empty() => Self::Known,
            "forget" if rest.eq_ignore_ascii_case("yes") => Self::Forget,
            "forget" => Self::Unknown(NOT_FORGOTTEN.to_owned()),
            "summary" => Self::Summary,
            "tree" => Self::Tree,
            "export" => Self::Export,
            "new" => Self::New,
            "usage" => Self::Usage,
            "help" | "start" => Self::Help,
            other => Self::Unknown(format!("There is no command /{other}. /help lists them.")),
        })
    }
}

/// Returns what a command will do, with every message named.
///
/// # Errors
/// As every read.
// quote: resolve
pub fn resolve(chat: &Session, command: &Command) -> Result<Step> {
    let go = |to, said: &str, then_reply| Step::Go { to, said: said.to_owned(), then_reply };
    Ok(match command {
        Command::Retry => match chat.question()? {
            Some(question) => go(Some(question), "", true),
            None => Step::Say("There is nothing to answer again.".to_owned()),
        },
        Command::Undo => match chat.question()? {
            Some(question) => {
                go(before(chat, &question)?, "Taken back. /back brings it back.", false)
            }
            None => Step::Say("There is nothing to take back.".to_owned()),
        },
        Command::Back => match former_head(chat)? {
            Some(to) => Step::Back(to),
            None => Step::Say("No move is left to undo.".to_owned()),
        },
        Command::Branches(Some(number)) => match chat.leaves()?.get(number.wrapping_sub(1)) {
            Some(leaf) => go(Some(leaf.clone()), "Here we are.", false),
            None => Step::Say("There is no such branch. /branches lists them.".to_owned()),
        },
        Command::New => Step::End(chat.id().clone()),
        Command::Unknown(say) => Step::Say(say.clone()),
        other => Step::Do(other.clone()),
    })
}
// quote end

fn before(chat: &Session, id: &MessageId) -> Result<Option<MessageId>> {
    let mut path = chat.at(id).raw().recent(Budget::messages(2))?.messages;
    path.pop();
    Ok(path.pop().map(|message| message.id))
}

fn former_head(chat: &Session) -> Result<Option<Option<MessageId>>> {
    let log = chat.head_log()?;
    let now = log.iter().position(|entry| entry.is_present);
    Ok(now.and_then(|now| log.get(now.checked_sub(1)?)).map(|entry| entry.id.clone()))
}

/// Runs a step.
///
/// After `/forget` and `/new` the place has another session: call [`Bot::chat`] again.
///
/// # Errors
/// As every write.
pub fn run(bot: &Bot, place: &Place, chat: &Session, step: &Step) -> Result<Done> {
    let mut done = Done::default();
    done.text = match step {
        Step::Say(text) => text.clone(),
        Step::Go { to, said, then_reply } => {
            match to {
                Some(to) => chat.checkout(to)?,
                None => chat.checkout_start()?,
            }
            done.then_reply = *then_reply;
            if *then_reply { said.clone() } else { format!("{said}\n{}", here(chat)?) }
        }
        Step::Back(to) => {
            // `undo_head` is not idempotent: twice would go back twice.
            if chat.head()? != *to {
                chat.undo_head()?;
            }
            format!("Back.\n{}", here(chat)?)
        }
        Step::End(session) => {
            bot.sessions().end(session, "a person asked for a new conversation")?;
            "A new conversation. I can still search the old ones.".to_owned()
        }
        Step::Do(command) => match command {
            Command::Branches(_) => branches(chat)?,
            Command::Search(words) => search(bot, place, chat, words)?,
            Command::Remember(text) => remember(chat, text)?,
            Command::Known => known(bot, place)?,
            Command::Forget => forget(bot, place)?,
            Command::Summary => summary(bot, chat)?,
            Command::Tree => tree(chat)?,
            Command::Export => {
                let mut page = Vec::new();
                export_markdown(&chat.path(), &mut page)?;
                let name = format!("conversation-{}.md", chrono::Utc::now().format("%Y-%m-%d"));
                done.file = Some((name, String::from_utf8_lossy(&page).into_owned()));
                "Our conversation:".to_owned()
            }
            Command::Usage => usage(bot, place, chat)?,
            _ => HELP.to_owned(),
        },
    };
    Ok(done)
}

/// Returns a sentence that says where the head is.
fn here(chat: &Session) -> Result<String> {
    Ok(match chat.recent(Budget::messages(1))?.messages.pop() {
        Some(last) => format!("The last message here is of {}", entry(&last)),
        None => "We are before the first message.".to_owned(),
    })
}

fn branches(chat: &Session) -> Result<String> {
    let leaves = chat.leaves()?;
    let mut text = match leaves.len() {
        0 => "There are no branches: nothing was said yet.\n".to_owned(),
        1 => "There is one branch; /retry and /undo make more.\n".to_owned(),
        count => format!("{count} branches; * is this one. /branches N goes to one.\n"),
    };
    for (at, leaf) in leaves.iter().enumerate().skip(leaves.len().saturating_sub(BRANCHES)) {
        let mark = if chat.is_on_path(leaf)? { "*" } else { " " };
        if let Some(message) = chat.message(leaf)? {
            let _ = writeln!(text, "{mark} {}. {}", at + 1, entry(&message));
        }
    }
    Ok(text)
}

fn search(bot: &Bot, place: &Place, chat: &Session, words: &str) -> Result<String> {
    let search = match &place.owner {
        Some(owner) => bot.sessions().search(words).owner(owner),
        None => chat.search(words),
    };
    let mut text = String::new();
    for hit in search.limit(HITS).run()?.hits {
        let time = hit.created_at.format("%Y-%m-%d %H:%M");
        let whose = if hit.role == Role::User { "" } else { "I: " };
        let place = if hit.session == *chat.id() { "" } else { " (another conversation)" };
        let _ = writeln!(text, "{time}{place} {whose}{}", hit.snippet);
    }
    Ok(if text.is_empty() { "I find nothing.".to_owned() } else { text })
}

fn remember(chat: &Session, text: &str) -> Result<String> {
    let memory = chat.block(MEMORY)?.map(|memory| memory.content).unwrap_or_default();
    let entry = format!("- {}", line(text, usize::MAX)); // whole: the limit is that of the block
    if text.is_empty() && memory.trim().is_empty() {
        return Ok("I keep nothing in mind yet. /remember TEXT".to_owned());
    }
    if text.is_empty() {
        return Ok(format!("I keep in mind:\n{memory}"));
    }
    if !memory.lines().any(|known| known == entry) {
        match chat.context().append(MEMORY, &entry) {
            Err(full @ StoreError::BlockOverLimit { .. }) => {
                return Ok(format!("No room: {full}."));
            }
            Err(StoreError::NoOwner { .. }) => return Ok("I have no memory here.".to_owned()),
            written => drop(written?),
        }
    }
    Ok("I keep that in mind.".to_owned())
}

fn known(bot: &Bot, place: &Place) -> Result<String> {
    let extent = bot.sessions().store().erasure_extent(&erasure(bot, place)?)?;
    Ok(format!("I know of you: {}. /forget yes erases it, for good.", counted(&extent)))
}

// quote: forget
fn forget(bot: &Bot, place: &Place) -> Result<String> {
    let erased = bot.sessions().store().erase(&erasure(bot, place)?)?;
    let mut text = format!("Erased: {}.", counted(&erased.extent));
    match erased.prove() {
        Ok(proof) => {
            let bytes = proof.bytes;
            let _ = write!(text, " I read all {bytes} bytes of my files: nothing of it is left.");
        }
        Err(StoreError::Unsupported { .. }) => {} // a store in memory has no files
        Err(error) => return Err(error.into()),
    }
    if place.is_group {
        text += " What others wrote, my answers to them and the memory of this group stay.";
    }
    Ok(text)
}

fn erasure(bot: &Bot, place: &Place) -> Result<Erasure> {
    let erasure = match (place.is_group, &place.owner) {
        (true, _) => written_by(bot, place)?,
        // Not by its key: that would erase the pending item of this command, before it is answered.
        (false, Some(owner)) => Erasure::owner(owner),
        (false, None) => Erasure::key(&place.key),
    };
    Ok(erasure.with_forks().with_summaries())
}
// quote end

fn counted(extent: &ErasureExtent) -> String {
    let ErasureExtent { messages, sessions, texts, summaries, .. } = extent;
    format!(
        "{}, {}, {}, {}",
        count(*messages, "message", "messages"),
        count(sessions.len() as u64, "conversation", "conversations"),
        count(*texts, "text of memory", "texts of memory"),
        count(*summaries, "summary", "summaries"),
    )
}

/// Returns the erasure of what a person wrote in a group, with the answers below it: they may quote it.
fn written_by(bot: &Bot, place: &Place) -> Result<Erasure> {
    let mut erasure = Erasure::default();
    for binding in bot.sessions().bindings(&place.key)? {
        let chat = bot.sessions().session(binding.session)?;
        let mut ids = HashSet::new();
        // A message comes after its parent.
        for message in chat.all_messages() {
            let message = message?;
            let author = Author::of(&message).and_then(|author| author.id);
            let is_answer = message.role != Role::User;
            if author.is_some() && author == place.person.id
                || is_answer && message.parent.is_some_and(|parent| ids.contains(&parent))
            {
                ids.insert(message.id);
            }
        }
        if !ids.is_empty() {
            erasure = erasure.and(Erasure::messages(chat.id(), &Vec::from_iter(ids)));
        }
    }
    Ok(erasure)
}

fn summary(bot: &Bot, chat: &Session) -> Result<String> {
    let all = CompactionOptions::default().protect_head(0).keep_recent_tokens(0).min_tail(0);
    match chat.plan_compaction(&all.max_step_tokens(u64::MAX))? {
        // Only shown: the plan is not committed.
        Ok(plan) => bot.model().summarize(plan.prompt()),
        Err(_) => Ok("There is nothing to summarize yet.".to_owned()),
    }
}

fn tree(chat: &Session) -> Result<String> {
    let tree = chat.tree()?.to_string();
    let mut text: String = tree.lines().take(LINES).flat_map(|line| [line, "\n"]).collect();
    match tree.lines().count() {
        0 => text += "Nothing was said yet.",
        all if all > LINES => text += &format!("… {} more lines; /export has all.", all - LINES),
        _ => {}
    }
    Ok(text)
}

fn usage(bot: &Bot, place: &Place, chat: &Session) -> Result<String> {
    let usage = match &place.owner {
        Some(owner) => bot.sessions().usage().owner(owner),
        None => bot.sessions().usage().session(chat.id().clone()),
    };
    let UsageTotal { answers, input, cache_read, output, costs, .. } = usage.total()?;
    let messages = chat.info()?.map_or(0, |info| info.messages);
    let (window, most) = (chat.request_tokens()?.total, bot.compact_after());
    let mut text = format!(
        "{}: {input} tokens read, {cache_read} of them from a cache, {output} written. This conversation: {}; {} reads \
         {window} of at most {most} tokens.",
        count(answers, "answer", "answers"),
        count(messages, "message", "messages"),
        bot.model().name()
    );
    for cost in &costs {
        let _ = write!(text, " Cost: {:.2} {}.", cost.micros as f64 / 1e6, cost.currency);
    }
    Ok(text)
}

/// Returns who wrote a message, when, and how it begins.
fn entry(message: &Message) -> String {
    let who = match (Author::of(message).and_then(|author| author.name), &message.role) {
        (Some(name), Role::User) => line(&name, SHORT), // people choose their names
        (None, Role::User) => "you".to_owned(),
        _ => "me".to_owned(),
    };
    format!("{who}, {}: {}", message.created_at.format("%m-%d %H:%M"), line(&message.text(), SHORT))
}
