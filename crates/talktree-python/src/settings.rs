//! The settings of a session or a manager, from a dict that the Python half has checked.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use talktree::{Block, CompactionOptions, SessionBuilder};
use talktree_skills::SkillFolder;

use crate::call::detached;
use crate::callback::{Counter, Function, Policy, Provider, handle_error, submit};
use crate::error::exception;
use crate::handle::Life;

/// Returns the builder with the settings of a dict.
pub(crate) fn apply<Of>(
    mut builder: SessionBuilder<Of>,
    settings: &Bound<'_, PyDict>,
    life: &Life,
) -> PyResult<SessionBuilder<Of>> {
    for (name, value) in settings.iter() {
        let name: String = name.extract()?;
        builder = match name.as_str() {
            "blocks" => blocks(builder, &value)?,
            "cached_prompt" => builder.cached_prompt(),
            "history_tools" => builder.history_tools(),
            "session_search" => match value.extract::<String>()?.as_str() {
                "owner" => builder.session_search_of_owner(),
                _ => builder.session_search(),
            },
            "searchable_history" => builder.searchable_history(value.extract::<String>()?),
            "searchable_history_of_all" => {
                builder.searchable_history_of_all(value.extract::<String>()?)
            }
            "max_answer_tokens" => builder.max_answer_tokens(value.extract()?),
            "summarizer" => builder.summarizer(Function::new(value.unbind())),
            "compaction_policy" => builder.compaction_policy(Policy(Function::new(value.unbind()))),
            "compact_after" => builder.compact_after(value.extract()?),
            "compact_after_history" => builder.compact_after_history(value.extract()?),
            "compact_on" => {
                let (executor, life) = (Function::new(value.unbind()), life.clone());
                builder.compact_on(move |job| submit(&executor, &life, job))
            }
            "compaction_options" => builder.compaction_options(options(&value.extract()?)),
            "on_error" => {
                let handler = Function::new(value.unbind());
                builder.on_error(move |error| handle_error(&handler, error))
            }
            "token_counter" => {
                let (name, function): (String, Py<PyAny>) = value.extract()?;
                let (function, is_handled) =
                    (Function::new(function), settings.contains("on_error")?);
                builder.token_counter(Counter { name, function, is_handled })
            }
            other => return Err(PyKeyError::new_err(format!("no setting {other:?}"))),
        };
    }
    Ok(builder)
}

parts! {
    /// The options of a compaction as Python passes them; what is missing has its default.
    struct OptionParts {
        protect_head: Option<usize>,
        keep_recent_tokens: Option<u64>,
        min_tail: Option<usize>,
        max_step_tokens: Option<u64>,
        max_tool_chars: Option<usize>,
        target_share: Option<f64>,
        min_summary_tokens: Option<u64>,
    }
}

/// Returns the options of their parts.
pub(crate) fn options(parts: &OptionParts) -> CompactionOptions {
    let mut options = CompactionOptions::default();
    if let Some(messages) = parts.protect_head {
        options = options.protect_head(messages);
    }
    if let Some(tokens) = parts.keep_recent_tokens {
        options = options.keep_recent_tokens(tokens);
    }
    if let Some(messages) = parts.min_tail {
        options = options.min_tail(messages);
    }
    if let Some(tokens) = parts.max_step_tokens {
        options = options.max_step_tokens(tokens);
    }
    if let Some(chars) = parts.max_tool_chars {
        options = options.max_tool_chars(chars);
    }
    if let Some(share) = parts.target_share {
        options = options.target_share(share);
    }
    if let Some(tokens) = parts.min_summary_tokens {
        options = options.min_summary_tokens(tokens);
    }
    options
}

fn blocks<Of>(
    mut builder: SessionBuilder<Of>,
    blocks: &Bound<'_, PyAny>,
) -> PyResult<SessionBuilder<Of>> {
    for labelled in blocks.try_iter()? {
        let (label, parts): (String, BlockParts) = labelled?.extract()?;
        builder = builder.block(label, block(blocks.py(), parts)?);
    }
    Ok(builder)
}

parts! {
    /// A block as Python passes it.
    struct BlockParts {
        kind: String,
        source: Py<PyAny>,
        description: Option<String>,
        max_tokens: Option<u64>,
        is_reminding: bool,
        scope: String,
        is_read_only: bool,
    }
}

/// Returns the block of its parts.
pub(crate) fn block(py: Python<'_>, parts: BlockParts) -> PyResult<Block> {
    let source = parts.source;
    let provider = |source: Py<PyAny>| Provider(Function::new(source));
    let mut block = match parts.kind.as_str() {
        "text" => Block::text(source.extract::<String>(py)?),
        "read" => Block::read(provider(source)),
        "write" => Block::write(provider(source)),
        "skills" => Block::skills(provider(source)),
        "skill_folder" => Block::skills(skill_folder(py, &source)?),
        "searchable" => Block::searchable(provider(source)),
        "stored" => Block::stored(),
        "stored_skills" => Block::stored_skills(),
        "knowledge" => Block::knowledge(),
        "history" => Block::history(),
        other => return Err(PyKeyError::new_err(format!("no kind of block {other:?}"))),
    };
    if let Some(description) = parts.description {
        block = block.describe(description);
    }
    if let Some(tokens) = parts.max_tokens {
        block = block.max_tokens(tokens);
    }
    if parts.is_reminding {
        block = block.remind();
    }
    block = match parts.scope.as_str() {
        "all" => block.across_sessions(),
        "owner" => block.per_owner(),
        _ => block,
    };
    Ok(if parts.is_read_only { block.read_only() } else { block })
}

fn skill_folder(py: Python<'_>, source: &Py<PyAny>) -> PyResult<SkillFolder> {
    let (path, allowed): (PathBuf, Option<Vec<String>>) = source.extract(py)?;
    let folder = detached(py, || SkillFolder::open(path)).map_err(|error| exception(py, &error))?;
    Ok(match allowed {
        Some(keys) => folder.allow(keys),
        None => folder,
    })
}
