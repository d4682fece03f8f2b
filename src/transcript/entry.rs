//! An entry as a link of a conversation: its type, its parent, and the tool calls and results in it.

use std::borrow::Cow;

use super::text;
use crate::message::Json;

/// The types of entries that have a place in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    User,
    Assistant,
    /// Attachments and notices of the system: they link messages.
    Other,
    Progress,
}

impl Kind {
    pub(super) fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }
}

/// An entry of one of these types, with a `uuid`. Texts are decoded bytes.
pub(super) struct Link<'a> {
    pub(super) token: &'a str,
    pub(super) kind: Kind,
    pub(super) uuid: Cow<'a, [u8]>,
    /// The `uuid` of its parent, if that is a text that is not empty.
    pub(super) parent: Option<Cow<'a, [u8]>>,
    pub(super) message: Option<&'a str>,
    pub(super) session: Option<&'a str>,
    pub(super) is_sidechain: bool,
    pub(super) is_team: bool,
    pub(super) is_meta: bool,
    pub(super) agent: Option<&'a str>,
    pub(super) timestamp: Cow<'a, [u8]>,
    /// The `uuid` of the answer with the tool call whose result this is, as the entry itself says.
    pub(super) source: Option<Cow<'a, [u8]>>,
}

impl<'a> Link<'a> {
    /// Reads an entry; `None` if it has no place in a conversation.
    pub(super) fn of(entry: &'a Json) -> Option<Self> {
        let token = entry.as_str();
        let [kind, uuid, parent, message, session, side, team, meta, agent, timestamp, source] =
            text::fields(
                token,
                [
                    "type",
                    "uuid",
                    "parentUuid",
                    "message",
                    "sessionId",
                    "isSidechain",
                    "teamName",
                    "isMeta",
                    "agentId",
                    "timestamp",
                    "sourceToolAssistantUUID",
                ],
            );
        let kind = match &*kind.and_then(text::decode)? {
            b"user" => Kind::User,
            b"assistant" => Kind::Assistant,
            b"progress" => Kind::Progress,
            b"system" | b"attachment" => Kind::Other,
            _ => return None,
        };
        Some(Self {
            token,
            kind,
            uuid: uuid.and_then(text::decode)?,
            parent: parent.and_then(text::decode).filter(|parent| !parent.is_empty()),
            message,
            session,
            is_sidechain: text::is_truthy(side),
            is_team: text::is_truthy(team),
            is_meta: text::is_truthy(meta),
            agent,
            timestamp: timestamp.and_then(text::decode).unwrap_or_default(),
            source: source.and_then(text::decode),
        })
    }

    /// Returns whether the same agent wrote both entries.
    pub(super) fn is_of_writer_of(&self, other: &Self) -> bool {
        self.is_sidechain == other.is_sidechain && text::is_same(self.agent, other.agent)
    }

    /// Returns the provider's id of the answer of which this is a part.
    pub(super) fn answer(&self) -> Option<Cow<'a, [u8]>> {
        let [id] = text::fields(self.message.filter(|_| self.kind == Kind::Assistant)?, ["id"]);
        id.and_then(text::decode).filter(|id| !id.is_empty())
    }

    /// Returns the ids of the tool calls in it.
    pub(super) fn calls(&self) -> Vec<Cow<'a, [u8]>> {
        self.ids_of("tool_use", "id")
    }

    /// Returns the ids of the tool calls whose results are in it.
    pub(super) fn answered(&self) -> Vec<Cow<'a, [u8]>> {
        self.ids_of("tool_result", "tool_use_id")
    }

    /// Returns whether it is a user's entry with a parent and the result of a tool call.
    pub(super) fn is_result(&self) -> bool {
        self.kind == Kind::User
            && self.parent.is_some()
            && self.blocks().any(|block| is_of_type(block, "tool_result"))
    }

    fn blocks(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let [content] = text::fields(self.message.unwrap_or_default(), ["content"]);
        text::items(content.unwrap_or_default())
    }

    fn ids_of(&self, kind: &str, name: &str) -> Vec<Cow<'a, [u8]>> {
        let blocks = self.blocks().filter(|block| is_of_type(block, kind));
        blocks.filter_map(|block| text::fields(block, [name])[0].and_then(text::decode)).collect()
    }
}

/// Returns whether the `type` of a block is this one.
pub(super) fn is_of_type(block: &str, kind: &str) -> bool {
    text::fields(block, ["type"])[0].is_some_and(|token| text::is_string(token, kind))
}
