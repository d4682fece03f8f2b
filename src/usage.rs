//! Usage: how many tokens an answer of a model took.
//!
//! Providers count in different ways: some leave cached tokens out of the input, others count them in. A [`Usage`] has one
//! meaning for all of them. An answer is stored with the numbers as its provider gave them, in the field `usage` of its
//! metadata; [`Usage::of`] reads them. The *ledger* adds up what answers took.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::id::{SessionId, check_given};
use crate::message::{Message, Role};

/// The field of the metadata that holds the usage.
const FIELD: &str = "usage";

/// The fields by which usage is recognized as written by [`Message::with_usage`]; others have `input` and `output`, too.
const OWN: [&str; 3] = ["cache_read", "cache_write", "reasoning"];

/// The maximum number of tokens that is believed: a hundred times what the largest models take. A number over it is ignored,
/// because one wrong answer of a server would hide all others in a sum.
const MAX_TOKENS: u64 = 1_000_000_000;
/// The maximum price that is believed: a million of the currency.
const MAX_MICROS: u64 = 1_000_000_000_000;

/// How many tokens an answer of a model took.
///
/// `input` has all tokens of the request and `output` all of the answer; the other numbers say how many of those were
/// cached or thought.
///
/// ```
/// use serde_json::json;
/// use talktree::{Message, Usage};
///
/// let of_provider = json!({"input_tokens": 12, "cache_read_input_tokens": 100, "output_tokens": 30});
/// let answer = Message::assistant("4").with_metadata(json!({"model": "small", "usage": of_provider}));
/// let usage = Usage::of(&answer).unwrap();
/// assert_eq!((usage.input, usage.cache_read, usage.output), (112, 100, 30));
/// assert_eq!(usage.model.as_deref(), Some("small"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// The model that answered, as the provider names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens of the request, cached ones included.
    pub input: u64,
    /// The tokens of the answer, reasoning included.
    pub output: u64,
    /// How many tokens of the input were read from the provider's cache.
    pub cache_read: u64,
    /// How many tokens of the input were written to the provider's cache.
    pub cache_write: u64,
    /// How many tokens of the output were reasoning.
    pub reasoning: u64,
    /// The price, if the provider or the program names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money.
///
/// ```
/// use talktree::Cost;
///
/// let cost = Cost { micros: 1_250, currency: "USD".to_owned() };
/// assert_eq!(serde_json::to_string(&cost)?, r#"{"micros":1250,"currency":"USD"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The amount in millionths of the currency.
    pub micros: u64,
    /// The code of the currency, such as `USD`.
    pub currency: String,
}

