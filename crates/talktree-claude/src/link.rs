//! An entry as a link of a conversation: its type, its parent, and the tool calls and results in it.

use std::borrow::Cow;

use talktree::Json;

use crate::text::{self, Members};

/// The types of entries that have a place in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Assistant,
    /// Attachments and notices of the system: they link messages.
    Other,
    Progress,
}

impl Kind {
    pub(crate) fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }
}

/// An entry of one of these types, with a `uuid`. Texts are decoded bytes.
pub(crate) struct Link<'a> {
    pub(crate) token: &'a str,
    pub(crate) kind: Kind,
    pub(crate) uuid: Cow<'a, [u8]>,
    /// The `uuid` of its parent, if that is a text that is not empty.
    pub(crate) parent: Option<Cow<'a, [u8]>>,
    pub(crate) message: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_team: bool,
    pub(crate) is_meta: bool,
    pub(crate) agent: Option<&'a str>,
    pub(crate) timestamp: Cow<'a, [u8]>,
    /// The `uuid` of the answer with the tool call whose result this is, as the entry itself says.
    pub(crate) source: Option<Cow<'a, [u8]>>,
}

impl<'a> Link<'a> {
    /// Reads an entry; `None` if it has no place in a conversation.
    pub(crate) fn of(entry: &'a Json) -> Option<Self> {
        let token = entry.as_str();
        let members = Members::of(token);
        let is_set = |name| text::is_truthy(members.get(name));
        let kind = match &*members.text("type")? {
            b"user" => Kind::User,
            b"assistant" => Kind::Assistant,
            b"progress" => Kind::Progress,
            b"system" | b"attachment" => Kind::Other,
            _ => return None,
        };
        Some(Self {
            token,
            kind,
            uuid: members.text("uuid")?,
            parent: members.text("parentUuid").filter(|parent| !parent.is_empty()),
            message: members.get("message"),
            session: members.get("sessionId"),
            is_sidechain: is_set("isSidechain"),
            is_team: is_set("teamName"),
            is_meta: is_set("isMeta"),
            agent: members.get("agentId"),
            timestamp: members.text("timestamp").unwrap_or_default(),
            source: members.text("sourceToolAssistantUUID"),
        })
    }

    /// Returns whether the same agent wrote both entries.
    pub(crate) fn is_of_writer_of(&self, other: &Self) -> bool {
        self.is_sidechain == other.is_sidechain && text::is_same(self.agent, other.agent)
    }

    /// Returns the provider's id of the answer of which this is a part.
    pub(crate) fn answer(&self) -> Option<Cow<'a, [u8]>> {
        let message = self.message.filter(|_| self.kind == Kind::Assistant)?;
        Members::of(message).text("id").filter(|id| !id.is_empty())
    }

    /// Returns the ids of the tool calls in it.
    pub(crate) fn calls(&self) -> Vec<Cow<'a, [u8]>> {
        self.ids_of("tool_use", "id")
    }

    /// Returns the ids of the tool calls whose results are in it.
    pub(crate) fn answered(&self) -> Vec<Cow<'a, [u8]>> {
        self.ids_of("tool_result", "tool_use_id")
    }

    /// Returns whether it is a user's entry with a parent and the result of a tool call.
    pub(crate) fn is_result(&self) -> bool {
        self.kind == Kind::User
            && self.parent.is_some()
            && self.blocks().any(|block| Members::of(block).is("type", "tool_result"))
    }

    fn blocks(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let content = Members::of(self.message.unwrap_or_default()).get("content");
        text::items(content.unwrap_or_default())
    }

    fn ids_of(&self, kind: &str, name: &str) -> Vec<Cow<'a, [u8]>> {
        let blocks = self.blocks().map(Members::of).filter(|block| block.is("type", kind));
        blocks.filter_map(|block| block.text(name)).collect()
    }
}
