//! The summary of a session, from which lists are made without reading its transcript; titles and tags.
//!
//! Each value of a summary comes either from the first entry that has one, or from the last. So an append needs only the old
//! summary and its own entries.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use talktree::records::fields::{self, Fields};
use talktree::{Json, Result, StoredTranscript};
use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use crate::{invalid, is_truthy};

/// The most characters of a first prompt; the rest is cut.
const MAX_CHARACTERS: usize = 200;

/// The beginnings and ends of texts that a program wrote.
const GENERATED: [(&str, &str); 6] = [
    ("<local-command-stdout>", ""),
    ("<session-start-hook>", ""),
    ("<tick>", ""),
    ("<goal>", ""),
    ("<ide_opened_file>", "</ide_opened_file>"),
    ("<ide_selection>", "</ide_selection>"),
];

/// Returns the data of a summary with more entries added: what the agent SDK's `fold_session_summary` returns. `data` is
/// `None` for the first entries of a session.
///
/// Unknown members of `data` are kept.
///
/// ```
/// use talktree::Json;
/// use talktree_claude::fold_summary;
///
/// let entries = [Json::parse(r#"{"type": "tag", "tag": "ci", "isSidechain": false}"#)?];
/// let data = fold_summary(None, &entries);
/// assert_eq!(data.as_str(), r#"{"is_sidechain":false,"tag":"ci"}"#);
/// assert_eq!(fold_summary(Some(&data), &[]), data);
/// # Ok::<(), talktree::Error>(())
/// ```
pub fn fold_summary<'a>(data: Option<&Json>, entries: impl IntoIterator<Item = &'a Json>) -> Json {
    let data = data.and_then(|data| serde_json::from_str(data.as_str()).ok());
    let mut data: Data = data.unwrap_or_default();
    for entry in entries {
        // One that has two of them, or names that no Rust string can have, says nothing.
        add(&mut data, serde_json::from_str(entry.as_str()).unwrap_or_default());
    }
    json(&serde_json::to_string(&data).unwrap_or_default())
}

/// The members of a summary.
type Data = BTreeMap<String, Json>;

/// Returns the value of a text that is known to be JSON.
fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|_| Value::Null.into())
}

/// What a summary takes from an entry. It is read in place: every append does that.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Facts<'a> {
    r#type: Option<&'a RawValue>,
    is_sidechain: Option<&'a RawValue>,
    is_meta: Option<&'a RawValue>,
    is_compact_summary: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
    cwd: Option<&'a RawValue>,
    message: Option<&'a RawValue>,
    custom_title: Option<&'a RawValue>,
    ai_title: Option<&'a RawValue>,
    last_prompt: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    git_branch: Option<&'a RawValue>,
    tag: Option<&'a RawValue>,
}

fn is(value: Option<&RawValue>, json: &str) -> bool {
    value.is_some_and(|value| value.get() == json)
}

fn is_text(value: &&RawValue) -> bool {
    value.get().starts_with('"') && value.get().len() > 2
}

fn add(data: &mut Data, entry: Facts<'_>) {
    for (name, text) in [
        ("custom_title", entry.custom_title),
        ("ai_title", entry.ai_title),
        ("last_prompt", entry.last_prompt),
        ("summary_hint", entry.summary),
        ("git_branch", entry.git_branch),
    ] {
        if let Some(text) = text.filter(|text| text.get().starts_with('"')) {
            data.insert(name.to_owned(), json(text.get()));
        }
    }
    if !data.contains_key("is_sidechain") {
        let is_side = is(entry.is_sidechain, "true");
        data.insert("is_sidechain".to_owned(), Value::from(is_side).into());
    }
    if !data.contains_key("created_at")
        && let Some(millis) = entry.timestamp.and_then(millis)
    {
        data.insert("created_at".to_owned(), Value::from(millis).into());
    }
    if !data.contains_key("cwd")
        && let Some(cwd) = entry.cwd.filter(is_text)
    {
        data.insert("cwd".to_owned(), json(cwd.get()));
    }
    if is(entry.r#type, "\"tag\"") {
        match entry.tag.filter(is_text) {
            Some(tag) => data.insert("tag".to_owned(), json(tag.get())),
            None => data.remove("tag"),
        };
    }
    let is_made = is(entry.is_meta, "true") || is(entry.is_compact_summary, "true");
    let is_said = is(entry.r#type, "\"user\"") && !is_made;
    if is_said && !is_truthy(data.get("first_prompt_locked")) {
        add_prompt(data, entry.message);
    }
}

/// Returns the milliseconds since 1970 of a timestamp, as the SDK computes them; `None` if it is no time.
fn millis(timestamp: &RawValue) -> Option<i64> {
    let time = DateTime::parse_from_rfc3339(timestamp.get().trim_matches('"')).ok()?;
    Some((time.timestamp_micros() as f64 / 1e6 * 1000.0) as i64)
}

/// Adds the first thing that a person wrote, in the text of a message or in the texts among its blocks; until then, the first
/// slash command.
fn add_prompt(data: &mut Data, message: Option<&RawValue>) {
    let message = message.and_then(|message| Fields::parse(message.get()).ok());
    let content = message.as_ref().and_then(|message| message.get("content"));
    let blocks = content.and_then(fields::list).unwrap_or_default();
    let blocks: Vec<Fields> = blocks.iter().filter_map(Fields::of).collect();
    let is = |block: &Fields, kind: &str| block.text("type").as_deref() == Some(kind);
    if blocks.iter().any(|block| is(block, "tool_result")) {
        return;
    }
    let texts = blocks.iter().filter(|block| is(block, "text")).filter_map(|it| it.get("text"));
    for text in content.into_iter().chain(texts).filter_map(decoded) {
        let text = text.replace('\n', " ");
        let text = text.trim_matches(is_space);
        let command = text.split_once("<command-name>").map(|(_, rest)| rest);
        if let Some((command, _)) = command.and_then(|rest| rest.split_once("</command-name>")) {
            // The first one that has a name stays.
            if !is_truthy(data.get("command_fallback")) {
                data.insert("command_fallback".to_owned(), encoded(command));
            }
        } else if !text.is_empty() && !is_generated(text) {
            let prompt = match text.char_indices().nth(MAX_CHARACTERS) {
                Some((end, _)) => format!("{}\u{2026}", text[..end].trim_end_matches(is_space)),
                None => text.to_owned(),
            };
            data.insert("first_prompt".to_owned(), encoded(&prompt));
            data.insert("first_prompt_locked".to_owned(), Value::from(true).into());
            return;
        }
    }
}

fn is_generated(text: &str) -> bool {
    let is_it = |(start, end): &(&str, &str)| {
        text.strip_prefix(*start).is_some_and(|rest| rest.ends_with(*end))
    };
    GENERATED.iter().any(is_it)
        || text.starts_with("[Request interrupted by user") && text.contains(']')
}

/// Returns whether Python strips a character: white space, and four separators of files and records.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&letter)
}

