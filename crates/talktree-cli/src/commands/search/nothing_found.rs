//! What a search that found nothing could be instead. Each answer was tried and finds something.

use std::time::Duration;

use serde::Serialize;
use talktree::search::{Alternative, Widening};
use talktree::{MessageId, SessionId};

use super::{Args, Scope};
use crate::failure::Result;
use crate::shell::quote;

/// How long the answers may be looked for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A search that finds something.
#[derive(Serialize)]
pub(super) struct Instead {
    widening: Wider,
    query: String,
    session: Option<SessionId>,
    branch: Option<MessageId>,
}

/// How it differs from the search that found nothing.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Wider {
    Query(Widening),
    Scope(WiderScope),
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum WiderScope {
    WholeSession,
    AllSessions,
}

/// Returns searches that find something: in the scope, in the next wider one in which the query itself finds something,
/// or as the last choice in the whole store.
pub(super) fn instead(scope: &Scope<'_>, text: &str) -> Result<Vec<Instead>> {
    let mut all = alternatives(scope, text)?;
    let whole = scope.leaf.map(|_| (WiderScope::WholeSession, Scope { leaf: None, ..*scope }));
    let store = Scope { leaf: None, session: None, ..*scope };
    let everywhere = scope.session.map(|_| (WiderScope::AllSessions, store));
    for (widening, wider) in whole.into_iter().chain(everywhere) {
        if !wider.search(text).limit(1).timeout(TIMEOUT).run()?.hits.is_empty() {
            let session = wider.session.map(|session| session.id().clone());
            let (widening, query) = (Wider::Scope(widening), text.to_owned());
            all.push(Instead { widening, query, session, branch: None });
            break;
        }
    }
    if all.is_empty() && scope.session.is_some() {
        all = alternatives(&store, text)?;
    }
    Ok(all)
}

fn alternatives(scope: &Scope<'_>, text: &str) -> Result<Vec<Instead>> {
    let found = scope.search(text).timeout(TIMEOUT).alternatives()?;
    let instead = |other: Alternative| Instead {
        widening: Wider::Query(other.widening),
        query: other.query,
        session: scope.session.map(|session| session.id().clone()),
        branch: scope.leaf.cloned(),
    };
    Ok(found.into_iter().map(instead).collect())
}

/// Returns what people are told.
pub(super) fn text(instead: &[Instead], args: &Args) -> String {
    let mut text = "nothing found".to_owned();
    if !instead.is_empty() {
        text += "; this finds something:";
    }
    for Instead { widening, query, session, branch } in instead {
        let widening = match widening {
            Wider::Query(widening) => widening.to_string(),
            Wider::Scope(WiderScope::WholeSession) => "in the whole session".to_owned(),
            Wider::Scope(WiderScope::AllSessions) => "in all sessions".to_owned(),
        };
        text += &format!("\n  {widening}: talktree search ");
        let given = |name: &str, value: &Option<String>, is_kept: bool| {
            let value = value.as_ref().filter(|_| is_kept);
            value.map_or(String::new(), |value| format!("--{name} {} ", quote(value)))
        };
        text += &given("session", &args.session, session.is_some());
        text += &given("branch", &args.branch, branch.is_some());
        text += if args.sessions { "--sessions " } else { "" };
        text += if query.starts_with('-') { "-- " } else { "" };
        text += &quote(query);
    }
    text
}
