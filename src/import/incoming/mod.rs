//! One session of an export during its import.
//!
//! `batch` stores its messages, `attached` what refers to them: elisions, compactions, labels, tags.

mod attached;
mod batch;

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::record::{Part, Placed, Tombstone, derive};
use super::record_names;
use super::report::ImportReport;
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId};
use crate::message::Message;
use crate::outcome::{ImportRecord, SessionDetails};
use crate::session::Session;

/// One session of an export during its import.
pub(super) struct Incoming {
    session: Session,
    mode: Mode,
    has_messages: bool,
    /// Whether the head is to be set although nothing was added.
    is_open: bool,
    entries: HashMap<MessageId, Entry>,
    batch: Vec<ImportRecord>,
    batch_bytes: usize,
    /// Messages of the file, and parents in the store, that are missing: too large, or deleted since they were
    /// imported.
    gone: HashSet<MessageId>,
    has_added: bool,
    last: Option<MessageId>,
    head: Option<Option<MessageId>>,
    /// The time of the last write to the session that was exported.
    updated_at: Option<DateTime<Utc>>,
    /// The places of the file's tombstones.
    tombstones: HashMap<u64, Place>,
    /// Hidden messages in the places of tombstones, which are deleted at the end.
    placeholders: Vec<MessageId>,
    /// Distinguishes the messages from those of another export.
    mark: u64,
    /// The names to store with the first messages.
    opening: Vec<String>,
    /// The names to store at the end.
    closing: Vec<String>,
}

/// How records are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Store,
    Rehearse,
    /// The session holds another conversation.
    Refuse,
}

struct Entry {
    parent: Option<MessageId>,
    mark: u64,
    line: u64,
    is_added: bool,
    /// Whether it is not a message of the file, but the place of a tombstone.
    is_place: bool,
}

/// Names for the place of a tombstone.
struct Place {
    /// As a parent.
    id: MessageId,
    /// As the start of a compaction and as the end of one.
    first: MessageId,
    last: MessageId,
}

impl Incoming {
    /// Begins to store a session; `mark` distinguishes its messages from those of another export.
    pub(super) fn open(
        session: Session,
        has_messages: bool,
        details: &SessionDetails,
        mark: u64,
        is_dry: bool,
    ) -> Result<Self> {
        let mut incoming = Self::new(session, if is_dry { Mode::Rehearse } else { Mode::Store });
        incoming.has_messages = has_messages;
        incoming.mark = mark;
        if is_dry {
            return Ok(incoming);
        }
        let session = &incoming.session;
        let [begun, ended] = record_names::begun_and_ended(mark);
        let was_imported = session.is_imported(&begun)?;
        let is_created_by_import = match session.info()? {
            None => {
                session.set_details(details)?;
                incoming.is_open = true;
                true
            }
            Some(info) => {
                let mut missing = details.clone().missing_in(&info);
                // A name that it lacks by now was removed, or erased with the message that it was made from.
                missing.name.take_if(|_| has_messages || was_imported);
                if missing != SessionDetails::default() {
                    session.set_details(&missing)?;
                }
                // By one that was interrupted.
                details.created_at == Some(info.created_at)
            }
        };
        match was_imported {
            true => incoming.is_open |= !session.is_imported(&ended)?,
            false => incoming.opening.push(begun),
        }
        incoming.closing.push(ended);
        let keeps_time = incoming.is_open && is_created_by_import;
        incoming.updated_at = details.updated_at.filter(|_| keeps_time);
        Ok(incoming)
    }

    /// Counts all further records as dropped.
    pub(super) fn refused(session: Session) -> Self {
        Self::new(session, Mode::Refuse)
    }

