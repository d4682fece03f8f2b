//! A turn: handles one update, from where the last try of it ended.
//!
//! The steps of a message that is answered, with what a kill leaves behind:
//!
//! 1. A placeholder is sent. Then one note stores its number, the id of the answer, which is made of this number, the session
//!    and the target. It is one note, because each waits for the disk. A kill between the two leaves a placeholder without
//!    text in the chat, and nothing else: the next try sends another one. After the note none of this is decided again,
//!    although the head changes, and the chat may get another session.
//! 2. The message is appended under an id made of Telegram's numbers. Doing it again is a no-op. If Telegram refused the
//!    placeholder, the message is appended anyway, and the item is done.
//! 3. The model answers; the text so far is shown by edits. A kill leaves a part of an answer in the chat, and the rounds of
//!    tools so far in the session: the next try goes on after them, and shows its text in the same message.
//! 4. The answer is stored under its id. From here on the model is not asked again.
//! 5. The messages show the whole text; those of a longer former try are removed. Doing it again changes nothing.
//! 6. The item is done. Until then it is the first of its chat.
//!
//! Invariant: a command is resolved, noted, run, noted again, and answered. So it runs again only if a kill left it between
//! the notes, and then it does the same, because every place in it is resolved.
//! Invariant: a file is noted before it is sent. A kill between the two loses it, and the reply says how to get it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use talktree::{Inbox, InboxItem, Message, MessageId, Role, Session};
use talktree_telegram::{Address, CallError, Client, Incoming, Me, Permit, Permits, Stop, Update};

use super::delivery::Delivery;
use super::note::{Note, Target};
use super::update::{command, message, message_id, place};
use crate::commands::{resolve, run};
use crate::config::Config;
use crate::metrics::{Metrics, time_in_model};
use crate::models::Flow;
use crate::{Bot, Command, Done, Error, Place, Result, Step};

/// In how many starts an update is tried. After that many kills the update itself may be what ends the program.
const MAX_TRIES: u32 = 20;

/// How many of the newest messages are searched for the answer that a message of Telegram shows.
const SEARCHED: usize = 200;

/// The field in the metadata of an answer with the list of the messages of Telegram that show it.
const FIELD: &str = "telegram";

/// The most characters of a quote.
const MAX_QUOTE: usize = 1_000;

/// What every turn needs.
pub(crate) struct Front {
    pub(crate) bot: Bot,
    pub(crate) client: Client,
    pub(crate) inbox: Inbox,
    pub(crate) me: Me,
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) stop: Arc<Stop>,
    /// Held by a turn while it uses the store before its reply begins: then few connections are opened at a start.
    pub(crate) permits: Permits,
    /// When the program was started.
    pub(crate) run: i64,
}

/// Why an update was not handled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The update is not for the bot; the label of the metric says why.
    #[error("{0}")]
    Ignored(&'static str),
    /// The program ends. The update stays pending.
    #[error("the program ends")]
    Stopped,
    /// The same call may succeed later. The chat waits for it.
    #[error("{0}")]
    Wait(String, Option<Duration>),
    /// The same call will probably fail again.
    #[error("{0}")]
    Failed(String),
    /// The update was erased while it was handled.
    #[error("the update was erased meanwhile")]
    Erased,
    /// Telegram does not take the reply: the person has left, or the chat is gone.
    #[error("{0}")]
    Undeliverable(String),
}

impl Failure {
    /// Returns how long to wait, if a server said so.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        if let Self::Wait(_, time) = self { *time } else { None }
    }
}

impl From<talktree::Error> for Failure {
    fn from(error: talktree::Error) -> Self {
        let text = error.to_string();
        if error.is_retryable() { Self::Wait(text, None) } else { Self::Failed(text) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Stopped => Self::Stopped,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let text = error.to_string();
        match error {
            CallError::Stopped => Self::Stopped,
            CallError::Refused { status: 429, retry_after, .. } => Self::Wait(text, retry_after),
            _ if error.is_about_token() => Self::Wait(text, None),
            CallError::Refused { .. } | CallError::Unreadable(_) => Self::Undeliverable(text),
            CallError::Lost(_) => Self::Wait(text, None),
        }
    }
}

impl Front {
    /// Handles an update that was received at this time.
    pub(crate) fn handle(&self, item: &InboxItem, since: Instant) -> Result<(), Failure> {
        let update = serde_json::from_str::<Update>(&item.body);
        let incoming = match update.map(|update| (update.message, update.edited_message)) {
            Ok((Some(message), _)) => message.written(),
            Ok((None, Some(message))) => message.edited(),
            Ok((None, None)) => return Err(Failure::Ignored("kind")),
            Err(_) => return Err(Failure::Ignored("unreadable")),
        };
        let allowed = &self.config.telegram.allowed_users;
        let user = incoming.from.as_ref().and_then(|user| i64::try_from(user.id).ok());
        if incoming.is_by_bot() {
            return Err(Failure::Ignored("bot"));
        }
        if !allowed.is_empty() && !user.is_some_and(|user| allowed.contains(&user)) {
            return Err(Failure::Ignored("not_allowed"));
        }
        let text = incoming.text().ok_or(Failure::Ignored("no_text"))?.to_owned();
        if self.config.log.bodies {
            tracing::info!(update = item.id, text, "received");
        }
        let note = Note::of(item);
        let since = (note.tries == 0).then(|| (since, time_in_model()));
        let place = place(&incoming);
        Turn { front: self, item, incoming, text, place, note, since }.run()
    }
}

/// The handling of one update.
struct Turn<'a> {
    front: &'a Front,
    item: &'a InboxItem,
    incoming: Incoming,
    text: String,
    place: Place,
    note: Note,
    /// When it was received, and how long this thread had waited for models by then; only for the first try.
    since: Option<(Instant, Duration)>,
}

