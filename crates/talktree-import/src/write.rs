//! Stores one conversation: its nodes in order and in bounded transactions, then compactions,
//! labels and the head.

use std::collections::HashSet;

use talktree::import::ImportReport;
use talktree::{ImportRecord, Result, SessionId, Store};

use crate::ImportOptions;
use crate::details::set_missing_details;
use crate::draft::{Draft, Reader};
use crate::noted::Past;
use crate::records::Records;
use crate::work::{Fate, Work, with_missing_parent};

/// How many messages go into one transaction ..
const MAX_BATCH: usize = 1_000;
/// .. and how many bytes of records, so that long messages do not pile up in memory.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Stores conversations, or predicts the result for a dry run.
pub(crate) struct Writer<'a> {
    pub(crate) store: &'a Store,
    pub(crate) options: &'a ImportOptions,
    pub(crate) is_dry: bool,
    /// Fails when the import is to stop.
    pub(crate) check: &'a dyn Fn() -> Result<()>,
    /// The sessions that are in the report already.
    pub(crate) named: HashSet<SessionId>,
}

impl Writer<'_> {
    /// Stores a conversation; `hear` receives the number of finished nodes.
    pub(crate) fn write(
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
        let Draft { details, nodes, compactions, labels, head, line, orphans, .. } = draft;
        let mut work = Work::new(&session, report, nodes, has_messages);
        work.connect(orphans)?;
        if has_messages
            && self.options.session.is_none()
            && let Some(why) = work.conflict(records, reader)?
        {
            work.refuse(line, &why);
            return Ok(());
        }
        let past = match self.is_dry {
            true => Past { is_new: info.is_none(), is_open: info.is_none() },
            false => work.begin(info.is_some())?,
        };
        self.write_messages(&mut work, records, reader, hear)?;

        let has_added = work.fates.contains(&Fate::Added);
        let is_open = past.is_open || has_added;
        self.add_compactions(&mut work, compactions, past)?;
        self.set_labels(&mut work, labels)?;
        if self.is_dry {
            return Ok(());
        }
        if is_open {
            work.move_head(head)?;
        }
        let told = std::mem::take(&mut work.told);
        set_missing_details(&session, details, told, info.as_ref(), past, has_added)?;
        // Changes no time of the session.
        work.end()
    }

    fn write_messages(
        &mut self,
        work: &mut Work<'_>,
        records: &mut Records<'_>,
        reader: &dyn Reader,
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
                let keeps_source = self.options.keeps_source;
                let Some(mut message) = work.message(node, records, reader, keeps_source)? else {
                    continue;
                };
                work.told.hear(&message);
                if work.orphans.contains(&node) {
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

/// Turns an error of the record alone into the reason why it is dropped.
pub(crate) fn refusal(result: Result<()>) -> Result<std::result::Result<(), String>> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.is_refused() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
