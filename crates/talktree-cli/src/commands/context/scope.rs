//! Whose texts a command means, and what is stored there.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use clap::ValueEnum;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use talktree::{Block, Session, SessionFilter, SessionId, SessionState, Store, StoredText};

use crate::prelude::*;

#[derive(Debug, clap::Args)]
pub(crate) struct ScopeArgs {
    /// The session: its id, the start or the end of its id, or its name.
    session: String,

    #[command(flatten)]
    wider: WiderArgs,
}

/// The scope of a command without other arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct OnlyScopeArgs {
    /// The session: its id, the start or the end of its id, or its name.
    #[arg(required_unless_present_any = ["shared", "owner"])]
    session: Option<String>,

    #[command(flatten)]
    wider: WiderArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WiderArgs {
    /// Use the texts that all sessions share; SESSION need not exist then.
    #[arg(long, conflicts_with = "owner")]
    shared: bool,

    /// Use the texts of all sessions of this owner; SESSION need not exist then, but one of the owner must.
    #[arg(long)]
    owner: Option<String>,
}

impl WiderArgs {
    /// Returns the scope that is named, or that of a session.
    pub(super) fn scope<'a>(
        &self,
        store: &'a Store,
        session: impl FnOnce() -> Result<Session>,
    ) -> Result<Scope<'a>> {
        match (&self.owner, self.shared) {
            (Some(owner), _) => Scope::of_owner(store, owner),
            (None, true) => Ok(Scope::shared(store)),
            (None, false) => Scope::session(store, &session()?),
        }
    }
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

/// The texts of a session, of all sessions of an owner, or of all sessions.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    store: &'a Store,
    /// The session; a new id that no session has, if the scope is shared.
    id: SessionId,
    /// The name of the scope in the output.
    pub(super) name: String,
    /// Whether the texts are those of all sessions.
    pub(super) is_shared: bool,
    /// The owner, if the scope is that of an owner.
    pub(super) owner: Option<String>,
}

impl<'a> Scope<'a> {
    /// Returns the scope of the arguments.
    pub(super) fn of(store: &'a Store, args: &ScopeArgs) -> Result<Self> {
        args.wider.scope(store, || lookup::session(store, &args.session))
    }

    /// Returns the scope of the arguments of a command that has no others.
    pub(super) fn of_only(store: &'a Store, args: &OnlyScopeArgs) -> Result<Self> {
        let session = args.session.as_deref().unwrap_or_default();
        args.wider.scope(store, || lookup::session(store, session))
    }

    pub(super) fn session(store: &'a Store, session: &Session) -> Result<Self> {
        let name = lookup::title(store, session)?;
        Ok(Self { store, id: session.id().clone(), name, is_shared: false, owner: None })
    }

    /// Returns the scope of an owner. Any of its sessions leads to it; one that is not in the trash can be written.
    fn of_owner(store: &'a Store, owner: &str) -> Result<Self> {
        for state in [SessionState::Present, SessionState::Trash] {
            let filter = SessionFilter { state, ..SessionFilter::owned_by(owner) };
            if let Some(found) =
                store.list().filter(filter.clone()).limit(1).run()?.sessions.into_iter().next()
            {
                return Ok(Self::through(store, found.info.id, owner.to_owned()));
            }
        }
        Err(Failure::NotFound(format!("no session of owner {owner:?} is stored")))
    }

    /// Returns the scope of the owner of a session.
    fn through(store: &'a Store, id: SessionId, owner: String) -> Self {
        let name = format!("owner {owner}");
        Self { store, id, name, is_shared: false, owner: Some(owner) }
    }

    fn shared(store: &'a Store) -> Self {
        let name = "all sessions".to_owned();
        // Reading and writing shared texts creates no session.
        Self { store, id: SessionId::new(), name, is_shared: true, owner: None }
    }

    /// Returns the id of the session; `None` if the texts are not of one session.
    pub(super) fn id(&self) -> Option<&SessionId> {
        (!self.is_shared && self.owner.is_none()).then_some(&self.id)
    }

    pub(super) fn context(
        &self,
        blocks: impl IntoIterator<Item = (String, Block)>,
    ) -> Result<talktree::Context> {
        let builder = self.store.session_builder(self.id.clone());
        let builder =
            blocks.into_iter().fold(builder, |builder, (label, block)| builder.block(label, block));
        Ok(builder.open()?.context().clone())
    }

    /// Returns a block whose texts are those of this scope.
    pub(super) fn block(&self, kind: Kind) -> Block {
        match (self.is_shared, &self.owner) {
            (true, _) => kind.block().across_sessions(),
            (_, Some(_)) => kind.block().per_owner(),
            _ => kind.block(),
        }
    }

    /// Returns what this scope itself has: for a session, without the texts of its owner and of all sessions.
    pub(super) fn stored(&self) -> Result<Vec<(String, Block)>> {
        let mut stored = self.context([])?.stored()?;
        stored.retain(|(_, block)| {
            (block.is_shared(), block.is_per_owner()) == (self.is_shared, self.owner.is_some())
        });
        Ok(stored)
    }

