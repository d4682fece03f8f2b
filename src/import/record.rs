//! Parsing the lines of an export.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::compaction::Compaction;
use crate::export::Counts;
use crate::id::{CompactionId, MessageId, SessionId};
use crate::message::{Json, Message};
use crate::outcome::{Label, MessageTag, SessionDetails};
use crate::storage::context::Elision;

/// The UUID namespace of derived names.
const NAMESPACE: Uuid = Uuid::from_u128(0x7461_6c6b_7472_4565_a5d6_9f0e_1c3b_5a77);

/// One line, parsed as far as its type.
pub(super) enum Record<'a> {
    /// The beginning of an export, with its version.
    Header(f64),
    /// The end of an export, with its counts and its checksum.
    End { counts: Counts, checksum: String },
    /// Part of a session, with the number of the session.
    Of(Kind, Option<u64>, &'a str),
}

/// The type of a record of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Message,
    Tombstone,
    Compaction,
    Elision,
    Label,
    Tag,
    Head,
    Unknown,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Message => "message",
            Self::Tombstone => "tombstone",
            Self::Compaction => "compaction",
            Self::Elision => "elision",
            Self::Label => "label",
            Self::Tag => "tag",
            Self::Head => "head",
            Self::Unknown => "unknown",
        }
    }
}

impl<'a> Record<'a> {
    /// Returns what the line is; the error says why it is damaged.
    pub(super) fn of(line: &'a str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(borrow, rename = "type")]
            kind: Option<Cow<'a, str>>,
            // What is no number is none: the rest of the record may be sound.
            #[serde(borrow)]
            session: Option<&'a RawValue>,
            format: Option<serde::de::IgnoredAny>,
        }
        let damaged = |error: serde_json::Error| format!("damaged JSON: {error}");
        if !line.starts_with('{') {
            return Err(match serde_json::from_str::<serde::de::IgnoredAny>(line) {
                Ok(_) => "a record is a JSON object; this is none".to_owned(),
                Err(error) => damaged(error),
            });
        }
        let envelope: Envelope<'_> = match serde_json::from_str(line) {
            Ok(envelope) => envelope,
            // Sound JSON with a type that is no text.
            Err(error) if error.is_data() => Envelope { kind: None, session: None, format: None },
            Err(error) => return Err(damaged(error)),
        };
        if envelope.format.is_some() {
            return Ok(Self::header(line));
        }
        let kind = match envelope.kind.as_deref() {
            Some("end") => return Ok(Self::end(line)),
            Some("session") => Kind::Session,
            Some("message") => Kind::Message,
            Some("tombstone") => Kind::Tombstone,
            Some("compaction") => Kind::Compaction,
            Some("elision") => Kind::Elision,
            Some("label") => Kind::Label,
            Some("tag") => Kind::Tag,
            Some("head") => Kind::Head,
            _ => Kind::Unknown,
        };
        let session = envelope.session.and_then(|number| number.get().parse().ok());
        Ok(Self::Of(kind, session, line))
    }

    fn header(line: &str) -> Self {
        #[derive(Deserialize)]
        struct Header {
            version: f64,
        }
        Self::Header(serde_json::from_str(line).map_or(0.0, |header: Header| header.version))
    }

    fn end(line: &str) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct End {
            sessions: u64,
            messages: u64,
            compactions: u64,
            labels: u64,
            checksum: String,
        }
        // A missing or invalid field reads as 0, so it differs from the counted value and is
        // reported.
        let end: End = serde_json::from_str(line).unwrap_or_default();
        let End { sessions, messages, compactions, labels, checksum } = end;
        Self::End { counts: Counts { sessions, messages, compactions, labels }, checksum }
    }
}

/// Parses the session of a line; the error says why it is invalid.
pub(super) fn session(line: &str) -> Result<(SessionId, SessionDetails), String> {
    #[derive(Deserialize)]
    struct Session {
        id: SessionId,
        name: Option<String>,
        parent_session: Option<SessionId>,
        fork_point: Option<MessageId>,
        model: Option<String>,
        source: Option<String>,
        metadata: Option<Json>,
        end_reason: Option<String>,
        owner: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        is_pinned: Option<bool>,
        ended_at: Option<DateTime<Utc>>,
        created_at: Option<DateTime<Utc>>,
        updated_at: Option<DateTime<Utc>>,
    }
    let session: Session = read(line)?;
    session.id.check().map_err(|error| error.to_string())?;
    // A store of a former version may have empty ones.
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let details = SessionDetails {
        name: session.name,
        parent_session: session.parent_session,
        fork_point: session.fork_point,
        model: given(session.model),
        source: given(session.source),
        metadata: session.metadata,
        end_reason: given(session.end_reason),
        owner: session.owner,
        tags: session.tags,
        is_pinned: session.is_pinned,
        ended_at: session.ended_at,
        created_at: session.created_at,
        updated_at: session.updated_at,
    };
    Ok((session.id, details))
}

/// What `hidden` was called in exports of version 1.
const HIDDEN_IN_VERSION_1: &str = "aside";

