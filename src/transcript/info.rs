//! What a list shows of a session.

use super::object::Object;
use super::summary::TranscriptSummary;
use super::text;

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
    pub(super) fn of(summary: &TranscriptSummary, directory: Option<&str>) -> Option<Self> {
        let data = Object::of(summary.data.as_str());
        if text::is_truthy(data.get("is_sidechain")) {
            return None;
        }
        let text =
            |name| data.get(name).and_then(text::decode_lossy).filter(|text| !text.is_empty());
        let first_prompt = match text::is_truthy(data.get("first_prompt_locked")) {
            true => text("first_prompt"),
            false => text("command_fallback"),
        };
        let custom_title = text("custom_title").or_else(|| text("ai_title"));
        let shown = custom_title
            .clone()
            .or_else(|| text("last_prompt"))
            .or_else(|| text("summary_hint"))
            .or_else(|| first_prompt.clone())?;
        let directory = directory.filter(|directory| !directory.is_empty()).map(str::to_owned);
        Some(Self {
            session: summary.session.clone(),
            summary: shown,
            last_modified: summary.mtime,
            custom_title,
            first_prompt,
            git_branch: text("git_branch"),
            cwd: text("cwd").or(directory),
            tag: text("tag"),
            created_at: data.get("created_at").and_then(|token| token.parse().ok()),
        })
    }
}
