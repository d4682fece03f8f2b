//! All that a store holds, as one text: to tell whether two stores hold the same.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use talktree::Store;

/// Returns all that a store holds, but for the times at which sessions were made and written to.
///
/// # Errors
/// As every read.
pub fn snapshot(store: &Store) -> talktree::Result<String> {
    let mut text = String::new();
    let mut sessions = store.sessions()?;
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    for info in sessions {
        let session = store.session(info.id.clone())?;
        let (id, name, parent) = (&info.id, &info.name, &info.parent_session);
        let metadata = info.metadata.as_ref().map(|json| json.as_str().to_owned());
        let _ = writeln!(text, "session {id} {name:?} {parent:?} {metadata:?}");
        for message in session.all_messages() {
            let message = message?;
            let parent = message.parent.clone();
            let json = serde_json::to_string(&message).unwrap_or_default();
            let _ = writeln!(text, "message {parent:?} {json}");
        }
        for compaction in session.compactions()? {
            let (first, last) = (&compaction.first, &compaction.last);
            let (id, summary) = (&compaction.id, &compaction.summary);
            let _ = writeln!(text, "compaction {id} {first} {last} {summary}");
        }
        for label in session.labels()? {
            let _ = writeln!(text, "label {} {}", label.name, label.id);
        }
        let _ = writeln!(text, "head {:?}", session.head()?);
    }
    Ok(text)
}

/// Returns a number for a text, the same in every run.
pub fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