/// A message of a line.
pub(super) struct Placed {
    pub(super) message: Message,
    /// Distinguishes it from other content under the same id.
    pub(super) mark: u64,
    /// The number of the tombstone between it and its parent.
    pub(super) below: Option<u64>,
}

/// A tombstone of a line.
#[derive(Deserialize)]
pub(super) struct Tombstone {
    pub(super) number: u64,
    pub(super) parent: Option<MessageId>,
    pub(super) below: Option<u64>,
    #[serde(default)]
    pub(super) starts: Vec<CompactionId>,
    #[serde(default)]
    pub(super) ends: Vec<CompactionId>,
}

/// A compaction of a line, with the numbers of the tombstones at its ends.
pub(super) struct Ranged {
    pub(super) compaction: Compaction,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
}

/// A record of a session, parsed.
pub(super) enum Part {
    Message(Placed),
    Tombstone(Tombstone),
    Compaction(Ranged),
    Elision(Elision),
    Label(Label),
    Tag(MessageTag),
    Head(Option<MessageId>),
}

/// Parses a record of a session that is not its first; the error says why it is invalid.
pub(super) fn part(kind: Kind, line: &str, version: u32) -> Result<Part, String> {
    match kind {
        Kind::Message => message(line, version).map(Part::Message),
        Kind::Tombstone => read(line).map(Part::Tombstone),
        Kind::Compaction => compaction(line).map(Part::Compaction),
        Kind::Elision => read(line).map(Part::Elision),
        Kind::Label => label(line).map(Part::Label),
        Kind::Tag => read(line).map(Part::Tag),
        Kind::Head => head(line).map(Part::Head),
        Kind::Session | Kind::Unknown => Err("a record of an unknown type".to_owned()),
    }
}

/// Parses the message of a line.
pub(super) fn message(line: &str, version: u32) -> Result<Placed, String> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
        below: Option<u64>,
    }
    // A message that is read without an id is given a new one.
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "id")]
        _id: MessageId,
    }
    let Line { message: json, below } = read(line)?;
    read::<Named>(json.get())?;
    let mut message: Message = read(json.get())?;
    if version == 1
        && let Some(hidden) = message.extra.remove(HIDDEN_IN_VERSION_1)
    {
        message.is_hidden = read(hidden.as_str())?;
    }
    message.id.check_for_writing().map_err(|error| error.to_string())?;
    Ok(Placed { message, mark: mark(json.get()), below })
}

/// Returns whether a record is a message, or the place of a deleted one, that is below no other.
pub(super) fn is_root(kind: Kind, line: &str, version: u32) -> bool {
    match part(kind, line, version) {
        Ok(Part::Message(Placed { message, below, .. })) => {
            message.parent.is_none() && below.is_none()
        }
        Ok(Part::Tombstone(Tombstone { parent, below, .. })) => parent.is_none() && below.is_none(),
        _ => false,
    }
}

/// Reads the compaction of a line.
fn compaction(line: &str) -> Result<Ranged, String> {
    #[derive(Deserialize)]
    struct Line {
        id: CompactionId,
        first: MessageId,
        last: MessageId,
        summary: String,
        #[serde(default)]
        count: u64,
        #[serde(default)]
        tokens_before: u64,
        #[serde(default)]
        tokens_after: u64,
        /// `folds` in version 1.
        #[serde(default, alias = "folds")]
        nested: Vec<CompactionId>,
        model: Option<String>,
        details: Option<Json>,
        created_at: Option<DateTime<Utc>>,
        first_tombstone: Option<u64>,
        last_tombstone: Option<u64>,
    }
    let line: Line = read(line)?;
    let mut compaction = Compaction::new(line.summary, line.first, line.last);
    compaction.id = line.id;
    compaction.count = line.count;
    compaction.tokens_before = line.tokens_before;
    compaction.tokens_after = line.tokens_after;
    compaction.nested = line.nested;
    compaction.model = line.model;
    compaction.details = line.details;
    compaction.created_at = line.created_at.unwrap_or(compaction.created_at);
    Ok(Ranged { compaction, first: line.first_tombstone, last: line.last_tombstone })
}

/// Reads the label of a line.
pub(super) fn label(line: &str) -> Result<Label, String> {
    #[derive(Deserialize)]
    struct Line {
        name: String,
        id: MessageId,
    }
    read(line).map(|Line { name, id }| Label { name, id })
}

/// Parses the position of the head.
pub(super) fn head(line: &str) -> Result<Option<MessageId>, String> {
    #[derive(Deserialize)]
    struct Line {
        id: Option<MessageId>,
    }
    read(line).map(|Line { id }| id)
}

/// Returns an id derived from these texts.
pub(super) fn derive(texts: &[&str]) -> Uuid {
    // Each text has its length before it, so no two lists of texts give the same bytes.
    let name: String = texts.iter().map(|text| format!("{}:{text}", text.len())).collect();
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

fn mark(text: &str) -> u64 {
    derive(&[text]).as_u64_pair().0
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
