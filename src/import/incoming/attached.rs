//! What refers to the messages of a session: elisions, compactions, labels, tags.
//!
//! Each is stored once: what was removed since it was imported is not added again.

use super::{Incoming, Mode};
use crate::compaction::{Compaction, SummaryRefused, is_blank};
use crate::error::{Error, Result};
use crate::id::{CompactionId, MessageId, label_is_id};
use crate::import::record::Ranged;
use crate::import::record_names;
use crate::import::report::ImportReport;
use crate::outcome::{Label, MessageTag};
use crate::storage::context::Elision;

impl Incoming {
    /// Counts a record that was stored and remembers its name, or says why it was not.
    fn settle_attached(
        &mut self,
        line: u64,
        name: String,
        set: std::result::Result<(), String>,
        what: &str,
        report: &mut ImportReport,
    ) {
        match set {
            Ok(()) => {
                report.converted += 1;
                self.closing.push(name);
            }
            Err(why) => report.lose(line, format!("{what}: {why}")),
        }
    }

    pub(super) fn elision(
        &mut self,
        line: u64,
        elision: &Elision,
        report: &mut ImportReport,
    ) -> Result<()> {
        self.store_batch(report)?;
        let Elision { message, call, marker } = elision;
        let record = record_names::elision(elision);
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
        self.settle_attached(line, record, set, "elision left out", report);
        Ok(())
    }

    pub(super) fn compaction(
        &mut self,
        line: u64,
        ranged: &Ranged,
        report: &mut ImportReport,
    ) -> Result<()> {
        let compaction = &ranged.compaction;
        self.store_batch(report)?;
        let name = record_names::compaction(&compaction.id);
        // A compaction that was removed since it was imported is not added again.
        let is_known = self.session.is_imported(&name)?
            || match self.session.compaction(&compaction.id) {
                Ok(_) => true,
                Err(error) if error.is_unknown() => false,
                Err(error) => return Err(error),
            };
        let set = if is_known { Ok(()) } else { self.compact(ranged)? };
        self.settle_attached(line, name, set, "compaction left out", report);
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
        self.store_batch(report)?;
        let Label { name, id } = label;
        let record = record_names::label(label);
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
        self.settle_attached(line, record, set, &format!("label {name:?}"), report);
        Ok(())
    }

    pub(super) fn tag(
        &mut self,
        line: u64,
        found: &MessageTag,
        report: &mut ImportReport,
    ) -> Result<()> {
        self.store_batch(report)?;
        let MessageTag { message, tag } = found;
        let record = record_names::tag(found);
        let set = match () {
            () if !self.entries.contains_key(message) => {
                Err("the message it is of is not in the file".to_owned())
            }
            () if self.mode == Mode::Rehearse || self.session.is_imported(&record)? => Ok(()),
            () => match self.session.tag(message, tag) {
                Err(error) if error.is_unknown() || error.is_refused() => Err(error.to_string()),
                set => set.map(Ok)?,
            },
        };
        self.settle_attached(line, record, set, "tag left out", report);
        Ok(())
    }
}

/// Returns the reason of a refusal, without the name that the report has before it.
fn reason(result: Result<()>) -> std::result::Result<(), String> {
    result.map_err(|error| match error {
        Error::InvalidValue { why, .. } => why,
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
