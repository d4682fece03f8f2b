//! What the index cannot tell of a match: its exact time, whether it is hidden, its exact characters, whether it is a copy.
//!
//! Copies that forks made of a message count as one match if their content is the same: the original or, if that was deleted, its
//! newest copy.

use rusqlite::{CachedStatement, Connection, params};
use talktree_text::{Columns, Filters, holds_exactly};

use super::super::error::BackendResult;
use super::super::index;
use super::hits;
use super::range::Range;
use crate::tree::Address;

/// What a match must pass besides the expression.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    after: Option<i64>,
    before: Option<i64>,
    roles: Vec<String>,
    /// The keys of the sessions within which copies count as one, as a JSON array; `None` for all.
    sessions: Option<String>,
    /// The authors and the tags, as JSON arrays; `None` for any. A copy may have others than the message.
    authors: Option<String>,
    tags: Option<String>,
    /// What the texts of these columns must contain.
    exact: Vec<String>,
    columns: Columns,
    /// Whether hidden messages are left out, and the range has any.
    omits_hidden: bool,
    /// Whether copies of one message may be in the range.
    pub(super) has_copies: bool,
    /// Whether every match is a hit, so that no message row has to be read.
    pub(super) is_open: bool,
}

/// A match with the columns of its row.
pub(super) struct Matching<'r> {
    pub(super) address: Address,
    pub(super) role: &'r str,
    pub(super) parts: &'r str,
    pub(super) created_at: i64,
    /// Whether it says who wrote it.
    pub(super) has_author: bool,
}

impl Checks {
    pub(super) fn of(
        conn: &Connection,
        (filters, omits_hidden): (&Filters, bool),
        range: &Range,
    ) -> BackendResult<Self> {
        let sessions = match range {
            Range::Sessions(keys) => Some(serde_json::Value::from(keys.as_slice()).to_string()),
            Range::Store { .. } | Range::Path(_) => None,
        };
        // No session contains a message twice.
        let has_copies = !range.is_one_session() && conn.prepare_cached(HAS_COPIES)?.exists([])?;
        let time =
            |time: Option<chrono::DateTime<chrono::Utc>>| time.map(|time| time.timestamp_micros());
        let array = |names: &[String]| {
            (!names.is_empty()).then(|| serde_json::Value::from(names).to_string())
        };
        let (after, before) = (time(filters.after), time(filters.before));
        let omits_hidden = omits_hidden && has_hidden(conn, range)?;
        let is_open = filters.after.is_none_or(index::tell)
            && filters.before.is_none_or(index::tell)
            && filters.exact.is_empty()
            && !omits_hidden
            && !has_copies;
        Ok(Self {
            after,
            before,
            roles: filters.roles.clone(),
            sessions,
            authors: array(&filters.authors),
            tags: array(&filters.tags),
            exact: filters.exact.clone(),
            columns: filters.columns,
            omits_hidden,
            has_copies,
            is_open,
        })
    }

    /// Returns what reads matches that pass.
    pub(super) fn reader<'c>(&self, conn: &'c Connection) -> BackendResult<Reader<'c, '_>> {
        Ok(Reader {
            checks: self,
            row: conn.prepare_cached(ROW[usize::from(self.has_copies)])?,
            hidden: if self.omits_hidden { Some(conn.prepare_cached(HIDDEN)?) } else { None },
        })
    }
}

/// Reads matches.
pub(super) struct Reader<'c, 'k> {
    checks: &'k Checks,
    row: CachedStatement<'c>,
    hidden: Option<CachedStatement<'c>>,
}

impl Reader<'_, '_> {
    /// Returns what `read` makes of a message; `None` if it does not pass.
    pub(super) fn read<T>(
        &mut self,
        address: Address,
        read: impl FnOnce(Matching<'_>) -> BackendResult<T>,
    ) -> BackendResult<Option<T>> {
        let Checks { after, before, roles, sessions, authors, tags, exact, columns, .. } =
            self.checks;
        if let Some(hidden) = &mut self.hidden
            && hidden.exists([address])?
        {
            return Ok(None);
        }
        let mut rows = match self.checks.has_copies {
            true => self.row.query(params![address, after, before, sessions, authors, tags])?,
            false => self.row.query(params![address, after, before])?,
        };
        let Some(row) = rows.next()? else { return Ok(None) };
        let role = row.get_ref(0)?.as_str()?;
        let parts = row.get_ref(1)?.as_str().unwrap_or_default();
        let holds = (roles.is_empty() || roles.iter().any(|wanted| wanted == role))
            && (exact.is_empty() || holds_exactly(&hits::text(parts, *columns), exact));
        if !holds {
            return Ok(None);
        }
        let (created_at, has_author) = (row.get(2)?, row.get(3)?);
        read(Matching { address, role, parts, created_at, has_author }).map(Some)
    }

    /// Returns whether a message passes.
    pub(super) fn passes(&mut self, address: Address) -> BackendResult<bool> {
        Ok(self.checks.is_open || self.read(address, |_| Ok(()))?.is_some())
    }
}

fn has_hidden(conn: &Connection, range: &Range) -> BackendResult<bool> {
    let mut statement = conn.prepare_cached(HAS_HIDDEN)?;
    for (low, high) in range.ranges() {
        if statement.exists([low, high])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// In the index alone: in the row the flag lies behind the content.
pub(in super::super) const HIDDEN: &str =
    "SELECT 1 FROM message INDEXED BY unshown WHERE hidden = 1 AND address = ?1";

pub(in super::super) const HAS_HIDDEN: &str =
    "SELECT 1 FROM message INDEXED BY unshown WHERE hidden = 1 AND address BETWEEN ?1 AND ?2";

pub(in super::super) const HAS_COPIES: &str = "SELECT 1 FROM message WHERE origin IS NOT NULL";

macro_rules! row {
    ($copies:literal) => {
        concat!(
            "SELECT role, parts, created_at, author IS NOT NULL
   FROM message
  WHERE address = ?1
    AND (?2 IS NULL OR created_at >= ?2)
    AND (?3 IS NULL OR created_at < ?3)",
            $copies
        )
    };
}

/// A message in the range of times, and the same if it is no copy of another one in scope.
pub(in super::super) const ROW: [&str; 2] = [
    row!(""),
    row!(
        "
    AND (message.origin IS NULL
         OR NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.address = message.origin
                           AND other.id IS NOT NULL
                           AND (?4 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?4)))
                           AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
                           AND other.role = message.role
                           AND other.parts = message.parts
                           AND (?5 IS NULL OR other.author IN (SELECT value FROM json_each(?5)))
                           AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS wanted
                                            WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                                               WHERE message_tag.address = other.address
                                                                 AND message_tag.tag = wanted.value)))
        AND NOT EXISTS (SELECT 1 FROM message AS other
                         WHERE other.origin = message.origin
                           AND other.address > message.address
                           AND (?4 IS NULL OR other.address >> 32 IN (SELECT value FROM json_each(?4)))
                           AND other.address >> 32 NOT IN (SELECT key FROM session WHERE deleted_at IS NOT NULL)
                           AND other.role = message.role
                           AND other.parts = message.parts
                           AND (?5 IS NULL OR other.author IN (SELECT value FROM json_each(?5)))
                           AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS wanted
                                            WHERE NOT EXISTS (SELECT 1 FROM message_tag
                                                               WHERE message_tag.address = other.address
                                                                 AND message_tag.tag = wanted.value))))"
    ),
];
