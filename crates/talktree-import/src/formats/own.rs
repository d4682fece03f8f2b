//! talktree's own JSON lines, as [`export`](crate::export) writes them.
//!
//! The sessions of an export follow each other: the record of a session, then its messages, then what refers to them. So a session
//! is complete when the next one begins.
//!
//! Invariant: if the record of a session is lost, its messages do not come into the session before it, which may be that of another
//! person. Each record has the number of its session, made from the id of the session. One with another number is left out, and so
//! is one without a number that follows an unreadable line. A wrong digit costs only the record that has it.

use std::collections::HashMap;

use serde::Deserialize;
use talktree::{
    CompactionId, Label, Message, MessageId, MessageTag, Record as Stored, SessionDetails,
    SessionId,
};
use uuid::Uuid;

use crate::draft::{Body, Draft, DraftLabel, Node, Reader, derive, fingerprint};
use crate::export::{Counts, VERSION, chain, number_of};
use crate::fields::Fields;
use crate::records::Record;
use crate::report::ImportReport;

/// How many bytes of a session are kept in memory; the messages of a longer one are read a second time.
const MAX_BYTES: usize = 8 << 20;

/// Where in an export a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    /// Before a header.
    #[default]
    Outside,
    Inside,
    /// Inside an export of a version that this build does not know.
    Newer,
}

#[derive(Default)]
pub(crate) struct Own {
    position: Position,
    /// The counts of the export so far, and its checksum.
    counts: Counts,
    checksum: Uuid,
    /// Whether a line could not be read; then the checksum cannot match.
    is_damaged: bool,
    last_line: u64,
    session: Option<Session>,
}

/// The session that is being read.
struct Session {
    draft: Draft,
    /// The number in its record, and that of its id; they differ if one of the two is damaged.
    numbers: [Option<u64>; 2],
    /// Whether a line could not be read since it began.
    is_damaged: bool,
    /// The nodes in the places of deleted messages, by their numbers.
    tombstones: HashMap<u64, MessageId>,
}

impl Own {
    fn take(&mut self) -> Option<Draft> {
        self.session.take().map(|session| session.draft)
    }

    fn begin(&mut self, record: &Record, fields: &Fields, report: &mut ImportReport) {
        self.warn_if_cut(record.line, report);
        (self.counts, self.is_damaged) = (Counts::default(), false);
        self.checksum = chain(Uuid::nil(), &record.text);
        let version = fields.number("version").unwrap_or_default();
        if version == f64::from(VERSION) {
            self.position = Position::Inside;
            report.converted += 1;
            return;
        }
        self.position = Position::Newer;
        let why = format!("an export of version {version}; this build reads version {VERSION}");
        report.lose(record.line, why);
    }

    fn end(&mut self, record: &Record, report: &mut ImportReport) {
        #[derive(Deserialize)]
        struct End {
            #[serde(flatten)]
            counts: Counts,
            checksum: String,
        }
        report.converted += 1;
        self.position = Position::Outside;
        if self.is_damaged {
            return;
        }
        match read::<End>(&record.text) {
            Err(why) => report.fault(record.line, format!("the end of the export: {why}")),
            Ok(End { counts, .. }) if counts != self.counts => {
                let why = format!("the export holds {}, not {counts} as its end says", self.counts);
                report.fault(record.line, why);
            }
            Ok(End { checksum, .. }) if checksum != self.checksum.to_string() => {
                report.fault(record.line, "the checksum does not fit: the export was changed");
            }
            Ok(_) => {}
        }
    }

    fn warn_if_cut(&self, line: u64, report: &mut ImportReport) {
        if self.position == Position::Inside {
            report.fault(line, "the export has no end record: it was cut off");
        }
    }

    fn open(
        &mut self,
        record: &Record,
        number: Option<u64>,
        report: &mut ImportReport,
    ) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Named {
            id: SessionId,
        }
        let Named { id } = read(&record.text)?;
        let mut details: SessionDetails = read(&record.text)?;
        id.check().map_err(|error| error.to_string())?;
        if let Err(error) = details.check() {
            report.fault(record.line, error.to_string());
            details = SessionDetails { name: None, ..details };
            details.check().map_err(|error| error.to_string())?;
        }
        report.converted += 1;
        let numbers = [number, Some(number_of(&id))];
        let draft = Draft { details, is_exact: true, records: 1, ..Draft::new(id, record.line) };
        let tombstones = HashMap::new();
        self.session = Some(Session { draft, numbers, is_damaged: false, tombstones });
        Ok(())
    }
}

impl Reader for Own {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        self.last_line = record.line;
        if entry.has("format") {
            let before = self.take();
            self.begin(record, &entry, report);
            return before;
        }
        if self.position != Position::Inside {
            let why = match self.position {
                Position::Newer => "part of an export of an unknown version",
                _ => "outside of an export: no header comes before it",
            };
            report.lose(record.line, why);
            return None;
        }
        let kind = entry.text("type").unwrap_or_default();
        if kind == "end" {
            let before = self.take();
            self.end(record, report);
            return before;
        }
        self.checksum = chain(self.checksum, &record.text);
        self.counts.add(&kind);
        let number = entry.get("session").and_then(|number| number.as_str().parse().ok());
        let (before, taken) = match kind.as_str() {
            "session" => (self.take(), self.open(record, number, report)),
            _ => match &mut self.session {
                None => (None, Err("it comes before any session".to_owned())),
                Some(session) if !session.holds(number) => {
                    (None, Err("the record of its session is damaged or missing".to_owned()))
                }
                Some(session) => (None, session.take(&kind, record, &entry, report)),
            },
        };
        if let Err(why) = taken {
            let kind = if KINDS.contains(&kind.as_str()) { &kind } else { "unknown" };
            report.lose(record.line, format!("{kind} record left out: {why}"));
        }
        before
    }

    fn pass_damaged(&mut self, line: u64, _text: &[u8]) {
        self.last_line = line;
        self.is_damaged = true;
        if let Some(session) = &mut self.session {
            session.is_damaged = true;
        }
    }

    fn close(&mut self, report: &mut ImportReport) -> Option<Draft> {
        self.warn_if_cut(self.last_line, report);
        self.take()
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        read(fields.get("message")?.as_str()).ok()
    }
}