/// What makes a character for private use, of the last plane, of a lone surrogate.
const PRIVATE: u32 = 0x10_0000;

/// Returns a string, in which a lone surrogate is its [`PRIVATE`] character; `None` for another value.
fn decoded(json: &Json) -> Option<String> {
    /// UTF-8, in which a lone surrogate is the three bytes that UTF-8 would give it.
    #[derive(Deserialize)]
    struct Bytes<'a>(#[serde(borrow)] Cow<'a, [u8]>);

    let Bytes(bytes) = serde_json::from_str(json.as_str()).ok()?;
    let (mut text, mut rest) = (String::with_capacity(bytes.len()), &*bytes);
    while let Some(part) = rest.utf8_chunks().next() {
        text += part.valid();
        rest = &rest[part.valid().len()..];
        let [_, high, low, after @ ..] = rest else { break };
        let surrogate = 0xD000 | u32::from(high & 0x3F) << 6 | u32::from(low & 0x3F);
        text.extend(char::from_u32(PRIVATE | surrogate));
        rest = after;
    }
    Some(text)
}

/// Returns the JSON of a string that was [`decoded`].
fn encoded(text: &str) -> Json {
    let mut token = String::with_capacity(text.len() + 2);
    for letter in Value::from(text).to_string().chars() {
        match u32::from(letter) ^ PRIVATE {
            surrogate @ 0xD800..0xE000 => token += &format!("\\u{surrogate:04x}"),
            _ => token.push(letter),
        }
    }
    json(&token)
}

/// A session as a list shows it: the agent SDK's `SDKSessionInfo`.
///
/// Made from the summary, not from the transcript. A lone surrogate in a text becomes U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptInfo {
    /// The id of the session.
    pub session: String,
    /// What it is called: its title, or else its last prompt, a summary, or its first prompt.
    pub summary: String,
    /// When an entry was last appended to it, in milliseconds since 1970.
    pub last_modified: i64,
    /// The title that a person gave it, or else the one that a model gave it.
    pub custom_title: Option<String>,
    /// The first thing that a person wrote, or else the first slash command.
    pub first_prompt: Option<String>,
    /// The branch of git in the last entry that names one.
    pub git_branch: Option<String>,
    /// The folder in which it began.
    pub cwd: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
    /// The time of its first entry that has one, in milliseconds since 1970.
    pub created_at: Option<i64>,
}

