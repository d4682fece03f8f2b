//! The scope of a command: one session, or the texts that all sessions share.
//!
//! A label may have both texts of a session and shared texts; then the session reads its own. A write never changes the
//! scope of a label: a new text of the session would hide the shared one from it.

use clap::ValueEnum;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use serde::Serialize;
use talktree::{Block, EntryInfo, EntryVersion, SessionId, Store};

use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::shell::quote;
use crate::suggestion::command;
use crate::{lookup, style};

#[derive(Debug, clap::Args)]
pub(super) struct ScopeArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    /// Use the texts that all sessions share; SESSION need not exist then.
    #[arg(long)]
    shared: bool,
}

/// What is stored under a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[value(skip)]
    Text,
    /// Documents that a model loads by key.
    Skills,
    /// Documents that a model searches.
    Knowledge,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Skills => "skills",
            Self::Knowledge => "knowledge",
        }
    }

    pub(super) fn block(self) -> Block {
        match self {
            Self::Text => Block::stored(),
            Self::Skills => Block::stored_skills(),
            Self::Knowledge => Block::knowledge(),
        }
    }
}

/// Parses a key. The empty key is refused: it means the text of the label itself.
pub(super) fn key() -> impl TypedValueParser<Value = String> {
    NonEmptyStringValueParser::new()
}

/// The texts of a session, or those that all sessions share.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    store: &'a Store,
    /// A new id that no session has, if the scope is shared.
    id: SessionId,
    /// The name of the scope in the output.
    pub(super) name: String,
    pub(super) is_shared: bool,
}

impl<'a> Scope<'a> {
    /// Returns the scope of the arguments.
    pub(super) fn of(store: &'a Store, args: &ScopeArgs) -> Result<Self> {
        match args.shared {
            true => Ok(Self::shared(store)),
            false => Self::session(store, &args.session),
        }
    }

    pub(super) fn session(store: &'a Store, given: &str) -> Result<Self> {
        let session = lookup::session(store, given)?;
        let name = lookup::title(&session)?;
        Ok(Self { store, id: session.id().clone(), name, is_shared: false })
    }

    fn shared(store: &'a Store) -> Self {
        let name = "all sessions".to_owned();
        // Reading and writing shared texts creates no session.
        Self { store, id: SessionId::new(), name, is_shared: true }
    }

    /// Returns the id of the session; `None` if the scope is shared.
    pub(super) fn id(&self) -> Option<&SessionId> {
        (!self.is_shared).then_some(&self.id)
    }

    pub(super) fn context(
        &self,
        blocks: impl IntoIterator<Item = (String, Block)>,
    ) -> Result<talktree::Context> {
        let builder = self.store.context(self.id.clone());
        let builder =
            blocks.into_iter().fold(builder, |builder, (label, block)| builder.block(label, block));
        Ok(builder.open()?)
    }

    /// Returns a block whose texts are those of this scope.
    pub(super) fn block(&self, kind: Kind) -> Block {
        match self.is_shared {
            true => kind.block().across_sessions(),
            false => kind.block(),
        }
    }

    /// Returns what this scope itself has: for a session, without the shared texts.
    pub(super) fn stored(&self) -> Result<Vec<(String, Block)>> {
        let stored = self.context([])?.stored()?;
        if self.is_shared {
            return Ok(stored);
        }
        // A shared label is also one of this session only if the session has texts of its own.
        let shared = Self::shared(self.store).stored()?;
        let mut own = Vec::new();
        for (label, block) in stored {
            let is_shared = shared.iter().any(|(other, _)| *other == label);
            if !is_shared || self.holds(&label)? {
                own.push((label, block));
            }
        }
        Ok(own)
    }

    fn holds(&self, label: &str) -> Result<bool> {
        let text = self.context([(label.to_owned(), Block::stored())])?;
        let versions = text.versions(label, None)?;
        if versions.last().is_some_and(|last| last.content.is_some()) {
            return Ok(true);
        }
        let documents = self.context([(label.to_owned(), Block::stored_skills())])?;
        Ok(!documents.documents(label)?.is_empty())
    }

    /// Returns everything readable: the content of this scope and, for a session, the shared content.
    pub(super) fn seen(&self) -> Result<Vec<StoredLabel<'a>>> {
        let mut seen = self.held()?;
        if !self.is_shared {
            seen.extend(Self::shared(self.store).held()?);
        }
        Ok(seen)
    }

    /// Returns what this scope itself has.
    pub(super) fn held(&self) -> Result<Vec<StoredLabel<'a>>> {
        self.stored()?
            .into_iter()
            .map(|(label, block)| StoredLabel::new(self, label, block))
            .collect()
    }

    /// Returns the content of a label as a reader sees it: that of this scope, or else the shared one.
    pub(super) fn read(&self, label: &str) -> Result<StoredLabel<'a>> {
        if let Some(held) = self.find(label)? {
            return Ok(held);
        }
        let shared = Self::shared(self.store);
        let found = if self.is_shared { None } else { shared.find(label)? };
        found.ok_or_else(|| self.unknown(label))
    }

    /// Returns the content that a write under a label changes; `None` if there is none yet.
    pub(super) fn write(&self, label: &str) -> Result<Option<StoredLabel<'a>>> {
        let found = self.find(label)?;
        if found.is_none() && !self.is_shared && Self::shared(self.store).find(label)?.is_some() {
            return Err(shared_label(label));
        }
        Ok(found)
    }

    /// Returns the content of a label as this kind, whatever is stored there.
    pub(super) fn empty(&self, label: &str, kind: Kind) -> Result<StoredLabel<'a>> {
        StoredLabel::new(self, label.to_owned(), self.block(kind))
    }

    /// Returns the shared scope, if this one is of a session.
    pub(super) fn shared_beside(&self) -> Option<Self> {
        (!self.is_shared).then(|| Self::shared(self.store))
    }

    pub(super) fn unknown(&self, label: &str) -> Failure {
        Failure::NotFound(match self.is_shared {
            true => format!("nothing is stored for all sessions under {label:?}"),
            false => format!(
                "session {:?} has nothing under {label:?}; `{}` lists what it has",
                self.id,
                command(&format!("context list {}", quote(self.id.as_str())))
            ),
        })
    }

    fn find(&self, label: &str) -> Result<Option<StoredLabel<'a>>> {
        let found = self.stored()?.into_iter().find(|(stored, _)| stored == label);
        found.map(|(label, block)| StoredLabel::new(self, label, block)).transpose()
    }
}

