//! Searches to propose instead of one that found nothing. Each was tried and finds something.

use std::time::Duration;

use serde::Serialize;
use talktree::search::{Alternative, Widening};
use talktree::{MessageId, SessionId};

use super::{Args, Scope};
use crate::failure::Result;
use crate::shell::quote;
use crate::suggestion::{command, option};

/// How long each attempt to find a proposal may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A search that finds something.
#[derive(Serialize)]
pub(super) struct Proposal {
    widening: Wider,
    query: String,
    session: Option<SessionId>,
    branch: Option<MessageId>,
    author: Option<String>,
    tags: Vec<String>,
}

impl Proposal {
    fn new(scope: &Scope<'_>, widening: Wider, query: String) -> Self {
        let session = scope.session.map(|session| session.id().clone());
        let author = scope.author.map(str::to_owned);
        let (branch, tags) = (scope.leaf.cloned(), scope.tags.to_vec());
        Self { widening, query, session, branch, author, tags }
    }
}

/// How a proposal differs from the search that found nothing.
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

/// Returns searches that find something: other queries in the same scope, and the query itself in the next wider scope where
/// it finds something. If there are none, other queries in the whole store.
pub(super) fn proposals(scope: &Scope<'_>, text: &str) -> Result<Vec<Proposal>> {
    let mut all = alternatives(scope, text)?;
    let whole = scope.leaf.map(|_| (WiderScope::WholeSession, Scope { leaf: None, ..*scope }));
    let store = Scope { leaf: None, session: None, ..*scope };
    let everywhere = scope.session.map(|_| (WiderScope::AllSessions, store));
    for (widening, wider) in whole.into_iter().chain(everywhere) {
        if !wider.search(text).limit(1).timeout(TIMEOUT).run()?.hits.is_empty() {
            all.push(Proposal::new(&wider, Wider::Scope(widening), text.to_owned()));
            break;
        }
    }
    if all.is_empty() && scope.session.is_some() {
        all = alternatives(&store, text)?;
    }
    Ok(all)
}

fn alternatives(scope: &Scope<'_>, text: &str) -> Result<Vec<Proposal>> {
    let found = scope.search(text).timeout(TIMEOUT).alternatives()?;
    let proposal =
        |other: Alternative| Proposal::new(scope, Wider::Query(other.widening), other.query);
    Ok(found.into_iter().map(proposal).collect())
}

/// Returns the text for people.
pub(super) fn text(proposals: &[Proposal], args: &Args) -> String {
    let mut text = "nothing found".to_owned();
    if !proposals.is_empty() {
        text += "; this finds something:";
    }
    for Proposal { widening, query, session, branch, author, tags } in proposals {
        let widening = match widening {
            // The options still say where to search.
            Wider::Query(Widening::AnySession) => "without `session:`".to_owned(),
            Wider::Query(widening) if args.session.is_some() && session.is_none() => {
                format!("{widening}, in all sessions")
            }
            Wider::Query(widening) => widening.to_string(),
            Wider::Scope(WiderScope::WholeSession) => "in the whole session".to_owned(),
            Wider::Scope(WiderScope::AllSessions) => "in all sessions".to_owned(),
        };
        text += &format!("\n  {widening}: {}", command("search"));
        let session = args.session.as_ref().filter(|_| session.is_some());
        let branch = args.branch.as_ref().filter(|_| branch.is_some());
        let given = [("session", session), ("branch", branch), ("author", author.as_ref())];
        let given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        for (name, value) in given.chain(tags.iter().map(|tag| ("tag", tag))) {
            text += &format!(" {}", option(name, value));
        }
        text += if args.sessions { " --sessions" } else { "" };
        text += if query.starts_with('-') { " --" } else { "" };
        if !query.is_empty() {
            text += &format!(" {}", quote(query));
        }
    }
    text
}
