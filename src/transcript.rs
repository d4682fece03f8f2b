//! Transcripts: logs of entries, as agents write them.
//!
//! An *entry* is a JSON object, which is kept as its text; all that is read of it is its `uuid`. A *transcript* is the list
//! of entries under one [`TranscriptKey`]: of a project, a session and a subpath. The one without a subpath is the *main*
//! one of its session. A session of the store may show a transcript: it is *derived* from the entries.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, Result, check_size};
use crate::id::{SessionId, check_length, check_name, shorten};
use crate::message::Json;
use crate::outcome::Record;

/// The maximum size of the entries of one append: 1 GiB of JSON.
///
/// An append is one transaction, and all of it is in the write-ahead log at once.
const MAX_BATCH_BYTES: usize = 1 << 30;

/// The maximum size of a part of a key, in bytes. A project is the path of a folder, and the SDK's stores take long ones.
const MAX_PART_BYTES: usize = 64 << 10;

/// The key under which a transcript is stored: a project, a session and a subpath.
///
/// Each part is any text of up to 64 KiB. Two keys are the same if all three parts are equal,
/// byte for byte, whatever separators they contain.
///
/// ```
/// use talktree::TranscriptKey;
///
/// let main = TranscriptKey::new("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10");
/// let helper = main.clone().subpath("subagents/agent-7f3a");
/// assert!(main.is_main() && !helper.is_main());
/// assert_eq!(helper.subpath(""), main);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct TranscriptKey {
    /// The project: the SDK makes it from the path of a folder.
    pub project: String,
    /// The id of the session: the SDK's are UUIDs.
    pub session: String,
    /// Empty for the main transcript, otherwise such as `subagents/agent-7f3a`.
    pub subpath: String,
}

impl TranscriptKey {
    /// Returns the key of a session's main transcript.
    #[must_use]
    pub fn new(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into(), subpath: String::new() }
    }

    /// Returns the key with this subpath; empty means the main transcript.
    #[must_use]
    pub fn subpath(mut self, subpath: impl Into<String>) -> Self {
        self.subpath = subpath.into();
        self
    }

    /// Returns whether this is the main transcript of its session.
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.subpath.is_empty()
    }

    /// Checks the lengths of the parts.
    pub(crate) fn check(&self) -> Result<()> {
        check_length("project", &self.project, MAX_PART_BYTES)?;
        check_length("transcript's session", &self.session, MAX_PART_BYTES)?;
        check_length("subpath", &self.subpath, MAX_PART_BYTES)
    }
}

/// A transcript without its entries.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StoredTranscript {
    /// Its place in lists of transcripts, which are in order of creation. It is never used again; 0: it is not stored yet.
    pub number: u64,
    /// Its key.
    pub key: TranscriptKey,
    /// Whose data it is.
    pub owner: Option<String>,
    /// How many entries it has. Entries are only deleted with their transcript.
    pub entries: u64,
    /// When an entry was last appended, in milliseconds since 1970.
    pub mtime: i64,
    /// What the last append has [derived](Derived::summary) of the entries, if anything.
    pub summary: Option<Json>,
    /// The session of the store that shows it.
    pub session: Option<SessionId>,
    /// How many of its entries the session shows.
    pub shown: u64,
    /// Whether others have changed the session: they have written to it, or moved its head.
    pub is_session_changed: bool,
}

/// Which transcripts a list shows; by default all.
///
/// ```
/// use talktree::{Json, Store, TranscriptFilter, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts().owned_by("user:42");
/// let entry = Json::parse(r#"{"type": "user"}"#)?;
/// transcripts.append(&TranscriptKey::new("project", "session"), &[entry])?;
/// let filter = TranscriptFilter { owner: Some("user:42".into()), ..TranscriptFilter::default() };
/// assert_eq!(transcripts.list(&filter, None, 20)?[0].key.session, "session");
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptFilter {
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those to which nothing was appended at this time or later, in milliseconds since 1970.
    pub written_before: Option<i64>,
}

/// The result of an append of entries.
///
/// ```
/// use talktree::{Json, Store, TranscriptKey};
///
/// let transcripts = Store::open_in_memory()?.transcripts();
/// let key = TranscriptKey::new("project", "session");
/// let entry = Json::parse(r#"{"type": "user", "uuid": "1"}"#)?;
/// assert_eq!(transcripts.append(&key, &[entry.clone()])?.added, 1);
/// let again = transcripts.append(&key, &[entry])?;
/// assert_eq!((again.added, again.known, again.differing), (0, 1, 0));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AppendedEntries {
    /// The number of entries that were added.
    pub added: u64,
    /// The number of entries that were not, because the transcript has an entry of their `uuid`.
    pub known: u64,
    /// How many of the known ones differ from the entry that is stored.
    pub differing: u64,
}

