//! Sessions of Qwen Code: lines with the places of Claude Code's and the content of the Gemini API.
//!
//! The tree is the log's own. A compression is a hidden message, and what the model sees in place of all before it a summary.

use crate::report::ImportReport;
use talktree::{Message, MessageId, Part, Role};

use super::Format;
use super::chain::{Contents, aside, texts};
use super::detect::of_another_format;
use super::gemini::{part, usage_beside_thoughts};
use super::linear;
use super::parts::hidden_if_empty;
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
    pub(super) from: Origin,
    draft: Option<Draft>,
    contents: Contents,
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
            draft.add_metadata(entry.clone().only(|name, _| known.contains(&name)));
            draft
        });
        let parent = match entry.has("parentUuid") {
            true => entry.id("parentUuid").map(message_id),
            false => draft.last_id(),
        };
        let payload = entry.inner("systemPayload");
        let details = &mut draft.details;
        details.model = details.model.take().or_else(|| entry.text("model"));
        // On every entry that was copied, which has kept its id.
        let forked = entry.inner("forkedFrom");
        let point = forked.id("messageUuid").map(message_id);
        details.fork_point = point.or(details.fork_point.take());
        let ancestor = forked.id("sessionId").or_else(|| payload.id("parentSessionId"));
        let ancestor = ancestor.map(session_id).filter(|parent| *parent != draft.session);
        details.parent_session = details.parent_session.take().or(ancestor);
        let title = payload.text("customTitle").as_deref().and_then(name);
        details.name = title.or(details.name.take());
        if let Some(history) = payload.list("compressedHistory") {
            let said = history.iter().filter_map(Fields::of).map(|turn| texts(&parts_of(&turn)));
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
        let (fingerprint, body) = (fingerprint(&record.text), Body::There(record.place()));
        draft.push(Node { is_side, ..Node::new(id, parent, line, fingerprint, body) });
        None
    }

    fn close(&mut self, _: &mut ImportReport) -> Option<Draft> {
        self.draft.take()
    }

    fn message(&self, _: &Record, fields: Fields, _: &MessageId) -> Option<Message> {
        let time = fields.time(TIME).unwrap_or(self.from.now);
        Some(message(&fields).at(time))
    }
}

fn message(record: &Fields) -> Message {
    let kind = record.text("type").unwrap_or_default();
    let parts = parts_of(&record.inner("message"));
    let role = match kind.as_str() {
        "user" if super::blocks::are_results(&parts) => Role::Tool,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool_result" => Role::Tool,
        _ => return aside(&kind, &record.except(PLACE)),
    };
    let rest = record.except(PLACE);
    let rest = rest.without(&["message", "usageMetadata", "toolCallResult", "forkedFrom"]);
    let message = hidden_if_empty(linear::message(role, parts, rest));
    match record.object("usageMetadata") {
        Some(counted) => message.with_usage(&usage_beside_thoughts(&counted, record.text("model"))),
        None => message,
    }
}

fn parts_of(message: &Fields) -> Vec<Part> {
    message.list("parts").unwrap_or_default().iter().filter_map(part).collect()
}
