//! Edits: entries of the source that hide or replace what an earlier message shows to a model.
//!
//! The message stays, hidden. A replacement becomes its child, and its former children become children of the replacement.
//! Of several edits of a message the last one on the path to the head counts. Here an edit counts on all branches. In the
//! source it does not count on a branch that leaves the path before it: then a note says so.

use std::collections::HashMap;

use talktree::{Json, MessageId, Result, Session};

use crate::draft::{Body, Draft, DraftEdit, Node, with_source};
use crate::fields::Fields;
use crate::order::{Shape, arrange};
use crate::report::ImportReport;
use crate::work::{Source, read_again};

/// Applies the edits of a draft. A message that is stored already stays as it is: an import changes no message.
pub(crate) fn apply(
    draft: &mut Draft,
    stored: Option<&Session>,
    source: &mut Source<'_, '_>,
    keeps_source: bool,
    report: &mut ImportReport,
) -> Result<()> {
    let edits = std::mem::take(&mut draft.edits);
    if edits.is_empty() {
        return Ok(());
    }
    let nodes = draft.nodes.iter().enumerate().rev();
    let index: HashMap<MessageId, u32> =
        nodes.map(|(at, node)| (node.id.clone(), at as u32)).collect();
    let parent = |node: &Node| node.parent.as_ref().and_then(|id| index.get(id)).copied();
    let mut parents: Vec<Option<u32>> = draft.nodes.iter().map(parent).collect();
    let (order, _) = arrange(&mut parents);
    let shape = Shape::new(&parents, &order);
    let head = draft.head.as_ref().and_then(|id| index.get(id)).copied();
    let is_on_head_path = |at: u32| head.is_some_and(|head| shape.is_ancestor(at, head));

    // The edit that counts for each message.
    let mut latest: HashMap<u32, (u32, &DraftEdit)> = HashMap::new();
    for edit in &edits {
        let why = match (index.get(&edit.id), index.get(&edit.target)) {
            (Some(&at), Some(&target)) if at == target || !shape.is_ancestor(target, at) => {
                ", which is on another branch"
            }
            (Some(&at), Some(&target)) if is_on_head_path(target) && !is_on_head_path(at) => {
                " on a branch that the head has left"
            }
            (Some(&at), Some(&target)) => {
                latest.insert(target, (at, edit));
                continue;
            }
            _ => ", which is not in the file",
        };
        report.remark(edit.line, format!("it edits message {:?}{why}", edit.target));
    }
    let mut latest: Vec<_> = latest.into_iter().collect();
    latest.sort_unstable_by_key(|(target, _)| *target);
    for (target, (at, edit)) in latest {
        if let Some(session) = stored
            && session.message(&edit.target)?.is_some()
            // An edit that was imported after its message is hidden, in its own place.
            && session.message(&edit.id)?.is_none_or(|edit| edit.is_hidden)
        {
            let done = if edit.is_replacement { "replaced" } else { "hidden" };
            let message = &edit.target;
            let why = format!(
                "message {message:?} was imported before it was {done}, and stays as it is"
            );
            report.remark(edit.line, why);
            continue;
        }
        if shape.has_branch_between(target, at) {
            let why = format!(
                "a branch leaves the path before this edit: message {:?} is edited there, too",
                edit.target
            );
            report.remark(edit.line, why);
        }
        if edit.is_replacement && !replace(draft, target, at, source, keeps_source)? {
            continue;
        }
        draft.nodes[target as usize].is_hidden = true;
    }
    Ok(())
}

/// Puts the replacement of a message in its place; `false` if a record is no longer in the file.
fn replace(
    draft: &mut Draft,
    target: u32,
    at: u32,
    source: &mut Source<'_, '_>,
    keeps_source: bool,
) -> Result<bool> {
    let (target, at) = (target as usize, at as usize);
    let (Body::There(said), Body::There(edited)) =
        (&draft.nodes[target].body, &draft.nodes[at].body)
    else {
        return Ok(false);
    };
    let Some((message, _)) = read_again(&draft.nodes[target], said, source)? else {
        return Ok(false);
    };
    let Some((edit, record)) = read_again(&draft.nodes[at], edited, source)? else {
        return Ok(false);
    };
    let fields = Fields::parse(&record).unwrap_or_default();
    let message = source.reader.replacement(&fields, message).with_id(edit.id).at(edit.created_at);
    let record = Some(record).filter(|_| keeps_source).and_then(|it| Json::parse(&it).ok());
    let message = with_source(message, record.as_ref());
    let (target, edit) = (draft.nodes[target].id.clone(), draft.nodes[at].id.clone());
    let before = draft.nodes[at].parent.replace(target.clone());
    draft.nodes[at].body = Body::Here(Box::new(message));
    // The children of the edit move to its former parent. If that was the message, which is now above the edit, they stay.
    let before = if before.as_ref() == Some(&target) { Some(edit.clone()) } else { before };
    let follower = draft.nodes.iter().find(|node| node.parent.as_ref() == Some(&edit));
    let follower = follower.map(|node| node.id.clone());
    for (_, node) in draft.nodes.iter_mut().enumerate().filter(|(n, _)| *n != at) {
        if node.parent.as_ref() == Some(&target) {
            node.parent = Some(edit.clone());
        } else if node.parent.as_ref() == Some(&edit) {
            node.parent.clone_from(&before);
        }
    }
    if draft.head.as_ref() == Some(&edit) {
        draft.head = before;
    }
    for compaction in draft.compactions.iter_mut().filter(|c| c.kept == edit) {
        compaction.kept = follower.clone().unwrap_or_else(|| compaction.marker.clone());
    }
    Ok(true)
}
