//! The three trees: very long, very wide, very branchy.

use std::path::Path;

use talktree::{Durability, Message, MessageId, Session, Store};

use super::Args;
use crate::Result;

/// How many messages are written at a time.
const BATCH: usize = 10_000;

/// A function that grows a tree in a file.
pub(super) type Shape = fn(&Args, &Path) -> Result<GrownTree>;

/// A tree and the expected results of verbs.
pub(super) struct GrownTree {
    pub(super) store: Store,
    pub(super) chat: Session,
    pub(super) messages: usize,
    pub(super) leaves: usize,
    /// Messages on the path to `last`.
    pub(super) length: usize,
    pub(super) root: MessageId,
    /// A message on the path to `last` that has children.
    pub(super) middle: MessageId,
    pub(super) children_of_middle: usize,
    /// The leaf of the longest path, which is the head.
    pub(super) last: MessageId,
}

fn open(path: &Path) -> Result<(Store, Session)> {
    let store = Store::options().durability(Durability::Normal).open(path)?;
    let chat = store.session("s")?;
    Ok((store, chat))
}

fn message(n: usize) -> Message {
    let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
    Message::new(role, vec![talktree::Part::text(format!("message {n} of many"))]).with_id(name(n))
}

fn name(n: usize) -> MessageId {
    n.to_string().into()
}

/// Grows one path.
pub(super) fn path(args: &Args, path: &Path) -> Result<GrownTree> {
    let (store, chat) = open(path)?;
    let count = args.messages;
    for start in (0..count).step_by(BATCH) {
        chat.append_all((start..count.min(start + BATCH)).map(message))?;
    }
    Ok(GrownTree {
        store,
        chat,
        messages: count,
        leaves: 1,
        length: count,
        root: name(0),
        middle: name(count / 2),
        children_of_middle: 1,
        last: name(count - 1),
    })
}

/// Grows one message with many answers.
pub(super) fn children(args: &Args, path: &Path) -> Result<GrownTree> {
    let (store, chat) = open(path)?;
    let count = args.children;
    let root = chat.append(message(0))?.id;
    for start in (1..=count).step_by(BATCH) {
        let numbers = start..=count.min(start + BATCH - 1);
        chat.import_messages(numbers.map(|n| (Some(root.clone()), message(n))))?;
    }
    let last = name(count);
    chat.checkout(&last)?;
    Ok(GrownTree {
        store,
        chat,
        messages: count + 1,
        leaves: count,
        length: 2,
        middle: root.clone(),
        root,
        children_of_middle: count,
        last,
    })
}

/// Grows a path with one more answer to each of its messages.
pub(super) fn branches(args: &Args, path: &Path) -> Result<GrownTree> {
    let (store, chat) = open(path)?;
    let count = args.branches;
    chat.append_all((0..count).map(message))?;
    for start in (0..count).step_by(BATCH) {
        let numbers = start..count.min(start + BATCH);
        chat.import_messages(numbers.map(|n| (Some(name(n)), message(count + n))))?;
    }
    // The second answer to the last message of the path.
    let last = name(2 * count - 1);
    chat.checkout(&last)?;
    Ok(GrownTree {
        store,
        chat,
        messages: 2 * count,
        leaves: count,
        length: count + 1,
        root: name(0),
        middle: name(count / 2),
        children_of_middle: 2,
        last,
    })
}
