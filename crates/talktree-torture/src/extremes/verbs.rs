//! Every verb on a large tree, with its expected result.

use talktree::{Budget, DrawOptions, Message, Tree};
use talktree_import::export::{content_hash, export_markdown, export_session};

use super::meter::Meter;
use super::shapes::GrownTree;
use crate::Result;
use crate::compaction::{by_words, options};

fn count(stream: impl Iterator<Item = talktree::Result<Message>>) -> Result<usize> {
    let mut total = 0;
    for message in stream {
        message?;
        total += 1;
    }
    Ok(total)
}

/// Runs every verb that reads.
pub(super) fn read(grown: &GrownTree, meter: &mut Meter<'_>) -> Result<()> {
    let GrownTree { store, chat, messages, leaves, length, root, middle, last, .. } = grown;
    let (messages, length) = (*messages, *length);
    let raw = || chat.at(last).raw();
    meter.check("path_length", length as u64, || Ok(chat.path_length()?))?;
    meter.check("history", length, || Ok(chat.history()?.len()))?;
    meter.check("raw_history", length, || Ok(chat.raw_history()?.len()))?;
    meter.check("history of a path", length, || Ok(chat.at(last).history()?.len()))?;
    meter.check("iter", length, || count(chat.iter()))?;
    meter.check("iter_rev", length, || count(chat.iter_rev()))?;
    meter.check("iter_rev, 10 of it", 10.min(length), || count(chat.iter_rev().take(10)))?;
    meter.check("raw iter", length, || count(raw().iter()))?;
    meter.check("raw iter_rev", length, || count(raw().iter_rev()))?;
    meter.check("all_messages", messages, || count(chat.all_messages()))?;
    meter.check("recent", 50.min(length), || {
        Ok(chat.recent(Budget::messages(50))?.messages.len())
    })?;
    meter.check("page", 50.min(length), || Ok(chat.page().limit(50).run()?.messages.len()))?;
    meter.check("page before", true, || {
        Ok(chat.page().before(middle).run()?.messages.len() <= length)
    })?;
    meter
        .check("page after", true, || Ok(!chat.page().after(middle).run()?.messages.is_empty()))?;
    meter.check("row_stats", length, || Ok(chat.row_stats()?.len()))?;
    meter.check("is_on_path", true, || Ok(chat.is_on_path(root)?))?;
    meter.check("is_ancestor", true, || Ok(chat.is_ancestor(root, last)?))?;
    meter
        .check("latest_leaf", Some(last.clone()), || Ok(chat.latest_leaf()?.map(|leaf| leaf.id)))?;
    meter.check("leaves", *leaves, || Ok(chat.leaves()?.len()))?;
    meter.check("roots", 1, || Ok(chat.roots()?.len()))?;
    meter.check("branches", grown.children_of_middle, || Ok(chat.branches(middle)?.len()))?;
    meter.check("siblings", true, || Ok(!chat.siblings(last)?.is_empty()))?;
    let mut tree = Tree::default();
    meter.check("tree", messages as u64, || {
        tree = chat.tree()?;
        Ok(tree.messages)
    })?;
    meter.check("drawing", true, || Ok(tree.lines(&DrawOptions::default()).count() > 1))?;
    meter.check("drawing of everything", true, || {
        Ok(tree.lines(&DrawOptions::everything()).count() >= *leaves)
    })?;
    drop(tree);
    let sink = std::io::sink;
    meter.time("export_jsonl", || Ok(export_session(chat, &mut sink())?))?;
    meter.time("export_markdown", || Ok(export_markdown(&chat.path(), &mut sink())?))?;
    meter.time("content_hash", || Ok(content_hash(store)?))?;
    meter.check("first search", false, || {
        Ok(store.search("\"message 7\"").run()?.hits.is_empty())
    })?;
    meter.check("search for a word in every message", false, || {
        Ok(store.search("many").run()?.hits.is_empty())
    })?;
    meter.check("search on a path", false, || {
        Ok(chat.at(last).search("many").run()?.hits.is_empty())
    })?;
    meter.check("search_sessions", 1, || Ok(store.search("many").run_by_session()?.hits.len()))?;
    meter.check("sessions", 1, || Ok(store.sessions()?.len()))?;
    meter.check("stats", length as u64, || Ok(store.stats()?.max_depth))?;
    meter.check("verify", messages as u64, || {
        let verified = store.verify(|_| {})?;
        match verified.damages.first() {
            Some(damage) => Err(format!("{damage:?}").into()),
            None => Ok(verified.messages),
        }
    })
}

