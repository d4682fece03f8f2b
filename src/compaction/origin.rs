//! Where a plan was made.
//!
//! Ids of messages are unique in one session only: a fork has the same ones, and so has a copy in another store. A plan
//! that is committed there would replace messages that its summarizer has not read.

use crate::error::{Error, Result};
use crate::id::SessionId;

/// The session that a plan was made in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanOrigin {
    session: SessionId,
    /// What the storage returns as the session's identity.
    identity: String,
}

impl PlanOrigin {
    pub(crate) fn new(session: SessionId, identity: String) -> Self {
        Self { session, identity }
    }

    /// Checks that a session is the one that the plan was made in.
    pub(crate) fn check(&self, session: &SessionId, identity: &str) -> Result<()> {
        if self.session == *session && self.identity == identity {
            return Ok(());
        }
        let (planned, session) = (self.session.clone(), session.clone());
        Err(Error::PlanOfAnother { planned, session })
    }
}
