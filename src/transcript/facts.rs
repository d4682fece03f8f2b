//! The members of an entry that a store and the summary of a session need.

use std::borrow::Cow;

use super::text;
use crate::error::{Error, Result};
use crate::id::shorten;
use crate::message::Json;

/// The members of an entry, as tokens; `None` if a member is null or missing.
pub(crate) struct Facts<'a> {
    pub(super) kind: Option<&'a str>,
    pub(super) timestamp: Option<&'a str>,
    pub(super) is_sidechain: Option<&'a str>,
    pub(super) is_meta: Option<&'a str>,
    pub(super) is_compact_summary: Option<&'a str>,
    pub(super) message: Option<&'a str>,
    pub(super) cwd: Option<&'a str>,
    pub(super) tag: Option<&'a str>,
    /// The members of which a summary keeps the last text, in the order of `LAST_WINS`.
    pub(super) last: [Option<&'a str>; LAST_WINS.len()],
    uuid: Option<&'a str>,
}

/// The members of which a summary keeps the last text, and their names in the summary.
pub(super) const LAST_WINS: [(&str, &str); 5] = [
    ("customTitle", "custom_title"),
    ("aiTitle", "ai_title"),
    ("lastPrompt", "last_prompt"),
    ("summary", "summary_hint"),
    ("gitBranch", "git_branch"),
];

impl<'a> Facts<'a> {
    /// Reads an entry.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not an object.
    pub(crate) fn of(entry: &'a Json) -> Result<Self> {
        let token = entry.as_str();
        if !text::is_object(token) {
            return Err(Error::InvalidValue {
                what: "transcript entry",
                given: shorten(token).into_owned(),
                why: "it is not a JSON object".to_owned(),
            });
        }
        let [first, second, third, fourth, fifth] = LAST_WINS.map(|(name, _)| name);
        let [
            kind,
            timestamp,
            is_sidechain,
            is_meta,
            is_compact_summary,
            message,
            cwd,
            tag,
            uuid,
            a,
            b,
            c,
            d,
            e,
        ] = text::fields(
            token,
            [
                "type",
                "timestamp",
                "isSidechain",
                "isMeta",
                "isCompactSummary",
                "message",
                "cwd",
                "tag",
                "uuid",
                first,
                second,
                third,
                fourth,
                fifth,
            ],
        );
        Ok(Self {
            kind,
            timestamp,
            is_sidechain,
            is_meta,
            is_compact_summary,
            message,
            cwd,
            tag,
            last: [a, b, c, d, e],
            uuid,
        })
    }

    /// Returns the `uuid` in a form in which different ones differ: its text, or its JSON if it has lone surrogates or
    /// begins with a quote. `None` if there is none, or if it is empty or not a string: then the entry is never a copy of
    /// another.
    pub(crate) fn uuid(&self) -> Option<Cow<'a, str>> {
        let bytes = text::decode(self.uuid?).filter(|bytes| !bytes.is_empty())?;
        if bytes.starts_with(b"\"") {
            return Some(Cow::Owned(text::encode(&bytes)));
        }
        Some(match bytes {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(
                String::from_utf8(bytes).unwrap_or_else(|bad| text::encode(bad.as_bytes())),
            ),
        })
    }

    pub(super) fn is_of(&self, kind: &str) -> bool {
        self.kind.is_some_and(|token| text::is_string(token, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_uuids_differ() {
        let uuid = |entry: &str| {
            let entry = Json::parse(entry).unwrap();
            Facts::of(&entry).unwrap().uuid().map(Cow::into_owned)
        };
        assert_eq!(uuid(r#"{"uuid": "a"}"#), uuid(r#"{"uuid": "\u0061"}"#));
        assert_eq!(uuid(r#"{"uuid": ""}"#), None);
        assert_eq!(uuid(r#"{"uuid": 5}"#), None);
        assert_eq!(uuid(r#"{"uuid": "b", "uuid": null}"#), None);
        let (surrogate, quoted) = (r#"{"uuid": "\ud800"}"#, r#"{"uuid": "\"\\ud800\""}"#);
        assert!(uuid(surrogate).is_some() && uuid(surrogate) != uuid(quoted));
        assert_ne!(uuid(surrogate), uuid(r#"{"uuid": "\ufffd"}"#));
    }

    #[test]
    fn an_entry_is_an_object() {
        let entry = Json::parse("[1]").unwrap();
        let error = Facts::of(&entry).map(drop).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"transcript entry "[1]" cannot be used: it is not a JSON object"#
        );
    }
}