impl TranscriptInfo {
    /// Returns what a list shows of a main transcript; `None` for one of a subagent, or one without title and prompt.
    ///
    /// ```
    /// use talktree::{Json, Store, TranscriptKey};
    /// use talktree_claude::{SessionStore, TranscriptInfo};
    ///
    /// let sessions = SessionStore::new(&Store::open_in_memory()?);
    /// let entry = Json::parse(r#"{"type": "custom-title", "customTitle": "Login"}"#)?;
    /// sessions.append(&TranscriptKey::new("project", "session"), &[entry])?;
    /// let stored = sessions.log().of_project("project")?;
    /// assert_eq!(TranscriptInfo::of(&stored[0]).map(|info| info.summary).as_deref(), Some("Login"));
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn of(stored: &StoredTranscript) -> Option<Self> {
        let data = Fields::of(stored.summary.as_ref()?)?;
        if is_truthy(data.get("is_sidechain")) {
            return None;
        }
        let text = |name| data.text(name).filter(|it| !it.is_empty());
        let first_prompt = match is_truthy(data.get("first_prompt_locked")) {
            true => text("first_prompt"),
            false => text("command_fallback"),
        };
        let custom_title = text("custom_title").or_else(|| text("ai_title"));
        let summary = custom_title
            .clone()
            .or_else(|| text("last_prompt"))
            .or_else(|| text("summary_hint"))
            .or_else(|| first_prompt.clone())?;
        Some(Self {
            session: stored.key.session.clone(),
            summary,
            last_modified: stored.mtime,
            custom_title,
            first_prompt,
            git_branch: text("git_branch"),
            cwd: text("cwd"),
            tag: text("tag"),
            created_at: data.get("created_at").and_then(|it| it.as_str().parse().ok()),
        })
    }
}

/// Returns a tag as the SDK writes it: characters in their compatible form, without those that are not shown and without white
/// space at its ends.
///
/// # Errors
/// [`Error::InvalidValue`](talktree::Error::InvalidValue) if nothing is left.
pub(crate) fn tag(given: &str) -> Result<String> {
    use GeneralCategory::{Format, PrivateUse, Unassigned};
    let is_shown =
        |it: &char| !matches!(get_general_category(*it), Format | PrivateUse | Unassigned);
    // What is removed may have kept its neighbours from being composed.
    let shown = |text: String, _| text.nfkc().filter(is_shown).collect();
    not_blank("tag", &(0..10).fold(given.to_owned(), shown))
}

/// Returns a title or a tag without white space at its ends.
///
/// # Errors
/// [`Error::InvalidValue`](talktree::Error::InvalidValue) if nothing is left.
pub(crate) fn not_blank(what: &'static str, text: &str) -> Result<String> {
    match text.trim() {
        "" => Err(invalid(what, text, "nothing of it is visible")),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_what_is_visible_of_it() {
        assert_eq!(tag(" c\u{200B}i\u{202E}\u{E0041} ").unwrap(), "ci");
        assert_eq!(tag("näher 🐛").unwrap(), "näher 🐛");
        assert_eq!(tag("\u{3000}Ｃｉ－１ ﬁ").unwrap(), "Ci-1 fi");
        assert!(tag("\u{FEFF} \u{E000}").is_err() && not_blank("title", " \n").is_err());
    }

    /// Returns the first prompt, or else the command.
    fn prompt(content: &Value) -> Result<String, Option<String>> {
        let entry =
            Json::from(serde_json::json!({"type": "user", "message": {"content": content}}));
        let mut data = Data::new();
        add(&mut data, serde_json::from_str(entry.as_str()).unwrap());
        let text = |name| data.get(name).and_then(decoded);
        text("first_prompt").ok_or(text("command_fallback"))
    }

    #[test]
    fn a_prompt_is_the_first_text_of_a_person() {
        use serde_json::json;
        assert_eq!(prompt(&json!("\u{1c} fix\nit \u{3000}")), Ok("fix it".into()));
        let long = "é".repeat(199) + "  " + &"é".repeat(9);
        assert_eq!(prompt(&json!(long)), Ok("é".repeat(199) + "…"));
        assert_eq!(prompt(&json!("x".repeat(200))), Ok("x".repeat(200)));
        let blocks = json!([{"type": "text", "text": "<ide_selection>a</ide_selection>"},
                            {"type": "image"}, {"type": "text", "text": "<command-name>/a</command-name>"},
                            {"type": "text", "text": "<tick>"}, {"type": "text", "text": "<goal"}]);
        assert_eq!(prompt(&blocks), Ok("<goal".into()));
        let result = json!([{"type": "text", "text": "hello"}, {"type": "tool_result"}]);
        assert_eq!(prompt(&result), Err(None));
        assert_eq!(
            prompt(&json!("a <command-name></command-name> <command-name>b</command-name>")),
            Err(Some(String::new()))
        );
        assert_eq!(prompt(&json!("[Request interrupted by user for tool use]")), Err(None));
        assert_eq!(
            prompt(&json!("[Request interrupted by user")),
            Ok("[Request interrupted by user".into())
        );
        for content in [json!(null), json!(5), json!([]), json!("  "), json!({"text": "a"})] {
            assert_eq!(prompt(&content), Err(None));
        }
    }

    #[test]
    fn a_prompt_keeps_its_lone_surrogates() {
        for (given, kept) in [
            (r#""a\ud83d\n""#, r#""a\ud83d""#),
            (r#""\ud83d\ude00""#, r#""😀""#),
            (r#""\ude00\ud83d b""#, r#""\ude00\ud83d b""#),
            (r#""\u0000\"\\\/""#, r#""\u0000\"\\/""#),
        ] {
            let entry = format!(r#"{{"type":"user","message":{{"content":{given}}}}}"#);
            let data = fold_summary(None, &[Json::parse(&entry).unwrap()]);
            assert_eq!(Fields::of(&data).unwrap().get("first_prompt").unwrap().as_str(), kept);
        }
    }
}
