//! talktree's own JSON lines, as [`export`](crate::export) writes them.
//!
//! A header with the version; for each session its details, its messages in order of creation,
//! its compactions, labels and head; an end record with counts and a checksum, without which the
//! file was cut off.

use uuid::Uuid;

use super::draft::{
    Body, CompactionEnd, Draft, DraftHead, DraftLabel, Figures, Node, Reader, Span, mark,
    session_id,
};
use super::fields::Fields;
use super::records::Record;
use super::report::ImportReport;
use crate::export::{Counts, FORMAT_VERSION, chain};
use crate::id::{CompactionId, MessageId};
use crate::message::{Message, now};
use crate::outcome::SessionDetails;

/// Reads talktree's own exports.
pub(super) struct Own {
    drafts: Vec<Draft>,
    state: State,
    counts: Counts,
    checksum: Uuid,
    /// Whether a line could not be read; then the checksum tells nothing new.
    is_damaged: bool,
    last_line: u64,
}

#[derive(PartialEq, Eq)]
enum State {
    /// Before a header.
    Outside,
    Inside,
    /// Inside an export of a version that this build does not know.
    Newer,
}

impl Own {
    pub(super) fn new() -> Self {
        Self {
            drafts: Vec::new(),
            state: State::Outside,
            counts: Counts::default(),
            checksum: Uuid::nil(),
            is_damaged: false,
            last_line: 1,
        }
    }

    fn begin(&mut self, record: &Record, header: &Fields, report: &mut ImportReport) {
        self.warn_if_cut(record.line, report);
        (self.counts, self.checksum, self.is_damaged) = (Counts::default(), Uuid::nil(), false);
        let version = header.number("version").unwrap_or_default();
        if version == f64::from(FORMAT_VERSION) {
            self.state = State::Inside;
            self.checksum = chain(self.checksum, &record.text);
            report.converted += 1;
            return;
        }
        self.state = State::Newer;
        let why = format!("an export of version {version}; this build reads {FORMAT_VERSION}");
        report.lose(record.line, why);
    }

    /// Reads a record of an export; the error says why it becomes nothing.
    fn take(&mut self, record: &Record, kind: &str, fields: &Fields) -> Result<(), &'static str> {
        if kind == "session" {
            self.counts.sessions += 1;
            return self.session(record, fields);
        }
        let draft = self.drafts.last_mut().ok_or("it comes before any session")?;
        let id = |name: &str| fields.text(name).map(MessageId::from);
        match kind {
            "message" => {
                self.counts.messages += 1;
                draft.push(node(record, fields)?);
            }
            "compaction" => {
                self.counts.compactions += 1;
                draft.spans.push(Span {
                    id: CompactionId::from(fields.text("id").ok_or("it has no id")?),
                    line: record.line,
                    first: Some(id("first").ok_or("it has no first message")?),
                    last: CompactionEnd::At(id("last").ok_or("it has no last message")?),
                    marker: None,
                    count: fields.number("count").unwrap_or_default() as u64,
                    figures: figures(fields),
                    summary: fields.text("summary").unwrap_or_default(),
                    details: fields.get("details").cloned(),
                    created_at: fields.time("created_at").unwrap_or_else(now),
                });
            }
            "label" => {
                self.counts.labels += 1;
                draft.labels.push(DraftLabel {
                    name: fields.text("name").ok_or("it has no name")?,
                    target: id("id").ok_or("it has no id")?,
                    line: record.line,
                    is_record: true,
                });
            }
            "head" => draft.head = id("id").map_or(DraftHead::Start, DraftHead::At),
            _ => return Err("a record of an unknown type"),
        }
        Ok(())
    }

    fn session(&mut self, record: &Record, fields: &Fields) -> Result<(), &'static str> {
        let id = fields.text("id").ok_or("it has no id")?;
        let mut draft = Draft::new(session_id(id), record.line);
        draft.is_own = true;
        draft.details = SessionDetails {
            name: fields.text("name"),
            parent_session: fields.text("parent_session").map(session_id),
            fork_point: fields.text("fork_point").map(MessageId::from),
            model: fields.text("model"),
            source: fields.text("source"),
            metadata: fields.get("metadata").cloned(),
            end_reason: fields.text("end_reason"),
            created_at: fields.time("created_at"),
        };
        self.drafts.push(draft);
        Ok(())
    }

    fn end(&mut self, record: &Record, fields: &Fields, report: &mut ImportReport) {
        report.converted += 1;
        self.state = State::Outside;
        let told = Counts::of(|name| fields.number(name).map(|count| count as u64));
        if self.is_damaged {
            return;
        }
        if told != self.counts {
            let why = format!("the export holds {}, not {told} as its end says", self.counts);
            report.fault(record.line, why);
        } else if fields.text("checksum") != Some(self.checksum.to_string()) {
            report.fault(record.line, "the checksum does not fit: the export was changed");
        }
    }

    fn warn_if_cut(&self, line: u64, report: &mut ImportReport) {
        if self.state == State::Inside {
            report.fault(line, "the export has no end record: it was cut off");
        }
    }
}