impl Usage {
    /// Returns the usage that came with an answer; `None` if the message has none.
    ///
    /// It is read from the field `usage` of the metadata, in the form of any provider, of the AI SDK or of
    /// [`Message::with_usage`], and from where the imports of Claude Code and Pi keep it. Only messages of the role
    /// `assistant` have a usage.
    ///
    /// A number of tokens that is negative or over 1 000 000 000 is ignored, and so is a price over a million.
    ///
    /// Claude Code writes one answer as several records, each with the usage of all of it. The ledger counts it once.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        if message.role != Role::Assistant {
            return None;
        }
        let own = message.field(FIELD).map(|usage| usage.value()).filter(Value::is_object);
        let (usage, model) = match own {
            Some(usage) => (usage, message.field("model").map(|model| model.value())),
            None => {
                // Claude Code keeps it with the answer of the provider.
                let mut about = message.field("message")?.value();
                let about = about.as_object_mut()?;
                (about.remove(FIELD)?, about.remove("model"))
            }
        };
        let mut usage = Self::read(usage.as_object()?)?;
        usage.model = usage.model.or_else(|| Some(model?.as_str()?.to_owned()));
        Some(usage)
    }

    /// Returns an error if a number is over its limit: in a sum it would hide all others.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { input, output, cache_read, cache_write, reasoning, cost, .. } = self;
        let tokens = [input, output, cache_read, cache_write, reasoning];
        let tokens = tokens.into_iter().map(|tokens| ("number of tokens", *tokens, MAX_TOKENS));
        let price = cost.iter().map(|cost| ("price in millionths", cost.micros, MAX_MICROS));
        match tokens.chain(price).find(|(_, number, max)| number > max) {
            Some((what, number, max)) => {
                let why = format!("it is over the limit of {max}");
                Err(Error::InvalidValue { what, given: number.to_string(), why })
            }
            None => Ok(()),
        }
    }

    /// Returns the provider's id of the answer that a message is a part of, if it came as several messages.
    pub(crate) fn answer_of(message: &Message) -> Option<String> {
        let about = message.field("message")?.value();
        about.get("id")?.as_str().map(str::to_owned)
    }

    /// Reads the `usage` of a provider's response, or one that was stored; `None` if it has no number of tokens.
    fn read(fields: &Map<String, Value>) -> Option<Self> {
        if OWN.iter().all(|field| fields.contains_key(*field)) {
            let own: Self = serde_json::from_value(Value::Object(fields.clone())).ok()?;
            let believed = |tokens: u64| if tokens <= MAX_TOKENS { tokens } else { 0 };
            return Some(Self {
                input: believed(own.input),
                output: believed(own.output),
                cache_read: believed(own.cache_read),
                cache_write: believed(own.cache_write),
                reasoning: believed(own.reasoning),
                cost: own.cost.filter(|cost| cost.micros <= MAX_MICROS),
                model: own.model,
            });
        }
        let number = |names: &[&str]| names.iter().find_map(|name| tokens(fields.get(*name)?));
        let within = |outer: &[&str], names: &[&str]| {
            let inner = outer.iter().find_map(|name| fields.get(*name)?.as_object())?;
            names.iter().find_map(|name| tokens(inner.get(*name)?))
        };
        let input = number(&["input_tokens", "prompt_tokens", "inputTokens", "input"])
            .or_else(|| within(&["inputTokens"], &["total"]));
        let output = number(&["output_tokens", "completion_tokens", "outputTokens", "output"])
            .or_else(|| within(&["outputTokens"], &["total"]));
        if input.is_none() && output.is_none() {
            return None;
        }
        // These are counted beside the input: by Anthropic, and by Pi.
        let read_beside = number(&["cache_read_input_tokens", "cacheRead"]);
        let written_beside = number(&["cache_creation_input_tokens", "cacheWrite"]);
        // These are counted in it.
        let details =
            ["input_tokens_details", "prompt_tokens_details", "inputTokenDetails", "inputTokens"];
        let read_in = within(&details, &["cached_tokens", "cacheReadTokens", "cacheRead"])
            .or_else(|| number(&["cachedInputTokens", "prompt_cache_hit_tokens"]));
        let written_in =
            within(&details, &["cache_write_tokens", "cacheWriteTokens", "cacheWrite"]);
        let details = [
            "output_tokens_details",
            "completion_tokens_details",
            "outputTokenDetails",
            "outputTokens",
        ];
        let reasoning = ["reasoning_tokens", "thinking_tokens", "reasoningTokens", "reasoning"];
        let reasoning =
            within(&details, &reasoning).or_else(|| number(&["reasoningTokens", "reasoning"]));
        let beside = read_beside.unwrap_or(0).saturating_add(written_beside.unwrap_or(0));
        Some(Self {
            model: fields.get("model").and_then(Value::as_str).map(str::to_owned),
            input: input.unwrap_or(0).saturating_add(beside),
            output: output.unwrap_or(0),
            cache_read: read_beside.or(read_in).unwrap_or(0),
            cache_write: written_beside.or(written_in).unwrap_or(0),
            reasoning: reasoning.unwrap_or(0),
            cost: fields.get("cost").and_then(cost),
        })
    }
}

/// Returns a number of tokens. Some servers write it as a float.
fn tokens(number: &Value) -> Option<u64> {
    number.as_u64().or_else(|| whole(number.as_f64()?)).filter(|tokens| *tokens <= MAX_TOKENS)
}

/// Returns the number rounded; `None` if it is negative or not a number. A number out of range is the largest one.
fn whole(number: f64) -> Option<u64> {
    (number >= 0.0).then(|| number.round() as u64)
}

/// Returns the cost in dollars, as OpenRouter and Pi name it.
fn cost(cost: &Value) -> Option<Cost> {
    let dollars = cost.as_f64().or_else(|| cost["total"].as_f64())?;
    let micros = whole(dollars * 1e6).filter(|micros| *micros <= MAX_MICROS)?;
    Some(Cost { micros, currency: "USD".to_owned() })
}

