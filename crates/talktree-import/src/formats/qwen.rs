//! Sessions of Qwen Code: lines with the places of Claude Code's and the content of the Gemini API.
//!
//! The tree is the log's own. A compression is a hidden message, and what the model sees in place of all before it a summary.

use crate::report::ImportReport;
use talktree::{Message, MessageId, Role, Usage};

use super::Format;
use super::chain::{Contents, aside, texts};
use super::detect::of_another_format;
use super::gemini::part;
use super::linear;
use super::parts::tokens;
use crate::draft::{
    Body, Draft, DraftCompaction, Node, Origin, Orphans, Reader, derive, fingerprint, message_id,
    name, session_id,
};
use crate::fields::Fields;
use crate::records::Record;

/// The field with the time of a record.
const TIME: &str = "timestamp";

/// The fields that say where a record is.
const PLACE: &[&str] =
    &["uuid", "parentUuid", "sessionId", TIME, "type", "cwd", "version", "gitBranch"];

/// Reads sessions of Qwen Code.
#[derive(Default)]
pub(crate) struct Qwen {
    from: Origin,
    draft: Option<Draft>,
    contents: Contents,
}

impl Qwen {
    pub(crate) fn new(from: Origin) -> Self {
        Self { from, ..Self::default() }
    }
}

impl Reader for Qwen {
    fn read(&mut self, record: &Record, entry: Fields, report: &mut ImportReport) -> Option<Draft> {
        report.records += 1;
        let line = record.line;
        if entry.text("type").is_none() || !entry.has("sessionId") && !entry.has("uuid") {
            let other = of_another_format(&entry, Format::Qwen);
            report.lose(line, other.unwrap_or_else(|| "a record of an unknown kind".to_owned()));
            return None;
        }
        report.check_times(line, &[(&entry, TIME)], "the time of the import");
        let session =
            entry.id("sessionId").unwrap_or_else(|| derive(&["qwen", &self.from.file]).to_string());
        let id = match entry.id("uuid") {
            Some(id) => message_id(id),
            None => self.contents.id(&["qwen", &session], &record.text, &record.text),
        };
        let draft = self.draft.get_or_insert_with(|| {
            let mut draft = Draft::new(session_id(session), line);
            draft.details.created_at = entry.time(TIME);
            draft.orphans = Orphans::FollowTheNodeBefore;
            let known = ["cwd", "version", "gitBranch"];
            let about = entry.clone().into_pairs().into_iter();
            draft.add_metadata(about.filter(|(name, _)| known.contains(&name.as_str())).collect());
            draft
        });
        let parent = match entry.has("parentUuid") {
            true => entry.id("parentUuid").map(message_id),
            false => draft.last_id(),
        };
        let payload = entry.object("systemPayload").unwrap_or_default();
        let details = &mut draft.details;
        if details.model.is_none() {
            details.model = entry.text("model");
        }
        // On every entry that was copied, which has kept its id.
        let forked = entry.object("forkedFrom").unwrap_or_default();
        let point = forked.id("messageUuid").map(message_id);
        details.fork_point = point.or(details.fork_point.take());
        let ancestor = forked.id("sessionId").or_else(|| payload.id("parentSessionId"));
        if details.parent_session.is_none() {
            details.parent_session =
                ancestor.map(session_id).filter(|parent| *parent != draft.session);
        }
        if let Some(title) = payload.text("customTitle").as_deref().and_then(name) {
            details.name = Some(title);
        }
        if let Some(history) = payload.list("compressedHistory") {
            let said = history.iter().filter_map(Fields::of).map(|turn| {
                let parts = turn.list("parts").unwrap_or_default();
                texts(&parts.iter().filter_map(part).collect::<Vec<_>>())
            });
            let said = said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
            let time = entry.time(TIME).unwrap_or(self.from.now);
            let compaction = DraftCompaction::new(id.clone(), line, id.clone(), said, time);
            let details = payload.get("info").cloned();
            draft.compactions.push(DraftCompaction { details, ..compaction });
        }
        let is_side = entry.is_true("isSidechain");
        if !is_side {
            draft.head = Some(id.clone());
        }
        let (fingerprint, body) = (fingerprint(&record.text), Body::there(record));
        draft.push(Node { id, parent, line, fingerprint, is_side, is_hidden: false, body });
        None
    }

    fn finish(&mut self, _: &mut ImportReport) -> Vec<Draft> {
        self.draft.take().into_iter().collect()
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        let time = fields.time(TIME).unwrap_or(self.from.now);
        Some(message(&fields).at(time))
    }
}

fn message(record: &Fields) -> Message {
    let kind = record.text("type").unwrap_or_default();
    let said = record.object("message").unwrap_or_default();
    let parts = said.list("parts").unwrap_or_default();
    let parts: Vec<_> = parts.iter().filter_map(part).collect();
    let role = match kind.as_str() {
        "user" if super::blocks::are_results(&parts) => Role::Tool,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool_result" => Role::Tool,
        _ => {
            return aside(&kind, &record.except(PLACE));
        }
    };
    let is_blank = parts.is_empty();
    let rest = record.except(PLACE);
    let rest = rest.without(&["message", "usageMetadata", "toolCallResult", "forkedFrom"]);
    let mut message = linear::message(role, parts, rest);
    if let Some(used) = record.object("usageMetadata") {
        let reasoning = tokens(&used, "thoughtsTokenCount");
        message = message.with_usage(&Usage {
            model: record.text("model"),
            input: tokens(&used, "promptTokenCount"),
            output: tokens(&used, "candidatesTokenCount").saturating_add(reasoning),
            cache_read: tokens(&used, "cachedContentTokenCount"),
            reasoning,
            ..Usage::default()
        });
    }
    if is_blank { message.hidden() } else { message }
}