    /// Returns what a session reads: under each label the texts of the narrowest scope.
    pub(super) fn readable(&self) -> Result<Vec<(String, Block)>> {
        let (mut stored, mut known) = (self.context([])?.stored()?, HashSet::new());
        stored.retain(|(label, _)| known.insert(label.clone()));
        Ok(stored)
    }

    /// Returns the wider scopes that a session reads, too, the narrowest first.
    pub(super) fn beside(&self) -> Result<Vec<Self>> {
        if self.id().is_none() {
            return Ok(Vec::new());
        }
        let owner = self.store.session(self.id.clone())?.info()?.and_then(|info| info.owner);
        let of_owner = owner.map(|owner| Self::through(self.store, self.id.clone(), owner));
        Ok(of_owner.into_iter().chain([Self::shared(self.store)]).collect())
    }

    /// Returns everything readable: the content of this scope and, for a session, that of the wider scopes.
    pub(super) fn seen(&self) -> Result<Vec<StoredLabel<'a>>> {
        let mut seen = self.held()?;
        for wider in self.beside()? {
            seen.extend(wider.held()?);
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

    /// Returns the content of a label as a reader sees it: that of this scope, or else of the narrowest wider one.
    pub(super) fn read(&self, label: &str) -> Result<StoredLabel<'a>> {
        let found = match self.find(label)? {
            None => self.find_beside(label)?,
            found => found,
        };
        found.ok_or_else(|| self.unknown(label))
    }

    /// Returns the content that a write under a label changes; `None` if there is none yet.
    pub(super) fn write(&self, label: &str) -> Result<Option<StoredLabel<'a>>> {
        let found = self.find(label)?;
        if found.is_none()
            && let Some(wider) = self.find_beside(label)?
        {
            return Err(hidden(label, &wider.scope));
        }
        Ok(found)
    }

    fn find_beside(&self, label: &str) -> Result<Option<StoredLabel<'a>>> {
        for wider in self.beside()? {
            if let Some(found) = wider.find(label)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns the content of a label as this kind, whatever is stored there.
    pub(super) fn empty(&self, label: &str, kind: Kind) -> Result<StoredLabel<'a>> {
        StoredLabel::new(self, label.to_owned(), self.block(kind))
    }

    pub(super) fn unknown(&self, label: &str) -> Failure {
        Failure::NotFound(match self.id() {
            None => format!("nothing is stored for {} under {label:?}", self.name),
            Some(_) => format!(
                "session {:?} has nothing under {label:?}; `{}` lists what it has",
                self.id,
                command(&verb("context list", &[self.id.as_str()], ""))
            ),
        })
    }

    /// Returns the content of a label that this scope itself has.
    pub(super) fn find(&self, label: &str) -> Result<Option<StoredLabel<'a>>> {
        let found = self.stored()?.into_iter().find(|(stored, _)| stored == label);
        found.map(|(label, block)| StoredLabel::new(self, label, block)).transpose()
    }
}

/// Refuses to write a label of a wider scope for one session.
fn hidden(label: &str, wider: &Scope<'_>) -> Failure {
    let (whose, flag) = match &wider.owner {
        Some(owner) => ("the sessions of its owner", format!("--owner {owner:?}")),
        None => ("all sessions", "--shared".to_owned()),
    };
    Failure::Usage(format!(
        "{label:?} is shared by {whose}; a text of its own would hide it from this session; {flag} writes it"
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

    /// Returns what all JSON of a label has.
    pub(super) fn json(&self) -> serde_json::Value {
        let (owner, shared) = (&self.scope.owner, self.scope.is_shared);
        json!({"label": self.label, "owner": owner, "shared": shared, "kind": self.kind})
    }

    /// Returns the number of the last version of a text, and when it was written.
    pub(super) fn last_version(&self) -> Result<(u64, Option<DateTime<Utc>>)> {
        let versions = self.versions(None)?;
        Ok(versions.last().map_or((0, None), |last| (last.version, Some(last.changed_at))))
    }

    pub(super) fn documents(&self) -> Result<Vec<StoredText>> {
        match self.kind {
            Kind::Text => Ok(Vec::new()),
            _ => Ok(self.context.documents(&self.label)?),
        }
    }

    /// Returns a document and its text.
    pub(super) fn document(&self, key: &str) -> Result<Option<(StoredText, String)>> {
        let known = self.documents()?.into_iter().find(|known| known.key == key);
        let Some(known) = known else { return Ok(None) };
        Ok(self.context.load(&self.label, key)?.map(|content| (known, content)))
    }

    pub(super) fn versions(&self, key: Option<&str>) -> Result<Vec<StoredText>> {
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
    let json = json!({
        "session": scope.id(), "owner": scope.owner, "shared": scope.is_shared,
        "label": label, "key": key, "version": version, "tokens": tokens,
    });
    let done = match content {
        Some(_) => format!(" holds {}, version {version}", plural(tokens, "token")),
        None => format!(" is removed, version {version}"),
    };
    let (of, gap) = (format!("{}: ", scope.name), if key.is_some() { " " } else { "" });
    let key = key.unwrap_or_default();
    context.answer(&json, &[(PLAIN, &of), (LABEL, label), (PLAIN, gap), (ID, key), (PLAIN, &done)])
}
