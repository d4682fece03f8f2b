//! The context of a session: its prompt, its blocks, their texts and documents.

use pyo3::prelude::*;
use serde_json::{Value, json};
use talktree::{Block, BlockInfo, Drift, StoredText};

use crate::callback::{DocumentParts, document_of};
use crate::session::Session;
use crate::settings::{BlockParts, block};

fn block_json(block: &BlockInfo) -> Value {
    json!({
        "label": block.label,
        "description": block.description,
        "content": block.content,
        "tokens": block.tokens,
        "max_tokens": block.max_tokens,
        "is_writable": block.is_writable,
        "is_skill": block.is_skill,
        "is_searchable": block.is_searchable,
    })
}

fn drift_json(drift: &Drift) -> Value {
    let kind = match (&drift.frozen, &drift.current) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (frozen, current) = (text(&drift.frozen), text(&drift.current));
    json!({"label": drift.label, "kind": kind, "frozen": frozen, "current": current})
}

fn entry_json(entry: &StoredText) -> Value {
    json!({
        "key": entry.key,
        "title": entry.title,
        "description": entry.description,
        "version": entry.version,
        "changed_at": entry.changed_at,
    })
}

fn version_json(version: &StoredText) -> Value {
    json!({
        "version": version.version,
        "title": version.title,
        "description": version.description,
        "content": version.content,
        "changed_at": version.changed_at,
    })
}

fn list<T>(items: &[T], of: impl Fn(&T) -> Value) -> String {
    Value::Array(items.iter().map(of).collect()).to_string()
}

#[pymethods]
impl Session {
    fn prompt(&self, py: Python<'_>, is_refreshed: bool) -> PyResult<String> {
        self.handle
            .call(py, |chat| if is_refreshed { chat.refresh_prompt() } else { chat.prompt() })
    }

    fn drift(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| Ok(list(&chat.drift()?, drift_json)))
    }

    fn reminder(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, talktree::Session::reminder)
    }

    fn block(&self, py: Python<'_>, label: &str) -> PyResult<String> {
        self.handle.call(py, |chat| {
            Ok(chat.block(label)?.as_ref().map_or(Value::Null, block_json).to_string())
        })
    }

    fn blocks(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| Ok(list(&chat.blocks()?, block_json)))
    }

    fn context_set(&self, py: Python<'_>, label: &str, content: &str) -> PyResult<String> {
        self.handle
            .call(py, |chat| Ok(block_json(&chat.context().set(label, content)?).to_string()))
    }

    fn context_append(&self, py: Python<'_>, label: &str, text: &str) -> PyResult<String> {
        self.handle
            .call(py, |chat| Ok(block_json(&chat.context().append(label, text)?).to_string()))
    }

    fn context_remove_text(&self, py: Python<'_>, label: &str) -> PyResult<bool> {
        self.handle.call(py, |chat| chat.context().remove_text(label))
    }

    fn context_add(&self, py: Python<'_>, label: &str, parts: BlockParts) -> PyResult<()> {
        let block = block(py, parts)?;
        self.handle.call(py, |chat| chat.context().add(label, block))
    }

    fn context_remove(&self, py: Python<'_>, label: &str) -> PyResult<bool> {
        self.handle.call(py, |chat| Ok(chat.context().remove(label)))
    }

    fn context_set_documents(
        &self,
        py: Python<'_>,
        label: &str,
        documents: Vec<DocumentParts>,
    ) -> PyResult<Vec<String>> {
        let documents = documents.into_iter().map(document_of);
        self.handle.call(py, |chat| chat.context().set_documents(label, documents))
    }

    fn context_append_document(
        &self,
        py: Python<'_>,
        label: &str,
        document: DocumentParts,
    ) -> PyResult<String> {
        let document = document_of(document);
        self.handle.call(py, |chat| chat.context().append_document(label, &document))
    }

    fn context_remove_document(&self, py: Python<'_>, label: &str, key: &str) -> PyResult<bool> {
        self.handle.call(py, |chat| chat.context().remove_document(label, key))
    }

    fn context_documents(&self, py: Python<'_>, label: &str) -> PyResult<String> {
        self.handle.call(py, |chat| Ok(list(&chat.context().documents(label)?, entry_json)))
    }

    fn context_load(&self, py: Python<'_>, label: &str, key: &str) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| chat.context().load(label, key))
    }

    fn context_search(
        &self,
        py: Python<'_>,
        label: &str,
        query: &str,
        limit: usize,
    ) -> PyResult<Vec<DocumentParts>> {
        self.handle.call(py, |chat| {
            let found = chat.context().search(label, query, limit)?;
            Ok(found.into_iter().map(|it| (it.key, it.title, it.description, it.content)).collect())
        })
    }

    fn context_loaded(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.handle.call(py, |chat| chat.context().loaded())
    }

    fn context_unload(&self, py: Python<'_>, label: &str, key: &str) -> PyResult<Option<usize>> {
        self.handle.call(py, |chat| chat.context().unload(label, key))
    }

    fn frozen_prompt(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, |chat| chat.context().frozen_prompt())
    }

    fn thaw_prompt(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |chat| chat.context().thaw_prompt())
    }

    fn context_versions(&self, py: Python<'_>, label: &str, key: Option<&str>) -> PyResult<String> {
        self.handle.call(py, |chat| Ok(list(&chat.context().versions(label, key)?, version_json)))
    }

    fn context_version(
        &self,
        py: Python<'_>,
        label: &str,
        key: Option<&str>,
        version: u64,
    ) -> PyResult<String> {
        self.handle.call(py, |chat| {
            Ok(version_json(&chat.context().version(label, key, version)?).to_string())
        })
    }

    fn context_restore(
        &self,
        py: Python<'_>,
        label: &str,
        key: Option<&str>,
        version: u64,
    ) -> PyResult<()> {
        self.handle.call(py, |chat| chat.context().restore(label, key, version))
    }

    fn context_to_markdown(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |chat| chat.context().to_markdown())
    }

    fn context_import(&self, py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
        self.handle.call(py, |chat| chat.context().import(text))
    }

    /// Returns the labels of the stored texts, each with its scope.
    fn context_stored(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        self.handle.call(py, |chat| {
            let scope = |block: &Block| match (block.is_shared(), block.is_per_owner()) {
                (true, _) => "all",
                (_, true) => "owner",
                _ => "session",
            };
            let stored = chat.context().stored()?.into_iter();
            Ok(stored.map(|(label, block)| (label, scope(&block))).collect())
        })
    }
}
