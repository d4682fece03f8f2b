//! The context's storage.

mod damage;
mod elision;
mod frozen_prompt;
mod model;
mod search;
mod texts;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::super::connection::{Config, Database};
use super::super::session::SqliteSession;
use super::SqliteContext;
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::{Message, Part};
use crate::outcome::SessionDetails;
use crate::search::Matched;
use crate::sql::BackendResult;
use crate::storage::context::{BlockScope, Document, MAX_VERSIONS, PromptSection, StoredText};
use crate::view::{ExpectedHead, Order, Parent, View};

/// Those that a session without an owner has.
const SCOPES: [BlockScope; 2] = [BlockScope::Session, BlockScope::Shared];

/// What a put did.
#[derive(Debug, PartialEq)]
enum Put {
    Stored {
        version: u64,
    },
    Unchanged {
        version: u64,
    },
    /// Another version is stored than the expected one (0: no text).
    Moved {
        found: u64,
    },
}

/// A text that is present.
#[derive(Debug, PartialEq)]
struct Entry {
    title: Option<String>,
    content: String,
    version: u64,
}

/// Each as one read or one write.
impl SqliteContext {
    fn put_one(
        &self,
        scope: BlockScope,
        label: &str,
        new: &Document,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put> {
        self.write(|texts| {
            let stored = || -> BackendResult<u64> {
                let stored = texts.texts(scope, label)?.text(&new.key)?;
                Ok(stored.map_or(0, |stored| stored.version))
            };
            let found = stored()?;
            if expected.is_some_and(|expected| expected != found) {
                return Ok(Put::Moved { found });
            }
            texts.put(scope, label, new, is_searchable)?;
            Ok(match stored()? {
                version if version == found => Put::Unchanged { version },
                version => Put::Stored { version },
            })
        })
    }

    fn remove(&self, scope: BlockScope, label: &str, key: &str) -> Result<bool> {
        self.write(|texts| texts.remove(scope, label, key))
    }

    fn set_frozen(&self, sections: Option<&[PromptSection]>) -> Result<()> {
        self.write(|texts| match sections {
            Some(sections) => texts.freeze(sections),
            None => texts.thaw(),
        })
    }

    fn frozen(&self) -> Result<Option<Vec<PromptSection>>> {
        self.read(|texts| texts.frozen())
    }

    fn entry(&self, scope: BlockScope, label: &str, key: &str) -> Result<Option<Entry>> {
        let stored = self.read(|texts| texts.texts(scope, label)?.text(key))?;
        Ok(stored.map(|StoredText { title, content, version, .. }| Entry {
            title,
            content: content.unwrap(),
            version,
        }))
    }

    fn documents(&self, scope: BlockScope, label: &str) -> Result<Vec<StoredText>> {
        self.read(|texts| texts.texts(scope, label)?.documents())
    }

    fn count(&self, scope: BlockScope, label: &str) -> Result<u64> {
        self.read(|texts| texts.texts(scope, label)?.count())
    }

    fn versions(&self, scope: BlockScope, label: &str, key: &str) -> Result<Vec<StoredText>> {
        self.read(|texts| texts.texts(scope, label)?.versions(key))
    }
}

/// Freezes these sections unless a prompt is frozen; returns the sections that are frozen then.
fn freeze(context: &SqliteContext, sections: &[PromptSection]) -> Result<Vec<PromptSection>> {
    context.write(|texts| match texts.frozen()? {
        Some(_) => Ok(()),
        None => texts.freeze(sections),
    })?;
    Ok(context.frozen()?.unwrap_or_default())
}

fn in_memory() -> Result<Arc<Database>> {
    Ok(Arc::new(Database::open_in_memory(Config::default())?))
}

fn session(database: &Arc<Database>, id: &str) -> SqliteSession {
    SqliteSession::new(Arc::clone(database), SessionId::from(id))
}

fn text(key: &str, content: &str) -> Document {
    Document::new(key, content)
}

fn put(context: &SqliteContext, key: &str, content: &str) -> Result<Put> {
    context.put_one(BlockScope::Session, "memory", &text(key, content), true, None)
}

fn keys(context: &SqliteContext, query: &str) -> Result<(Vec<String>, Matched)> {
    let (found, matched) = context.search(BlockScope::Session, "memory", query, 10)?;
    Ok((found.into_iter().map(|entry| entry.key).collect(), matched))
}

fn damages(database: &Database) -> Result<Vec<String>> {
    let verified = database.verify(|_| {})?;
    Ok(verified
        .damages
        .into_iter()
        .map(|damage| format!("{}: {}", damage.kind, damage.what))
        .collect())
}

#[track_caller]
fn sound(database: &Database) -> Result<()> {
    assert_eq!(damages(database)?, Vec::<String>::new());
    Ok(())
}

fn section(content: &str) -> Vec<PromptSection> {
    vec![PromptSection {
        label: "memory".to_owned(),
        header: "MEMORY".to_owned(),
        content: content.to_owned(),
    }]
}

/// A conversation whose second message is the result of a tool.
fn with_result(database: &Arc<Database>) -> Result<SqliteSession> {
    let chat = session(database, "s");
    let result = Part::tool_result("load", "call", json!({"text": "a very long skill"}));
    chat.append(
        &Parent::Head,
        &ExpectedHead::Any,
        &[
            Message::user("load it").with_id("q"),
            Message::assistant("here").with_part(result).with_id("r"),
            Message::user("thanks").with_id("t"),
        ],
        None,
    )?;
    Ok(chat)
}

/// Returns the tool outputs that the messages show.
fn outputs(messages: &[Message]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::Tool(tool) => {
                Some(tool.output.as_ref().map_or("none".to_owned(), |it| it.to_string()))
            }
            _ => None,
        })
        .collect()
}

const STORED: &str = r#"{"text":"a very long skill"}"#;
const MARKER: &str = "\"unloaded\"";

/// Returns the labels that have at least one text.
fn stored_labels(context: &SqliteContext, owner: BlockScope) -> Result<Vec<String>> {
    Ok(context.labels(owner)?.into_iter().map(|found| found.label).collect())
}
