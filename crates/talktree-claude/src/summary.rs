//! The summary of a session, from which lists are made without reading its transcript; titles and tags.
//!
//! Each value of a summary comes either from the first entry that has one, or from the last. So an append needs only the old
//! summary and its own entries.

use chrono::DateTime;
use talktree::{Error, Json, Result, StoredTranscript};

use crate::first_prompt;
use crate::text::{self, Members, Object};

/// The members of an entry of which a summary keeps the last text, and their names in the summary.
const LAST_WINS: [(&str, &str); 5] = [
    ("customTitle", "custom_title"),
    ("aiTitle", "ai_title"),
    ("lastPrompt", "last_prompt"),
    ("summary", "summary_hint"),
    ("gitBranch", "git_branch"),
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
/// let data = fold_summary(None, &entries)?;
/// assert_eq!(data.as_str(), r#"{"is_sidechain":false,"tag":"ci"}"#);
/// assert_eq!(fold_summary(Some(&data), &[])?, data);
/// # Ok::<(), talktree::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidValue`] if an entry is not an object.
pub fn fold_summary<'a>(
    data: Option<&Json>,
    entries: impl IntoIterator<Item = &'a Json>,
) -> Result<Json> {
    let data = data.map_or("{}", Json::as_str);
    let mut data = Object::of(data);
    for entry in entries {
        if !entry.as_str().starts_with('{') {
            return Err(Error::InvalidValue {
                what: "transcript entry",
                given: entry.as_str().chars().take(80).collect(),
                why: "it is not a JSON object".to_owned(),
            });
        }
        add(&mut data, &Members::of(entry.as_str()));
    }
    Json::parse(&data.to_text())
}

/// Returns the milliseconds since 1970 of a timestamp, as the SDK computes them; `None` if it is no time.
fn millis(token: &str) -> Option<i64> {
    let text = String::from_utf8(text::decode(token)?.into_owned()).ok()?;
    let time = DateTime::parse_from_rfc3339(&text).ok()?;
    Some((time.timestamp_micros() as f64 / 1e6 * 1000.0) as i64)
}

fn add<'a>(data: &mut Object<'a>, entry: &Members<'a>) {
    if data.get("is_sidechain").is_none() {
        data.set("is_sidechain", if entry.is_true("isSidechain") { "true" } else { "false" });
    }
    if data.get("created_at").is_none()
        && let Some(millis) = entry.get("timestamp").and_then(millis)
    {
        data.set("created_at", millis.to_string());
    }
    if data.get("cwd").is_none()
        && let Some(cwd) = entry.get("cwd").filter(text::is_text)
    {
        data.set("cwd", cwd);
    }
    add_prompt(data, entry);
    for (from, to) in LAST_WINS {
        if let Some(value) = entry.get(from).filter(|token| token.starts_with('"')) {
            data.set(to, value);
        }
    }
    if entry.is("type", "tag") {
        match entry.get("tag").filter(text::is_text) {
            Some(tag) => data.set("tag", tag),
            None => data.remove("tag"),
        }
    }
}

fn add_prompt<'a>(data: &mut Object<'a>, entry: &Members<'a>) {
    let is_made = entry.is_true("isMeta") || entry.is_true("isCompactSummary");
    if is_made || !entry.is("type", "user") || text::is_truthy(data.get("first_prompt_locked")) {
        return;
    }
    let found = first_prompt::find(entry.get("message"));
    for command in found.commands {
        // The first one that has a name stays.
        if !text::is_truthy(data.get("command_fallback")) {
            data.set("command_fallback", text::encode(&command));
        }
    }
    if let Some(prompt) = found.prompt {
        data.set("first_prompt", text::encode(&prompt));
        data.set("first_prompt_locked", "true");
    }
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
        let data = Members::of(stored.summary.as_ref()?.as_str());
        if text::is_truthy(data.get("is_sidechain")) {
            return None;
        }
        let text =
            |name| data.text(name).map(|text| text::lossy(&text)).filter(|it| !it.is_empty());
        let first_prompt = match text::is_truthy(data.get("first_prompt_locked")) {
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
            created_at: data.get("created_at").and_then(|token| token.parse().ok()),
        })
    }
}

/// Characters that are not shown: those that format or join others, private use, noncharacters. Sorted.
const INVISIBLE: &[(u32, u32)] = &[
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0xE000, 0xF8FF),
    (0xFDD0, 0xFDEF),
    (0xFEFF, 0xFEFF),
    (0xFFF0, 0xFFFB),
    (0xFFFE, 0xFFFF),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0x10FFFF),
];

/// Returns a tag without characters that are not shown and without white space at its ends, full-width characters in their
/// usual form.
///
/// # Errors
/// [`Error::InvalidValue`] if nothing is left.
pub(crate) fn tag(text: &str) -> Result<String> {
    let shown: String =
        text.chars().filter(|letter| !is_invisible(*letter)).map(usual_width).collect();
    not_blank("tag", &shown, text)
}

/// Returns a title without white space at its ends.
///
/// # Errors
/// [`Error::InvalidValue`] if nothing is left.
pub(crate) fn title(text: &str) -> Result<String> {
    not_blank("title", text, text)
}

fn not_blank(what: &'static str, text: &str, given: &str) -> Result<String> {
    match text.trim() {
        "" => Err(Error::InvalidValue {
            what,
            given: given.chars().take(80).collect(),
            why: "nothing of it is visible".to_owned(),
        }),
        text => Ok(text.to_owned()),
    }
}

/// Returns the usual form of a full-width letter, digit or sign.
fn usual_width(letter: char) -> char {
    match letter {
        '\u{3000}' => ' ',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        letter => letter,
    }
}

fn is_invisible(letter: char) -> bool {
    let code = u32::from(letter);
    let at = INVISIBLE.partition_point(|(_, last)| *last < code);
    INVISIBLE.get(at).is_some_and(|(first, _)| *first <= code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_what_is_visible_of_it() {
        assert_eq!(tag(" c\u{200B}i\u{202E}\u{E0041} ").unwrap(), "ci");
        assert_eq!(tag("näher 🐛").unwrap(), "näher 🐛");
        assert_eq!(tag("\u{3000}Ｃｉ－１").unwrap(), "Ci-1");
        assert!(tag("\u{FEFF} \u{E000}").is_err() && title(" \n").is_err());
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }
}
