//! The native half of the Python package `talktree`.
//!
//! The Python half has the types, the keyword arguments and the documents; it calls this module with strings, numbers and
//! JSON as text, and gets the same back. `handle` says how stores, forks and `close` fit together, `fork` what a fork
//! waits for, `call` what happens around each call of the library, `error` how an error becomes an exception.

#[macro_use]
mod parts;

mod call;
mod callback;
mod compaction;
mod context;
mod embedding;
mod erase;
mod error;
mod exchange;
mod fork;
mod handle;
mod importing;
mod json;
mod manager;
mod model;
mod read;
mod reply;
mod retention;
mod search;
mod session;
mod settings;
mod store;
mod subscription;
mod tools;
mod transcripts;
mod usage;

/// The module, as `talktree` imports it.
#[pyo3::pymodule(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::callback::Job;
    #[pymodule_export]
    use crate::compaction::{BranchPlan, Plan};
    #[pymodule_export]
    use crate::erase::Erased;
    #[pymodule_export]
    use crate::manager::Manager;
    #[pymodule_export]
    use crate::model::{
        from_response, name_authors, new_id, sanitize, to_model, truncate, validate_for,
    };
    #[pymodule_export]
    use crate::read::Messages;
    #[pymodule_export]
    use crate::reply::Reply;
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::store::{estimate_tokens, is_open_file};
    #[pymodule_export]
    use crate::subscription::Subscription;
    #[pymodule_export]
    use crate::transcripts::{Transcripts, fold_transcript_summary};
    #[pymodule_export]
    use crate::usage::{usage_of, with_usage};

    /// Lets one interpreter of the process import the module: its types and caches belong to that one. Watches its forks.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::call::claim(module)?;
        crate::fork::register(module)
    }
}
