//! The row of a session.

use chrono::DateTime;

use super::super::context;
use super::super::usage;
use crate::id::SessionId;
use crate::outcome::{MAX_TAGS, SessionDetails, SessionInfo, too_many_tags};
use crate::sql::{BackendError, BackendResult, Bind, Connection, Read, Row, corrupt, damaged};
use crate::tree::{Address, MAX_SESSIONS};

/// The columns that verbs change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionRow {
    pub(crate) key: i64,
    /// The number of the first message that is not in the search index; `None` if all are.
    ///
    /// Not among the columns that every write stores: an append would have to write to the index of this column.
    pub(in super::super) unindexed: Option<u64>,
    /// The number of the next message.
    pub(in super::super) next: u64,
    pub(crate) head: Option<Address>,
    pub(in super::super) head_position: i64,
    /// How many tokens a model sees on the path to the head.
    pub(in super::super) visible_tokens: CachedCount,
    /// The key of the token counter that counted them.
    pub(in super::super) counter: i64,
    /// How often they were changed by anything but an append at the head.
    pub(in super::super) changes: i64,
    /// How many messages it has, tombstones not counted.
    pub(in super::super) messages: i64,
    /// The time of the message that was appended last.
    pub(in super::super) last_message_at: Option<i64>,
    /// Where lists show it. Not among the columns that every write stores: it is in several indexes.
    pub(in super::super) listed_at: i64,
    /// When it was put into the trash.
    pub(in super::super) deleted_at: Option<i64>,
}

columns! {
    session_columns[key, unindexed, listed_at, deleted_at]: SessionRow {
        next,
        head,
        head_position,
        visible_tokens,
        counter,
        changes,
        messages,
        last_message_at,
    }
}

// The columns that callers set and read.
columns! {
    details_columns[updated_at, tags]: SessionDetails {
        name,
        parent_session,
        fork_point,
        model,
        source,
        metadata,
        end_reason,
        created_at,
        owner,
        is_pinned = pinned,
        ended_at,
    }
}

/// The columns that `read_info` reads.
macro_rules! info_columns {
    () => {
        concat!(
            "session.id, session.key, messages, last_message_at, deleted_at, updated_at,
             (SELECT string_agg(CAST(octet_length(tag) AS TEXT) || ':' || tag, '')
                FROM session_tag
               WHERE session = session.key)",
            details_columns!(names)
        )
    };
}

/// A count that can be computed again: a damaged one reads as missing.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct CachedCount(pub(in super::super) Option<u64>);

impl Read<'_> for CachedCount {
    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        let count: Option<i64> = Read::read(row, at)?;
        Ok(Self(count.and_then(|count| u64::try_from(count).ok())))
    }
}

impl Bind for CachedCount {
    fn bind(
        &self,
        parameters: &mut crate::sql::Parameters<'_, '_>,
        at: usize,
    ) -> BackendResult<usize> {
        self.0.bind(parameters, at)
    }
}

impl SessionRow {
    /// Returns the row of a session without messages that was created at this time.
    pub(in super::super) fn new(key: i64, created_at: i64) -> Self {
        Self {
            key,
            unindexed: None,
            next: 1,
            head: None,
            head_position: 0,
            visible_tokens: CachedCount(Some(0)),
            counter: 0,
            changes: 0,
            messages: 0,
            last_message_at: None,
            listed_at: created_at,
            deleted_at: None,
        }
    }

    /// Notes the time of a message that was appended, in microseconds. A time in the future, which a wrong clock gives, counts
    /// as now.
    pub(in super::super) fn note_message_at(&mut self, created_at: i64) {
        self.last_message_at = Some(created_at.min(now()));
    }

    /// Sets how many tokens a model sees at the head; `None` if that has to be counted.
    pub(in super::super) fn set_visible_tokens(&mut self, tokens: Option<u64>) {
        // A damaged row can make the sum larger than SQLite's integers.
        match tokens.filter(|tokens| i64::try_from(*tokens).is_ok()) {
            Some(tokens) => self.visible_tokens = CachedCount(Some(tokens)),
            None => self.invalidate_visible_tokens(),
        }
    }

