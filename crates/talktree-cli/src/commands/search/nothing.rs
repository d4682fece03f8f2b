//! What to say if a search finds nothing: other searches that find something, or that a page is after the last one.

use std::time::Duration;

use talktree::Search;
use talktree::search::Alternative;

use super::print::{GROUPED, groups};
use super::{Scope, SearchArgs};
use crate::prelude::*;

/// How long each attempt to find a proposal may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A search that finds something.
pub(super) struct Proposal {
    /// How it differs from the search that found nothing.
    widening: String,
    query: String,
    in_session: bool,
    in_branch: bool,
}

impl Proposal {
    fn new(scope: &Scope<'_>, widening: impl Into<String>, query: String) -> Self {
        let (in_session, in_branch) = (scope.session.is_some(), scope.leaf.is_some());
        Self { widening: widening.into(), query, in_session, in_branch }
    }
}

/// Returns searches that find something: other queries in the same scope, and the query itself in the next wider scope where
/// it finds something. If there are none, other queries in the whole store.
pub(super) fn proposals(scope: &Scope<'_>, text: &str) -> Result<Vec<Proposal>> {
    let mut all = alternatives(scope, text)?;
    let whole = scope.leaf.map(|_| ("in the whole session", Scope { leaf: None, ..*scope }));
    let store = Scope { leaf: None, session: None, ..*scope };
    let everywhere = scope.session.map(|_| ("in all sessions", store));
    for (widening, wider) in whole.into_iter().chain(everywhere) {
        if !wider.search(text).limit(1).timeout(TIMEOUT).run()?.hits.is_empty() {
            all.push(Proposal::new(&wider, widening, text.to_owned()));
            break;
        }
    }
    if all.is_empty() && scope.session.is_some() {
        all = alternatives(&store, text)?;
        all.iter_mut().for_each(|proposal| proposal.widening += ", in all sessions");
    }
    Ok(all)
}

fn alternatives(scope: &Scope<'_>, text: &str) -> Result<Vec<Proposal>> {
    let found = scope.search(text).timeout(TIMEOUT).alternatives()?;
    let proposal = |other: Alternative| Proposal::new(scope, other.widening, other.query);
    Ok(found.into_iter().map(proposal).collect())
}

/// Returns the text for people.
pub(super) fn nothing_found(proposals: &[Proposal], args: &SearchArgs) -> String {
    let mut text = "nothing found".to_owned();
    if !proposals.is_empty() {
        text += "; this finds something:";
    }
    for Proposal { widening, query, in_session, in_branch } in proposals {
        let proposed = SearchArgs {
            // The filters of the options are in the query.
            query: Some(query.clone()).filter(|query| !query.is_empty()).into_iter().collect(),
            session: args.session.clone().filter(|_| *in_session),
            branch: args.branch.clone().filter(|_| *in_branch),
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
