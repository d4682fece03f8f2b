//! The records of a conversation, in the order in which the store takes them.
//!
//! What refers to messages is found out before the first record: while the store takes records, nothing can be read from it.

use chrono::{DateTime, Utc};
use talktree::{Message, Record, Result, SessionDetails, SessionInfo};

use crate::draft::{Body, Draft, Node, Unnamed};
use crate::fields::{self, Fields};
use crate::redact;
use crate::report::{ImportReport, Sent};
use crate::title::Title;
use crate::work::{MISSING_PARENT, Source, Status, Work};

/// The records of one conversation; the messages are read while the store takes them.
pub(crate) struct Plan<'w, 'a, 's, 'b> {
    work: &'w mut Work<'a>,
    source: Source<'s, 'b>,
    keeps_source: bool,
    check: &'w dyn Fn() -> Result<()>,
    before: Option<SessionInfo>,
    line: u64,
    /// The details to set at the beginning, and those that wait for the end.
    begin: Option<SessionDetails>,
    end: SessionDetails,
    next: usize,
    /// What follows the messages.
    rest: std::vec::IntoIter<(Sent, Record)>,
    head: Option<Record>,
    is_over: bool,
    /// Whether a message is added, and one that is not hidden.
    has_added: bool,
    has_shown: bool,
    title: Option<(u32, Title)>,
    oldest: Option<DateTime<Utc>>,
    newest: Option<DateTime<Utc>>,
    /// What the records so far are in the report.
    pub(crate) sent: Vec<Sent>,
    /// How many bytes were read for them.
    pub(crate) bytes: usize,
}

impl<'w, 'a, 's, 'b> Plan<'w, 'a, 's, 'b> {
    pub(crate) fn new(
        work: &'w mut Work<'a>,
        source: Source<'s, 'b>,
        keeps_source: bool,
        check: &'w dyn Fn() -> Result<()>,
        before: Option<SessionInfo>,
        mut draft: Draft,
    ) -> Result<Self> {
        let mut rest = work.attached_records(&mut draft)?;
        let name = draft.unnamed.as_ref().and_then(Unnamed::record);
        rest.extend(name.map(|name| (Sent::Silent, Record::Imported { name })));
        let head = work.head(&draft)?;
        let (begin, end) = work.details(draft.details, before.as_ref());
        Ok(Self {
            work,
            source,
            keeps_source,
            check,
            before,
            begin: Some(begin),
            line: draft.line,
            end,
            next: 0,
            rest: rest.into_iter(),
            head,
            is_over: false,
            has_added: false,
            has_shown: false,
            title: None,
            oldest: None,
            newest: None,
            sent: Vec::new(),
            bytes: 0,
        })
    }

    /// Returns whether records that were read to the end change nothing.
    pub(crate) fn is_idle(&self, records: &[Record]) -> bool {
        let is_default = |record: &Record| match record {
            Record::Session { details, .. } => *details == SessionDetails::default(),
            _ => false,
        };
        self.before.is_some() && records.iter().all(is_default)
    }

    pub(crate) fn report(&mut self) -> &mut ImportReport {
        self.work.report
    }

    fn message(&mut self) -> Result<Option<(Sent, Record)>> {
        while let Some(&at) = self.work.order.get(self.next) {
            self.next += 1;
            if self.next.is_multiple_of(1_000) {
                (self.check)()?;
            }
            let node = at as usize;
            if let Body::Tombstone(tombstone) = &self.work.nodes[node].body {
                let mut record = (**tombstone).clone();
                if let Record::Tombstone { parent, below, .. } = &mut record {
                    *parent = self.work.living_parent(at);
                    *below = self.work.tombstone_above(at);
                }
                return Ok(Some((Sent::Silent, record)));
            }
            if self.work.statuses[node] == Status::Lost {
                continue;
            }
            self.bytes += self.work.nodes[node].bytes();
            let read = self.work.message(at, &mut self.source, self.keeps_source)?;
            let Some(mut message) = read else { continue };
            // What differs is not sent: its record would be remembered, and the next import say nothing.
            let is_left = matches!(
                self.work.statuses[node],
                Status::Known | Status::Deleted | Status::Differs
            );
            let sent = self.count(at, &message);
            if is_left {
                continue;
            }
            if self.work.orphans.contains(&at) && !self.work.is_exact {
                tell_missing_parent(&mut message, &self.work.nodes[node]);
            }
            message.parent = self.work.living_parent(at);
            let below = self.work.tombstone_above(at);
            let name = Some(self.work.nodes[node].record());
            return Ok(Some((sent, Record::Message { below, message, name })));
        }
        Ok(None)
    }

    /// Notes what a record is in the report, and returns it as it is stored.
    fn sent(&mut self, sent: Sent, mut record: Record) -> Record {
        if self.work.is_redacted {
            redact::record(&mut record, &mut self.work.report.redacted);
        }
        self.sent.push(sent);
        record
    }

