//! Drift: which blocks differ from the frozen prompt.

use std::collections::HashMap;

use crate::storage::context::PromptSection;

/// A block that differs from the frozen prompt: its text there and its text now.
///
/// ```
/// use talktree::{Block, DriftKind, Store};
///
/// let store = Store::open_in_memory()?;
/// let context = store.context("assistant").block("memory", Block::stored()).cached_prompt().open()?;
/// context.set("memory", "Likes tea.")?;
/// context.prompt()?;
/// context.set("memory", "Likes coffee.")?;
///
/// let drift = &context.drift()?[0];
/// assert_eq!((drift.label.as_str(), drift.kind), ("memory", DriftKind::Changed));
/// assert_eq!((drift.frozen.as_str(), drift.current.as_str()), ("Likes tea.", "Likes coffee."));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// The label of the block.
    pub label: String,
    /// How the block differs.
    pub kind: DriftKind,
    /// The text in the frozen prompt; empty if the prompt does not have the block.
    pub frozen: String,
    /// The text now; empty if the context no longer has the block.
    pub current: String,
}

/// How a block differs from the frozen prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DriftKind {
    /// Both have the block, with different texts.
    Changed,
    /// The frozen prompt does not have the block.
    Added,
    /// Only the frozen prompt has the block.
    Removed,
}

/// Returns the blocks that differ: those of the current prompt in their order, then those that are gone.
pub(super) fn drifts(frozen: Vec<PromptSection>, current: Vec<PromptSection>) -> Vec<Drift> {
    let labels: Vec<String> = frozen.iter().map(|section| section.label.clone()).collect();
    let mut frozen: HashMap<String, String> =
        frozen.into_iter().map(|section| (section.label, section.content)).collect();
    let mut drifts = Vec::new();
    for PromptSection { label, content: current, .. } in current {
        match frozen.remove(&label) {
            Some(frozen) if frozen == current => {}
            Some(frozen) => {
                drifts.push(Drift { label, kind: DriftKind::Changed, frozen, current });
            }
            None => {
                let (kind, frozen) = (DriftKind::Added, String::new());
                drifts.push(Drift { label, kind, frozen, current });
            }
        }
    }
    for label in labels {
        if let Some(frozen) = frozen.remove(&label) {
            let (kind, current) = (DriftKind::Removed, String::new());
            drifts.push(Drift { label, kind, frozen, current });
        }
    }
    drifts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(texts: &[(&str, &str)]) -> Vec<PromptSection> {
        let section = |(label, content): &(&str, &str)| PromptSection {
            label: (*label).to_owned(),
            header: String::new(),
            content: (*content).to_owned(),
        };
        texts.iter().map(section).collect()
    }

    #[test]
    fn changed_added_and_removed_blocks_have_drifted() {
        let frozen = sections(&[("soul", "same"), ("memory", "tea"), ("old", "gone"), ("x", "")]);
        let current = sections(&[("soul", "same"), ("new", "here"), ("memory", "coffee")]);
        let found = drifts(frozen, current);
        let found: Vec<_> =
            found.iter().map(|d| (&*d.label, d.kind, &*d.frozen, &*d.current)).collect();
        let expected = [
            ("new", DriftKind::Added, "", "here"),
            ("memory", DriftKind::Changed, "tea", "coffee"),
            ("old", DriftKind::Removed, "gone", ""),
            ("x", DriftKind::Removed, "", ""),
        ];
        assert_eq!(found, expected);
    }
}
