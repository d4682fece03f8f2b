//! What only talktree's own exports say: every detail of a session, compactions between any two places, the places of deleted messages,
//! elisions and tags.
//!
//! Each is stored once: what was removed since it was imported is not added again.

use std::collections::HashMap;

use serde::Deserialize;
use talktree::{
    Compaction, CompactionId, MessageId, MessageTag, Result, Session, SessionDetails, SessionInfo,
    Summary,
};

use crate::draft::Draft;
use crate::record_names::{Past, compaction_record, elision_record, tag_record};
use crate::work::{Fate, Work};
use crate::write::refusal;

/// What only a draft of talktree's own export has.
#[derive(Default)]
pub(crate) struct Exact {
    pub(crate) compactions: Vec<ExactCompaction>,
    pub(crate) elisions: Vec<(u64, Elision)>,
    pub(crate) tags: Vec<(u64, MessageTag)>,
    pub(crate) tombstones: Vec<Tombstone>,
    /// Whether the head is before the first message.
    pub(crate) is_at_start: bool,
    /// The number of its records that are not messages.
    pub(crate) records: u64,
}

/// A marker that replaces the result of a tool call.
#[derive(Deserialize)]
pub(crate) struct Elision {
    pub(crate) message: MessageId,
    pub(crate) call: String,
    pub(crate) marker: String,
}

/// A compaction with the nodes of its ends; its own ends may be deleted messages.
pub(crate) struct ExactCompaction {
    pub(crate) line: u64,
    pub(crate) compaction: Compaction,
    pub(crate) first: MessageId,
    pub(crate) last: MessageId,
}

/// The place of a deleted message: a node that is deleted once the compactions are there.
pub(crate) struct Tombstone {
    pub(crate) id: MessageId,
    /// The compactions that start there, and those that end there.
    pub(crate) starts: Vec<CompactionId>,
    pub(crate) ends: Vec<CompactionId>,
}

impl Draft {
    /// Returns whether the store can create the session as a whole.
    pub(crate) fn is_plain(&self) -> bool {
        let is_summary = |id: &MessageId| CompactionId::from_message(id).is_some();
        let Some(exact) = &self.exact else { return true };
        exact.compactions.is_empty()
            && exact.elisions.is_empty()
            && exact.tags.is_empty()
            && exact.tombstones.is_empty()
            && !exact.is_at_start
            && !self.head.as_ref().is_some_and(is_summary)
    }

    /// Names the places of deleted messages that the store has by the summaries that start or end there.
    pub(crate) fn find_tombstones(&mut self, stored: &Session) -> Result<()> {
        let Some(exact) = &mut self.exact else { return Ok(()) };
        let (mut starts, mut ends) = (HashMap::new(), HashMap::new());
        for tombstone in &exact.tombstones {
            let found = |ids: &[CompactionId]| -> Result<Option<MessageId>> {
                for id in ids {
                    if has(stored, id)? {
                        return Ok(Some(id.as_message()));
                    }
                }
                Ok(None)
            };
            let end = found(&tombstone.ends)?;
            if let Some(start) = found(&tombstone.starts)?.or_else(|| end.clone()) {
                starts.insert(tombstone.id.clone(), start);
            }
            if let Some(end) = end {
                ends.insert(tombstone.id.clone(), end);
            }
        }
        exact.tombstones.retain(|tombstone| !ends.contains_key(&tombstone.id));
        self.nodes.retain(|node| !ends.contains_key(&node.id));
        let rename = |id: &mut MessageId, names: &HashMap<MessageId, MessageId>| {
            if let Some(name) = names.get(id) {
                id.clone_from(name);
            }
        };
        for parent in self.nodes.iter_mut().filter_map(|node| node.parent.as_mut()) {
            rename(parent, &ends);
        }
        for compaction in &mut exact.compactions {
            rename(&mut compaction.first, &starts);
            rename(&mut compaction.last, &ends);
        }
        Ok(())
    }
}