/// What is written with the entries of an append, in the same transaction: see
/// [`Transcripts::append_with`](crate::Transcripts::append_with).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Derived {
    /// The new summary of the transcript; `None`: it stays.
    pub summary: Option<Json>,
    /// What the session that shows the transcript gets; `None`: no session is written.
    ///
    /// The first record is that of the session. The first time, the session is created, with this id if it is free; otherwise the
    /// id is made of it and the key of the transcript. Details are set and messages are added, each below its parent, or at the
    /// head if its parent is not there; then compactions, and the head is moved if one is given. Other records are not read. A
    /// message or a compaction that the store refuses, because it is too long, say, is left out.
    pub session: Option<Vec<Record>>,
    /// Whether the session's messages are deleted before others are added. Labels stay on the messages of the same ids.
    pub replaces: bool,
}

/// Returns the `uuid` of an entry in a form in which different ones differ: its text, or its JSON if it has lone surrogates or
/// begins with a quote. `None` if there is none, or if it is empty or not a string: then the entry is never a copy of another.
///
/// # Errors
/// [`Error::InvalidValue`] if the entry is not an object.
pub(crate) fn uuid_of(entry: &Json) -> Result<Option<String>> {
    /// What is read of an entry.
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow)]
        uuid: Option<&'a RawValue>,
    }

    let entry = entry.as_str();
    if !entry.starts_with('{') {
        return Err(Error::InvalidValue {
            what: "transcript entry",
            given: shorten(entry).into_owned(),
            why: "it is not a JSON object".to_owned(),
        });
    }
    // With two of them, or with names that no Rust string can have, it counts as one without.
    let members = serde_json::from_str::<Members<'_>>(entry).ok();
    let Some(uuid) = members.and_then(|members| members.uuid).map(RawValue::get) else {
        return Ok(None);
    };
    Ok(match serde_json::from_str::<String>(uuid) {
        Ok(text) if !text.starts_with('"') => Some(text).filter(|text| !text.is_empty()),
        _ => Some(uuid.to_owned()).filter(|uuid| uuid.starts_with('"')),
    })
}

/// Checks the sizes of entries that are to be appended; `max_bytes` is the limit of one.
pub(crate) fn check_sizes(sizes: impl Iterator<Item = usize>, max_bytes: usize) -> Result<()> {
    let mut total = 0_usize;
    for bytes in sizes {
        check_size("a transcript entry", bytes, max_bytes)?;
        total = total.saturating_add(bytes);
    }
    check_size("a batch of transcript entries", total, MAX_BATCH_BYTES)
}

/// Checks the owner that an append names.
///
/// # Errors
/// [`Error::InvalidValue`] if it is empty or too long, or if the transcript has another one.
pub(crate) fn check_owner(given: Option<&str>, stored: Option<&str>) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    check_name("owner", given)?;
    match stored {
        Some(stored) if stored != given => Err(Error::InvalidValue {
            what: "owner",
            given: shorten(given).into_owned(),
            why: "the transcript has another owner".to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_may_have_a_gibibyte() {
        let of = |sizes: &[usize]| check_sizes(sizes.iter().copied(), 1 << 29);
        assert!(of(&[1 << 29, 1 << 29]).is_ok());
        assert_eq!(
            of(&[1 << 29, 1 << 29, 1]).unwrap_err().to_string(),
            "a batch of transcript entries is 1073741825 bytes, over the store's limit of 1073741824"
        );
        assert!(matches!(
            of(&[(1 << 29) + 1]),
            Err(Error::TooLarge { what: "a transcript entry", .. })
        ));
    }

    #[test]
    fn a_part_of_a_key_has_a_limit() {
        let long = "x".repeat(MAX_PART_BYTES);
        assert!(TranscriptKey::new(&long, &long).subpath(&long).check().is_ok());
        for key in [
            TranscriptKey::new(format!("{long}x"), ""),
            TranscriptKey::new("", format!("{long}x")),
            TranscriptKey::new("", "").subpath(format!("{long}x")),
        ] {
            assert!(matches!(key.check(), Err(Error::InvalidValue { .. })));
        }
    }

    #[test]
    fn different_uuids_differ() {
        let uuid = |entry: &str| uuid_of(&Json::parse(entry).unwrap()).unwrap();
        assert_eq!(uuid(r#"{"uuid": "a"}"#), uuid(r#"{"\u0075uid": "\u0061"}"#));
        assert_eq!(uuid(r#"{"uuid": ""}"#), None);
        assert_eq!(uuid(r#"{"uuid": 5}"#), None);
        assert_eq!(uuid(r#"{"uuid": "b", "uuid": null}"#), None);
        let (surrogate, quoted) = (r#"{"uuid": "\ud800"}"#, r#"{"uuid": "\"\\ud800\""}"#);
        assert!(uuid(surrogate).is_some() && uuid(surrogate) != uuid(quoted));
        assert_ne!(uuid(surrogate), uuid(r#"{"uuid": "\ufffd"}"#));
        let deep = format!(r#"{{"deep":{}{},"uuid":"a"}}"#, "[".repeat(9_999), "]".repeat(9_999));
        assert_eq!(uuid(&deep).as_deref(), Some("a"));
        assert_eq!(uuid(r#"{"\ud800":1,"uuid":"a"}"#), None);
    }

    #[test]
    fn an_entry_is_an_object() {
        let error = uuid_of(&Json::parse("[1]").unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"transcript entry "[1]" cannot be used: it is not a JSON object"#
        );
    }
}
