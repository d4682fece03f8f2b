//! Conversations without an id.
//!
//! Such a conversation is found by its content and its number in the file: the same messages are the same session,
//! whatever the file is called. The id comes from the opening. Many conversations begin alike: if another session has the
//! same opening, the id comes from the first message that differs, and all before it. A file that was imported before
//! keeps its session, even if its end has changed: then the new end becomes a branch.

use crate::report::ImportReport;
use talktree::{Result, Session, SessionId};

use crate::draft::{Node, Unnamed, derive};
use crate::write::Writer;

impl Unnamed {
    /// Returns the record name that says which file a session comes from; none if the file has no name.
    pub(crate) fn record(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(format!("{}#file", derive(&[self.format, file, &self.count.to_string()])))
    }

    /// Returns the id of a session that begins with these messages.
    fn session(&self, nodes: &[Node]) -> SessionId {
        let opening: Vec<u64> = nodes.iter().map(|node| node.fingerprint).collect();
        let texts = [self.format, &format!("{opening:x?}"), &self.count.to_string()];
        derive(&texts).to_string().into()
    }
}

impl Writer<'_> {
    /// Returns the session that a conversation without an id belongs to.
    pub(crate) fn find_session(
        &mut self,
        unnamed: &Unnamed,
        nodes: &[Node],
        report: &mut ImportReport,
    ) -> Result<SessionId> {
        let record = unnamed.record();
        let mut length = unnamed.opening.min(nodes.len());
        loop {
            let id = unnamed.session(&nodes[..length]);
            self.flush_if_waiting(&id, report)?;
            let session = self.store.session(&id)?;
            if session.info()?.is_none() {
                return Ok(id);
            }
            if let Some(record) = &record
                && session.is_imported(record)?
            {
                return Ok(id);
            }
            let common = common(&session, nodes)?;
            let is_apart = common >= length && common < nodes.len();
            if !is_apart || has_ended(&session, &nodes[common - 1])? {
                return Ok(id);
            }
            length = common + 1;
        }
    }
}

/// Returns how many of the first messages were imported into the session.
fn common(session: &Session, nodes: &[Node]) -> Result<usize> {
    let (mut known, mut unknown) = (0, nodes.len());
    while known < unknown {
        let middle = known + (unknown - known) / 2;
        match session.is_imported(&nodes[middle].record())? {
            true => known = middle + 1,
            false => unknown = middle,
        }
    }
    Ok(known)
}

/// Returns whether nothing follows this message in the session.
fn has_ended(session: &Session, last: &Node) -> Result<bool> {
    match session.branches(&last.id) {
        Ok(children) => Ok(children.is_empty()),
        // It was deleted.
        Err(error) if error.is_unknown() => Ok(true),
        Err(error) => Err(error),
    }
}
