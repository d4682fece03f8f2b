//! All that a store holds, as one text: two stores are equal if their snapshots are.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use talktree::{Binding, BindingFilter, Part, Session, Store, TranscriptFilter, UsageGroup};

/// Returns all that a store holds, without the times at which sessions were created and written to and without figures
/// that can be recounted. An id that the library generated is replaced by its number, and its creation time is dropped.
///
/// # Errors
/// As every read.
pub fn snapshot(store: &Store) -> talktree::Result<String> {
    snapshot_of(store, "")
}

/// Returns the same of what belongs to sessions, keys and transcripts whose names begin so.
pub(crate) fn snapshot_of(store: &Store, name: &str) -> talktree::Result<String> {
    let mut text = String::new();
    let mut sessions = store.sessions()?;
    sessions.retain(|info| info.id.as_str().starts_with(name));
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    for info in sessions {
        let session = store.session(info.id.clone())?;
        let (id, name, parent) = (&info.id, &info.name, &info.parent_session);
        let metadata = info.metadata.as_ref().map(|json| json.as_str().to_owned());
        let (fork_point, end) = (&info.fork_point, &info.end_reason);
        let _ =
            writeln!(text, "session {id} {name:?} {parent:?} {fork_point:?} {end:?} {metadata:?}");
        for message in session.all_messages() {
            let mut message = message?;
            if is_generated(message.id.as_str()) {
                message.created_at = Default::default();
            }
            let parent = message.parent.clone();
            let json = serde_json::to_string(&message).unwrap_or_default();
            let _ = writeln!(text, "message {parent:?} {json}");
        }
        for compaction in session.compactions()? {
            let (first, last) = (&compaction.first, &compaction.last);
            let (id, summary, model) = (&compaction.id, &compaction.summary, &compaction.model);
            let _ = writeln!(text, "compaction {id} {first} {last} {summary} {model:?}");
            let (before, after) = (compaction.tokens_before, compaction.tokens_after);
            let (count, compactions) = (compaction.count, &compaction.nested);
            let _ = writeln!(text, "compacted {count} {before} {after} {compactions:?}");
        }
        for label in session.labels()? {
            let _ = writeln!(text, "label {} {}", label.name, label.id);
        }
        let _ = writeln!(text, "head {:?}", session.head()?);
        for message in session.history()? {
            // The tool parts that a model sees; an elision may replace some.
            let shown = message.parts.iter().filter(|part| matches!(part, Part::Tool(_)));
            let json = serde_json::to_string(&shown.collect::<Vec<_>>()).unwrap_or_default();
            let _ = writeln!(text, "shown {} {json}", message.id);
        }
        let _ =
            writeln!(text, "owner {:?} tags {:?} pinned {}", info.owner, info.tags, info.is_pinned);
        write_context(&mut text, &session)?;
    }
    for binding in store.bindings(&BindingFilter::default(), None, usize::MAX)?.iter().rev() {
        let Binding { key, session, end, .. } = binding;
        if key.starts_with(name) {
            let _ = writeln!(text, "binding {key} {session} {end:?}");
        }
    }
    for usage in store.usage().by(UsageGroup::Session).run()? {
        if usage.group.as_deref().unwrap_or_default().starts_with(name) {
            let _ = writeln!(text, "usage {usage:?}");
        }
    }
    let transcripts = store.transcripts();
    for stored in transcripts.list(&TranscriptFilter::default(), None, usize::MAX)? {
        if !stored.key.session.starts_with(name) {
            continue;
        }
        let _ = writeln!(text, "transcript {:?} {:?}", stored.key, stored.owner);
        for entry in transcripts.load(&stored.key)?.into_iter().flatten() {
            let _ = writeln!(text, "entry {}", entry.as_str());
        }
    }
    Ok(without_generated(&text))
}

/// The length of a generated id: a UUID.
const UUID_LENGTH: usize = 36;

/// Returns whether the library generated this id.
fn is_generated(id: &str) -> bool {
    let id = id.as_bytes();
    id.len() == UUID_LENGTH
        && id.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Replaces each generated id by a number, in order of appearance.
fn without_generated(text: &str) -> String {
    let (mut output, mut known) = (String::new(), HashMap::new());
    let mut rest = text;
    while let Some(dash) = rest.find('-') {
        let found = dash.checked_sub(8).and_then(|from| rest.get(from..from + UUID_LENGTH));
        let to = match found.filter(|id| is_generated(id)) {
            Some(id) => {
                output.push_str(&rest[..dash - 8]);
                let next = known.len();
                let _ = write!(output, "<generated: {}>", known.entry(id).or_insert(next));
                dash - 8 + UUID_LENGTH
            }
            None => {
                output.push_str(&rest[..=dash]);
                dash + 1
            }
        };
        rest = &rest[to..];
    }
    output.push_str(rest);
    output
}

/// Writes what is stored of a session's context.
fn write_context(text: &mut String, session: &Session) -> talktree::Result<()> {
    let context = session.context();
    for (label, block) in context.stored()? {
        // Of several texts under a label, a context reads the first.
        let _ = context.add(&label, block);
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

/// Returns a hash of a text, the same in every run.
pub fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_numbered_in_order_of_appearance() {
        let (a, b) =
            ("0192aaaa-0000-7000-8000-00000000000a", "0192aaaa-0000-7000-8000-00000000000b");
        let text = format!("é-x {b} compaction_{a}, {b}- 故宫-{a}");
        let output =
            "é-x <generated: 0> compaction_<generated: 1>, <generated: 0>- 故宫-<generated: 1>";
        assert_eq!(without_generated(&text), output);
        assert_eq!(without_generated("a-b 0192aaaa-0000-7000-8000"), "a-b 0192aaaa-0000-7000-8000");
    }
}