    /// Notes that the tokens at the head have to be counted again.
    pub(in super::super) fn invalidate_visible_tokens(&mut self) {
        self.visible_tokens = CachedCount(None);
        self.changes = self.changes.wrapping_add(1);
    }
}

/// No session moves its head as often; sums of positions up to here do not overflow.
const MAX_POSITION: u64 = 1 << 62;

/// Returns the session with this id, if it exists.
pub(in super::super) fn find(
    conn: &Connection,
    id: &SessionId,
) -> BackendResult<Option<SessionRow>> {
    sound(id, conn.first(BY_ID, id))
}

/// Returns the session with this key and id.
pub(in super::super) fn find_by_key(
    conn: &Connection,
    key: i64,
    id: &SessionId,
) -> BackendResult<Option<SessionRow>> {
    sound(id, conn.first(BY_KEY, key))
}

/// Returns a row unless it is damaged.
fn sound(
    id: &SessionId,
    row: BackendResult<Option<SessionRow>>,
) -> BackendResult<Option<SessionRow>> {
    match row.map_err(damaged(format_args!("session {id:?}")))? {
        // Its messages would get addresses of other sessions.
        Some(SessionRow { key, .. }) if !(1..=MAX_SESSIONS).contains(&key) => {
            let what = format!("session {id:?} has the key {key}, outside 1 to {MAX_SESSIONS}");
            Err(corrupt(what))
        }
        Some(SessionRow { head_position: at, .. }) if at.unsigned_abs() > MAX_POSITION => {
            let what = format!("session {id:?} has the head position {at}, over {MAX_POSITION}");
            Err(corrupt(what))
        }
        row => Ok(row),
    }
}

pub(in super::super) const BY_ID: &str = concat!(
    "SELECT key, unindexed, listed_at, deleted_at",
    session_columns!(names),
    " FROM session WHERE id = ?1 /*LOCK session*/"
);

pub(in super::super) const BY_KEY: &str = concat!(
    "SELECT key, unindexed, listed_at, deleted_at",
    session_columns!(names),
    " FROM session WHERE key = ?1 /*LOCK session*/"
);

/// Notes that a write changes what belongs to a session, and nothing in its row: who waits for the row must begin again.
pub(in super::super) fn claim(conn: &Connection, key: i64) -> BackendResult<()> {
    conn.claim("UPDATE session SET next = next WHERE key = ?1", key)
}

/// Stores a changed row and the time of this write.
pub(in super::super) fn store(conn: &Connection, row: &SessionRow) -> BackendResult<()> {
    let now = now();
    conn.send(STORE, (row, now, now, row.key))
}

const STORE: &str = concat!(
    "UPDATE session SET ",
    session_columns!(assign),
    ", updated_at = CASE WHEN updated_at < ? THEN ? ELSE updated_at END WHERE key = ?"
);

/// Stores where lists show a session, if that changed by enough.
///
/// Each change of this column changes several indexes: in a session that is written to many times a second, a few
/// changes are enough, since a list reads as many more rows as this column may be late.
pub(in super::super) fn store_listed_at(
    conn: &Connection,
    row: &mut SessionRow,
) -> BackendResult<()> {
    let Some(last) = row.last_message_at else { return Ok(()) };
    if (row.listed_at..row.listed_at.saturating_add(LISTED_LATE)).contains(&last) {
        return Ok(());
    }
    conn.send("UPDATE session SET listed_at = ?2 WHERE key = ?1", (row.key, last))?;
    row.listed_at = last;
    Ok(())
}

/// How many microseconds `listed_at` may be behind `last_message_at`.
pub(in super::super) const LISTED_LATE: i64 = 100_000;

