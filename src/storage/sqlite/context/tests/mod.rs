//! The context's storage, tested below the doorway.

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
use crate::compaction::Compaction;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::message::{Message, Part};
use crate::outcome::SessionDetails;
use crate::search::Matched;
use crate::storage::SessionProvider;
use crate::storage::context::{
    BlockScope, ContextStore, ContextWrite, MAX_VERSIONS, NewEntry, PromptSection,
};
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

trait PutOne {
    fn put_one(
        &self,
        scope: BlockScope,
        label: &str,
        new: &NewEntry<'_>,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put>;
}

impl<T: ContextStore + ?Sized> PutOne for T {
    fn put_one(
        &self,
        scope: BlockScope,
        label: &str,
        new: &NewEntry<'_>,
        is_searchable: bool,
        expected: Option<u64>,
    ) -> Result<Put> {
        let mut put = Put::Moved { found: 0 };
        self.write(&mut |texts| {
            let stored = |texts: &dyn ContextWrite| -> Result<u64> {
                Ok(texts.entry(scope, label, new.key)?.map_or(0, |entry| entry.version))
            };
            let found = stored(texts)?;
            if expected.is_some_and(|expected| expected != found) {
                put = Put::Moved { found };
                return Ok(());
            }
            texts.put(scope, label, new, is_searchable)?;
            put = match stored(texts)? {
                version if version == found => Put::Unchanged { version },
                version => Put::Stored { version },
            };
            Ok(())
        })?;
        Ok(put)
    }
}

/// Freezes these sections unless a prompt is frozen; returns the sections that are frozen then.
fn freeze(context: &dyn ContextStore, sections: &[PromptSection]) -> Result<Vec<PromptSection>> {
    context.write(&mut |texts| match texts.frozen()? {
        Some(_) => Ok(()),
        None => texts.set_frozen(Some(sections)),
    })?;
    Ok(context.frozen()?.unwrap_or_default())
}

fn in_memory() -> Result<Arc<Database>> {
    Ok(Arc::new(Database::open_in_memory(Config::default())?))
}

fn session(database: &Arc<Database>, id: &str) -> SqliteSession {
    SqliteSession::new(Arc::clone(database), SessionId::from(id))
}

fn text<'a>(key: &'a str, content: &'a str) -> NewEntry<'a> {
    NewEntry { key, content, ..NewEntry::default() }
}

fn put(context: &dyn ContextStore, key: &str, content: &str) -> Result<Put> {
    context.put_one(BlockScope::Session, "memory", &text(key, content), true, None)
}

fn keys(context: &dyn ContextStore, query: &str) -> Result<(Vec<String>, Matched)> {
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
    vec![PromptSection::new("memory".into(), "MEMORY".into(), content.into())]
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
fn stored_labels(context: &dyn ContextStore, owner: BlockScope) -> Result<Vec<String>> {
    Ok(context.labels(owner)?.into_iter().map(|found| found.label).collect())
}
