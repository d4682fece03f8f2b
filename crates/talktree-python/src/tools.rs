//! The tools of a session for a model.

use pyo3::prelude::*;
use talktree::{BoxError, Error, ToolCall};

use crate::call::{has_pending, python};
use crate::callback::Function;
use crate::json;
use crate::session::Session;

#[pymethods]
impl Session {
    /// Returns the tools in the format of a provider.
    fn tools(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        self.handle.call(py, |chat| {
            let tools = chat.tools();
            Ok(match format {
                "anthropic" => tools.anthropic(),
                "openai_chat" => tools.openai_chat(),
                "openai_responses" => tools.openai_responses(),
                _ => tools.mcp(),
            }
            .to_string())
        })
    }

    fn tool_names(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        let name = |tool: &talktree::ToolDefinition| tool.name;
        self.handle.call(py, |chat| Ok(chat.tools().definitions().iter().map(name).collect()))
    }

    fn call_tool(&self, py: Python<'_>, name: &str, input: &str) -> PyResult<String> {
        self.handle.call(py, |chat| chat.tools().call(name, json::value(input)?))
    }

    /// Runs the calls of a message; `run` gets the id, name and input of a call, and returns the JSON of its output.
    ///
    /// What ends a program or a task, such as a `KeyboardInterrupt`, is no result of a tool: it is raised, and the call and
    /// those after it have no result, so that they are run again.
    fn answer(&self, py: Python<'_>, message: &str, run: Py<PyAny>) -> PyResult<String> {
        let run = Function::new(run);
        self.handle.call(py, |chat| {
            let results = chat.tools().answer(&json::message(message)?, |call: &ToolCall| {
                let output: Result<String, BoxError> = python(|py| {
                    let input = call.input.to_string();
                    run.bind(py).call1((&call.id, &call.name, input))?.extract()
                });
                match output {
                    // As a value: the library stores it in the message.
                    Ok(output) => Ok(json::value(&output)?),
                    // Without an exception the interpreter is shutting down.
                    Err(error) if has_pending() || !error.is::<PyErr>() => {
                        Err(Error::Interrupted.into())
                    }
                    Err(error) => Err(error),
                }
            })?;
            json::text(&results)
        })
    }

    fn tool_stats(&self, py: Python<'_>) -> PyResult<Vec<(String, u64, u64, u64)>> {
        self.handle.call(py, |chat| {
            let stats = chat.tool_stats()?.into_iter();
            Ok(stats.map(|(name, it)| (name, it.calls, it.errors, it.unanswered)).collect())
        })
    }
}