const KINDS: [&str; 8] =
    ["session", "message", "tombstone", "compaction", "elision", "label", "tag", "head"];

impl Session {
    fn holds(&self, number: Option<u64>) -> bool {
        match number {
            Some(_) => self.numbers.contains(&number),
            None => !self.is_damaged,
        }
    }

    /// Takes a record of the session; the error says why it is dropped.
    fn take(
        &mut self,
        kind: &str,
        record: &Record,
        fields: &Fields,
        report: &mut ImportReport,
    ) -> Result<(), String> {
        let (line, text) = (record.line, record.text.as_str());
        match kind {
            "message" => return self.message(record, fields, report),
            "tombstone" => self.tombstone(line, read(text)?),
            "compaction" => self.compaction(line, text)?,
            "elision" => {
                #[derive(Deserialize)]
                struct Elision {
                    message: MessageId,
                    call: String,
                    marker: String,
                }
                let Elision { message, call, marker } = read(text)?;
                self.draft.attached.push((line, Stored::Elision { message, call, marker }));
            }
            "tag" => self.draft.attached.push((line, Stored::Tag(read::<MessageTag>(text)?))),
            "label" => {
                let Label { name, id: target, .. } = read(text)?;
                self.draft.labels.push(DraftLabel { name, target, line });
            }
            "head" => {
                let head = fields.text("id").map(MessageId::from);
                self.draft.is_at_start = head.is_none();
                self.draft.head = head;
            }
            _ => return Err("a record of an unknown type".to_owned()),
        }
        self.draft.records += 1;
        report.converted += 1;
        Ok(())
    }

    fn message(
        &mut self,
        record: &Record,
        fields: &Fields,
        report: &mut ImportReport,
    ) -> Result<(), String> {
        // A message that is read without an id is given a new one.
        #[derive(Deserialize)]
        struct Named {
            #[serde(rename = "id")]
            _id: MessageId,
        }
        let json = fields.get("message").ok_or("it has no message")?;
        read::<Named>(json.as_str())?;
        let message: Message = read(json.as_str())?;
        let id = message.id.clone();
        id.check().map_err(|error| error.to_string())?;
        if CompactionId::from_message(&id).is_some() {
            return Err(format!("{id:?} is the id of a summary"));
        }
        let mut parent = message.parent.clone();
        if let Some(number) = fields.get("below") {
            match number.as_str().parse().ok().and_then(|number| self.tombstones.get(&number)) {
                Some(place) => parent = Some(place.clone()),
                None => {
                    report.remark(record.line, format!("tombstone {number} is not in the file"));
                }
            }
        }
        self.draft.bytes += record.text.len();
        let body = match self.draft.bytes > MAX_BYTES {
            true => Body::There(record.place()),
            false => Body::Here(Box::new(message)),
        };
        self.draft.push(Node::new(id, parent, record.line, fingerprint(json.as_str()), body));
        Ok(())
    }

    /// Adds a node in the place of a deleted message. It is named after the compactions that start and end there.
    fn tombstone(&mut self, line: u64, found: Found) {
        let Found { number, parent, below, starts, ends } = found;
        let names = starts.iter().map(CompactionId::as_str).chain([""]);
        let names: Vec<&str> = names.chain(ends.iter().map(CompactionId::as_str)).collect();
        let id: MessageId = derive(&[&["tombstone"], &names[..]].concat()).to_string().into();
        let above = below.and_then(|number| self.tombstones.get(&number)).cloned();
        self.tombstones.insert(number, id.clone());
        let record = Stored::Tombstone { number, parent: None, below: None, starts, ends };
        let body = Body::Tombstone(Box::new(record));
        self.draft.push(Node { is_hidden: true, ..Node::new(id, above.or(parent), line, 0, body) });
    }

    fn compaction(&mut self, line: u64, text: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Ends {
            first_tombstone: Option<u64>,
            last_tombstone: Option<u64>,
        }
        let Ends { first_tombstone, last_tombstone } = read(text)?;
        let known = |number: &u64| self.tombstones.contains_key(number);
        let record = Stored::Compaction {
            compaction: read(text)?,
            first_tombstone: first_tombstone.filter(known),
            last_tombstone: last_tombstone.filter(known),
        };
        self.draft.attached.push((line, record));
        Ok(())
    }
}

/// The record of the place of a deleted message.
#[derive(Deserialize)]
struct Found {
    number: u64,
    parent: Option<MessageId>,
    below: Option<u64>,
    #[serde(default)]
    starts: Vec<CompactionId>,
    #[serde(default)]
    ends: Vec<CompactionId>,
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