    fn new(session: Session, mode: Mode) -> Self {
        Self {
            session,
            mode,
            has_messages: false,
            is_open: false,
            entries: HashMap::new(),
            batch: Vec::new(),
            batch_bytes: 0,
            gone: HashSet::new(),
            has_added: false,
            last: None,
            head: None,
            updated_at: None,
            tombstones: HashMap::new(),
            placeholders: Vec::new(),
            mark: 0,
            opening: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// Takes a record of the session.
    pub(super) fn take(
        &mut self,
        line: u64,
        bytes: usize,
        part: Part,
        report: &mut ImportReport,
    ) -> Result<()> {
        match part {
            _ if self.mode == Mode::Refuse => report.dropped += 1,
            Part::Head(head) => {
                self.head = Some(head);
                report.converted += 1;
            }
            Part::Message(message) => self.message(line, bytes, message, report)?,
            Part::Tombstone(tombstone) => self.tombstone(line, tombstone, report)?,
            Part::Compaction(compaction) => self.compaction(line, &compaction, report)?,
            Part::Elision(elision) => self.elision(line, &elision, report)?,
            Part::Label(label) => self.label(line, &label, report)?,
            Part::Tag(tag) => self.tag(line, &tag, report)?,
        }
        Ok(())
    }

    fn message(
        &mut self,
        line: u64,
        bytes: usize,
        Placed { mut message, mark, below }: Placed,
        report: &mut ImportReport,
    ) -> Result<()> {
        let id = message.id.clone();
        if let Some(first) = self.entries.get(&id) {
            let before = first.line;
            match first.mark == mark {
                true => report.leave_out(line, format!("repeats the record of line {before}")),
                false => {
                    let why = format!("id {id:?} is on line {before} with other content");
                    report.lose(line, why);
                }
            }
            return Ok(());
        }
        if let Some(number) = below {
            match self.tombstones.get(&number) {
                Some(place) => message.parent = Some(place.id.clone()),
                None => report.remark(line, format!("tombstone {number} is not in the file")),
            }
        }
        let mut parent = message.parent.clone();
        if let Some(missing) = &parent
            && !self.entries.contains_key(missing)
            && !(self.has_messages && self.session.message(missing)?.is_some())
        {
            let why = format!(
                "parent {missing:?} of message {id:?} is missing; it begins a tree of its own"
            );
            report.fault(line, why);
            parent = None;
        }
        let record = record_names::message(&id, mark);
        let entry = Entry { parent, mark, line, is_added: false, is_place: false };
        self.entries.insert(id, entry);
        self.batch.push(ImportRecord { record, parent: None, message });
        self.batch_bytes += bytes;
        if self.is_batch_full() { self.store_batch(report) } else { Ok(()) }
    }

    /// Notes the place of a tombstone. If a compaction of the session starts or ends there, its summary names the place;
    /// otherwise a hidden message does until the end.
    fn tombstone(&mut self, line: u64, found: Tombstone, report: &mut ImportReport) -> Result<()> {
        report.converted += 1;
        let above = found.below.and_then(|number| self.tombstones.get(&number));
        let parent = above.map(|above| above.id.clone()).or(found.parent);
        let parent = parent.filter(|parent| self.entries.contains_key(parent));
        let stored = |ids: &[CompactionId]| -> Result<Option<MessageId>> {
            for id in ids.iter().filter(|_| self.has_messages) {
                if self.session.provider().compaction(id)?.is_some() {
                    return Ok(Some(id.as_message()));
                }
            }
            Ok(None)
        };
        let (start, end) = (stored(&found.starts)?, stored(&found.ends)?);
        let mark = format!("{:x}", self.mark);
        let own: MessageId =
            derive(&["tombstone", &mark, &found.number.to_string()]).to_string().into();
        let id = end.clone().unwrap_or_else(|| own.clone());
        let place =
            Place { id: id.clone(), first: start.unwrap_or_else(|| id.clone()), last: id.clone() };
        self.tombstones.insert(found.number, place);
        let entry = Entry { parent, mark: 0, line, is_added: false, is_place: true };
        self.entries.insert(id, entry);
        if end.is_none() {
            let message = Message::new("", Vec::new()).with_id(own.clone()).hidden();
            self.batch.push(ImportRecord {
                record: record_names::message(&own, 0),
                parent: None,
                message,
            });
            self.placeholders.push(own);
        }
        Ok(())
    }

    /// Deletes what was in the places of tombstones: the places remain.
    fn delete_placeholders(&self) -> Result<()> {
        let provider = self.session.provider();
        let mut there = Vec::new();
        for id in &self.placeholders {
            if provider.message(id)?.is_some() {
                there.push(id.clone());
            }
        }
        match there.is_empty() {
            true => Ok(()),
            false => provider.delete(&there).map(drop),
        }
    }

    /// Stores the remaining records, sets the head, and records that the import is complete.
    pub(super) fn close(mut self, report: &mut ImportReport) -> Result<()> {
        self.store_batch(report)?;
        if self.mode != Mode::Store {
            return Ok(());
        }
        self.delete_placeholders()?;
        if self.is_open || self.has_added {
            self.move_head()?;
        }
        if let Some(time) = self.updated_at {
            let updated_at = Some(time);
            self.session
                .set_details(&SessionDetails { updated_at, ..SessionDetails::default() })?;
        }
        let Some(leaf) = self.session.latest_leaf()? else { return Ok(()) };
        let names = self.closing.into_iter();
        let marks: Vec<_> = names.map(|name| ImportRecord::mark(name, leaf.id.clone())).collect();
        match self.session.import_messages(&marks) {
            // Deleted meanwhile: fewer names are kept, which does no harm.
            Err(Error::UnknownMessage { .. }) => Ok(()),
            stored => stored.map(drop),
        }
    }

    fn move_head(&mut self) -> Result<()> {
        let mut target = match self.head.take() {
            Some(None) => {
                return match self.session.head()? {
                    Some(_) => self.session.checkout_start(),
                    None => Ok(()),
                };
            }
            Some(Some(id)) if CompactionId::from_message(&id).is_some() => {
                if self.session.head()?.as_ref() == Some(&id) {
                    return Ok(());
                }
                match self.session.checkout(&id) {
                    Err(Error::UnknownMessage { .. }) => self.last.clone(),
                    moved => return moved,
                }
            }
            Some(Some(id)) if self.entries.contains_key(&id) => Some(id),
            _ => self.last.clone(),
        };
        let head = self.session.head()?;
        while let Some(id) = self.nearest(target.as_ref()).filter(|id| Some(id) != head.as_ref()) {
            match self.session.checkout(&id) {
                // Imported before and deleted since: its nearest living ancestor.
                Err(Error::UnknownMessage { .. }) => self.gone.insert(id.clone()),
                moved => return moved,
            };
            target = Some(id);
        }
        Ok(())
    }

    /// Returns the nearest ancestor of a message that is in the store.
    fn parent(&self, id: &MessageId) -> Option<MessageId> {
        self.nearest(self.entries.get(id)?.parent.as_ref())
    }

    /// Returns the message, or the nearest ancestor of it that is in the store.
    fn nearest<'a>(&'a self, mut id: Option<&'a MessageId>) -> Option<MessageId> {
        let mut below = u64::MAX;
        while let Some(gone) = id.filter(|id| self.gone.contains(*id)) {
            // Only upward in the file: a parent in the store may occur again further down, in a cycle.
            let entry = self.entries.get(gone).filter(|entry| entry.line < below)?;
            (id, below) = (entry.parent.as_ref(), entry.line);
        }
        id.cloned()
    }
}