impl<'a> Turn<'a> {
    fn run(mut self) -> Result<(), Failure> {
        let started = Instant::now();
        let permit = self.front.permits.acquire(self.number());
        let chat = self.chat()?;
        if self.note.run != self.front.run {
            self.note.run = self.front.run;
            self.note.tries += 1;
        }
        let handled = match command(&self.incoming, &self.front.me) {
            Some(command) if self.incoming.edit_date.is_none() => {
                drop(permit); // a command may take long
                self.command(&chat, &command)
            }
            _ => self.message(&chat, permit),
        };
        if let Err(failure) = handled {
            return Err(self.withdrawn()?.unwrap_or(failure));
        }
        let Self { item, incoming, note, .. } = &self;
        let (message, ms) = (incoming.message_id, started.elapsed().as_millis() as u64);
        let (tries, replies) = (note.tries, note.parts.len());
        tracing::info!(update = item.id, key = item.key, message, tries, replies, ms, "handled");
        Ok(())
    }

    /// Returns the session in which the update is handled: the noted one, if it is there.
    fn chat(&mut self) -> Result<Session, Failure> {
        let bot = &self.front.bot;
        if let Some(id) = &self.note.session
            && let Some(info) = bot.sessions().get(id)?
            && info.deleted_at.is_none()
        {
            return Ok(bot.sessions().session(id.clone())?);
        }
        let chat = bot.chat(&self.place, &self.first_id())?;
        self.note.session = Some(chat.id().clone());
        Ok(chat)
    }

    /// Returns the id that the message had in the session before it was edited.
    fn first_id(&self) -> MessageId {
        message_id(self.incoming.chat.id, self.incoming.message_id)
    }

    fn store_note(&self) -> Result<(), Failure> {
        self.note.store(&self.front.inbox, &self.item.id)
    }

    /// Deletes the messages of the reply if the update was erased, as by `/forget` in another topic: no try would finish them.
    fn withdrawn(&self) -> Result<Option<Failure>, Failure> {
        if self.note.parts.is_empty() || !matches!(self.store_note(), Err(Failure::Erased)) {
            return Ok(None);
        }
        let to = self.delivery().to;
        for part in &self.note.parts {
            self.front.client.delete(&to, *part)?;
        }
        Ok(Some(Failure::Erased))
    }

    /// Returns the number of the update.
    fn number(&self) -> i64 {
        self.item.id.parse().unwrap_or_default()
    }

    /// Stores a message, and answers it if it is for the bot.
    fn message(&mut self, chat: &Session, permit: Permit<'_>) -> Result<(), Failure> {
        let is_for = self.incoming.is_for(&self.front.me);
        let target = match (self.note.target.take(), self.incoming.edit_date) {
            (Some(target), _) => target,
            (None, None) => self.target(chat, is_for)?,
            (None, Some(date)) => self.target_of_edit(chat, date)?,
        };
        self.note.target = Some(target.clone());
        // A message that is only stored needs no note: appending its id again is a no-op.
        let is_answered = match target {
            Target::Head | Target::Quoting | Target::After(_) => is_for,
            Target::Instead(_) => true,
            Target::Into(_) => false,
        };
        if !is_answered {
            return self.append(chat, &target);
        }
        let mut delivery = self.delivery();
        drop(permit);
        let id = match delivery.begin(&mut self.note) {
            Err(refused @ Failure::Undeliverable(_)) => {
                self.store_note()?;
                self.append(chat, &target)?; // the person wrote it, although no answer can be shown
                return Err(refused);
            }
            begun => begun?,
        };
        let permit = self.front.permits.acquire(self.number());
        self.append(chat, &target)?;
        self.reply(chat, delivery, &id, permit)
    }

