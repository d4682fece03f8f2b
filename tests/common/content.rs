//! What two stores that saw the same verbs have in common: everything but times, and ids that the stores made.

use serde_json::Value;
use talktree::{Result, Search, Store};
use talktree_import::export::export_jsonl;

/// Returns the content of all sessions, a line for each record.
pub fn content(store: &Store) -> Result<String> {
    let mut exported = Vec::new();
    export_jsonl(store, &mut exported)?;
    let exported = String::from_utf8_lossy(&exported);
    let mut records: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    // The last one is a checksum of all, times included.
    records.pop();
    records.iter_mut().for_each(forget_times);
    // Sessions are exported in the order of their times.
    records.sort_by_key(|record| record["session"].as_u64());
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    Ok(without_ids(&lines.join("\n")))
}

/// Returns the hits of a search, best first.
pub fn found(search: Search) -> Result<String> {
    let found = search.limit(1_000).run()?;
    let lines = found.hits.iter().map(|hit| {
        let place = (&hit.session, &hit.id, hit.on_path, &hit.under, &hit.sessions);
        format!("{:.9} {place:?} {:?} {:?}", hit.score, hit.matched, hit.snippet)
    });
    Ok(without_ids(&lines.collect::<Vec<_>>().join("\n")))
}

fn forget_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("_at"));
            fields.values_mut().for_each(forget_times);
        }
        Value::Array(values) => values.iter_mut().for_each(forget_times),
        _ => {}
    }
}

/// Numbers the UUIDs of a text in their order.
pub fn without_ids(text: &str) -> String {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let (mut known, mut out) = (Vec::new(), String::new());
    for piece in text.split_inclusive(|c| !is_of_word(c)) {
        let word = piece.trim_end_matches(|c| !is_of_word(c));
        if uuid::Uuid::try_parse(word).is_err() {
            out += piece;
            continue;
        }
        let number = known.iter().position(|id| *id == word).unwrap_or_else(|| {
            known.push(word);
            known.len() - 1
        });
        out += &format!("#{number}{}", &piece[word.len()..]);
    }
    out
}