impl Message {
    /// Returns the message with this usage in the field `usage` of its metadata.
    ///
    /// For programs that read responses themselves, or that know the price. [`Usage::of`] reads it again.
    ///
    /// ```
    /// use talktree::{Cost, Message, Usage};
    ///
    /// let cost = Some(Cost { micros: 420, currency: "EUR".to_owned() });
    /// let usage = Usage { input: 12, output: 30, cost, ..Usage::default() };
    /// let answer = Message::assistant("4").with_usage(&usage);
    /// assert_eq!(Usage::of(&answer), Some(usage));
    /// ```
    #[must_use]
    pub fn with_usage(self, usage: &Usage) -> Self {
        // A struct of texts and numbers is always JSON.
        let usage = serde_json::to_value(usage).unwrap_or_default();
        self.with_field(FIELD, usage)
    }
}

/// Which usage is added up. The default is all of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// Of this session. What a fork copied counts in the session where it was written.
    pub session: Option<SessionId>,
    /// Of the sessions of this owner.
    pub owner: Option<String>,
    /// Of the answers to this person, named by [`Author::key`](crate::Author::key). An answer is to the author of the nearest
    /// message above it that has one, among the 256 messages appended before it; that is noted when the answer is stored.
    pub author: Option<String>,
    /// Of this model.
    pub model: Option<String>,
    /// Of the sessions from this source.
    pub source: Option<String>,
    /// Not older.
    pub since: Option<DateTime<Utc>>,
    /// Older.
    pub until: Option<DateTime<Utc>>,
}

impl UsageFilter {
    /// Checks that owner, author, model and source are not empty.
    ///
    /// # Errors
    /// [`Error::InvalidValue`].
    pub(crate) fn check(&self) -> Result<()> {
        check_given([
            ("owner", &self.owner),
            ("author", &self.author),
            ("model", &self.model),
            ("source", &self.source),
        ])
    }
}

/// By what usage is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UsageGroup {
    /// Everything is one sum.
    #[default]
    All,
    /// By model.
    Model,
    /// By day, in UTC: `2026-01-31`.
    Day,
    /// By owner.
    Owner,
    /// By the person who was answered.
    Author,
    /// By session.
    Session,
    /// By the source of the session.
    Source,
}

/// What several answers took.
///
/// ```
/// use talktree::{Message, Store, Usage};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let usage = Usage { input: 100, output: 20, ..Usage::default() };
/// chat.append(Message::assistant("4").with_usage(&usage))?;
/// chat.add_usage(None, &usage)?; // of a call that left no message
///
/// let total = chat.usage()?;
/// assert_eq!((total.answers, total.input, total.output), (2, 200, 40));
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct UsageTotal {
    /// The model, day, owner, author, session or source, if it is a sum for each of these; `None` for answers without one.
    pub group: Option<String>,
    /// How many answers.
    pub answers: u64,
    /// The tokens of the requests, cached ones included.
    pub input: u64,
    /// The tokens of the answers, reasoning included.
    pub output: u64,
    /// How many tokens of the input were read from a cache.
    pub cache_read: u64,
    /// How many tokens of the input were written to a cache.
    pub cache_write: u64,
    /// How many tokens of the output were reasoning.
    pub reasoning: u64,
    /// The known costs, one sum a currency, sorted by currency.
    pub costs: Vec<Cost>,
}

