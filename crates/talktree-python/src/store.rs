//! A store: open, list and change sessions, care.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use talktree::{Durability, Error, Progress, Result, SessionDetails, SessionId, StoreOptions};

use crate::call::{abandon, attached, detached};
use crate::callback::Function;
use crate::error::exception;
use crate::fork;
use crate::handle::{Handle, Life};
use crate::json;
use crate::manager::{DetailParts, details};
use crate::session::Session;
use crate::settings::apply;
use crate::subscription::Subscription;

/// Returns the estimate of a text's tokens.
#[pyfunction]
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    talktree::estimate_tokens(text)
}

/// Returns whether a path leads to a file that a store of this process has open.
#[pyfunction]
pub(crate) fn is_open_file(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    fork::check(py)?;
    Ok(detached(py, || talktree::Store::is_open_file(path)))
}

/// Returns the progress callback of a Python callable; its exception ends the call.
pub(crate) fn progress(function: Option<Py<PyAny>>) -> impl FnMut(Progress) + Send {
    let function = function.map(Function::new);
    move |progress: Progress| {
        if let Some(function) = &function {
            let called =
                attached(|py| function.bind(py).call1((progress.done, progress.total)).map(drop));
            if let Some(Err(error)) = called {
                abandon(error);
            }
        }
    }
}

parts! {
    /// How a store is opened, as Python passes it; what is missing has its default.
    struct OpenParts {
        read_only: bool,
        durability: String,
        busy_timeout: Option<f64>,
        cache_kib: Option<u32>,
        max_message_bytes: Option<usize>,
        idle_readers: Option<usize>,
        erasure_rewrites_up_to: Option<u64>,
        key: Option<Vec<u8>>,
    }
}

impl OpenParts {
    fn options(self, py: Python<'_>) -> PyResult<StoreOptions> {
        let mut options = talktree::Store::options().durability(match self.durability.as_str() {
            "normal" => Durability::Normal,
            _ => Durability::Full,
        });
        if let Some(seconds) = self.busy_timeout {
            options = options.busy_timeout(seconds_of("busy_timeout", seconds)?);
        }
        if let Some(kib) = self.cache_kib {
            options = options.cache_kib(kib);
        }
        if let Some(bytes) = self.max_message_bytes {
            options = options.max_message_bytes(bytes);
        }
        if let Some(count) = self.idle_readers {
            options = options.idle_readers(count);
        }
        if let Some(bytes) = self.erasure_rewrites_up_to {
            options = options.erasure_rewrites_up_to(bytes);
        }
        match self.key {
            Some(bytes) => with_key(options, &bytes).map_err(|error| exception(py, &error)),
            None => Ok(options),
        }
    }
}

#[cfg(feature = "sqlcipher")]
fn with_key(options: StoreOptions, bytes: &[u8]) -> Result<StoreOptions> {
    Ok(options.key(key(bytes)?))
}

#[cfg(not(feature = "sqlcipher"))]
fn with_key(_: StoreOptions, _: &[u8]) -> Result<StoreOptions> {
    Err(NO_ENCRYPTION)
}

#[cfg(not(feature = "sqlcipher"))]
const NO_ENCRYPTION: Error = Error::Unsupported {
    what: "encryption, because this package was built without its feature sqlcipher",
};

#[cfg(feature = "sqlcipher")]
fn key(bytes: &[u8]) -> Result<[u8; 32]> {
    let given = format!("{} bytes", bytes.len());
    bytes.try_into().map_err(|_| Error::InvalidValue {
        what: "key",
        given,
        why: "it needs 32".to_owned(),
    })
}

/// A store.
#[pyclass(frozen, module = "talktree._native")]
pub(crate) struct Store {
    pub(crate) handle: Handle<talktree::Store>,
}

#[pymethods]
impl Store {
    #[new]
    fn open(py: Python<'_>, path: Option<PathBuf>, given: OpenParts) -> PyResult<Self> {
        fork::check(py)?;
        if let Some(path) = &path {
            Life::file_to_open(py, path)?;
        }
        let is_read_only = given.read_only;
        let options = given.options(py)?;
        let opened = detached(py, || match &path {
            None => options.open_in_memory(),
            Some(path) if is_read_only => options.open_read_only(path),
            Some(path) => options.open(path),
        });
        let store = opened.map_err(|error| exception(py, &error))?;
        // Now that the file exists.
        let file = path.as_deref().map(|path| Life::file_to_open(py, path)).transpose()?.flatten();
        let life = Life::new(file, store.interrupt_handle());
        Ok(Self { handle: Handle::new(&life, store) })
    }

