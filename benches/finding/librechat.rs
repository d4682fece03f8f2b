//! Reads the exports of LibreChat, which `talktree-import` does not: nested messages with their children.

use std::path::Path;

use serde_json::Value;
use talktree::{Message, Session, Store};

use crate::Result;

/// Imports every conversation of a folder that has an id; another format is skipped.
pub(crate) fn import(store: &Store, folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "json")) {
        let export: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        if let Some(id) = export["conversationId"].as_str() {
            add(&store.session(id)?, &export["messages"], None)?;
        }
    }
    Ok(())
}

fn add(session: &Session, messages: &Value, parent: Option<&str>) -> Result<()> {
    for said in messages.as_array().into_iter().flatten() {
        let (Some(id), Some(text)) = (said["messageId"].as_str(), said["text"].as_str()) else {
            continue;
        };
        let message = match said["isCreatedByUser"].as_bool() {
            Some(true) => Message::user(text),
            _ => Message::assistant(text),
        };
        let message = message.with_id(id);
        match parent.or(said["parentMessageId"].as_str()) {
            Some(parent) if session.message(&parent.into())?.is_some() => {
                session.append_to(&parent.into(), message)?;
            }
            _ => {
                session.append(message)?;
            }
        }
        add(session, &said["children"], Some(id))?;
    }
    Ok(())
}