    /// Stores the message where it goes.
    fn append(&self, chat: &Session, target: &Target) -> Result<(), Failure> {
        let is_quoting = *target == Target::Quoting;
        let text = if is_quoting { self.quoting() } else { self.text.clone() };
        let message = message(&self.incoming, &self.item.id, text, &self.place.person);
        match target {
            Target::Head | Target::Quoting => drop(chat.append(message)?),
            Target::After(parent) => match chat.append_to(parent, message.clone()) {
                // The parent was deleted meanwhile.
                Err(error) if error.is_unknown() => drop(chat.append(message)?),
                stored => drop(stored?),
            },
            Target::Instead(first) => drop(chat.edit(first, message)?),
            Target::Into(id) => drop(chat.update(message.with_id(id.clone()))?),
        }
        Ok(())
    }

    /// Returns where a message goes.
    fn target(&self, chat: &Session, is_for: bool) -> Result<Target, Failure> {
        let Some(replied) = self.incoming.reply_to().filter(|_| is_for) else {
            return Ok(Target::Head);
        };
        Ok(match find(chat, self.incoming.chat.id, replied.message_id)? {
            None => Target::Quoting,
            Some(id) if is_newest(chat, &id)? => Target::Head,
            Some(id) => Target::After(id),
        })
    }

    /// Returns where a message goes that was edited at this time.
    fn target_of_edit(&self, chat: &Session, date: i64) -> Result<Target, Failure> {
        let first = self.first_id();
        let newest = newest_version(chat, &first)?.ok_or(Failure::Ignored("edit_of_unknown"))?;
        if newest.0 >= (date, self.number()) {
            return Err(Failure::Ignored("old_edit"));
        }
        let text = newest.1.text();
        if text == self.text || text == self.quoting() {
            return Err(Failure::Ignored("same_text")); // a preview of a link was added, for example
        }
        let mut below = chat.branches(&newest.1.id)?.into_iter();
        Ok(match !self.place.is_group || below.any(|below| below.role == Role::Assistant) {
            true => Target::Instead(first),
            false => Target::Into(newest.1.id),
        })
    }

    /// Returns the text after a quote of the message to which it replies.
    fn quoting(&self) -> String {
        let quoted = self.incoming.reply_to().and_then(Incoming::text).unwrap_or_default();
        let quoted: String = quoted.chars().take(MAX_QUOTE).collect();
        let quote: String = quoted.lines().map(|line| format!("> {line}\n")).collect();
        if quote.is_empty() { self.text.clone() } else { format!("{quote}\n{}", self.text) }
    }