impl UsageTotal {
    /// Adds another total.
    pub(crate) fn add(&mut self, other: Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        for cost in other.costs {
            match self.costs.binary_search_by(|own| own.currency.cmp(&cost.currency)) {
                Ok(at) => self.costs[at].micros = self.costs[at].micros.saturating_add(cost.micros),
                Err(at) => self.costs.insert(at, cost),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_usage_of_each_provider_has_the_same_meaning() {
        let usd = |micros| json!({"micros": micros, "currency": "USD"});
        for (who, given, expected) in [
            (
                "Anthropic",
                json!({"input_tokens": 12, "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 8, "output_tokens": 30}),
                json!({"input": 120, "output": 30, "cache_read": 100, "cache_write": 8}),
            ),
            (
                "Anthropic without a cache",
                json!({"input_tokens": 12, "cache_read_input_tokens": null, "output_tokens": 30}),
                json!({"input": 12, "output": 30}),
            ),
            (
                "OpenAI chat",
                json!({"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150,
                    "prompt_tokens_details": {"cached_tokens": 100},
                    "completion_tokens_details": {"reasoning_tokens": 20}}),
                json!({"input": 120, "output": 30, "cache_read": 100, "reasoning": 20}),
            ),
            (
                "OpenAI responses",
                json!({"input_tokens": 120, "output_tokens": 30,
                    "input_tokens_details": {"cached_tokens": 100},
                    "output_tokens_details": {"reasoning_tokens": 20}}),
                json!({"input": 120, "output": 30, "cache_read": 100, "reasoning": 20}),
            ),
            (
                "OpenRouter",
                json!({"prompt_tokens": 120, "completion_tokens": 30, "cost": 0.00125}),
                json!({"input": 120, "output": 30, "cost": usd(1250)}),
            ),
            (
                "DeepSeek",
                json!({"prompt_tokens": 120, "prompt_cache_hit_tokens": 64, "completion_tokens": 1}),
                json!({"input": 120, "output": 1, "cache_read": 64}),
            ),
            (
                "AI SDK 5",
                json!({"inputTokens": 120, "outputTokens": 30, "reasoningTokens": 20,
                    "cachedInputTokens": 100}),
                json!({"input": 120, "output": 30, "cache_read": 100, "reasoning": 20}),
            ),
            (
                "AI SDK 6",
                json!({"inputTokens": {"total": 120, "cacheRead": 100, "cacheWrite": 8},
                    "outputTokens": {"total": 30, "reasoning": 20}}),
                json!({"input": 120, "output": 30, "cache_read": 100, "cache_write": 8,
                    "reasoning": 20}),
            ),
            (
                "Pi",
                json!({"input": 12, "output": 30, "cacheRead": 100, "cacheWrite": 8,
                    "totalTokens": 150, "cost": {"input": 0.1, "total": 0.25}}),
                json!({"input": 120, "output": 30, "cache_read": 100, "cache_write": 8,
                    "cost": usd(250_000)}),
            ),
            ("a server that writes floats", json!({"prompt_tokens": 3.0}), json!({"input": 3})),
            (
                "a hostile server",
                json!({"input_tokens": u64::MAX, "cache_read_input_tokens": 9, "output_tokens": 5,
                    "cost": -1}),
                json!({"input": 9, "output": 5, "cache_read": 9}),
            ),
            (
                "a hostile server with other numbers",
                json!({"prompt_tokens": MAX_TOKENS, "completion_tokens": -4,
                    "prompt_tokens_details": {"cached_tokens": 1e18}}),
                json!({"input": MAX_TOKENS}),
            ),
        ] {
            let message = Message::assistant("4").with_metadata(json!({"usage": given}));
            let expected: Usage = serde_json::from_value(expected).unwrap();
            assert_eq!(Usage::of(&message), Some(expected), "{who}");
        }
    }

    #[test]
    fn a_message_without_numbers_has_no_usage() {
        for metadata in [
            json!(null),
            json!("usage"),
            json!({"usage": null}),
            json!({"usage": 7}),
            json!({"usage": {"total_tokens": 9}}),
            json!({"usage": {"input_tokens": MAX_TOKENS + 1, "output_tokens": -1}}),
            json!({"message": {"usage": []}}),
        ] {
            let message = Message::assistant("4").with_metadata(metadata.clone());
            assert_eq!(Usage::of(&message), None, "{metadata}");
        }
        assert_eq!(Usage::of(&Message::assistant("4")), None);
        let metadata = json!({"usage": {"input_tokens": 1}});
        assert_eq!(Usage::of(&Message::user("4").with_metadata(metadata)), None);
    }

    #[test]
    fn a_number_that_is_no_rust_number_hides_nothing_beside_it() {
        let metadata = r#"{"n": 1e400, "model": "large", "usage": {"input_tokens": 3}}"#;
        let message = Message::assistant("4").with_metadata(crate::Json::parse(metadata).unwrap());
        assert_eq!(Usage::of(&message).map(|usage| usage.input), Some(3));
    }

    #[test]
    fn an_import_of_claude_code_keeps_it_with_the_answer() {
        let about = json!({"id": "msg_1", "model": "large", "usage": {"output_tokens": 3}});
        let message = Message::assistant("4").with_metadata(json!({"message": about}));
        let usage = Usage { model: Some("large".to_owned()), output: 3, ..Usage::default() };
        assert_eq!(Usage::of(&message), Some(usage));
    }
}
