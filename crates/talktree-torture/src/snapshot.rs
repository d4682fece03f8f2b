//! All that a store holds, as one text: to tell whether two stores hold the same.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use talktree::{Part, Session, Store};

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
        for message in session.history()? {
            // What a model sees of tools: some of it may be hidden.
            let shown = message.parts.iter().filter(|part| matches!(part, Part::Tool(_)));
            let json = serde_json::to_string(&shown.collect::<Vec<_>>()).unwrap_or_default();
            let _ = writeln!(text, "shown {} {json}", message.id);
        }
        write_context(&mut text, &session)?;
    }
    Ok(text)
}

/// Writes what is stored of a session's context.
fn write_context(text: &mut String, session: &Session) -> talktree::Result<()> {
    let context = session.context();
    for (label, block) in context.stored()? {
        context.add(&label, block)?;
        let Some(block) = context.block(&label)? else { continue };
        let _ = writeln!(text, "block {label} {:?}", block.content);
        if block.is_skill || block.is_searchable {
            for info in context.documents(&label)? {
                let content = context.load(&label, &info.key)?;
                let _ = writeln!(text, "document {} {:?} {content:?}", info.key, info.title);
            }
        } else {
            for version in context.versions(&label, None)? {
                let _ = writeln!(text, "version {} {:?}", version.version, version.content);
            }
        }
    }
    let _ = writeln!(text, "frozen {:?}", context.frozen_prompt()?);
    Ok(())
}

/// Returns a number for a text, the same in every run.
pub fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
