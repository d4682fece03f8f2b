//! Two sources that claim one session.

use talktree::Result;

use crate::fields::Fields;
use crate::work::{MISSING_PARENT, Source, Status, Work};

/// How many messages of the store are compared to decide whether a session is the same
/// conversation.
const MAX_COMPARED: usize = 64;

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
            return Ok(Some(format!("{other} of {} messages differ", equal + other)));
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
        Ok(Some("no message is in both".to_owned()))
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
