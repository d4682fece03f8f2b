//! The origin of a part: signatures, ids of items and other fields by which its provider accepts it again.
//!
//! A provider's own response holds it in fields of the part. The AI SDK puts it under the provider's name into
//! `providerMetadata` (of a call, `callProviderMetadata`), Pydantic AI under its own name there, and Pi into `thinkingSignature`.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use talktree::{Extra, Json, Message, Reasoning};

/// The fields of a chat that hold reasoning. Pi stores the name of the field where others store a signature.
const FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// Where a message of the model came from.
pub(super) struct Origin {
    metadata: Value,
    created_at: DateTime<Utc>,
}

impl Origin {
    pub(super) fn of(message: &Message) -> Self {
        // Most metadata says nothing of this, and parsing it costs time.
        let says = |json: &&Json| {
            ["\"api\"", "\"container\""].iter().any(|field| json.as_str().contains(field))
        };
        let metadata = message.metadata.as_ref().filter(says).map(Json::value);
        Self { metadata: metadata.unwrap_or_default(), created_at: message.created_at }
    }

    /// Returns the container in which tools of the provider ran: its id, until when it can be used, and when it was.
    pub(super) fn container(&self) -> Option<Value> {
        let container = &self.metadata["container"];
        let id = container["id"].as_str().filter(|id| !id.is_empty())?;
        let ends =
            container["expires_at"].as_str().and_then(|time| time.parse::<DateTime<Utc>>().ok());
        ends.is_none_or(|ends| ends > self.created_at).then(|| json!(id))
    }

    /// Returns the data of reasoning that its provider encrypted.
    pub(super) fn redacted(&self, reasoning: &Reasoning) -> Option<String> {
        if let Some(data) = field(&reasoning.extra, "redactedData", ("anthropic", "redactedData")) {
            return Some(data);
        }
        let is_redacted =
            reasoning.extra.get("redacted").is_some_and(|json| json.as_str() == "true");
        is_redacted.then(|| self.signature_of_pi(reasoning)).flatten()
    }

    /// Returns the reasoning with the signature of Anthropic where its provider's API has one.
    pub(super) fn signed(&self, reasoning: &Reasoning) -> Reasoning {
        let mut reasoning = reasoning.clone();
        if !reasoning.extra.contains_key("signature")
            && let Some(signature) = self.signature_of_pi(&reasoning)
        {
            reasoning.extra.insert("signature".to_owned(), Value::from(signature).into());
        }
        reasoning
    }

    /// Returns the signature of Anthropic that a Pi log holds. Pi stores those of other providers in the same field.
    fn signature_of_pi(&self, reasoning: &Reasoning) -> Option<String> {
        let signature = text(reasoning.extra.get("thinkingSignature")?)?;
        let is_of_anthropic = match self.metadata["api"].as_str() {
            Some(api) => api.starts_with("anthropic"),
            None => !FIELDS.contains(&signature.as_str()) && !signature.starts_with('{'),
        };
        is_of_anthropic.then_some(signature)
    }
}

/// Returns a field that came with a part: its own, or the one of this provider and name in the AI SDK's metadata.
pub(super) fn field(extra: &Extra, own: &str, of_ui: (&str, &str)) -> Option<String> {
    value(extra, own, of_ui).as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns a [`field`] of any type; null if there is none.
pub(super) fn value(extra: &Extra, own: &str, (provider, name): (&str, &str)) -> Value {
    if let Some(json) = extra.get(own) {
        return json.value();
    }
    let metadata = ["providerMetadata", "callProviderMetadata"].iter();
    let found = metadata.filter_map(|field| extra.get(*field)).find_map(|metadata| {
        let metadata = metadata.value();
        let given = [&metadata[provider][name], of_pydantic(&metadata, provider, name)];
        given.into_iter().find(|value| !value.is_null()).cloned()
    });
    found.unwrap_or_default()
}

/// Returns the field of Pydantic AI's metadata for a field of a provider; null if it has none, or is of another provider.
fn of_pydantic<'v>(metadata: &'v Value, provider: &str, name: &str) -> &'v Value {
    let of = &metadata["pydantic_ai"];
    let details = &of["provider_details"];
    let is_of_provider = of["provider_name"].as_str().is_some_and(|it| it.starts_with(provider));
    let is_redacted = of["id"] == "redacted_thinking";
    match name {
        _ if !is_of_provider => &Value::Null,
        "signature" if !is_redacted => &of["signature"],
        "redactedData" if is_redacted => &of["signature"],
        "reasoningEncryptedContent" => &of["signature"],
        "itemId" => &of["id"],
        "thoughtSignature" => &details["thought_signature"],
        _ => &Value::Null,
    }
}

/// Returns the signature without which Anthropic does not accept its own reasoning.
pub(super) fn signature(reasoning: &Reasoning) -> Option<String> {
    field(&reasoning.extra, "signature", ("anthropic", "signature"))
}

/// Returns the field of a chat in which a server wrote this reasoning and wants it back; `None` for reasoning that belongs to
/// a provider with an API of its own.
pub(super) fn chat_field(reasoning: &Reasoning) -> Option<&'static str> {
    let extra = &reasoning.extra;
    let is_of_others = signature(reasoning).is_some()
        || extra.contains_key("encrypted_content")
        || field(extra, "id", ("openai", "itemId")).is_some_and(|id| id.starts_with("rs"))
        || field(extra, "thoughtSignature", ("google", "thoughtSignature")).is_some();
    if is_of_others || reasoning.text.trim().is_empty() {
        return None;
    }
    let named = ["thinkingSignature", "field"].iter().find_map(|name| text(extra.get(*name)?));
    match named {
        Some(named) => FIELDS.into_iter().find(|field| *field == named),
        None => Some("reasoning_content"),
    }
}

fn text(json: &Json) -> Option<String> {
    json.value().as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}
