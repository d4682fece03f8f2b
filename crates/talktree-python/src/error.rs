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

/// Makes a function that returns the class of each error and its fields. The class has the name of the variant.
macro_rules! classes {
    ($($variant:ident { $($field:ident),* }),* ; $($pattern:pat => $class:literal $fields:tt,)*) => {
        /// Returns the name of an error's class and its fields.
        fn class_of(error: &Error) -> (&'static str, Value) {
            match error {
                $(Error::$variant { $($field),* } => {
                    (concat!(stringify!($variant), "Error"), json!({ $((stringify!($field)): $field),* }))
                })*
                $($pattern => ($class, json!($fields)),)*
                _ => ("Error", json!({})),
            }
        }
    };
}

classes! {
    UnknownMessage { session, id }, Finished { session, id }, UnknownSession { id },
    SessionRemoved { id }, SessionInTrash { id }, SessionErased { id },
    NotErased { occurrences, path, offset }, NotProved {}, NoOwner { session },
    UnknownCompaction { session, id }, UnknownCall { message, call }, SessionExists { id },
    InvalidValue { what, given, why }, MessageTooLarge { id, bytes, max },
    TooLarge { what, bytes, max }, HeadMoved { expected, found }, NotAncestor { first, last },
    InsideSummary { id, compaction }, NothingVisible { first, last },
    PlanOfAnother { planned, session }, NoSummarizer { session },
    CompactionInProgress { session }, NoAnswer { why }, NotAStore { path, why },
    NewerStore { found, supported }, StoreMoved { path }, HardLinked { path, other },
    MountedFile { path }, UnreadableLog { path }, OlderStore { found, current }, ReadOnly {},
    Busy { waited_ms }, DiskFull {}, Interrupted {}, Corrupt { what }, Unsupported { what },
    BlockOverLimit { label, tokens, max }, BlockReadOnly { label }, BlockKeyed { label, call },
    BlockCannot { label, what }, UnknownBlock { label }, BlockExists { label },
    TooManyBlocks { max }, UnknownVersion { label, key, version },
    BlockBusy { label, waited_ms }, TokenCounter { name, why }, Callback { what, why },
    SessionFull { session, max }, TranscriptFull { what, max }, RuleMeetsAll { rule, sessions },
    WrongKey { path, why }, StoreFull { max }, ContextFull { what, max };
    Error::SummaryRefused { why } => "SummaryRefusedError" {"why": why.to_string()},
    Error::Stale { why } => "StaleError" {"why": why.to_string()},
    Error::Summarizer { source } => "SummarizerError" {"why": source.to_string()},
    Error::Embedder { source } => "EmbedderError" {"why": source.to_string()},
    Error::CompactionPolicy { source } => "CompactionPolicyError" {"why": source.to_string()},
    Error::Io { path, source } => "IoError" {"path": path, "errno": source.raw_os_error(), "strerror": source.to_string()},
    Error::Json { what, source } => "JsonError" {"what": what, "why": source.to_string()},
    Error::Import { path, line, why } => "ImportFileError" {"path": path, "line": line, "why": why},
    Error::Provider { label, source } => "ProviderError" {"label": label, "why": source.to_string()},
    Error::Storage { source } => "StorageError" {"why": source.to_string()},
}
