//! Embeddings: an embedder in Python, and the vectors of a store.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use serde_json::{Value, json};
use talktree::{BoxError, Embedding};

use crate::call::python;
use crate::callback::Function;
use crate::store::{Store, progress};

/// An embedder in Python: its name and a callable, which returns the `f32` of each vector as bytes.
pub(crate) type EmbedderParts = (String, Py<PyAny>);

pub(crate) fn embedder((name, function): EmbedderParts) -> Embedder {
    Embedder { name, function: Function::new(function) }
}

pub(crate) struct Embedder {
    name: String,
    function: Function,
}

impl talktree::Embedder for Embedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BoxError> {
        let vectors: Vec<PyBackedBytes> =
            python(|py| self.function.bind(py).call1((texts.to_vec(),))?.extract())?;
        Ok(vectors.iter().map(|bytes| floats(bytes)).collect())
    }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (values, _) = bytes.as_chunks();
    values.iter().copied().map(f32::from_ne_bytes).collect()
}

fn fields(embedding: &Embedding) -> Value {
    json!({
        "embedder": embedding.embedder,
        "dimensions": embedding.dimensions,
        "embedded": embedding.embedded,
        "pending": embedding.pending,
    })
}

#[pymethods]
impl Store {
    #[pyo3(signature = (given, progress_callback))]
    fn embed(
        &self,
        py: Python<'_>,
        given: EmbedderParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let embedder = embedder(given);
        let progress = progress(progress_callback);
        self.handle
            .call_long(py, |store| Ok(fields(&store.embed(&embedder, progress)?).to_string()))
    }

    fn embeddings(&self, py: Python<'_>) -> PyResult<String> {
        self.handle.call_long(py, |store| {
            let embeddings: Vec<Value> = store.embeddings()?.iter().map(fields).collect();
            Ok(Value::from(embeddings).to_string())
        })
    }

    fn remove_embedding(&self, py: Python<'_>, embedder: &str) -> PyResult<bool> {
        self.handle.call_long(py, |store| store.remove_embedding(embedder))
    }
}