/// Refuses to write a shared label for one session.
fn shared_label(label: &str) -> Failure {
    Failure::Usage(format!(
        "{label:?} is shared by all sessions; a text of its own would hide it from this session; --shared writes it"
    ))
}

/// What is stored under a label.
pub(super) struct StoredLabel<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) label: String,
    pub(super) kind: Kind,
    /// The text that a prompt shows.
    pub(super) content: String,
    pub(super) tokens: u64,
    /// A context with only this label.
    pub(super) context: talktree::Context,
}

impl<'a> StoredLabel<'a> {
    fn new(scope: &Scope<'a>, label: String, block: Block) -> Result<Self> {
        let context = scope.context([(label.clone(), block)])?;
        let info = context.block(&label)?.unwrap_or_default();
        let kind = match (info.is_skill, info.is_searchable) {
            (true, _) => Kind::Skills,
            (_, true) => Kind::Knowledge,
            _ => Kind::Text,
        };
        let (content, tokens) = (info.content, info.tokens);
        Ok(Self { scope: scope.clone(), label, kind, content, tokens, context })
    }

    pub(super) fn documents(&self) -> Result<Vec<EntryInfo>> {
        match self.kind {
            Kind::Text => Ok(Vec::new()),
            _ => Ok(self.context.documents(&self.label)?),
        }
    }

    /// Returns a document and its text.
    pub(super) fn document(&self, key: &str) -> Result<Option<(EntryInfo, String)>> {
        let known = self.documents()?.into_iter().find(|known| known.key == key);
        let Some(known) = known else { return Ok(None) };
        Ok(self.context.load(&self.label, key)?.map(|content| (known, content)))
    }

    pub(super) fn versions(&self, key: Option<&str>) -> Result<Vec<EntryVersion>> {
        Ok(self.context.versions(&self.label, key)?)
    }

    /// Refuses a key if the label has one text.
    pub(super) fn check_keyed(&self) -> Result<()> {
        match self.kind {
            Kind::Text => Err(Failure::Usage(format!(
                "{:?} is one text and holds no documents under keys",
                self.label
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a write that does not fit the stored content.
    pub(super) fn check(&self, key: Option<&str>, kind: Option<Kind>) -> Result<()> {
        let (label, is) = (&self.label, self.kind);
        match (is, key) {
            (Kind::Text, Some(_)) => self.check_keyed(),
            (Kind::Skills | Kind::Knowledge, None) => Err(Failure::Usage(format!(
                "{label:?} holds documents under keys; name one with --key"
            ))),
            _ if kind.is_some_and(|kind| kind != is) => {
                Err(Failure::Usage(format!("{label:?} holds {} already", is.as_str())))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn unknown_document(&self, key: &str) -> Failure {
        Failure::NotFound(format!("{:?} has no document {key:?}", self.label))
    }
}

/// The result of a write, as JSON.
#[derive(Serialize)]
struct Written<'a> {
    session: Option<&'a SessionId>,
    shared: bool,
    label: &'a str,
    key: Option<&'a str>,
    /// The current version.
    version: u64,
    /// The size of the text, in estimated tokens.
    tokens: u64,
}

/// Prints the result of a write: the current content under the label or the key.
pub(super) fn tell_written(
    context: &mut Context,
    held: &StoredLabel<'_>,
    key: Option<&str>,
) -> Result<()> {
    let versions = held.versions(key)?;
    let last = versions.last();
    let version = last.map_or(0, |last| last.version);
    let content = last.and_then(|last| last.content.as_deref());
    let tokens = talktree::estimate_tokens(content.unwrap_or_default());
    let (scope, label) = (&held.scope, &*held.label);
    if context.is_json {
        let (session, shared) = (scope.id(), scope.is_shared);
        return Ok(context.out.json(&Written { session, shared, label, key, version, tokens })?);
    }
    let done = match content {
        Some(_) => format!(" holds {}, version {version}", crate::text::plural(tokens, "token")),
        None => format!(" is removed, version {version}"),
    };
    Ok(context.out.line(&[
        (style::PLAIN, &scope.name),
        (style::PLAIN, ": "),
        (style::LABEL, label),
        (style::PLAIN, if key.is_some() { " " } else { "" }),
        (style::ID, key.unwrap_or_default()),
        (style::PLAIN, &done),
    ])?)
}
