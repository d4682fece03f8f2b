//! Storing the messages of a session, many in one transaction.

use super::{Incoming, Mode};
use crate::error::{Error, Result};
use crate::id::MessageId;
use crate::import::report::ImportReport;
use crate::outcome::{ImportRecord, Imported};

/// How many messages go into one transaction.
const MAX_BATCH: usize = 1_000;
/// How many bytes of lines go into one transaction, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;

impl Incoming {
    pub(super) fn is_batch_full(&self) -> bool {
        self.batch.len() >= MAX_BATCH || self.batch_bytes >= MAX_BATCH_BYTES
    }

    pub(super) fn store_batch(&mut self, report: &mut ImportReport) -> Result<()> {
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
}
