//! A page after the last one: how many results there are, and on how many pages.

use talktree::Search;

use super::Args;
use super::grouped::{GROUPED, groups};
use crate::failure::Result;
use crate::text::plural;

/// Up to how many results are counted.
const COUNTED: usize = 1_000;

/// Returns what to say about a page without results; `None` if the first page has none either.
pub(super) fn text(search: Search, args: &Args) -> Result<Option<String>> {
    let search = search.offset(0).limit(if args.group { GROUPED } else { COUNTED });
    let (count, noun, is_partial) = if args.sessions {
        let found = search.by_session().run()?;
        (found.sessions.len(), "session", found.is_partial)
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
