//! Reads a session of the file to its end before its first message is written, to decide whether it is the same
//! conversation as in the store.

use super::boundary::Boundary;
use super::lines::Lines;
use super::record::{self, Kind, Placed, Record};
use super::record_names;
use crate::error::Result;
use crate::session::Session;

/// How many messages of the store are compared to decide whether a session is the same conversation.
const MAX_COMPARED: usize = 64;

/// The result of reading ahead in one session.
pub(super) struct LookAhead {
    pub(super) messages: u64,
    /// Distinguishes these messages from those of another export.
    pub(super) mark: u64,
    /// The reason if the session of the store is another conversation.
    pub(super) conflict: Option<String>,
}

/// Reads to the end of a session and goes back; compares it with the session of the store, if one is
/// given.
pub(super) fn look_ahead(
    lines: &mut Lines<'_>,
    version: u32,
    mut boundary: Boundary,
    stored: Option<&Session>,
    check: &dyn Fn() -> Result<()>,
    failed: &dyn Fn(std::io::Error) -> crate::error::Error,
) -> Result<LookAhead> {
    let place = lines.place();
    let (mut messages, mut mark) = (0, 0_u64);
    let mut comparison = Comparison::default();
    while let Some(line) = lines.next().map_err(failed)? {
        check()?;
        let read = line.text.as_deref().map_err(String::as_str);
        let message = match read.map(Record::of) {
            Ok(Ok(Record::Of(Kind::Session, ..) | Record::Header(_) | Record::End { .. })) => break,
            Ok(Ok(Record::Of(kind, number, line))) => {
                let is_root = || record::is_root(kind, line, version);
                if !boundary.holds(kind, number, is_root) || kind != Kind::Message {
                    continue;
                }
                record::message(line, version)
            }
            _ => {
                boundary.pass_damaged();
                continue;
            }
        };
        let Ok(Placed { message, mark: content, .. }) = message else { continue };
        messages += 1;
        mark = mark.rotate_left(5) ^ content;
        if let Some(stored) = stored {
            comparison.add(stored, &message, content)?;
        }
    }
    lines.go_back(place).map_err(failed)?;
    let conflict = match stored {
        Some(stored) if messages > 0 => comparison.conflict(stored)?,
        _ => None,
    };
    Ok(LookAhead { messages, mark, conflict })
}

#[derive(Default)]
struct Comparison {
    equal: usize,
    other: usize,
    /// The names of the first records, for a conversation whose messages were all deleted since.
    names: Vec<String>,
    continues: bool,
}

impl Comparison {
    fn add(
        &mut self,
        stored: &Session,
        message: &crate::message::Message,
        content: u64,
    ) -> Result<()> {
        if self.equal + self.other == MAX_COMPARED {
            return Ok(());
        }
        if self.names.len() < MAX_COMPARED {
            self.names.push(record_names::message(&message.id, content));
        }
        match stored.message(&message.id)? {
            Some(known) if known.role == message.role && known.text() == message.text() => {
                self.equal += 1;
            }
            Some(_) => self.other += 1,
            // It continues from a message of the store.
            None if !self.continues => {
                if let Some(parent) = &message.parent {
                    self.continues = stored.message(parent)?.is_some();
                }
            }
            None => {}
        }
        Ok(())
    }

    fn conflict(&self, stored: &Session) -> Result<Option<String>> {
        let Self { equal, other, .. } = self;
        if other > equal {
            return Ok(Some(format!("{other} of {} messages differ", equal + other)));
        }
        if *equal > 0 || self.continues {
            return Ok(None);
        }
        for name in &self.names {
            if stored.is_imported(name)? {
                return Ok(None);
            }
        }
        Ok(Some("no message is in both".to_owned()))
    }
}
