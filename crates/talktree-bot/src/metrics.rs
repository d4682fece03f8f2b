//! Metrics of the bot, for Prometheus.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::{
    Histogram, IntCounter, IntCounterVec, IntGauge, Registry, TextEncoder, histogram_opts,
    register_histogram_with_registry as seconds, register_int_counter_vec_with_registry as kinds,
    register_int_counter_with_registry as counter, register_int_gauge_with_registry as gauge,
};
use talktree::{Message, Usage};

use crate::error::{Error, Result};
use crate::models::{Flow, Model, Turn};

/// The buckets of times, in seconds: from what the bot itself needs to the longest answers of models.
const SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// The metrics. Clones share their counts.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    pub(crate) received: IntCounter,
    pub(crate) duplicate: IntCounter,
    pub(crate) ignored: IntCounterVec,
    pub(crate) turns: IntCounter,
    pub(crate) broken: IntCounter,
    pub(crate) undeliverable: IntCounter,
    pub(crate) edits: IntCounter,
    pub(crate) too_many: IntCounter,
    pub(crate) retries: IntCounter,
    pub(crate) pending: IntGauge,
    pub(crate) first_text: Histogram,
    model_seconds: Histogram,
    tokens: IntCounterVec,
}

impl Metrics {
    /// Returns metrics that are all zero.
    ///
    /// # Errors
    /// If two metrics have the same name.
    pub fn new() -> Result<Self> {
        Self::register(Registry::new()).map_err(failed)
    }

    #[rustfmt::skip] // one metric a line
    fn register(all: Registry) -> prometheus::Result<Self> {
        let time = |name: &str, help: &str| histogram_opts!(name, help, SECONDS.to_vec());
        Ok(Self {
            received: counter!("talktree_bot_updates_received_total", "Updates that were received", all)?,
            duplicate: counter!("talktree_bot_updates_duplicate_total", "Updates that were delivered again", all)?,
            ignored: kinds!("talktree_bot_updates_ignored_total", "Updates that were not handled", &["why"], all)?,
            turns: counter!("talktree_bot_turns_total", "Updates that were handled", all)?,
            broken: counter!("talktree_bot_replies_broken_total", "Replies without an answer", all)?,
            undeliverable: counter!("talktree_bot_replies_undeliverable_total", "Replies that Telegram refused", all)?,
            edits: counter!("talktree_bot_edits_total", "Edits of messages", all)?,
            too_many: counter!("talktree_bot_calls_refused_for_rate_total", "Answers with status 429", all)?,
            retries: counter!("talktree_bot_calls_retried_total", "Calls that were repeated", all)?,
            pending: gauge!("talktree_bot_pending", "Updates that wait or are being handled", all)?,
            first_text: seconds!(time("talktree_bot_first_text_seconds", "From an update to the first text of its reply, without the model"), all)?,
            model_seconds: seconds!(time("talktree_bot_model_seconds", "How long the model took for an answer"), all)?,
            tokens: kinds!("talktree_bot_tokens_total", "Tokens of requests and answers", &["kind"], all)?,
            registry: all,
        })
    }

    /// Returns the metrics in the text format of Prometheus.
    ///
    /// # Errors
    /// If a metric cannot be written as text.
    pub fn text(&self) -> Result<String> {
        TextEncoder::new().encode_to_string(&self.registry.gather()).map_err(failed)
    }

    /// Returns a model that counts the times and tokens of its answers here.
    #[must_use]
    pub fn measure(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(Measured { model, metrics: self.clone() })
    }

    fn count_tokens(&self, answer: &Message) {
        let Some(Usage { input, output, cache_read, cache_write, .. }) = Usage::of(answer) else {
            return;
        };
        for (kind, tokens) in ["input", "output", "cache_read", "cache_write"].into_iter().zip([
            input,
            output,
            cache_read,
            cache_write,
        ]) {
            self.tokens.with_label_values(&[kind]).inc_by(tokens);
        }
    }
}

fn failed(error: prometheus::Error) -> Error {
    Error::System { what: "the metrics for Prometheus", source: io::Error::other(error) }
}

thread_local! {
    static IN_MODEL: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Returns how long this thread has waited for models, all calls together.
pub(crate) fn time_in_model() -> Duration {
    IN_MODEL.get()
}

/// A model that is measured. The time that `on_text` takes does not count: it is the front end's.
#[derive(Debug)]
struct Measured {
    model: Arc<dyn Model>,
    metrics: Metrics,
}

impl Model for Measured {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn answer(&self, turn: Turn<'_>, on_text: &mut dyn FnMut(&str) -> Flow) -> Result<Message> {
        let mut since = Instant::now();
        let before = IN_MODEL.get();
        let answer = self.model.answer(turn, &mut |text| {
            IN_MODEL.set(IN_MODEL.get() + since.elapsed());
            let flow = on_text(text);
            since = Instant::now();
            flow
        });
        IN_MODEL.set(IN_MODEL.get() + since.elapsed());
        self.metrics.model_seconds.observe((IN_MODEL.get() - before).as_secs_f64());
        if let Ok(answer) = &answer {
            self.metrics.count_tokens(answer);
        }
        answer
    }

    fn summarize(&self, prompt: &str) -> Result<String> {
        self.model.summarize(prompt)
    }
}