impl Reader for Own {
    fn read(
        &mut self,
        record: &Record,
        fields: Fields,
        report: &mut ImportReport,
    ) -> Option<Draft> {
        report.records += 1;
        self.last_line = record.line;
        if fields.has("format") {
            self.begin(record, &fields, report);
            return None;
        }
        let kind = fields.text("type").unwrap_or_default();
        match self.state {
            State::Newer => {
                report.lose(record.line, "part of an export of an unknown version");
                return None;
            }
            State::Outside => {
                report.lose(record.line, "outside of an export: no header comes before it");
                return None;
            }
            State::Inside => {}
        }
        if kind == "end" {
            self.end(record, &fields, report);
            return None;
        }
        self.checksum = chain(self.checksum, &record.text);
        match self.take(record, &kind, &fields) {
            Ok(()) if matches!(&*kind, "session" | "head") => report.converted += 1,
            // Counted when they are stored.
            Ok(()) => {}
            Err(why) => report.lose(record.line, format!("{kind} record left out: {why}")),
        }
        None
    }

    fn skip(&mut self) {
        self.is_damaged = true;
    }

    fn finish(&mut self, report: &mut ImportReport) -> Vec<Draft> {
        self.warn_if_cut(self.last_line, report);
        std::mem::take(&mut self.drafts)
    }

    fn message(&self, _: &Record, fields: Fields, node: &Node) -> Message {
        // It was read once before.
        let message =
            fields.get("message").and_then(|json| serde_json::from_str(json.as_str()).ok());
        message.unwrap_or_else(|| Message::new("", Vec::new())).with_id(node.id.clone())
    }
}

fn figures(fields: &Fields) -> Figures {
    let number = |name: &str| fields.number(name).unwrap_or_default() as u64;
    let nested = fields.get("nested").and_then(|json| serde_json::from_str(json.as_str()).ok());
    Figures {
        tokens_before: number("tokens_before"),
        tokens_after: number("tokens_after"),
        nested: nested.unwrap_or_default(),
        model: fields.text("model"),
    }
}

fn node(record: &Record, fields: &Fields) -> Result<Node, &'static str> {
    let json = fields.get("message").ok_or("it has no message")?;
    let id = Fields::of(json).and_then(|message| message.text("id"));
    let message: Message =
        serde_json::from_str(json.as_str()).map_err(|_| "its message is of another shape")?;
    let id = MessageId::from(id.ok_or("its message has no id")?);
    id.check_for_writing().map_err(|_| "no message may have its id")?;
    Ok(Node {
        id,
        parent: message.parent,
        line: record.line,
        mark: mark(json.as_str()),
        is_side: false,
        body: Body::there(record),
    })
}