/// Sets the details that are given.
pub(in super::super) fn set_details(
    conn: &Connection,
    key: i64,
    details: &SessionDetails,
) -> BackendResult<()> {
    if details.owner.is_some() {
        context::thaw_for_owner(conn, key, details.owner.as_deref())?;
    }
    let now = now();
    conn.run(SET_DETAILS, (details, &details.updated_at, now, now, key))?;
    for tag in &details.tags {
        add_tag(conn, key, tag)?;
    }
    if details.owner.is_some() || details.source.is_some() || details.model.is_some() {
        usage::follow(conn, key)?;
    }
    if details.end_reason.is_some() {
        conn.run(
            "UPDATE session SET ended_at = coalesce(ended_at, ?2) WHERE key = ?1",
            (key, details.updated_at.map_or(now, |at| at.timestamp_micros())),
        )?;
    }
    if details.created_at.is_some() {
        conn.run(
            "UPDATE session SET listed_at = created_at WHERE key = ?1 AND last_message_at IS NULL",
            key,
        )?;
    }
    Ok(())
}

const SET_DETAILS: &str = concat!(
    "UPDATE session SET ",
    details_columns!(assign_given),
    "updated_at = coalesce(?, CASE WHEN updated_at < ? THEN ? ELSE updated_at END) WHERE key = ?"
);

/// Adds a tag to a session; one that it has is a no-op.
pub(in super::super) fn add_tag(conn: &Connection, key: i64, tag: &str) -> BackendResult<()> {
    conn.run(
        "INSERT INTO session_tag (session, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        (key, tag),
    )?;
    let count: i64 = conn.one("SELECT count(*) FROM session_tag WHERE session = ?1", key)?;
    match usize::try_from(count).is_ok_and(|count| count <= MAX_TAGS) {
        true => Ok(()),
        false => Err(BackendError::Own(too_many_tags("session", tag))),
    }
}

/// Returns the details of a session.
pub(crate) fn info(conn: &Connection, id: &SessionId) -> BackendResult<Option<SessionInfo>> {
    Ok(info_and_key(conn, id)?.map(|found| found.0))
}

/// Returns the details and the key of a session.
pub(in super::super) fn info_and_key(
    conn: &Connection,
    id: &SessionId,
) -> BackendResult<Option<(SessionInfo, i64)>> {
    conn.first_with(INFO, id, |row| read_info(row, 0))
}

/// Returns the details of the session with this key.
pub(in super::super) fn info_by_key(
    conn: &Connection,
    key: i64,
) -> BackendResult<Option<SessionInfo>> {
    conn.first_with(INFO_BY_KEY, key, |row| Ok(read_info(row, 0)?.0))
}

/// Reads the id of the session with this key.
pub(in super::super) fn read_id(row: &Row<'_>, at: usize, key: i64) -> BackendResult<SessionId> {
    SessionId::read(row, at).map_err(damaged(format_args!("session key {key}")))
}

/// Reads the columns of `info_columns!`, which begin at this one, and the key of the session.
pub(in super::super) fn read_info(row: &Row<'_>, at: usize) -> BackendResult<(SessionInfo, i64)> {
    let key = i64::read(row, at + 1)?;
    let id = read_id(row, at, key)?;
    let info = || {
        let (messages, last_message_at, deleted_at): (i64, _, _) = Read::read(row, at + 2)?;
        let details = SessionDetails::read(row, at + 5)?;
        // Both times are NOT NULL.
        let info = SessionInfo::from_details(id.clone(), details, DateTime::UNIX_EPOCH);
        let messages = u64::try_from(messages).unwrap_or_default();
        Ok((SessionInfo { messages, last_message_at, deleted_at, ..info }, key))
    };
    info().map_err(damaged(format_args!("session {id:?}")))
}

pub(in super::super) const INFO_BY_KEY: &str =
    concat!("SELECT ", info_columns!(), " FROM session WHERE key = ?1");

const INFO: &str = concat!("SELECT ", info_columns!(), " FROM session WHERE id = ?1");

/// For `verify`.
pub(in super::super) const EVERY: &str = concat!("SELECT ", info_columns!(), " FROM session");

/// The session written to last comes first.
pub(in super::super) const ALL: &str = concat!(
    "SELECT ",
    info_columns!(),
    " FROM session WHERE deleted_at IS NULL ORDER BY updated_at DESC, key DESC"
);

/// Returns the current time as rows hold it.
pub(in super::super) fn now() -> i64 {
    crate::clock::now().timestamp_micros()
}
