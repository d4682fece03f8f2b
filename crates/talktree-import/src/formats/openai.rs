//! Messages of the OpenAI chat API: JSON, JSON lines, or lines of fine-tuning data. Those of Anthropic have the same form, but
//! calls and results of tools are in their content.

use talktree::records::chat;
use talktree::{Message, Role};

use super::Format;
use super::blocks::{self, ToolNames};
use super::linear::{Dialect, message};
use crate::fields::Fields;

/// The OpenAI dialect.
#[derive(Default)]
pub(crate) struct OpenAi;

impl Dialect for OpenAi {
    const FORMAT: Format = Format::OpenAi;

    fn collect_names(&self, fields: &Fields, names: &mut ToolNames) {
        chat::collect_names(fields, names);
        blocks::collect_names(fields.get("content"), names);
    }

    fn message(&self, fields: Fields, names: &ToolNames) -> Message {
        let role = fields.text("role").unwrap_or_default();
        let (role, parts, rest) = chat::message(role.into(), fields, names);
        let role = if blocks::are_results(&parts) { Role::Tool } else { role };
        message(role, parts, rest.without(&["id", "role", "created_at", "createdAt"]))
    }
}
