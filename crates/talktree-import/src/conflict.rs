//! Two sources that claim one session.

use std::collections::HashMap;

use talktree::{MessageId, Result};

use crate::draft::Node;
use crate::fields::Fields;
use crate::work::{MISSING_PARENT, Source, Status, Work};

/// How many messages of the store are compared to decide whether a session is the same
/// conversation.
const MAX_COMPARED: usize = 64;
const NONE_IN_BOTH: &str = "no message is in both";

fn differ(other: usize, equal: usize) -> String {
    format!("{other} of {} messages differ", equal + other)
}

impl Work<'_> {
    /// Returns the reason if the session of the store is another conversation than this one.
    pub(crate) fn conflict(&mut self, source: &mut Source<'_, '_>) -> Result<Option<String>> {
        let (mut equal, mut other) = (0_usize, 0_usize);
        for at in 0..self.order.len() {
            let node = self.order[at];
            if self.statuses[node as usize] == Status::Lost {
                continue;
            }
            let Some(stored) = self.session.message(&self.nodes[node as usize].id)? else {
                continue;
            };
            let Some(record) = self.peek(node, source)? else { continue };
            match stored.role == record.role && stored.text() == record.text() {
                true => equal += 1,
                false => other += 1,
            }
            if equal + other == MAX_COMPARED {
                break;
            }
        }
        if other > equal {
            return Ok(Some(differ(other, equal)));
        }
        if equal > 0 || !self.outside.is_empty() || self.nodes.is_empty() {
            return Ok(None);
        }
        let brings_a_parent = self.session.roots()?.iter().any(|root| {
            let metadata = root.metadata.as_ref().and_then(Fields::of);
            let missing = metadata.and_then(|metadata| metadata.text(MISSING_PARENT));
            missing.is_some_and(|parent| self.index.contains_key(parent.as_str()))
        });
        if brings_a_parent || self.was_imported()? {
            return Ok(None);
        }
        Ok(Some(NONE_IN_BOTH.to_owned()))
    }

    /// Compares the conversation with those of the same session that a dry run has read before, and adds it to them. Returns the
    /// reason if it is another conversation.
    pub(crate) fn foresee(&mut self, seen: &mut HashMap<MessageId, u64>) -> Option<String> {
        let (mut equal, mut other) = (0_usize, 0_usize);
        let before = seen.len();
        for (Node { id, fingerprint, .. }, status) in self.nodes.iter().zip(&self.statuses) {
            match seen.get(id).filter(|_| *status != Status::Lost) {
                Some(known) if known == fingerprint => equal += 1,
                Some(_) => other += 1,
                None => {}
            }
        }
        if other > equal {
            return Some(differ(other, equal));
        }
        let is_known = |node: &Node| node.parent.as_ref().is_some_and(|id| seen.contains_key(id));
        if before > 0 && equal == 0 && !self.nodes.iter().any(is_known) {
            return Some(NONE_IN_BOTH.to_owned());
        }
        for (Node { id, fingerprint, .. }, status) in self.nodes.iter().zip(&mut self.statuses) {
            match seen.get(id) {
                _ if *status == Status::Lost => {}
                Some(known) if known == fingerprint => *status = Status::Known,
                Some(_) => *status = Status::Differs,
                None => drop(seen.insert(id.clone(), *fingerprint)),
            }
        }
        None
    }

    /// Returns whether messages of this conversation were imported before and all deleted since.
    fn was_imported(&self) -> Result<bool> {
        for node in self.order.iter().take(MAX_COMPARED) {
            if self.session.is_imported(&self.nodes[*node as usize].record())? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
