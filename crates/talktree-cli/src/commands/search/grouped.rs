//! Hits by session: the best of each, and how many more there are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;
use talktree::{Hit, SessionId, Store};

use super::again::Again;
use super::{Args, Names, show, write};
use crate::context::Context;
use crate::failure::Result;
use crate::style;

/// How many hits are put into groups: as many as most searches rank.
pub(super) const GROUPED: usize = 1_000;

/// The hits of one session.
#[derive(Debug, Serialize)]
pub(super) struct Group<'a> {
    best: &'a Hit,
    /// How many other hits the session has.
    more: usize,
}

/// Returns the hits by session, the session with the best hit first.
pub(super) fn groups(hits: &[Hit]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<&SessionId, usize> = HashMap::new();
    for hit in hits {
        match places.entry(&hit.session) {
            Entry::Occupied(place) => groups[*place.get()].more += 1,
            Entry::Vacant(place) => {
                place.insert(groups.len());
                groups.push(Group { best: hit, more: 0 });
            }
        }
    }
    groups
}

/// Writes groups; returns how to show the best hit of the first.
pub(super) fn print(
    groups: &[Group<'_>],
    store: &Store,
    args: &Args,
    context: &mut Context,
) -> Result<Option<String>> {
    let first = groups.first().map(|group| group.best);
    if context.is_json {
        groups.iter().try_for_each(|group| context.out.json(group))?;
        return Ok(first.map(|hit| show(hit.session.as_str(), hit.id.as_str())));
    }
    let names = Names::of(store, groups.iter().map(|group| group.best))?;
    for Group { best, more } in groups {
        write(&mut context.out, best, &names)?;
        if *more > 0 {
            let again = Again::of(args).within(names.sessions.of(best.session.as_str())).line();
            let text = format!("  {more} more in this conversation: {again}");
            context.out.line(&[(style::FAINT, &text)])?;
        }
        context.out.line(&[])?;
    }
    Ok(first.map(|hit| names.show(hit)))
}
