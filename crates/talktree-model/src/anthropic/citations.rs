//! The citations of a text.

use serde_json::{Map, Value};
use talktree::Text;

use crate::origin::value;

/// The fields of each type of citation that a request may have: of text, of numbers, and of text or null.
const KINDS: [(&str, &[&str], &[&str], &str); 5] = [
    (
        "char_location",
        &["cited_text"],
        &["document_index", "start_char_index", "end_char_index"],
        "document_title",
    ),
    (
        "page_location",
        &["cited_text"],
        &["document_index", "start_page_number", "end_page_number"],
        "document_title",
    ),
    (
        "content_block_location",
        &["cited_text"],
        &["document_index", "start_block_index", "end_block_index"],
        "document_title",
    ),
    (
        "search_result_location",
        &["cited_text", "source"],
        &["search_result_index", "start_block_index", "end_block_index"],
        "title",
    ),
    ("web_search_result_location", &["cited_text", "url", "encrypted_index"], &[], "title"),
];

/// Returns the citations that the provider accepts again; `None` if there are none. A response has fields that a
/// request must not have.
pub(super) fn citations(text: &Text) -> Option<Value> {
    let given = value(&text.extra, "citations", ("anthropic", "citations"));
    let kept: Vec<Value> = given.as_array()?.iter().filter_map(citation).collect();
    (!kept.is_empty()).then(|| kept.into())
}

fn citation(given: &Value) -> Option<Value> {
    let kind = given["type"].as_str()?;
    let (_, texts, numbers, title) = KINDS.into_iter().find(|(name, ..)| *name == kind)?;
    let mut kept = Map::from_iter([("type".to_owned(), kind.into())]);
    for field in texts {
        kept.insert((*field).to_owned(), given[*field].as_str()?.into());
    }
    for field in numbers {
        kept.insert((*field).to_owned(), given[*field].as_u64()?.into());
    }
    let named = &given[title];
    kept.insert(title.to_owned(), if named.is_string() { named.clone() } else { Value::Null });
    Some(kept.into())
}
