//! One session of an export during its import.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use super::look_ahead::record_name;
use super::record::{Placed, Ranged, Tombstone, derive};
use super::report::ImportReport;
use crate::compaction::{Compaction, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, label_is_id};
use crate::message::Message;
use crate::outcome::{ImportRecord, Imported, Label, SessionDetails};
use crate::session::Session;
use crate::storage::context::Elision;

/// How many messages go into one transaction ..
const MAX_BATCH: usize = 1_000;
/// .. and how many bytes of lines, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// One session of an export during its import.
///
/// Besides its messages, a session keeps more record names: of imported compactions and labels, so that they are not
/// added again after they were removed; and of the start and end of the import of these messages. So an interrupted
/// import is completed, and a completed one does not move the head again. None of these names is that of a message,
/// which ends in 16 hexadecimal digits.
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
    /// The names to store with the first messages ..
    opening: Vec<String>,
    /// .. and at the end.
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
        let mut is_own = true;
        let mut incoming = Self::new(session, if is_dry { Mode::Rehearse } else { Mode::Store });
        incoming.has_messages = has_messages;
        incoming.mark = mark;
        if is_dry {
            return Ok(incoming);
        }
        let session = &incoming.session;
        match session.info()? {
            None => {
                session.set_details(details)?;
                incoming.is_open = true;
            }
            Some(info) => {
                // An interrupted import created it.
                is_own = details.created_at == Some(info.created_at);
                let missing = details.clone().missing_in(&info);
                if missing != SessionDetails::default() {
                    session.set_details(&missing)?;
                }
            }
        }
        let (begun, ended) = (format!("{mark:x}#begun"), format!("{mark:x}#ended"));
        match session.is_imported(&begun)? {
            true => incoming.is_open |= !session.is_imported(&ended)?,
            false => incoming.opening.push(begun),
        }
        incoming.closing.push(ended);
        incoming.updated_at = details.updated_at.filter(|_| incoming.is_open && is_own);
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

    pub(super) fn message(
        &mut self,
        line: u64,
        bytes: usize,
        Placed { mut message, mark, below }: Placed,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.mode == Mode::Refuse {
            report.dropped += 1;
            return Ok(());
        }
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
        let record = record_name(&id, mark);
        let entry = Entry { parent, mark, line, is_added: false, is_place: false };
        self.entries.insert(id, entry);
        self.batch.push(ImportRecord { record, parent: None, message });
        self.batch_bytes += bytes;
        match self.batch.len() >= MAX_BATCH || self.batch_bytes >= MAX_BATCH_BYTES {
            true => self.store_batch(report),
            false => Ok(()),
        }
    }

    /// Notes the place of a tombstone. If a compaction of the session starts or ends there, its summary names the place;
    /// otherwise a hidden message does until the end.
    pub(super) fn tombstone(
        &mut self,
        line: u64,
        found: Tombstone,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.mode == Mode::Refuse {
            report.dropped += 1;
            return Ok(());
        }
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
            self.batch.push(ImportRecord { record: record_name(&own, 0), parent: None, message });
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

    pub(super) fn elision(
        &mut self,
        line: u64,
        elision: &Elision,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.mode == Mode::Refuse {
            report.dropped += 1;
            return Ok(());
        }
        self.store_batch(report)?;
        let Elision { message, call, marker } = elision;
        let record = format!("{}#elision", derive(&[message.as_str(), call, marker]));
        let set = match self.session.context().store() {
            _ if !self.entries.contains_key(message) => {
                Err("the message it is of is not in the file".to_owned())
            }
            Some(store) if self.mode == Mode::Store && !self.session.is_imported(&record)? => {
                match store.elide(&[(message.clone(), call.clone())], marker) {
                    Err(error) if error.is_unknown() || error.is_refused() => {
                        Err(error.to_string())
                    }
                    stored => stored.map(Ok)?,
                }
            }
            _ => Ok(()),
        };
        match set {
            Ok(()) => {
                report.converted += 1;
                self.closing.push(record);
            }
            Err(why) => report.lose(line, format!("elision left out: {why}")),
        }
        Ok(())
    }

    pub(super) fn compaction(
        &mut self,
        line: u64,
        ranged: &Ranged,
        report: &mut ImportReport,
    ) -> Result<()> {
        let compaction = &ranged.compaction;
        if self.mode == Mode::Refuse {
            report.dropped += 1;
            return Ok(());
        }
        self.store_batch(report)?;
        let name = format!("{}#compaction", compaction.id);
        // A compaction that was removed since it was imported is not added again.
        let is_known = self.session.is_imported(&name)?
            || match self.session.compaction(&compaction.id) {
                Ok(_) => true,
                Err(error) if error.is_unknown() => false,
                Err(error) => return Err(error),
            };
        match if is_known { Ok(()) } else { self.compact(ranged)? } {
            Ok(()) => {
                report.converted += 1;
                self.closing.push(name);
            }
            Err(why) => report.lose(line, format!("compaction left out: {why}")),
        }
        Ok(())
    }

    /// Adds a compaction; the inner error says why it cannot be added.
    fn compact(&self, ranged: &Ranged) -> Result<std::result::Result<(), String>> {
        let Ranged { compaction, first, last } = ranged;
        let place = |number: &Option<u64>| number.and_then(|number| self.tombstones.get(&number));
        let first = place(first).map_or(&compaction.first, |place| &place.first);
        let last = place(last).map_or(&compaction.last, |place| &place.last);
        for end in [first, last] {
            if !self.entries.contains_key(end) && CompactionId::from_message(end).is_none() {
                return Ok(Err(format!("message {end:?} is not in the file")));
            }
        }
        if is_blank(&compaction.summary) {
            return Ok(Err(SummaryRefused::Blank.to_string()));
        }
        if self.mode == Mode::Rehearse {
            return Ok(Ok(()));
        }
        let Some(end) = self.nearest(Some(last)) else {
            return Ok(Err("all messages it covers are gone".to_owned()));
        };
        let restored = match end == *last {
            true => self.session.restore_compaction(compaction, first, last),
            false => {
                let moved = Compaction { last: end.clone(), ..compaction.clone() };
                self.session.restore_compaction(&moved, first, &end)
            }
        };
        refusal(restored)
    }

    pub(super) fn label(
        &mut self,
        line: u64,
        label: &Label,
        report: &mut ImportReport,
    ) -> Result<()> {
        if self.mode == Mode::Refuse {
            report.dropped += 1;
            return Ok(());
        }
        self.store_batch(report)?;
        let Label { name, id } = label;
        let record = format!("{}#label", derive(&[name, id.as_str()]));
        let set = match self.session.labelled(name)? {
            _ if !self.entries.contains_key(id) => {
                Err("the message it names is not in the file".to_owned())
            }
            Some(known) if known == *id => Ok(()),
            Some(known) => {
                report.remark(line, format!("label {name:?} is on {known:?} and stays there"));
                Ok(())
            }
            None if label.check().is_err() => reason(label.check()),
            None if self.mode == Mode::Rehearse
                && self.entries.contains_key(&MessageId::from(name.as_str())) =>
            {
                reason(Err(label_is_id(name)))
            }
            None if self.mode == Mode::Rehearse => Ok(()),
            // A label that was removed since it was imported is not set again.
            None if self.session.is_imported(&record)? => Ok(()),
            None => match self.session.label(name, id) {
                Err(error) if !error.is_refused() => return Err(error),
                set => reason(set),
            },
        };
        match set {
            Ok(()) => {
                report.converted += 1;
                self.closing.push(record);
            }
            Err(why) => report.lose(line, format!("label {name:?}: {why}")),
        }
        Ok(())
    }

    pub(super) fn head(&mut self, head: Option<MessageId>) {
        self.head = Some(head);
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

    fn store_batch(&mut self, report: &mut ImportReport) -> Result<()> {
        self.batch_bytes = 0;
        let records = std::mem::take(&mut self.batch);
        match self.mode {
            _ if records.is_empty() => Ok(()),
            Mode::Store => self.store(records, report),
            Mode::Rehearse | Mode::Refuse => self.rehearse(records, report),
        }
    }

    /// Predicts the result of storing these, for a dry run.
    fn rehearse(&mut self, records: Vec<ImportRecord>, report: &mut ImportReport) -> Result<()> {
        for record in records {
            let message = &record.message;
            let stored = match self.has_messages {
                true => self.session.message(&message.id)?,
                false => None,
            };
            let imported = match stored {
                None => Imported::Added,
                Some(stored) if stored.role == message.role && stored.text() == message.text() => {
                    Imported::Known
                }
                Some(_) => Imported::Differs,
            };
            self.settle(&record, imported, report);
        }
        Ok(())
    }

    /// Stores records in one transaction, or in smaller ones if one of them cannot be stored.
    fn store(&mut self, mut records: Vec<ImportRecord>, report: &mut ImportReport) -> Result<()> {
        for record in &mut records {
            record.parent = self.parent(&record.message.id);
        }
        let count = records.len();
        records.extend(self.opening_marks(&records[0].message.id)?);
        let stored = self.session.import_messages(&records);
        records.truncate(count);
        match stored {
            Ok(imported) => {
                self.opening.clear();
                for (record, imported) in records.iter().zip(imported) {
                    self.settle(record, imported, report);
                }
                Ok(())
            }
            Err(Error::UnknownMessage { .. } | Error::MessageTooLarge { .. }) if count > 1 => {
                let rest = records.split_off(count / 2);
                self.store(records, report)?;
                self.store(rest, report)
            }
            Err(Error::UnknownMessage { .. } | Error::MessageTooLarge { .. }) => {
                records.into_iter().try_for_each(|record| self.store_one(record, report))
            }
            Err(error) => Err(error),
        }
    }

    /// Stores a record below its nearest living ancestor.
    fn store_one(&mut self, mut record: ImportRecord, report: &mut ImportReport) -> Result<()> {
        let id = record.message.id.clone();
        let line = self.entries.get(&id).map_or(0, |entry| entry.line);
        let wanted = self.parent(&id);
        loop {
            record.parent = self.parent(&id);
            match (self.session.import_messages(std::slice::from_ref(&record)), &record.parent) {
                (Ok(imported), parent) => {
                    let imported = imported.first().copied().unwrap_or(Imported::Known);
                    if imported == Imported::Added && *parent != wanted {
                        let place = match parent {
                            Some(_) => "it follows the nearest one above that is left",
                            None => "none above is left; it begins a tree of its own",
                        };
                        report.remark(line, format!("the message it follows was deleted; {place}"));
                    }
                    self.settle(&record, imported, report);
                    return Ok(());
                }
                (Err(error @ Error::MessageTooLarge { .. }), _) => {
                    self.gone.insert(id);
                    report.lose(line, error.to_string());
                    return Ok(());
                }
                (Err(Error::UnknownMessage { .. }), Some(parent)) => {
                    self.gone.insert(parent.clone());
                }
                (Err(error), _) => return Err(error),
            }
        }
    }

    /// Returns the names to store with the first messages.
    fn opening_marks(&self, first: &MessageId) -> Result<Vec<ImportRecord>> {
        if self.opening.is_empty() {
            return Ok(Vec::new());
        }
        let at = match self.has_messages {
            true => self.session.latest_leaf()?.map_or_else(|| first.clone(), |leaf| leaf.id),
            false => first.clone(),
        };
        Ok(self.opening.iter().map(|name| ImportRecord::mark(name.as_str(), at.clone())).collect())
    }

    /// Counts the result for a message.
    fn settle(&mut self, record: &ImportRecord, imported: Imported, report: &mut ImportReport) {
        let message = &record.message;
        let id = &message.id;
        let Some(entry) = self.entries.get_mut(id) else { return };
        if entry.is_place {
            return;
        }
        self.last = Some(id.clone());
        match imported {
            Imported::Added => {
                entry.is_added = true;
                self.has_added = true;
                report.added += 1;
            }
            Imported::Known => {
                report.known += 1;
                let (line, parent) = (entry.line, entry.parent.clone());
                if parent.is_some_and(|p| self.entries.get(&p).is_some_and(|p| p.is_added)) {
                    let why = format!(
                        "message {id:?} was imported before its parent came, and stays where it is"
                    );
                    report.remark(line, why);
                }
            }
            Imported::Differs => {
                let why = format!("message {id:?} is there with other content, which was left");
                report.lose(entry.line, why);
                return;
            }
        }
        match message.is_hidden {
            true => report.converted += 1,
            false => report.kept += 1,
        }
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

/// Returns the reason of a refusal, without the name that the report has before it.
fn reason(result: Result<()>) -> std::result::Result<(), String> {
    result.map_err(|error| match error {
        Error::InvalidName { why, .. } => why,
        error => error.to_string(),
    })
}

/// Turns an error of one record alone into the reason why it is dropped.
fn refusal(result: Result<()>) -> Result<std::result::Result<(), String>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.is_refused() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
