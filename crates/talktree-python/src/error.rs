//! Errors as Python exceptions.
//!
//! Each variant of [`Error`] is a class of `talktree.errors`, named after it; its fields are attributes. An exception of a
//! callback is raised again as it is, with its traceback.

use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Value, json};
use talktree::{BoxError, Error};

/// Returns the exception of an error.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    if let Some(raised) = raised_by_callback(error) {
        return raised.clone_ref(py);
    }
    let (class, fields) = class_of(error);
    of_class(py, class, &error.to_string(), &fields)
}

/// Returns an exception of a class of `talktree.errors`.
pub(crate) fn of_class(py: Python<'_>, class: &str, text: &str, fields: &Value) -> PyErr {
    let build = || {
        let module = py.import("talktree.errors")?;
        module.call_method1("_build", (class, text, PyString::new(py, &fields.to_string())))
    };
    build().map_or_else(|failed| failed, PyErr::from_value)
}

/// Returns the exception that a callback raised, if the error is of one.
fn raised_by_callback(error: &Error) -> Option<&PyErr> {
    let source: &BoxError = match error {
        Error::Summarizer { source }
        | Error::Embedder { source }
        | Error::CompactionPolicy { source }
        | Error::Provider { source, .. } => source,
        _ => return None,
    };
    source.downcast_ref::<PyErr>()
}

/// Returns the name of an error's class and its fields.
fn class_of(error: &Error) -> (&'static str, Value) {
    match error {
        Error::UnknownMessage { session, id } => {
            ("UnknownMessageError", json!({"session": session, "id": id}))
        }
        Error::Finished { session, id } => ("FinishedError", json!({"session": session, "id": id})),
        Error::UnknownSession { id } => ("UnknownSessionError", json!({"id": id})),
        Error::SessionRemoved { id } => ("SessionRemovedError", json!({"id": id})),
        Error::SessionInTrash { id } => ("SessionInTrashError", json!({"id": id})),
        Error::SessionErased { id } => ("SessionErasedError", json!({"id": id})),
        Error::NotErased { occurrences, path, offset } => {
            ("NotErasedError", json!({"occurrences": occurrences, "path": path, "offset": offset}))
        }
        Error::NotProved => ("NotProvedError", json!({})),
        Error::NoOwner { session } => ("NoOwnerError", json!({"session": session})),
        Error::UnknownCompaction { session, id } => {
            ("UnknownCompactionError", json!({"session": session, "id": id}))
        }
        Error::UnknownCall { message, call } => {
            ("UnknownCallError", json!({"message": message, "call": call}))
        }
        Error::SessionExists { id } => ("SessionExistsError", json!({"id": id})),
        Error::InvalidValue { what, given, why } => {
            ("InvalidValueError", json!({"what": what, "given": given, "why": why}))
        }
        Error::MessageTooLarge { id, bytes, max } => {
            ("MessageTooLargeError", json!({"id": id, "bytes": bytes, "max": max}))
        }
        Error::TooLarge { what, bytes, max } => {
            ("TooLargeError", json!({"what": what, "bytes": bytes, "max": max}))
        }
        Error::HeadMoved { expected, found } => {
            ("HeadMovedError", json!({"expected": expected, "found": found}))
        }
        Error::NotAncestor { first, last } => {
            ("NotAncestorError", json!({"first": first, "last": last}))
        }
        Error::InsideSummary { id, compaction } => {
            ("InsideSummaryError", json!({"id": id, "compaction": compaction}))
        }
        Error::NothingVisible { first, last } => {
            ("NothingVisibleError", json!({"first": first, "last": last}))
        }
        Error::SummaryRefused { why } => ("SummaryRefusedError", json!({"why": why.to_string()})),
        Error::Stale { why } => ("StaleError", json!({"why": why.to_string()})),
        Error::PlanOfAnother { planned, session } => {
            ("PlanOfAnotherError", json!({"planned": planned, "session": session}))
        }
        Error::Summarizer { source } => ("SummarizerError", json!({"why": source.to_string()})),
        Error::Embedder { source } => ("EmbedderError", json!({"why": source.to_string()})),
        Error::CompactionPolicy { source } => {
            ("CompactionPolicyError", json!({"why": source.to_string()}))
        }
        Error::NoSummarizer { session } => ("NoSummarizerError", json!({"session": session})),
        Error::CompactionInProgress { session } => {
            ("CompactionInProgressError", json!({"session": session}))
        }
        Error::NoAnswer { why } => ("NoAnswerError", json!({"why": why})),
        Error::NotAStore { path, why } => ("NotAStoreError", json!({"path": path, "why": why})),
        Error::NewerStore { found, supported } => {
            ("NewerStoreError", json!({"found": found, "supported": supported}))
        }
        Error::StoreMoved { path } => ("StoreMovedError", json!({"path": path})),
        Error::HardLinked { path, other } => {
            ("HardLinkedError", json!({"path": path, "other": other}))
        }
        Error::MountedFile { path } => ("MountedFileError", json!({"path": path})),
        Error::UnreadableLog { path } => ("UnreadableLogError", json!({"path": path})),
        Error::OlderStore { found, current } => {
            ("OlderStoreError", json!({"found": found, "current": current}))
        }
        Error::ReadOnly => ("ReadOnlyError", json!({})),
        Error::Busy { waited_ms } => ("BusyError", json!({"waited_ms": waited_ms})),
        Error::DiskFull => ("DiskFullError", json!({})),
        Error::Interrupted => ("InterruptedError", json!({})),
        Error::Corrupt { what } => ("CorruptError", json!({"what": what})),
        Error::Unsupported { what } => ("UnsupportedError", json!({"what": what})),
        Error::Io { path, source } => (
            "IoError",
            json!({"path": path, "errno": source.raw_os_error(), "strerror": source.to_string()}),
        ),
        Error::Json { what, source } => {
            ("JsonError", json!({"what": what, "why": source.to_string()}))
        }
        Error::Import { path, line, why } => {
            ("ImportFileError", json!({"path": path, "line": line, "why": why}))
        }
        other => of_block(other),
    }
}

