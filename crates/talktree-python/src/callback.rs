//! Python code that the library calls: summarizers, policies, counters, executors, handlers, providers of blocks;
//! embedders are in `embedding`.
//!
//! The Python half has wrapped each of them, so that they take and return strings, numbers and tuples.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use talktree::{
    BoxError, CompactionPolicy, CompactionWindow, Document, Error, Json, MessageId, RangeSummary,
    ReadProvider, SearchProvider, SkillProvider, Summarized, Summarizer, Summary, TokenCounter,
    WriteProvider,
};

use crate::call::{detached, keep_unheard, python, python_or_panic, run, take_unheard};
use crate::error::exception;
use crate::handle::{Life, Slot};
use crate::json;

/// A Python callable.
#[derive(Clone)]
pub(crate) struct Function(Arc<Py<PyAny>>);

impl Function {
    pub(crate) fn new(function: Py<PyAny>) -> Self {
        Self(Arc::new(function))
    }

    pub(crate) fn bind<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.0.bind(py)
    }
}

/// A summary as Python passes it: its text, its model, the JSON of its details.
pub(crate) type SummaryParts = (String, Option<String>, Option<String>);

/// Returns the summary of its parts.
pub(crate) fn summary_of(parts: SummaryParts) -> talktree::Result<Summary> {
    let (text, model, details) = parts;
    let mut summary = Summary::new(text);
    if let Some(model) = model {
        summary = summary.by(model);
    }
    if let Some(details) = details {
        summary = summary.details(Json::parse(&details)?);
    }
    Ok(summary)
}

impl Summarizer for Function {
    fn summarize(&self, prompt: &str) -> Result<Summarized, BoxError> {
        let answer: Option<SummaryParts> = python(|py| self.bind(py).call1((prompt,))?.extract())?;
        Ok(match answer {
            Some(parts) => Summarized::Summary(summary_of(parts)?),
            None => Summarized::Declined,
        })
    }
}

/// A compaction policy in Python: it gets the window as JSON, the suggested range and its prompt, and returns the ids of
/// the first and the last message and the summary.
pub(crate) struct Policy(pub(crate) Function);

impl CompactionPolicy for Policy {
    fn compact(&self, window: &CompactionWindow<'_>) -> Result<Option<RangeSummary>, BoxError> {
        let messages = json::text(window.messages())?;
        let tokens: Vec<u64> = (0..window.messages().len()).map(|at| window.tokens(at)).collect();
        let usage = json::text(&window.usage())?;
        let range = window.suggested().ok();
        let prompt = range.clone().and_then(|range| window.summary_prompt(range));
        let suggested = range.map(|range| (range.start, range.end));
        let threshold = window.threshold();
        let chosen: Option<(String, String, SummaryParts)> = python(|py| {
            let arguments = (messages, tokens, usage, threshold, suggested, prompt);
            self.0.bind(py).call1(arguments)?.extract()
        })?;
        let Some((first, last, parts)) = chosen else { return Ok(None) };
        let (first, last) = (MessageId::from(first), MessageId::from(last));
        Ok(Some(RangeSummary::new(&first, &last, summary_of(parts)?)))
    }
}

/// A token counter in Python.
pub(crate) struct Counter {
    pub(crate) name: String,
    pub(crate) function: Function,
    /// Whether the session has an error handler. It receives the first failures only.
    pub(crate) is_handled: bool,
}

impl TokenCounter for Counter {
    fn name(&self) -> &str {
        &self.name
    }

    fn count_text(&self, text: &str) -> f64 {
        let count = python(|py| self.function.bind(py).call1((text,))?.extract());
        count.unwrap_or_else(|error| {
            keep_unheard(error, self.is_handled);
            f64::NAN
        })
    }
}

/// Calls the error handler of a session with the exception of an error.
pub(crate) fn handle_error(handler: &Function, error: &Error) {
    let unheard = match error {
        Error::Callback { .. } | Error::TokenCounter { .. } => take_unheard(),
        _ => None,
    };
    let called = python(|py| {
        let raised = unheard.unwrap_or_else(|| exception(py, error));
        handler.bind(py).call1((raised.into_value(py),)).map(drop)
    });
    if let Err(error) = called {
        keep_unheard(error, false);
    }
}

/// What an executor runs once.
type Work = Box<dyn FnOnce() + Send>;

/// Gives a compaction to an executor in Python.
pub(crate) fn submit(executor: &Function, life: &Life, job: Work) {
    let life = life.clone();
    python_or_panic(move |py| {
        let slot = life.keep(Mutex::new(Some(job)));
        executor.bind(py).call1((Job(slot),)).map(drop)
    });
}

/// A compaction that an executor runs by calling it, once.
#[pyclass(frozen, module = "talktree._native", name = "Job")]
pub(crate) struct Job(Slot<Mutex<Option<Work>>>);

#[pymethods]
impl Job {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let Some(job) = self.0.take() else { return Ok(()) };
        let job = job.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Ok(running) = self.0.life().enter(py) else {
            // The store was closed between; the job is dropped without the interpreter's lock.
            detached(py, || drop(job));
            return Ok(());
        };
        let done = run(py, self.0.life(), move || {
            if let Some(job) = job {
                job();
            }
            Ok(())
        });
        drop(running);
        done
    }
}

/// A provider of a block in Python: an adapter with the methods of the traits.
pub(crate) struct Provider(pub(crate) Function);

impl Provider {
    fn call<T>(
        &self,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Result<T, BoxError> {
        python(|py| call(self.0.bind(py)))
    }

    fn is_writable(&self) -> bool {
        self.call(|adapter| adapter.getattr("is_writable")?.extract()).unwrap_or(false)
    }

    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        let Document { key, title, description, content, .. } = document;
        self.call(|adapter| {
            adapter.call_method1("set_keyed", (key, title, description, content)).map(drop)
        })
    }
}

impl ReadProvider for Provider {
    fn init(&self, label: &str) -> Result<(), BoxError> {
        self.call(|adapter| adapter.call_method1("init", (label,)).map(drop))
    }

    fn get(&self) -> Result<String, BoxError> {
        self.call(|adapter| adapter.call_method0("get")?.extract())
    }
}

impl WriteProvider for Provider {
    fn set(&self, content: &str) -> Result<(), BoxError> {
        self.call(|adapter| adapter.call_method1("set", (content,)).map(drop))
    }
}

impl SkillProvider for Provider {
    fn load(&self, key: &str) -> Result<Option<String>, BoxError> {
        self.call(|adapter| adapter.call_method1("load", (key,))?.extract())
    }

    fn is_writable(&self) -> bool {
        self.is_writable()
    }

    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        self.set_keyed(document)
    }
}

/// A document as Python passes it: key, title, description, content.
pub(crate) type DocumentParts = (String, Option<String>, Option<String>, String);

pub(crate) fn document_of(parts: DocumentParts) -> Document {
    let (key, title, description, content) = parts;
    let mut document = Document::new(key, content);
    document.title = title;
    document.description = description;
    document
}

impl SearchProvider for Provider {
    fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>, BoxError> {
        let found: Vec<DocumentParts> =
            self.call(|adapter| adapter.call_method1("search", (query, limit))?.extract())?;
        Ok(found.into_iter().map(document_of).collect())
    }

    fn is_writable(&self) -> bool {
        self.is_writable()
    }

    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        self.set_keyed(document)
    }
}
