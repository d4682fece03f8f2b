//! The tools, and what a model may give them: `offers.json` has their schemas, by which arguments are checked.

use std::sync::LazyLock;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use talktree::search::parse_date;
use talktree_text::DATES;

use crate::access::View;
use crate::answer::{NOTICE, Refused, Result, bounded, quoted};
use crate::{find, notes, read};

/// What the server offers: tools, templates of resources, prompts. A test reads all of it.
pub(crate) static OFFERS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("offers.json")).unwrap_or_default());

/// Returns the tools that a model may use.
pub(crate) fn tools(view: &View) -> impl Iterator<Item = &'static Value> {
    let all = OFFERS["tools"].as_array().into_iter().flatten();
    let can_write = view.access.can_write;
    all.filter(move |tool| can_write || tool["annotations"]["readOnlyHint"] == true)
}

/// Calls a tool; `None` if there is none of this name.
pub(crate) fn call(view: &View, name: &str, given: &Value) -> Option<Result<String>> {
    let tool = tools(view).find(|tool| tool["name"] == name)?;
    let run = match name {
        "search" => find::search,
        "sessions" => find::sessions,
        "read" => read::read,
        "tree" => read::tree,
        "expand" => read::expand,
        "usage" => find::usage,
        "notes" => notes::notes,
        "remember" => notes::remember,
        "label" => notes::label,
        _ => return None,
    };
    let given = Arguments::of(name, &tool["inputSchema"], given);
    Some(given.and_then(|given| run(view, &given)).map(bounded))
}

/// The arguments of a call, checked.
pub(crate) struct Arguments {
    given: Map<String, Value>,
    properties: &'static Value,
}

impl Arguments {
    /// Checks what a model gives; a field may be null, and a number may be a text.
    fn of(tool: &str, schema: &'static Value, given: &Value) -> Result<Self> {
        let properties = &schema["properties"];
        let takes = || {
            let names = properties.as_object().into_iter().flat_map(Map::keys);
            format!("`{tool}` takes {}", names.cloned().collect::<Vec<_>>().join(", "))
        };
        let mut checked = Map::new();
        let given = match given {
            Value::Null => &Map::new(),
            Value::Object(given) => given,
            _ => return Err(Refused(format!("arguments are an object; {}", takes()))),
        };
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            let property = &properties[name];
            if property.is_null() {
                return Err(Refused(format!("there is no {}; {}", quoted(name), takes())));
            }
            let wrong = |expected| Refused(format!("\"{name}\" takes {expected}"));
            checked.insert(name.clone(), of_property(property, value).map_err(wrong)?);
        }
        let required = schema["required"].as_array().into_iter().flatten();
        let mut missing =
            required.filter_map(Value::as_str).filter(|name| !checked.contains_key(*name));
        if let Some(name) = missing.next() {
            let about = properties[name]["description"].as_str().unwrap_or_default();
            return Err(Refused(format!("`{tool}` needs \"{name}\": {about}")));
        }
        Ok(Self { given: checked, properties })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).or(self.properties[name].get("default"))?.as_str()
    }

    /// Returns an argument that the tool requires, or one with a default.
    pub(crate) fn required(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    /// Returns a number, which has a default.
    pub(crate) fn number(&self, name: &str) -> usize {
        let number = self.given.get(name).unwrap_or(&self.properties[name]["default"]).as_u64();
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    }

    pub(crate) fn time(&self, name: &str) -> Result<Option<DateTime<Utc>>> {
        let wrong = || Refused(format!("\"{name}\" takes {DATES}"));
        let time = self.text(name).map(|text| parse_date(text, Utc::now()).ok_or_else(wrong));
        time.transpose()
    }

    /// Returns the same call with another argument, as JSON.
    pub(crate) fn with(&self, name: &str, value: impl Into<Value>) -> Value {
        let mut all = self.given.clone();
        all.insert(name.to_owned(), value.into());
        all.into()
    }
}

/// Returns a value as the schema of its property has it, or what was expected.
fn of_property(property: &Value, value: &Value) -> Result<Value, String> {
    if let Some(of) = property["enum"].as_array() {
        let names: Vec<&str> = of.iter().filter_map(Value::as_str).collect();
        let expected = || format!("one of {}", names.join(", "));
        return of.contains(value).then(|| value.clone()).ok_or_else(expected);
    }
    if property["type"] == "integer" {
        let [min, max] =
            ["minimum", "maximum"].map(|end| property[end].as_u64().unwrap_or_default());
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let number = number.filter(|number| (min..=max).contains(number));
        return number
            .map(Value::from)
            .ok_or_else(|| format!("a whole number from {min} to {max}"));
    }
    let text = value.as_str().filter(|text| !text.trim().is_empty());
    text.map(Value::from).ok_or_else(|| "a text".to_owned())
}

/// Returns what a client tells its model about the server.
pub(crate) fn instructions(view: &View) -> String {
    let writes = match view.access.can_write {
        true => "`remember` and `label` write; nothing is ever removed.",
        false => "Nothing can be written.",
    };
    let redacts = match view.access.redact {
        Some(_) => "Keys and tokens are replaced by `[redacted KIND]`. ",
        None => "",
    };
    format!(
        "Conversations that were had before, kept as trees: a regenerated answer or an edited question is another branch, and \
         summaries replace old parts. `search` finds what was said, `read` reads around a hit, `tree` shows the branches, `expand` \
         opens a summary. Cite session and message ids. {} {writes} {redacts}{NOTICE}",
        view.access.told(),
    )
}
