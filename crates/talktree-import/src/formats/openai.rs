//! Messages of the OpenAI chat API: JSON, JSON lines, or lines of fine-tuning data.

use chrono::{DateTime, Utc};
use talktree::records::chat;
use talktree::{Message, MessageId};

use super::Format;
use super::blocks::ToolNames;
use super::linear::{Dialect, Linear, message};
use crate::fields::Fields;

/// Returns a reader of OpenAI chats.
pub(crate) fn reader(file: String, keeps_source: bool, now: DateTime<Utc>) -> Linear<OpenAi> {
    Linear::new(OpenAi, file, keeps_source, now)
}

/// The OpenAI dialect.
pub(crate) struct OpenAi;

impl Dialect for OpenAi {
    const FORMAT: Format = Format::OpenAi;

    fn collect_names(&self, fields: &Fields, names: &mut ToolNames) {
        chat::collect_names(fields, names);
    }

    fn message(&self, fields: Fields, names: &ToolNames) -> Message {
        let role = fields.text("role").unwrap_or_default();
        let (role, parts, rest) = chat::message(role.into(), fields, names);
        message(role, parts, rest.without(&["id", "role", "created_at", "createdAt"]))
    }

    fn parent(&self, _: &Fields) -> Option<Option<MessageId>> {
        None
    }
}
