//! What a session carries besides its messages, and what becomes of the handles of a removed one.
//!
//! A session's name, model and times were set by several transactions, so a crash in between left a session without
//! them, and the time of the last write could not be set at all: imported conversations of years looked like written today.

use chrono::{DateTime, Utc};
use serde_json::json;
use talktree::{Error, Json, Message, Result, SessionDetails, Store};

fn time(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// Details in which nothing is missing.
fn everything() -> SessionDetails {
    SessionDetails {
        name: Some("Deployment".into()),
        parent_session: Some("p".into()),
        fork_point: Some("m1".into()),
        model: Some("large".into()),
        source: Some("telegram".into()),
        metadata: Some(Json::from(json!({"tags": ["work"]}))),
        end_reason: Some("over".into()),
        created_at: Some(time("2024-02-03T10:00:00Z")),
        updated_at: Some(time("2024-02-03T11:30:00Z")),
    }
}

#[test]
fn a_session_is_created_with_all_details() -> Result<()> {
    let store = Store::open_in_memory()?;
    let info = store.create_session_as("s", everything())?.info()?.unwrap();
    assert_eq!(
        serde_json::to_value(&info).unwrap(),
        json!({
            "id": "s", "name": "Deployment", "parent_session": "p", "fork_point": "m1",
            "model": "large", "source": "telegram", "metadata": {"tags": ["work"]},
            "end_reason": "over",
            "created_at": "2024-02-03T10:00:00Z", "updated_at": "2024-02-03T11:30:00Z",
        })
    );
    Ok(())
}

#[test]
fn a_session_is_created_whole_or_not_at_all() -> Result<()> {
    let store = Store::options().max_message_bytes(20).open_in_memory()?;
    let large =
        SessionDetails { metadata: Some(Json::from(json!("x".repeat(50)))), ..everything() };
    assert!(matches!(store.create_session_as("s", large), Err(Error::TooLarge { .. })));
    let nameless = SessionDetails { name: Some(String::new()), ..everything() };
    assert!(matches!(store.create_session_as("s", nameless), Err(Error::InvalidName { .. })));
    let no_parent = SessionDetails { parent_session: Some("".into()), ..everything() };
    assert!(matches!(store.create_session_as("s", no_parent), Err(Error::InvalidName { .. })));
    assert!(store.sessions()?.is_empty());
    Ok(())
}

#[test]
fn creating_a_session_twice_changes_nothing() -> Result<()> {
    let store = Store::open_in_memory()?;
    store.create_session_as("s", everything())?;
    let again = store.create_session_as("s", "Another");
    assert!(matches!(again, Err(Error::SessionExists { id }) if id == "s"));
    assert_eq!(store.session("s")?.info()?.unwrap().name.as_deref(), Some("Deployment"));
    Ok(())
}

#[test]
fn the_time_of_the_last_write_is_set_until_the_next_write() -> Result<()> {
    let store = Store::open_in_memory()?;
    let begun = Utc::now();
    let chat = store.create_session_as("old", everything())?;
    store.create_session_as("new", "New")?;
    let order = || -> Result<Vec<_>> {
        Ok(store.sessions()?.into_iter().map(|session| session.id.to_string()).collect())
    };
    assert_eq!(order()?, ["new", "old"]);
    chat.append(Message::user("hello"))?;
    assert!(chat.info()?.unwrap().updated_at >= begun);
    assert_eq!(order()?, ["old", "new"]);
    Ok(())
}
