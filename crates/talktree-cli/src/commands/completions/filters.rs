//! Completions of a word of a query: names of filters, and their values.

use talktree::{SessionFilter, SessionInfo, Store};

use crate::context::Context;
use crate::lookup;
use crate::shell::quote;

/// The filters, with the values that need no store.
const FILTERS: &[(&str, &[&str])] = &[
    ("role:", &["user", "assistant", "system", "tool"]),
    ("session:", &[]),
    ("after:", DATES),
    ("before:", DATES),
    ("in:", &["text", "tools", "all"]),
];

const DATES: &[&str] = &["today", "yesterday", "7d", "2w", "3mo", "1y"];

/// How many sessions are proposed.
const MAX_SESSIONS: usize = 50;
/// How many sessions are looked through: those with the newest messages.
const MAX_READ: usize = 10_000;

/// Returns the completions of a word, as whole words. Without a readable store no session is proposed.
pub(super) fn candidates(word: &str, context: &Context) -> Vec<String> {
    let Some((name, value)) = word.split_once(':') else {
        let names = FILTERS.iter().map(|(name, _)| *name);
        return names.filter(|name| name.starts_with(word)).map(str::to_owned).collect();
    };
    if name == "session" {
        let store = context.reader().ok();
        return store.map_or(Vec::new(), |store| sessions(&store, value));
    }
    let of_name = |filter: &&(&str, &[&str])| filter.0.strip_suffix(':') == Some(name);
    let values = FILTERS.iter().find(of_name).map_or(&[][..], |filter| filter.1);
    let fitting = values.iter().filter(|known| known.starts_with(value));
    fitting.map(|known| format!("{name}:{known}")).collect()
}

/// Returns the sessions whose id, or a word of whose name, starts with this text.
fn sessions(store: &Store, start: &str) -> Vec<String> {
    let all = lookup::listed(store, &SessionFilter::default(), MAX_READ).unwrap_or_default();
    let lower = start.to_lowercase();
    let fits = |info: &SessionInfo| {
        let name = info.name.as_deref().unwrap_or_default().to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphanumeric());
        info.id.as_str().starts_with(start) || words.any(|word| word.starts_with(&lower))
    };
    all.iter()
        .map(|listed| &listed.info)
        // Another id would need quotes in a shell.
        .filter(|info| fits(info) && quote(info.id.as_str()) == info.id.as_str())
        .take(MAX_SESSIONS)
        .map(|info| format!("session:{}", info.id))
        .collect()
}
