//! The row of a message.
//!
//! Its columns are its place (`address` and `parent`) and three lists: [`Identity`], which never changes;
//! [`Content`], which an update replaces; and [`TokenCount`]. Only a fork, and the import of a fork, set `origin`.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use crate::compaction::{Compaction, is_blank};
use crate::id::{CompactionId, MessageId};
use crate::message::{Json, Message, Role, extra_from_text, parts_from_text};
use crate::sql::{BackendResult, Connection, Read, Row, corrupt, damaged};
use crate::storage::sqlite::tokens::TokenCount;
use crate::tree::{Address, Span};

struct Identity<'r> {
    id: Cow<'r, str>,
    hidden: bool,
    created_at: DateTime<Utc>,
}

columns! {
    identity_columns: Identity<'r> { id, hidden, created_at }
}

/// The text columns that a message is parsed from.
pub(in super::super) struct Content<'r> {
    pub(in super::super) role: Cow<'r, str>,
    pub(in super::super) parts: Cow<'r, str>,
    pub(in super::super) metadata: Option<Cow<'r, str>>,
    pub(in super::super) extra: Option<Cow<'r, str>>,
}

columns! {
    content_columns: Content<'r> { role, parts, metadata, extra }
}

columns! {
    token_columns: TokenCount { tokens, counter }
}

/// The columns of a [`StoredMessage`].
macro_rules! stored_columns {
    () => {
        concat!("address, parent", identity_columns!(names), content_columns!(names))
    };
}

/// A row of the message table. A tombstone has no message.
pub(in super::super) struct StoredMessage {
    pub(in super::super) address: Address,
    pub(in super::super) parent: Option<Address>,
    pub(in super::super) message: Option<Message>,
    /// The size of its parts.
    pub(in super::super) bytes: usize,
}

impl StoredMessage {
    /// Where its id is.
    pub(in super::super) const ID: usize = 2;
    /// Where the columns after `stored_columns!` begin.
    pub(in super::super) const WIDTH: usize =
        2 + <Identity<'_> as Read<'_>>::WIDTH + <Content<'_> as Read<'_>>::WIDTH;

    /// Reads a row of `stored_columns!`. The message's `parent` is not set.
    pub(in super::super) fn read(row: &Row<'_>) -> BackendResult<Self> {
        let address = Address::read(row, 0)?;
        Self::read_at(row, address).map_err(damaged(format_args!(
            "message {} of session {}",
            address.n(),
            address.session()
        )))
    }

    fn read_at(row: &Row<'_>, address: Address) -> BackendResult<Self> {
        let parent = Read::read(row, 1)?;
        if Option::<Cow<'_, str>>::read(row, 2)?.is_none() {
            return Ok(Self { address, parent, message: None, bytes: 0 });
        }
        let Identity { id, hidden, created_at } = Identity::read(row, 2)?;
        let id = MessageId::from(&*id);
        id.check_for_writing().map_err(|error| corrupt(error.to_string()))?;
        let content = Content::of_row(row)?;
        let message = Message {
            id,
            parent: None,
            role: Role::from(&*content.role),
            parts: parts_from_text(&content.parts)?,
            metadata: content.metadata.as_deref().map(Json::parse).transpose()?,
            created_at,
            is_hidden: hidden,
            extra: extra_from_text(content.extra.as_deref())?,
        };
        Ok(Self { address, parent, message: Some(message), bytes: content.parts.len() })
    }
}

impl<'r> Content<'r> {
    /// Reads the content from a row of `stored_columns!`.
    pub(in super::super) fn of_row(row: &'r Row<'_>) -> BackendResult<Self> {
        Self::read(row, StoredMessage::WIDTH - Self::WIDTH)
    }

    /// Returns a copy that outlives the row.
    pub(in super::super) fn into_owned(self) -> Content<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Content {
            role: owned(self.role),
            parts: owned(self.parts),
            metadata: self.metadata.map(owned),
            extra: self.extra.map(owned),
        }
    }
}

/// Stores a message; returns whether its id was free. If that is known, a server is not waited for.
pub(in super::super) fn insert(
    conn: &Connection,
    address: Address,
    parent: Option<Address>,
    message: &Message,
    content: &Content<'_>,
    count: TokenCount,
    is_new: bool,
) -> BackendResult<bool> {
    let identity = Identity {
        id: Cow::Borrowed(message.id.as_str()),
        hidden: message.is_hidden,
        created_at: message.created_at,
    };
    let values = (address, parent, identity, content, count);
    match is_new {
        true => conn.send(INSERT, values).map(|()| true),
        false => Ok(conn.run(INSERT, values)? > 0),
    }
}

pub(in super::super) const INSERT: &str = concat!(
    "INSERT INTO message (address, parent",
    identity_columns!(names),
    content_columns!(names),
    token_columns!(names),
    ") VALUES (?1, ?2",
    identity_columns!(values),
    content_columns!(values),
    token_columns!(values),
    ") ON CONFLICT (session, id) WHERE id IS NOT NULL DO NOTHING"
);

columns! {
    compaction_columns: Compaction {
        id,
        first = first_id,
        last = last_id,
        count,
        tokens_before = before,
        tokens_after = after,
        nested,
        model,
        summary,
        details,
        created_at,
    }
}

/// Returns the SQL that selects spans with their compactions, for a condition and an order.
macro_rules! select_compactions {
    ($condition:literal) => {
        concat!(
            "SELECT key, first, last",
            compaction_columns!(names),
            " FROM compaction ",
            $condition
        )
    };
}

/// Reads the first columns of a row of `select_compactions!`, or a row of `key, first, last`.
impl Read<'_> for Span {
    const WIDTH: usize = 3;

    fn read(row: &Row<'_>, at: usize) -> BackendResult<Self> {
        let (key, first, last) = Read::read(row, at)?;
        Ok(Self { key, first, last })
    }
}

/// Reads the compaction in a row of `select_compactions!`.
pub(in super::super) fn read_compaction(row: &Row<'_>) -> BackendResult<Compaction> {
    let key = i64::read(row, 0)?;
    // The id is the first column of the list.
    let id = CompactionId::read(row, 3).map_err(damaged(format_args!("compaction key {key}")))?;
    let read = || match Compaction::read(row, 3)? {
        compaction if is_blank(&compaction.summary) => Err(corrupt("its summary is blank")),
        compaction => Ok(compaction),
    };
    read().map_err(damaged(format_args!("compaction {id:?}")))
}

/// Stores a compaction. The span's key is not used.
pub(in super::super) fn insert_compaction(
    conn: &Connection,
    session: i64,
    span: Span,
    compaction: &Compaction,
) -> BackendResult<()> {
    conn.run(INSERT_COMPACTION, (session, span.first, span.last, compaction))?;
    Ok(())
}

const INSERT_COMPACTION: &str = concat!(
    "INSERT INTO compaction (session, first, last",
    compaction_columns!(names),
    ") VALUES (?1, ?2, ?3",
    compaction_columns!(values),
    ")"
);
