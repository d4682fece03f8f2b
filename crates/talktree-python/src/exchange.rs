//! Import and export.

use std::ffi::OsString;
use std::io::{self, Cursor, Write};
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use talktree::MessageFilter;
use talktree_import::export::{
    Person, PersonFormat, export_jsonl, export_markdown, export_person, export_readable_jsonl,
    export_session, session_hash,
};
use talktree_import::{ImportOptions, import, import_folder, import_reader};

use crate::call::{abandon, attached};
use crate::callback::Function;
use crate::json;
use crate::read::path;
use crate::session::Session;
use crate::store::{Store, progress};

/// How many bytes are given to Python at once.
const CHUNK: usize = 64 * 1024;

/// Writes to a Python callable that takes bytes; its exception ends the call.
struct Output {
    function: Function,
    buffer: Vec<u8>,
}

impl Output {
    fn new(function: Py<PyAny>) -> Self {
        Self { function: Function::new(function), buffer: Vec::with_capacity(CHUNK) }
    }

    fn hand_over(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let written = attached(|py| {
            self.function.bind(py).call1((PyBytes::new(py, &self.buffer),)).map(drop)
        });
        self.buffer.clear();
        if let Some(Err(error)) = written {
            abandon(error);
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.hand_over();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hand_over();
        Ok(())
    }
}

parts! {
    /// How a file is imported, as Python passes it.
    struct ImportParts {
        format: Option<String>,
        session: Option<String>,
        strict: bool,
        dry_run: bool,
        keep_source: bool,
        redact: bool,
    }
}

fn options(parts: ImportParts) -> talktree::Result<ImportOptions> {
    let format = parts.format.map(|format| format.parse()).transpose()?;
    Ok(ImportOptions {
        format,
        session: parts.session.map(Into::into),
        is_strict: parts.strict,
        is_dry_run: parts.dry_run,
        keeps_source: parts.keep_source,
        is_redacted: parts.redact,
    })
}

#[pymethods]
impl Store {
    fn import_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        given: ImportParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let progress = progress(progress_callback);
        self.handle
            .call_long(py, |store| json::text(&import(store, path, &options(given)?, progress)?))
    }

    fn import_bytes(
        &self,
        py: Python<'_>,
        name: PathBuf,
        bytes: Vec<u8>,
        given: ImportParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| {
            let reader = Cursor::new(bytes);
            json::text(&import_reader(store, name, reader, &options(given)?, progress)?)
        })
    }

    /// Imports all files below a folder; returns the reports, and what was skipped, each with the reason.
    fn import_folder(
        &self,
        py: Python<'_>,
        path: PathBuf,
        given: ImportParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<(String, Vec<(OsString, String)>)> {
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| {
            let imported = import_folder(store, path, &options(given)?, progress)?;
            let skipped = imported.skipped.into_iter();
            let skipped = skipped.map(|(path, why)| (path.into_os_string(), why.to_string()));
            Ok((json::text(&imported.reports)?, skipped.collect()))
        })
    }

    /// Returns a page of messages: of a session, of an author, with a tag.
    fn list_messages(
        &self,
        py: Python<'_>,
        of: (Option<String>, Option<String>, Option<String>),
        includes_trash: bool,
        after: Option<String>,
        limit: usize,
    ) -> PyResult<String> {
        let (session, author, tag) = of;
        let filter =
            MessageFilter { session: session.map(Into::into), author, tag, includes_trash };
        self.handle
            .call(py, |store| json::text(&store.list_messages(&filter, after.as_deref(), limit)?))
    }

    /// Writes all data of an owner, or what an author wrote; returns how much that is.
    fn export_person(
        &self,
        py: Python<'_>,
        person: &str,
        is_author: bool,
        format: &str,
        write: Py<PyAny>,
    ) -> PyResult<String> {
        let mut output = Output::new(write);
        let person = if is_author { Person::Author(person) } else { Person::Owner(person) };
        let format = match format {
            "markdown" => PersonFormat::Markdown,
            _ => PersonFormat::Jsonl,
        };
        self.handle.call_long(py, |store| {
            let written = export_person(store, person, format, &mut output)?;
            output.hand_over();
            json::text(&written)
        })
    }

    /// Writes all sessions as JSON lines; returns the sessions that cannot be read, each with the reason.
    fn export_jsonl(
        &self,
        py: Python<'_>,
        write: Py<PyAny>,
        is_readable_only: bool,
    ) -> PyResult<Vec<(String, String)>> {
        let mut output = Output::new(write);
        self.handle.call_long(py, |store| {
            let mut skipped = Vec::new();
            match is_readable_only {
                false => export_jsonl(store, &mut output)?,
                true => export_readable_jsonl(store, &mut output, |id, error| {
                    skipped.push((id.to_string(), error.to_string()));
                })?,
            }
            output.hand_over();
            Ok(skipped)
        })
    }
}

#[pymethods]
impl Session {
    /// Writes the session, or the path to a leaf, in a format.
    fn export(
        &self,
        py: Python<'_>,
        leaf: Option<&str>,
        is_raw: bool,
        format: &str,
        write: Py<PyAny>,
    ) -> PyResult<()> {
        let mut output = Output::new(write);
        self.handle.call_long(py, |chat| {
            match format {
                "jsonl" => export_session(chat, &mut output)?,
                "markdown" => export_markdown(&path(chat, leaf, is_raw), &mut output)?,
                _ => talktree_model::export_openai(&path(chat, leaf, is_raw), &mut output)?,
            }
            output.hand_over();
            Ok(())
        })
    }

    fn content_hash(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, session_hash)
    }
}