fn has(session: &Session, id: &CompactionId) -> Result<bool> {
    match session.compaction(id) {
        Ok(_) => Ok(true),
        Err(error) if error.is_unknown() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets the details that the session lacks. Comes before its messages: those of a fork are copies if its original is known.
pub(crate) fn set_details(
    session: &Session,
    details: &SessionDetails,
    info: Option<&SessionInfo>,
    has_messages: bool,
) -> Result<()> {
    let missing = match info {
        None => details.clone(),
        Some(info) => {
            let mut missing = details.clone().missing_in(info);
            // A name that it lacks by now was removed, or erased with the message that it was made from.
            missing.name.take_if(|_| has_messages);
            missing
        }
    };
    match info.is_some() && missing == SessionDetails::default() {
        true => Ok(()),
        false => session.set_details(&missing),
    }
}

/// Sets the time of the last write of a session that this import has created.
pub(crate) fn set_time(
    session: &Session,
    details: &SessionDetails,
    info: Option<&SessionInfo>,
    past: Past,
) -> Result<()> {
    let is_own = info.is_none_or(|info| details.created_at == Some(info.created_at));
    match details.updated_at.filter(|_| past.is_open && is_own) {
        None => Ok(()),
        updated_at => {
            session.set_details(&SessionDetails { updated_at, ..SessionDetails::default() })
        }
    }
}

impl Work<'_> {
    /// Stores the records of an export that are neither messages nor labels, and deletes the placeholders of deleted messages.
    pub(crate) fn attach(&mut self, exact: &Exact, is_dry: bool) -> Result<()> {
        for ExactCompaction { line, compaction, first, last } in &exact.compactions {
            let name = compaction_record(&compaction.id);
            let is_known = self.is_remembered(&name)? || has(self.session, &compaction.id)?;
            let added = match is_known {
                true => Ok(()),
                false => self.restore(compaction, first, last, is_dry)?,
            };
            self.settle_attached(*line, name, added, "compaction");
        }
        for (line, elision) in &exact.elisions {
            let name = elision_record(elision);
            let set = match self.is_known(&elision.message, &name, is_dry)? {
                Ok(true) => Ok(()),
                Ok(false) => {
                    let Elision { message, call, marker } = elision;
                    refusal(self.session.import_elision(message, call, marker))?
                }
                Err(why) => Err(why),
            };
            self.settle_attached(*line, name, set, "elision");
        }
        for (line, tag) in &exact.tags {
            let name = tag_record(tag);
            let set = match self.is_known(&tag.message, &name, is_dry)? {
                Ok(true) => Ok(()),
                Ok(false) => refusal(self.session.tag(&tag.message, &tag.tag))?,
                Err(why) => Err(why),
            };
            self.settle_attached(*line, name, set, "tag");
        }
        if is_dry {
            return Ok(());
        }
        let mut there = Vec::new();
        for tombstone in &exact.tombstones {
            if self.session.message(&tombstone.id)?.is_some() {
                there.push(tombstone.id.clone());
            }
        }
        match there.is_empty() {
            true => Ok(()),
            false => self.session.delete(&there).map(drop),
        }
    }

    /// Returns whether nothing is to be done for what refers to a message; the inner error says why nothing can be.
    fn is_known(
        &self,
        message: &MessageId,
        name: &str,
        is_dry: bool,
    ) -> Result<std::result::Result<bool, String>> {
        if !self.index.contains_key(message) {
            return Ok(Err("the message it is of is not in the file".to_owned()));
        }
        Ok(Ok(is_dry || self.is_remembered(name)?))
    }

    fn settle_attached(
        &mut self,
        line: u64,
        name: String,
        set: std::result::Result<(), String>,
        what: &str,
    ) {
        match set {
            Ok(()) => self.record_names.push(name),
            Err(why) => self.lose_attached(line, format!("{what} left out: {why}")),
        }
    }

    /// Notes that a record that refers to messages is not stored.
    pub(crate) fn lose_attached(&mut self, line: u64, why: String) {
        if self.is_exact {
            self.report.converted -= 1;
            self.report.dropped += 1;
        }
        self.report.fault(line, why);
    }

    /// Adds a compaction; the inner error says why it cannot be added.
    fn restore(
        &mut self,
        compaction: &Compaction,
        first: &MessageId,
        last: &MessageId,
        is_dry: bool,
    ) -> Result<std::result::Result<(), String>> {
        for end in [first, last] {
            if !self.index.contains_key(end) && CompactionId::from_message(end).is_none() {
                return Ok(Err(format!("message {end:?} is not in the file")));
            }
        }
        if Summary::new(compaction.summary.as_str()).is_blank() {
            return Ok(Err("its summary is blank".to_owned()));
        }
        if is_dry {
            return Ok(Ok(()));
        }
        let living = match self.index.get(last) {
            Some(at) if self.fates[*at as usize] == Fate::Gone => self.living_parent(*at),
            _ => Some(last.clone()),
        };
        let Some(end) = living else {
            return Ok(Err("all messages it covers are gone".to_owned()));
        };
        let mut compaction = compaction.clone();
        if end != *last {
            compaction.last.clone_from(&end);
        }
        refusal(self.session.restore_compaction(&compaction, first, &end))
    }

    /// Moves the head to where an export has it.
    pub(crate) fn move_exact_head(&self, exact: &Exact, head: Option<&MessageId>) -> Result<()> {
        if exact.is_at_start {
            return match self.session.head()? {
                Some(_) => self.session.checkout_start(),
                None => Ok(()),
            };
        }
        if let Some(id) = head.filter(|id| CompactionId::from_message(id).is_some()) {
            if self.session.head()?.as_ref() == Some(id) {
                return Ok(());
            }
            match self.session.checkout(id) {
                Err(error) if error.is_unknown() => {}
                moved => return moved,
            }
        }
        self.move_head(head)
    }
}