    /// Counts a message in the report, and for the details of the session.
    fn count(&mut self, at: u32, message: &Message) -> Sent {
        let (status, is_hidden) = (self.work.statuses[at as usize], message.is_hidden);
        let Node { id, line, .. } = &self.work.nodes[at as usize];
        let (id, line) = (id.clone(), *line);
        self.note(at, message, status == Status::Added);
        let report = self.report();
        if status == Status::Differs {
            let why = format!("message {id:?} is there with other content, which was left");
            report.lose(line, why);
            return Sent::Silent;
        }
        match is_hidden {
            true => report.converted += 1,
            false => report.kept += 1,
        }
        if status != Status::Added {
            report.known += 1;
            return Sent::Silent;
        }
        report.added += 1;
        self.has_added = true;
        self.has_shown |= !is_hidden || self.work.is_exact;
        Sent::Message { line, is_hidden }
    }

    /// Takes times and the title from a message, in any order.
    fn note(&mut self, at: u32, message: &Message, is_added: bool) {
        if self.work.is_exact {
            return;
        }
        let time = Some(message.created_at);
        self.oldest = self.oldest.min(time).or(time);
        self.newest = self.newest.max(time);
        let rank = |(place, title): &(u32, Title)| (!title.is_final(), *place);
        let known = self.title.as_ref().map(rank);
        let is_used = match &self.end.name {
            Some(_) => !is_added,
            // One that lost its name stays without.
            None => {
                let is_new = is_added && !self.work.has_messages;
                is_new && known.is_none_or(|known| known > (false, at))
            }
        };
        if !is_used {
            return;
        }
        let mut title = Title::default();
        title.add(message);
        match is_added {
            // A name that was made from a message of the store was there before: it was changed, or erased with the message.
            false => {
                self.end.name.take_if(|name| title.line() == Some(name));
            }
            true if title.line().is_some() => {
                let found = (at, title);
                if known.is_none_or(|known| rank(&found) < known) {
                    self.title = Some(found);
                }
            }
            true => {}
        }
    }

    /// Returns the details that are set at the end.
    fn last_details(&mut self) -> SessionDetails {
        let mut details = std::mem::take(&mut self.end);
        if self.work.is_exact {
            return details;
        }
        let is_named = self.before.as_ref().is_some_and(|before| before.name.is_some());
        let line = self.title.as_ref().and_then(|(_, title)| title.line()).filter(|_| !is_named);
        details.name = details.name.or_else(|| line.map(str::to_owned));
        let is_new = !self.work.has_messages && (self.has_added || self.before.is_none());
        details.created_at = details.created_at.or(self.oldest).filter(|_| is_new);
        let is_changed = self.before.is_none() || self.has_added;
        if is_changed || details != SessionDetails::default() {
            let newest = self.newest.filter(|_| self.has_added);
            let before = self.before.as_ref().map(|info| info.updated_at);
            details.updated_at = before.into_iter().chain(newest).max();
        }
        details
    }
}

impl Iterator for Plan<'_, '_, '_, '_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(details) = self.begin.take() {
            let id = self.work.session.id().clone();
            return Some(Ok(self.sent(Sent::Silent, Record::Session { id, details })));
        }
        let next = match self.message() {
            Ok(message) => message.or_else(|| self.rest.next()),
            Err(error) => return Some(Err(error)),
        };
        let next = next.or_else(|| {
            // An older copy of a file may add only a hidden entry; the head of that copy is older, too.
            let head = self.head.take();
            let head = head.filter(|_| self.has_shown || !self.work.has_messages);
            Some((Sent::Silent, head?))
        });
        let next = next.or_else(|| {
            let details = match std::mem::replace(&mut self.is_over, true) {
                true => SessionDetails::default(),
                false => self.last_details(),
            };
            let id = self.work.session.id().clone();
            let is_empty = details == SessionDetails::default();
            let sent = Sent::Attached { line: self.line, kind: "details", is_record: false };
            (!is_empty).then_some((sent, Record::Session { id, details }))
        });
        let (sent, record) = next?;
        Some(Ok(self.sent(sent, record)))
    }
}

impl Work<'_> {
    /// Returns the details to set before the messages, and those to set after them.
    fn details(
        &self,
        mut details: SessionDetails,
        before: Option<&SessionInfo>,
    ) -> (SessionDetails, SessionDetails) {
        // No session has an empty one.
        for text in [&mut details.model, &mut details.source] {
            text.take_if(|text| text.is_empty());
        }
        let is_own = before.is_none_or(|info| details.created_at == Some(info.created_at));
        let (created_at, updated_at) = (details.created_at, details.updated_at.take());
        if let Some(before) = before {
            details = details.missing_in(before);
        }
        let mut end = SessionDetails::default();
        if self.is_exact {
            // A name that it lacks by now was removed, or erased with the message that it was made from.
            details.name.take_if(|_| self.has_messages);
            end.updated_at = updated_at.filter(|_| is_own && !self.has_messages);
        } else {
            end.name = details.name.take();
            end.created_at = created_at;
            details.created_at = None;
        }
        (details, end)
    }
}

/// Keeps in a message which parent it lost. Metadata that is no object stays as it is.
fn tell_missing_parent(message: &mut Message, node: &Node) {
    if message.metadata.as_ref().is_none_or(|metadata| Fields::of(metadata).is_some()) {
        let parent = node.parent.as_ref().map(|parent| serde_json::Value::from(parent.as_str()));
        fields::add(&mut message.metadata, Fields::default().with(MISSING_PARENT, parent));
    }
}