/// Returns the class of an error of a context, of a counter, of a limit or of the database.
fn of_block(error: &Error) -> (&'static str, Value) {
    match error {
        Error::BlockOverLimit { label, tokens, max } => {
            ("BlockOverLimitError", json!({"label": label, "tokens": tokens, "max": max}))
        }
        Error::BlockReadOnly { label } => ("BlockReadOnlyError", json!({"label": label})),
        Error::BlockKeyed { label, call } => {
            ("BlockKeyedError", json!({"label": label, "call": call}))
        }
        Error::BlockCannot { label, what } => {
            ("BlockCannotError", json!({"label": label, "what": what}))
        }
        Error::UnknownBlock { label } => ("UnknownBlockError", json!({"label": label})),
        Error::BlockExists { label } => ("BlockExistsError", json!({"label": label})),
        Error::TooManyBlocks { max } => ("TooManyBlocksError", json!({"max": max})),
        Error::UnknownVersion { label, key, version } => {
            ("UnknownVersionError", json!({"label": label, "key": key, "version": version}))
        }
        Error::Provider { label, source } => {
            ("ProviderError", json!({"label": label, "why": source.to_string()}))
        }
        Error::BlockBusy { label, waited_ms } => {
            ("BlockBusyError", json!({"label": label, "waited_ms": waited_ms}))
        }
        Error::TokenCounter { name, why } => {
            ("TokenCounterError", json!({"name": name, "why": why}))
        }
        Error::Callback { what, why } => ("CallbackError", json!({"what": what, "why": why})),
        Error::SessionFull { session, max } => {
            ("SessionFullError", json!({"session": session, "max": max}))
        }
        Error::TranscriptFull { what, max } => {
            ("TranscriptFullError", json!({"what": what, "max": max}))
        }
        Error::RuleMeetsAll { rule, sessions } => {
            ("RuleMeetsAllError", json!({"rule": rule, "sessions": sessions}))
        }
        Error::WrongKey { path, why } => ("WrongKeyError", json!({"path": path, "why": why})),
        Error::EncryptionKey { source } => {
            ("EncryptionKeyError", json!({"why": source.to_string()}))
        }
        Error::StoreFull { max } => ("StoreFullError", json!({"max": max})),
        Error::ContextFull { what, max } => ("ContextFullError", json!({"what": what, "max": max})),
        Error::Storage { source } => ("StorageError", json!({"why": source.to_string()})),
        _ => ("Error", json!({})),
    }
}
