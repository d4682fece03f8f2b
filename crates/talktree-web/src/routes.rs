//! What is asked: the addresses, and their parameters.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use talktree::search::parse_date;
use talktree::{Error, MessageId, Session, SessionInfo};

use crate::server::Page;
use crate::{read, seen, write};

/// What is answered.
pub(crate) enum Answer {
    Json(Value),
    Page { html: String, policy: String },
    File { kind: String, is_shown: bool, bytes: Vec<u8> },
}

/// A status, and why nothing else is answered.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) u16, pub(crate) String);

pub(crate) type Result<T, E = Refused> = std::result::Result<T, E>;

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let status = match &error {
            error if error.is_unknown() => 404,
            error if error.is_refused() => 400,
            error if error.is_retryable() => 503,
            _ => 500,
        };
        Self(status, error.to_string())
    }
}

/// The parameters of an address, or the fields of what is to be written.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(pairs.map(|(name, value)| (decode(name), decode(value))).collect())
    }

    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// Returns a parameter; an empty one is none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(given, value)| given == name && !value.is_empty());
        found.map(|(_, value)| &**value)
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str> {
        self.text(name).ok_or_else(|| Refused(400, format!("{name:?} is missing")))
    }

    pub(crate) fn id(&self, name: &str) -> Option<MessageId> {
        self.text(name).map(MessageId::from)
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    pub(crate) fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let wrong = |_| Refused(400, format!("{name:?} is no such value"));
        self.text(name).map(|value| value.parse().map_err(wrong)).transpose()
    }

    /// Returns how many items are asked for, within a limit.
    pub(crate) fn limit(&self, default: usize, max: usize) -> Result<usize> {
        Ok(self.parsed("limit")?.unwrap_or(default).clamp(1, max))
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<DateTime<Utc>>> {
        let wrong = || Refused(400, format!("{name:?} is no date"));
        self.text(name).map(|date| parse_date(date, Utc::now()).ok_or_else(wrong)).transpose()
    }
}

impl Page {
    /// Returns a session that may be shown.
    pub(crate) fn session(&self, query: &Query) -> Result<(Session, SessionInfo)> {
        let session = self.store.session(query.required("session")?)?;
        let owner = &self.options.owner;
        let info = session.info()?.filter(|info| owner.is_none() || *owner == info.owner);
        // Whether there is one of another owner is not revealed.
        Ok((session, info.ok_or_else(|| Refused(404, "there is no such session".to_owned()))?))
    }
}

pub(crate) fn read(page: &Page, path: &str, query: &Query) -> Result<Answer> {
    let json = match path {
        "api/start" => json!({
            "can_write": page.options.can_write, "owner": page.options.owner,
            "version": env!("CARGO_PKG_VERSION"),
        }),
        "api/sessions" => read::sessions(page, query)?,
        "api/search" => read::search(page, query)?,
        "api/session" => read::session(page, query)?,
        "api/messages" => read::messages(page, query)?,
        "api/expand" => read::expand(page, query)?,
        "api/usage" => read::usage(page, query)?,
        "api/seen" => seen::seen(page, query)?,
        "api/part" => return read::part(page, query),
        _ => return Err(Refused(404, "there is nothing at this address".to_owned())),
    };
    Ok(Answer::Json(json))
}

pub(crate) fn write(page: &Page, path: &str, body: &[u8]) -> Result<Answer> {
    if path != "api/write" {
        return Err(Refused(404, "there is nothing at this address".to_owned()));
    }
    if !page.options.can_write {
        return Err(Refused(
            403,
            "the page is read-only; `talktree serve --write` can write".to_owned(),
        ));
    }
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refused(400, format!("the body is no JSON: {error}")))?;
    let fields = body.as_object().into_iter().flatten();
    let fields =
        fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Ok(Answer::Json(write::write(page, &Query(fields.collect()))?))
}

pub(crate) use read::state;