    #[staticmethod]
    fn connect(py: Python<'_>, url: &str, given: OpenParts) -> PyResult<Self> {
        fork::check(py)?;
        let options = given.options(py)?;
        let store = detached(py, || options.open_at(url)).map_err(|error| exception(py, &error))?;
        let life = Life::new(None, store.interrupt_handle());
        Ok(Self { handle: Handle::new(&life, store) })
    }

    fn close(&self, py: Python<'_>, is_inside: &Bound<'_, PyAny>) -> PyResult<()> {
        self.handle.life().close(py, is_inside)
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.handle.life().is_closed()
    }

    fn interrupt(&self) {
        self.handle.life().interrupt();
    }

    #[pyo3(signature = (id, settings))]
    fn session(&self, py: Python<'_>, id: &str, settings: &Bound<'_, PyDict>) -> PyResult<Session> {
        let builder = self.handle.call(py, |store| Ok(store.session_builder(id)))?;
        let builder = apply(builder, settings, self.handle.life())?;
        Session::keep(self.handle.call(py, |_| builder.open())?, self.handle.life())
    }

    fn create_session(
        &self,
        py: Python<'_>,
        id: Option<String>,
        given: DetailParts,
    ) -> PyResult<Session> {
        let session = self.handle.call(py, |store| {
            let details: SessionDetails = details(&given)?;
            match id {
                Some(id) => store.create_session_as(id, details),
                None => store.create_session(details),
            }
        })?;
        Session::keep(session, self.handle.life())
    }

    fn sessions(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call(py, |store| json::text(&store.sessions()?))
    }

    fn owners(&self, py: Python<'_>, after: Option<&str>, limit: usize) -> PyResult<String> {
        self.handle.call(py, |store| json::text(&store.owners(after, limit)?))
    }

    fn rename(&self, py: Python<'_>, id: &str, name: &str) -> PyResult<()> {
        self.handle.call(py, |store| store.rename(&SessionId::from(id), name))
    }

    fn remove(&self, py: Python<'_>, id: &str) -> PyResult<()> {
        self.handle.call(py, |store| store.remove(&SessionId::from(id)))
    }

    fn subscribe(&self, py: Python<'_>, listener: Py<PyAny>) -> PyResult<Subscription> {
        let listener = Function::new(listener);
        let heard =
            self.handle.call(py, |store| Ok(store.subscribe(Subscription::call(listener))))?;
        Ok(Subscription::keep(heard, self.handle.life()))
    }

    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, |store| json::text(&store.stats()?))
    }

    #[pyo3(signature = (progress_callback))]
    fn verify(&self, py: Python<'_>, progress_callback: Option<Py<PyAny>>) -> PyResult<String> {
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| json::text(&store.verify(progress)?))
    }

    #[pyo3(signature = (path, progress_callback))]
    fn backup(
        &self,
        py: Python<'_>,
        path: PathBuf,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| store.backup(path, progress))
    }

    #[cfg(feature = "sqlcipher")]
    fn rekey(&self, py: Python<'_>, bytes: Vec<u8>) -> PyResult<()> {
        self.handle.call_long(py, |store| store.rekey(key(&bytes)?))
    }

    #[cfg(not(feature = "sqlcipher"))]
    fn rekey(&self, py: Python<'_>, bytes: Vec<u8>) -> PyResult<()> {
        drop(bytes);
        self.handle.call(py, |_| Err(NO_ENCRYPTION))
    }

    #[pyo3(signature = (progress_callback))]
    fn index(&self, py: Python<'_>, progress_callback: Option<Py<PyAny>>) -> PyResult<()> {
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| store.index(progress))
    }

    fn rebuild_search(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call_long(py, talktree::Store::rebuild_search)
    }

    fn recount_tokens(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call_long(py, talktree::Store::recount_tokens)
    }

    fn content_hash(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, talktree_import::export::content_hash)
    }
}

/// Returns a duration of seconds.
pub(crate) fn seconds_of(what: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}
