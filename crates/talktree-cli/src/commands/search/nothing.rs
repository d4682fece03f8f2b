//! What to say if a search finds nothing: other searches that find something, or that a page is after the last one.

use std::time::Duration;

use talktree::search::Alternative;
use talktree::{MessageId, Search, SessionId};

use super::print::{GROUPED, groups};
use super::{Scope, SearchArgs};
use crate::prelude::*;

/// How long each attempt to find a proposal may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A search that finds something.
#[derive(Serialize)]
pub(super) struct Proposal {
    widening: Wider,
    query: String,
    session: Option<SessionId>,
    branch: Option<MessageId>,
    owner: Option<String>,
    author: Option<String>,
    tags: Vec<String>,
}

impl Proposal {
    fn new(scope: &Scope<'_>, widening: Wider, query: String) -> Self {
        let session = scope.session.map(|session| session.id().clone());
        let SearchArgs { owner, author, tag, .. } = scope.args.clone();
        Self { widening, query, session, branch: scope.leaf.cloned(), owner, author, tags: tag }
    }
}

/// How a proposal differs from the search that found nothing.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Wider {
    Query(&'static str),
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
pub(super) fn nothing_found(proposals: &[Proposal], args: &SearchArgs) -> String {
    let mut text = "nothing found".to_owned();
    if !proposals.is_empty() {
        text += "; this finds something:";
    }
    for Proposal { widening, query, session, branch, .. } in proposals {
        let widening = match widening {
            Wider::Query(widening) if args.session.is_some() && session.is_none() => {
                format!("{widening}, in all sessions")
            }
            Wider::Query(widening) => widening.to_string(),
            Wider::Scope(WiderScope::WholeSession) => "in the whole session".to_owned(),
            Wider::Scope(WiderScope::AllSessions) => "in all sessions".to_owned(),
        };
        let proposed = SearchArgs {
            // The filters of the options are in the query.
            query: Some(query.clone()).filter(|query| !query.is_empty()).into_iter().collect(),
            session: args.session.clone().filter(|_| session.is_some()),
            branch: args.branch.clone().filter(|_| branch.is_some()),
            role: Vec::new(),
            after: None,
            before: None,
            column: None,
            page: 1,
            offset: 0,
            ..args.clone()
        };
        text += &format!("\n  {widening}: {}", proposed.line(false));
    }
    text
}

/// Up to how many results are counted.
const COUNTED: usize = 1_000;

/// Returns what to say about a page without results; `None` if the first page has none either.
pub(super) fn beyond(search: Search, args: &SearchArgs) -> Result<Option<String>> {
    let search = search.offset(0).limit(if args.group { GROUPED } else { COUNTED });
    let (count, noun, is_partial) = if args.sessions {
        let found = search.run_by_session()?;
        (found.hits.len(), "session", found.is_partial)
    } else {
        let found = search.run()?;
        match args.group {
            true => (groups(&found.hits).len(), "session", found.is_partial),
            false => (found.hits.len(), "message", found.is_partial),
        }
    };
    if count == 0 {
        return Ok(None);
    }
    let results = plural(count as u64, noun);
    let place = match args.offset {
        0 => format!("on page {}", args.page),
        offset => format!("after the first {}", plural(offset as u64, "result")),
    };
    let pages = plural(count.div_ceil(args.limit) as u64, "page");
    let total = match args.offset {
        _ if is_partial || count == COUNTED => format!("{results} or more"),
        0 => format!("{results}, on {pages}"),
        _ => results,
    };
    Ok(Some(format!("nothing {place}: the search finds {total}")))
}
