//! `talktree lineage`: from which session a session was forked, and which were forked from it.

use std::collections::HashSet;

use serde::Serialize;
use talktree::{MessageId, SessionFilter, SessionId, SessionInfo, SessionState, Store};

use crate::context::Context;
use crate::failure::Result;
use crate::text::one_line;
use crate::{lookup, style};

/// Show the sessions that a session was forked from, and those that were forked from it
///
/// The first line is the oldest ancestor; each fork is indented. `*` is the session itself.
#[derive(Debug, clap::Args)]
#[command(override_usage = "talktree lineage [OPTIONS] <SESSION>")]
pub(crate) struct Args {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,
}

/// A session of the chain.
#[derive(Serialize)]
struct Row {
    session: SessionId,
    name: Option<String>,
    parent_session: Option<SessionId>,
    fork_point: Option<MessageId>,
    depth: usize,
    messages: u64,
    is_named: bool,
    is_in_store: bool,
    is_in_trash: bool,
}

impl Row {
    fn new(info: SessionInfo, depth: usize) -> Self {
        Self {
            session: info.id,
            name: info.name,
            parent_session: info.parent_session,
            fork_point: info.fork_point,
            depth,
            messages: info.messages,
            is_named: false,
            is_in_store: true,
            is_in_trash: info.deleted_at.is_some(),
        }
    }

    /// Returns the row of an ancestor that was removed.
    fn removed(session: SessionId) -> Self {
        Self {
            session,
            name: None,
            parent_session: None,
            fork_point: None,
            depth: 0,
            messages: 0,
            is_named: false,
            is_in_store: false,
            is_in_trash: false,
        }
    }
}

pub(crate) fn run(args: Args, context: &mut Context) -> Result<()> {
    let store = context.reader()?;
    let session = lookup::session(&store, &args.session)?;
    let Some(info) = session.info()? else { return Ok(()) };
    let mut rows = ancestors(&store, &info)?;
    for (depth, row) in rows.iter_mut().enumerate() {
        row.depth = depth;
    }
    let depth = rows.len();
    let mut seen: HashSet<SessionId> = rows.iter().map(|row| row.session.clone()).collect();
    seen.insert(info.id.clone());
    // A stack, so that the forks of a fork follow it.
    let mut left = vec![(info, depth)];
    while let Some((info, depth)) = left.pop() {
        for fork in forks(&store, &info.id)? {
            if seen.insert(fork.id.clone()) {
                left.push((fork, depth + 1));
            }
        }
        let is_named = info.id == *session.id();
        rows.push(Row { is_named, ..Row::new(info, depth) });
    }
    for row in &rows {
        if context.is_json {
            context.out.json(row)?;
            continue;
        }
        let state = match row {
            Row { is_in_store: false, .. } => "  removed".to_owned(),
            Row { is_in_trash: true, .. } => "  in the trash".to_owned(),
            Row { fork_point: Some(at), .. } => format!("  at {at}"),
            _ => String::new(),
        };
        let name = row.name.as_deref().map(|name| format!("  {}", one_line(name)));
        context.out.line(&[
            (style::PLAIN, &"  ".repeat(row.depth)),
            (style::MATCH, if row.is_named { "* " } else { "" }),
            (style::ID, row.session.as_str()),
            (style::STRONG, name.as_deref().unwrap_or_default()),
            (style::FAINT, &state),
        ])?;
    }
    Ok(())
}

/// Returns the sessions that a session descends from, the oldest first.
fn ancestors(store: &Store, of: &SessionInfo) -> Result<Vec<Row>> {
    let (mut chain, mut seen) = (Vec::new(), HashSet::from([of.id.clone()]));
    let mut parent = of.parent_session.clone();
    // A program may set any parent, so a circle is possible.
    while let Some(id) = parent.filter(|id| seen.insert(id.clone())) {
        match store.session(id.clone())?.info()? {
            Some(info) => {
                parent = info.parent_session.clone();
                chain.push(Row::new(info, 0));
            }
            None => {
                chain.push(Row::removed(id));
                break;
            }
        }
    }
    chain.reverse();
    Ok(chain)
}

/// Returns the sessions that were forked from a session, the one with the newest message first.
fn forks(store: &Store, id: &SessionId) -> Result<Vec<SessionInfo>> {
    let mut forks = Vec::new();
    for state in [SessionState::Trash, SessionState::Present] {
        let parent_session = Some(id.clone());
        let filter = SessionFilter { parent_session, state, ..SessionFilter::default() };
        let listed = lookup::listed(store, &filter, usize::MAX)?;
        // They go onto a stack.
        forks.extend(listed.into_iter().rev().map(|listed| listed.info));
    }
    Ok(forks)
}
