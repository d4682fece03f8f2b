//! Storing one conversation: in order, in bounded transactions, and what belongs to it after it.

use std::collections::HashSet;

use super::ImportOptions;
use super::draft::{Draft, Reader};
use super::noted::Past;
use super::records::Records;
use super::report::ImportReport;
use super::work::{Fate, Work, with_missing_parent};
use crate::error::{Error, Result};
use crate::id::{SessionId, check_name};
use crate::outcome::{ImportRecord, SessionDetails, SessionInfo};
use crate::session::Session;
use crate::store::Store;

/// How many messages go into one transaction ..
const MAX_BATCH: usize = 1_000;
/// .. and how many bytes of records, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Stores conversations, or finds out what storing them would do.
pub(super) struct Writer<'a> {
    pub(super) store: &'a Store,
    pub(super) options: &'a ImportOptions,
    pub(super) is_dry: bool,
    /// Fails when the import is to stop.
    pub(super) check: &'a dyn Fn() -> Result<()>,
    /// The sessions that are in the report already.
    pub(super) named: HashSet<SessionId>,
}

impl Writer<'_> {
    /// Stores a conversation; `hear` is told how many nodes are done.
    pub(super) fn write(
        &mut self,
        draft: Draft,
        records: &mut Records<'_>,
        reader: &dyn Reader,
        report: &mut ImportReport,
        hear: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let id = self.options.session.as_ref().unwrap_or(&draft.session).clone();
        let session = self.store.session(&id)?;
        if self.named.insert(id.clone()) {
            report.sessions.push(id);
        }
        let info = session.info()?;
        let has_messages = info.is_some() && session.latest_leaf()?.is_some();
        let Draft { details, nodes, spans, labels, head, line, orphans, is_own, .. } = draft;
        let mut work = Work::new(&session, report, nodes, has_messages);
        work.connect(orphans)?;
        if has_messages
            && self.options.session.is_none()
            && let Some(why) = work.conflict(records, reader)?
        {
            work.refuse(line, &why, &spans, &labels);
            return Ok(());
        }
        let past = match self.is_dry {
            true => Past { is_new: info.is_none(), is_open: info.is_none() },
            false => work.begin(info.is_some())?,
        };
        self.write_messages(&mut work, records, reader, is_own, hear)?;

        let has_added = work.fates.contains(&Fate::Added);
        let is_open = past.is_open || has_added;
        self.add_compactions(&mut work, spans, past)?;
        self.set_labels(&mut work, labels)?;
        if self.is_dry {
            return Ok(());
        }
        if is_open {
            work.move_head(head)?;
        }
        if let Some(why) = set_missing_details(&session, details, info.as_ref(), past)? {
            work.report.fault(line, why);
        }
        work.end()
    }

    fn write_messages(
        &mut self,
        work: &mut Work<'_>,
        records: &mut Records<'_>,
        reader: &dyn Reader,
        is_own: bool,
        hear: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let order = std::mem::take(&mut work.order);
        let mut at = 0;
        while at < order.len() {
            (self.check)()?;
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while at < order.len() && batch.len() < MAX_BATCH && bytes < MAX_BATCH_BYTES {
                let node = order[at];
                at += 1;
                if work.fates[node as usize] == Fate::Gone {
                    continue;
                }
                bytes += work.nodes[node as usize].bytes();
                let keeps_source = self.options.keeps_source && !is_own;
                let mut message = work.message(node, records, reader, keeps_source)?;
                if work.orphans.contains(&node) && !is_own {
                    message = with_missing_parent(message, &work.nodes[node as usize]);
                }
                let record = work.nodes[node as usize].record();
                batch.push((node, ImportRecord { record, parent: None, message }));
            }
            match self.is_dry {
                true => work.rehearse(batch)?,
                false => work.store(batch)?,
            }
            hear(at as u64, order.len() as u64);
        }
        work.order = order;
        Ok(())
    }
}

/// Sets what is not known of the session yet; a name given to it since stays. Returns what cannot be
/// set, and why.
fn set_missing_details(
    session: &Session,
    mut details: SessionDetails,
    before: Option<&SessionInfo>,
    past: Past,
) -> Result<Option<String>> {
    let checked = details.name.as_ref().map(|name| check_name("session name", name));
    let why = checked.and_then(|checked| forgive(checked).ok()?.err());
    if why.is_some() {
        details.name = None;
    }
    let missing = match before {
        None => details,
        Some(info) => SessionDetails {
            name: details.name.filter(|_| info.name.is_none()),
            parent_session: details.parent_session.filter(|_| info.parent_session.is_none()),
            fork_point: details.fork_point.filter(|_| info.fork_point.is_none()),
            model: details.model.filter(|_| info.model.is_none()),
            source: details.source.filter(|_| info.source.is_none()),
            metadata: details.metadata.filter(|_| info.metadata.is_none()),
            end_reason: details.end_reason.filter(|_| info.end_reason.is_none()),
            created_at: details.created_at.filter(|_| past.is_new),
        },
    };
    match before.is_some() && missing == SessionDetails::default() {
        true => Ok(why),
        false => session.set_details(&missing).map(|()| why),
    }
}

/// InProgress an error that speaks of the record alone into the reason it is left out.
pub(super) fn forgive(result: Result<()>) -> Result<std::result::Result<(), String>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(
            error @ (Error::UnknownMessage { .. }
            | Error::NotAncestor { .. }
            | Error::InsideSummary { .. }
            | Error::NothingVisible { .. }
            | Error::SummaryRefused { .. }
            | Error::InvalidName { .. }),
        ) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