    /// Runs a command and shows its outcome.
    fn command(&mut self, chat: &Session, command: &Command) -> Result<(), Failure> {
        let front = self.front;
        let step = match self.note.step.take() {
            Some(step) => step,
            None => resolve(chat, command)?,
        };
        self.note.step = Some(step.clone());
        self.store_note()?;
        let may_be_sent = self.note.sent_file;
        // The file is not in the note, so the export runs again until the file was sent.
        let is_export = step == Step::Do(Command::Export) && !may_be_sent;
        let done = match self.note.ran.take().filter(|_| !is_export) {
            Some(done) => done,
            None => match run(&front.bot, &self.place, chat, &step) {
                Err(Error::Store(error)) if error.is_retryable() => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(update = self.item.id, %error, "a command fails");
                    Done { text: format!("This did not work: {error}"), ..Done::default() }
                }
                Ok(done) => done,
            },
        };
        self.note.ran = Some(done.clone());
        self.store_note()?;
        let mut delivery = self.delivery();
        if done.then_reply {
            let id = delivery.begin(&mut self.note)?;
            return self.reply(chat, delivery, &id, self.front.permits.acquire(self.number()));
        }
        let again = "\n\nI was restarted meanwhile. If there is no file, please ask again.";
        let text = done.text + if may_be_sent { again } else { "" };
        delivery.begin(&mut self.note)?;
        delivery.finish(&mut self.note, &text, &|_| Ok(()))?;
        self.measure(&delivery);
        if let Some((name, content)) = done.file {
            self.note.sent_file = true;
            self.store_note()?;
            front.client.send_file(&delivery.to, &name, &content)?;
        }
        Ok(())
    }

    /// Asks the model for the answer to the message at the head, and shows it. The permit is held until the request is sent.
    fn reply(
        &mut self,
        chat: &Session,
        mut delivery: Delivery<'_>,
        id: &MessageId,
        permit: Permit<'_>,
    ) -> Result<(), Failure> {
        let front = self.front;
        let parts = Some((FIELD, json!(self.note.parts)));
        let (mut permit, mut failed, mut has_given_way) = (Some(permit), None, false);
        let answer = if self.note.tries > MAX_TRIES {
            Err(Error::Interrupted { times: MAX_TRIES })
        } else {
            front.bot.reply(chat, id, parts, &mut |text| {
                permit.take();
                if let Err(error) = delivery.show(&mut self.note, text) {
                    failed = Some(error);
                }
                self.measure(&delivery);
                if delivery.first_text.is_some() && !has_given_way {
                    has_given_way = true;
                    front.permits.give_way();
                }
                if failed.is_some() || front.stop.is_over() { Flow::Stop } else { Flow::Continue }
            })
        };
        drop(permit);
        if let Some(error) = failed {
            return Err(error);
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if front.stop.is_over() => return Err(Failure::Stopped),
            Err(Error::Store(error)) if error.is_retryable() => return Err(error.into()),
            Err(error) => {
                front.metrics.broken.inc();
                tracing::warn!(update = self.item.id, key = self.item.key, %error, "no answer");
                front.bot.give_up(chat, id, &error)?
            }
        };
        if delivery.first_text.is_some() {
            front.permits.give_way();
        }
        delivery.finish(&mut self.note, &answer.text(), &|parts| record(chat, &answer, parts))?;
        self.measure(&delivery);
        Ok(())
    }

    /// Measures, once, the time from the update to the first text, without that of the model.
    fn measure(&mut self, delivery: &Delivery<'_>) {
        if let Some(shown) = delivery.first_text
            && let Some((since, in_model)) = self.since.take()
        {
            let time = shown.saturating_duration_since(since);
            let time = time.saturating_sub(time_in_model() - in_model);
            self.front.metrics.first_text.observe(time.as_secs_f64());
        }
    }

    fn delivery(&self) -> Delivery<'a> {
        let Self { front, item, incoming, .. } = self;
        let telegram = &front.config.telegram;
        let is_group = self.place.is_group;
        let intervals = [telegram.edit_interval_ms, telegram.group_edit_interval_ms];
        let to = Address {
            chat: incoming.chat.id,
            topic: incoming.topic(),
            reply_to: is_group.then_some(incoming.message_id),
            interval: Duration::from_millis(intervals[usize::from(is_group)]),
        };
        Delivery::new(&front.client, &front.inbox, &item.id, to)
    }
}

/// Stores in the metadata of an answer which messages of Telegram show it, if its id does not say it all.
fn record(chat: &Session, answer: &Message, parts: &[i32]) -> Result<()> {
    if parts.len() > 1 || shown_in(answer).is_some_and(|known| known != parts) {
        chat.update(answer.clone().with_field(FIELD, json!(parts)))?;
    }
    Ok(())
}

/// Returns the messages of Telegram that show an answer.
fn shown_in(answer: &Message) -> Option<Vec<i32>> {
    serde_json::from_value(answer.field(FIELD)?.value()).ok()
}

/// Returns the message of the session that a message of Telegram shows: its newest version, or the answer that it is a part
/// of.
fn find(chat: &Session, telegram_chat: i64, message: i32) -> Result<Option<MessageId>, Failure> {
    if let Some((_, newest)) = newest_version(chat, &message_id(telegram_chat, message))? {
        return Ok(Some(newest.id));
    }
    for answer in chat.path().raw().iter_rev().take(SEARCHED) {
        let answer = answer?;
        if shown_in(&answer).is_some_and(|parts| parts.contains(&message)) {
            return Ok(Some(answer.id));
        }
    }
    Ok(None)
}

/// The time of an edit, in seconds, and the number of its update.
type Edit = (i64, i64);

/// Returns the newest version of a message, and its edit; zeros if it was not edited.
fn newest_version(chat: &Session, first: &MessageId) -> Result<Option<(Edit, Message)>, Failure> {
    let Some(message) = chat.message(first)? else { return Ok(None) };
    let edited = format!("{first}:e");
    let versions = chat.siblings(first)?.into_iter().filter_map(|version| {
        let (date, update) = version.id.as_str().strip_prefix(&edited)?.split_once('-')?;
        Some(((date.parse().ok()?, update.parse().ok()?), version))
    });
    Ok(versions.max_by_key(|(edit, _)| *edit).or(Some(((0, 0), message))))
}

/// Returns whether a message is the newest answer, or comes after it: a reply to it needs no branch.
fn is_newest(chat: &Session, id: &MessageId) -> Result<bool, Failure> {
    for message in chat.path().raw().iter_rev().take(SEARCHED) {
        let message = message?;
        if message.id == *id || message.role == Role::Assistant {
            return Ok(message.id == *id);
        }
    }
    Ok(false)
}
