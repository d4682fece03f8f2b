//! The texts of one block: reading and writing them.

use super::state::{Block, Text};
use crate::storage::context::{Entry, EntryInfo, EntryVersion, NewEntry};

pub(super) fn entry(block: &Block, key: &str) -> Option<Entry> {
    let EntryVersion { version, title, description, content, changed_at } =
        block.get(key)?.present()?.clone();
    let entry = Entry::new(key.to_owned(), content?, version, changed_at);
    Some(Entry { title, description, ..entry })
}

pub(super) fn versions(block: &Block, key: &str) -> Vec<EntryVersion> {
    block.get(key).map(|text| text.versions.clone()).unwrap_or_default()
}

pub(super) fn documents(block: &Block) -> Vec<EntryInfo> {
    let documents = block.iter().filter(|(key, _)| !key.is_empty());
    let info = |(key, text): (&String, &Text)| {
        let present = text.present()?;
        let info = EntryInfo::new(key.clone(), present.version, present.changed_at);
        let (title, description) = (present.title.clone(), present.description.clone());
        Some(EntryInfo { title, description, ..info })
    };
    documents.filter_map(info).collect()
}

/// Puts a text; one that is stored is no new version.
pub(super) fn put(block: &mut Block, new: &NewEntry<'_>, is_searchable: bool) {
    let stored = entry(block, new.key);
    let text = block.entry(new.key.to_owned()).or_default();
    text.is_searchable = is_searchable;
    let is_same = stored.is_some_and(|stored| {
        (stored.title.as_deref(), stored.description.as_deref(), stored.content.as_str())
            == (new.title, new.description, new.content)
    });
    if !is_same {
        let version = text.push(Some(new.content.to_owned()));
        version.title = new.title.map(str::to_owned);
        version.description = new.description.map(str::to_owned);
    }
}

/// Removes a text; returns whether there was one.
pub(super) fn remove(block: &mut Block, key: &str) -> bool {
    match block.get_mut(key) {
        Some(text) if text.present().is_some() => {
            text.push(None);
            true
        }
        _ => false,
    }
}

/// Returns how many of these words a text has.
pub(super) fn matches(entry: &Entry, words: &[String]) -> usize {
    let Entry { key, title, description, content, .. } = entry;
    let title = title.as_deref().unwrap_or_default();
    let description = description.as_deref().unwrap_or_default();
    let text = [key, title, description, content].join("\n").to_lowercase();
    words.iter().filter(|word| text.contains(word.as_str())).count()
}
