//! Ids and names that are derived from records.

use uuid::Uuid;

use crate::id::{CompactionId, MessageId, SessionId};

/// The UUID namespace of derived ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x7461_6c6b_7472_4565_a5d6_9f0e_1c3b_5a77);

/// Returns an id derived from these texts.
pub fn derive(texts: &[&str]) -> Uuid {
    let mut name = String::new();
    for text in texts {
        // Each text has its length before it, so no two lists of texts give the same bytes.
        name.push_str(&format!("{}:{text}", text.len()));
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// Returns a hash that distinguishes this content from other content.
pub fn fingerprint(text: &str) -> u64 {
    derive(&[text]).as_u64_pair().0
}

/// Returns the id as it is given, or a derived one if no message may be stored under it.
pub fn message_id(given: impl Into<MessageId>) -> MessageId {
    let given = given.into();
    match given.as_str().parse::<MessageId>() {
        Ok(given) if !given.as_str().starts_with(CompactionId::PREFIX) => given,
        _ => derive(&["message", given.as_str()]).to_string().into(),
    }
}

/// Returns the id as it is given, or a derived one if no session may have it.
pub fn session_id(given: impl Into<SessionId>) -> SessionId {
    let given = given.into();
    match given.as_str().parse() {
        Ok(given) => given,
        Err(_) => derive(&["session", given.as_str()]).to_string().into(),
    }
}

/// Returns the text, truncated to the length of a name.
pub fn name(text: &str) -> Option<String> {
    let line = text.split(['\n', '\r']).map(str::trim).find(|line| !line.is_empty())?;
    let end = line.char_indices().nth(200).map_or(line.len(), |(end, _)| end);
    Some(line[..end].to_owned())
}