/// Runs every verb that writes; those that delete come last.
pub(super) fn write(grown: &GrownTree, meter: &mut Meter<'_>) -> Result<()> {
    let GrownTree { store, chat, messages, length, root, middle, last, .. } = grown;
    let length = *length;
    let new = || Message::user("one more");
    meter.time("append", || Ok(chat.append(new().with_id("more"))?))?;
    meter.time("append_to the middle", || Ok(chat.append_to(middle, new().with_id("hidden"))?))?;
    meter.check("delete of a leaf", 2, || {
        Ok(chat.delete([&"more".into(), &"hidden".into()])?.messages.len())
    })?;
    meter.time("checkout", || Ok(chat.checkout(last)?))?;
    meter.check("undo_head", true, || Ok(chat.undo_head()?))?;
    meter.check("redo_head", true, || Ok(chat.redo_head()?))?;
    meter.time("label", || Ok(chat.label("here", middle)?))?;
    meter.check("labelled", Some(middle.clone()), || Ok(chat.labelled("here")?))?;
    meter.check("update", true, || {
        Ok(chat.update(Message::user("otherwise").with_id(root.clone()))?.is_changed)
    })?;
    let tokens: u64 = chat.history()?.iter().map(Message::tokens).sum();
    meter.check("visible_tokens, first count", tokens, || Ok(chat.visible_tokens()?))?;
    meter.check("visible_tokens, stored", tokens, || Ok(chat.visible_tokens()?))?;
    let words = by_words(store, chat.id().as_str())?;
    meter.check("visible_tokens with another counter", true, || Ok(words.visible_tokens()? > 0))?;
    meter.time("recount_tokens", || Ok(store.recount_tokens()?))?;
    meter.check("visible_tokens, recounted", tokens, || Ok(chat.visible_tokens()?))?;
    if let Ok(plan) = meter.time("plan_compaction", || Ok(chat.plan_compaction(&options())?))? {
        let compacted = meter.time("commit", || Ok(chat.commit(plan, "In brief.")?))?;
        meter.check("history with a compaction", true, || Ok(chat.history()?.len() < length))?;
        meter.time("remove_compaction after a commit", || {
            Ok(chat.remove_compaction(&compacted.id)?)
        })?;
    }
    meter.time("plan_branch_summary", || Ok(chat.plan_branch_summary(root, &options())?))?;
    let next = meter.time("compact_and_split", || Ok(chat.compact_and_split("In brief.")?))?;
    store.remove(next.id())?;
    let compaction =
        meter.time("add_compaction", || Ok(chat.add_compaction("all of it", root, last)?.id))?;
    meter.check("history with all compacted", 1, || Ok(chat.history()?.len()))?;
    meter.check("iter_rev with all compacted", 1, || count(chat.iter_rev()))?;
    meter.check("expand", length, || Ok(chat.expand_raw(&compaction)?.len()))?;
    let fork = meter.time("fork", || Ok(chat.fork(last, "fork")?))?;
    meter.check("history of the fork", length, || Ok(fork.raw_history()?.len()))?;
    meter.time("remove", || Ok(store.remove(fork.id())?))?;
    meter.time("remove_compaction", || Ok(chat.remove_compaction(&compaction)?))?;
    meter.time("rebuild_search", || Ok(store.rebuild_search()?))?;
    meter.check("delete of the root", 1, || Ok(chat.delete([root])?.messages.len()))?;
    meter.check("raw_history without the root", length - 1, || {
        Ok(chat.at(last).raw_history()?.len())
    })?;
    // `middle` may be the root, which is a tombstone now.
    let top = if root == middle { last } else { middle };
    meter.check("delete_branch", true, || Ok(!chat.delete_branch(top)?.messages.is_empty()))?;
    meter.check("messages left", true, || Ok(count(chat.all_messages())? < *messages))?;
    meter.time("clear", || Ok(chat.clear()?))?;
    meter.check("all_messages after clear", 0, || count(chat.all_messages()))?;
    meter.time("append after clear", || Ok(chat.append(new())?))?;
    meter.check("verify at the end", Vec::new(), || Ok(store.verify(|_| {})?.damages))
}
