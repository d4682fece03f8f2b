//! Delivery: a reply becomes messages of Telegram, each of which begins as a placeholder.
//!
//! Edits are idempotent, sending is not. So only placeholders without text are sent, and all text is shown by edits.
//!
//! Invariant: a placeholder is in the note before any text is shown in it. A kill between sending and noting leaves a
//! placeholder in the chat; no text is ever shown twice.
//! Invariant: `finish` shows the whole text in the noted messages, in order, whatever they showed before, and removes those
//! that are left over. Doing it again changes nothing.

use std::time::Instant;

use talktree::{Inbox, MessageId};
use talktree_telegram::{Address, Client, Edited, MAX_UNITS, split};

use super::note::Note;
use super::turn::Failure;
use super::update::message_id;
use crate::error::Result;

/// What a message says before there is any text.
const PLACEHOLDER: &str = "…";

/// The messages of one reply.
pub(crate) struct Delivery<'a> {
    client: &'a Client,
    inbox: &'a Inbox,
    /// The id of the item that is answered, whose note this is.
    item: &'a str,
    pub(crate) to: Address,
    /// What each message shows, as far as this delivery has seen it.
    shown: Vec<String>,
    /// When the first text was shown.
    pub(crate) first_text: Option<Instant>,
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(client: &'a Client, inbox: &'a Inbox, item: &'a str, to: Address) -> Self {
        Self { client, inbox, item, to, shown: Vec::new(), first_text: None }
    }

    /// Sends the first placeholder, unless it is noted, and stores the note; returns the id of the reply in the session.
    pub(crate) fn begin(&mut self, note: &mut Note) -> Result<MessageId, Failure> {
        let answer = match &note.answer {
            Some(answer) => answer.clone(),
            None => {
                let first = self.client.send(&self.to, PLACEHOLDER)?;
                note.parts.push(first);
                message_id(self.to.chat, first)
            }
        };
        note.answer = Some(answer.clone());
        note.store(self.inbox, self.item)?;
        Ok(answer)
    }

    /// Sends placeholders until the reply has this many messages, and notes each.
    fn reserve(&mut self, note: &mut Note, count: usize) -> Result<(), Failure> {
        while note.parts.len() < count {
            note.parts.push(self.client.send(&self.to, PLACEHOLDER)?);
            note.store(self.inbox, self.item)?;
        }
        Ok(())
    }

    /// Shows the text so far, if the limits allow an edit now: in the first message that changes.
    pub(crate) fn show(&mut self, note: &mut Note, text: &str) -> Result<(), Failure> {
        // Models send a piece every few milliseconds, so the text is split only if an edit may be made.
        if text.trim().is_empty() || !self.client.may_edit(&self.to) {
            return Ok(());
        }
        let texts = split(text, MAX_UNITS);
        let changed = texts.iter().enumerate().find(|(n, text)| self.shown.get(*n) != Some(text));
        let Some((n, text)) = changed else { return Ok(()) };
        self.reserve(note, n + 1)?;
        // `finish` replaces a message that is gone.
        if self.client.try_edit(&self.to, note.parts[n], text)? == Edited::Shown {
            self.is_shown(n, text);
        }
        Ok(())
    }

    /// Shows the whole text. `record` stores the numbers of the messages with the answer before the text is complete.
    pub(crate) fn finish(
        &mut self,
        note: &mut Note,
        text: &str,
        record: &dyn Fn(&[i32]) -> Result<()>,
    ) -> Result<(), Failure> {
        let texts = split(text, MAX_UNITS);
        self.reserve(note, texts.len())?;
        record(&note.parts[..texts.len()])?;
        for (n, text) in texts.iter().enumerate() {
            if self.shown.get(n) == Some(text) {
                continue;
            }
            if self.client.edit(&self.to, note.parts[n], text)? == Edited::Gone {
                // Someone deleted it. The text must not be lost, so it is sent once more; not again if that is deleted, too.
                note.parts[n] = self.client.send(&self.to, PLACEHOLDER)?;
                note.store(self.inbox, self.item)?;
                record(&note.parts[..texts.len()])?;
                self.client.edit(&self.to, note.parts[n], text)?;
            }
            self.is_shown(n, text);
        }
        // A try before a restart may have needed more messages.
        while let Some(&id) = note.parts.get(texts.len()) {
            self.client.delete(&self.to, id)?;
            note.parts.remove(texts.len());
            note.store(self.inbox, self.item)?;
        }
        Ok(())
    }

    fn is_shown(&mut self, n: usize, text: &str) {
        self.first_text.get_or_insert_with(Instant::now);
        self.shown.truncate(n);
        self.shown.push(text.to_owned());
    }
}
