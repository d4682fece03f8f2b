//! Retention: rules that discard sessions.

use std::time::Duration;

use pyo3::prelude::*;
use talktree::{Progress, Result, Retention, RetentionRule, RetentionRun};

use crate::json;
use crate::manager::Manager;
use crate::store::{Store, progress, seconds_of};

parts! {
    /// A rule as Python passes it.
    struct RuleParts {
        name: String,
        owner: Option<String>,
        source: Option<String>,
        model: Option<String>,
        tag: Option<String>,
        is_ended: bool,
        older_than: Option<f64>,
        idle_for: Option<f64>,
        more_messages_than: Option<u64>,
        more_bytes_than: Option<u64>,
        keep_sessions: Option<u64>,
        keep_messages: Option<u64>,
        keep_bytes: Option<u64>,
        is_per_owner: bool,
        action: String,
    }
}

parts! {
    /// Rules, and how they are run, as Python passes them.
    struct RetentionParts {
        rules: Vec<RuleParts>,
        empty_trash_after: Option<f64>,
        allow_all: bool,
        as_of: Option<String>,
        dry_run: bool,
    }
}

fn duration(what: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    seconds.map(|seconds| seconds_of(what, seconds)).transpose()
}

fn rule(parts: RuleParts) -> PyResult<RetentionRule> {
    fn with<T>(
        rule: RetentionRule,
        value: Option<T>,
        set: impl FnOnce(RetentionRule, T) -> RetentionRule,
    ) -> RetentionRule {
        match value {
            Some(value) => set(rule, value),
            None => rule,
        }
    }
    let mut rule = RetentionRule::new(parts.name);
    rule = with(rule, parts.owner, RetentionRule::owner);
    rule = with(rule, parts.source, RetentionRule::source);
    rule = with(rule, parts.model, RetentionRule::model);
    rule = with(rule, parts.tag, RetentionRule::tag);
    rule = with(rule, duration("older_than", parts.older_than)?, RetentionRule::older_than);
    rule = with(rule, duration("idle_for", parts.idle_for)?, RetentionRule::idle_for);
    rule = with(rule, parts.more_messages_than, RetentionRule::more_messages_than);
    rule = with(rule, parts.more_bytes_than, RetentionRule::more_bytes_than);
    rule = with(rule, parts.keep_sessions, RetentionRule::keep_sessions);
    rule = with(rule, parts.keep_messages, RetentionRule::keep_messages);
    rule = with(rule, parts.keep_bytes, RetentionRule::keep_bytes);
    if parts.is_ended {
        rule = rule.ended();
    }
    if parts.is_per_owner {
        rule = rule.per_owner();
    }
    Ok(match parts.action.as_str() {
        "remove" => rule.remove(),
        "erase" => rule.erase(),
        _ => rule,
    })
}

/// How rules are run.
struct How {
    as_of: Option<String>,
    is_dry: bool,
}

fn retention(parts: RetentionParts) -> PyResult<(Retention, How)> {
    let mut retention = Retention::new();
    for parts in parts.rules {
        retention = retention.rule(rule(parts)?);
    }
    if let Some(term) = duration("empty_trash_after", parts.empty_trash_after)? {
        retention = retention.empty_trash_after(term);
    }
    if parts.allow_all {
        retention = retention.allow_all();
    }
    Ok((retention, How { as_of: parts.as_of, is_dry: parts.dry_run }))
}

fn run<'p>(
    run: RetentionRun<'p>,
    how: &How,
    progress: impl FnMut(Progress) + 'p,
) -> Result<String> {
    let run = match json::maybe_time(how.as_of.as_deref())? {
        Some(time) => run.as_of(time),
        None => run,
    };
    let run = run.progress(progress);
    json::text(&if how.is_dry { run.dry_run()? } else { run.run()? })
}

#[pymethods]
impl Store {
    fn retention(
        &self,
        py: Python<'_>,
        given: RetentionParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let (retention, how) = retention(given)?;
        let progress = progress(progress_callback);
        self.handle.call_long(py, |store| run(store.retention(retention), &how, progress))
    }
}

#[pymethods]
impl Manager {
    fn retention(
        &self,
        py: Python<'_>,
        given: RetentionParts,
        progress_callback: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let (retention, how) = retention(given)?;
        let progress = progress(progress_callback);
        self.handle.call_long(py, |bot| run(bot.store().retention(retention), &how, progress))
    }
}
