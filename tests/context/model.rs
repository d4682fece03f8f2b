//! Random steps leave the contexts of several sessions equal to a plain model.
//!
//! Two sessions and their forks have the same labels and share two blocks with all, and two with the sessions of their
//! owner. Owners change, also while a provider is read for a prompt. Some steps must fail: a text over the limit, a label
//! that cannot be written or does not exist, a session without an owner, a provider whose n-th call fails, a store opened as
//! read-only.
//! After each step the blocks, documents, versions, frozen prompt, drift and reminder of every session equal the model;
//! a failed step has no effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::common::{Scratch, random};
use proptest::prelude::*;
use talktree::{
    Block, BoxError, Context, Document, Error, Message, MessageId, ReadProvider, Result, Session,
    SessionDetails, Store, WriteProvider, estimate_tokens,
};

/// Selects one of the existing things, however many there are.
type Pick = u8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// A provider that may fail; all sessions share it.
    Note,
    Stored,
    Skills,
    Knowledge,
    History,
}

/// Whose the texts of a block are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BlockScope {
    Session,
    Owner,
    Shared,
}

#[derive(Debug)]
struct Spec {
    label: &'static str,
    kind: Kind,
    scope: BlockScope,
    max: Option<u64>,
}

const fn spec(label: &'static str, kind: Kind) -> Spec {
    Spec { label, kind, scope: BlockScope::Session, max: None }
}

const SPECS: [Spec; 11] = [
    spec("soul", Kind::Text),
    Spec { max: Some(12), ..spec("memory", Kind::Stored) },
    spec("memory_s", Kind::Stored),
    Spec { scope: BlockScope::Shared, ..spec("house", Kind::Stored) },
    Spec { scope: BlockScope::Owner, ..spec("person", Kind::Stored) },
    spec("note", Kind::Note),
    Spec { max: Some(12), ..spec("skills", Kind::Skills) },
    spec("facts", Kind::Knowledge),
    Spec { scope: BlockScope::Shared, ..spec("lore", Kind::Knowledge) },
    Spec { scope: BlockScope::Owner, ..spec("habits", Kind::Skills) },
    spec("history", Kind::History),
];

const SOUL: &str = "You are here.";
const ABOUT_MEMORY: &str = "Learned facts";

impl Spec {
    fn of(label: &str) -> Option<&'static Self> {
        SPECS.iter().find(|spec| spec.label == label)
    }

    fn block(&self, note: &Arc<Note>) -> Block {
        let block = match self.kind {
            Kind::Text => Block::text(SOUL),
            Kind::Note => Block::write(Handle(Arc::clone(note))).remind(),
            Kind::Stored if self.label == "memory" => {
                Block::stored().describe(ABOUT_MEMORY).remind()
            }
            Kind::Stored => Block::stored(),
            Kind::Skills => Block::stored_skills(),
            Kind::Knowledge => Block::knowledge(),
            Kind::History => Block::history(),
        };
        let block = match self.scope {
            BlockScope::Owner => block.per_owner(),
            BlockScope::Shared => block.across_sessions(),
            _ => block,
        };
        match self.max {
            Some(max) => block.max_tokens(max),
            None => block,
        }
    }

    fn is_keyed(&self) -> bool {
        matches!(self.kind, Kind::Skills | Kind::Knowledge)
    }

    fn is_stored(&self) -> bool {
        self.is_keyed() || self.kind == Kind::Stored
    }

    fn is_writable(&self) -> bool {
        self.is_stored() || self.kind == Kind::Note
    }

    fn header(&self, content: &str) -> String {
        let mut title = self.label.to_uppercase();
        if self.label == "memory" {
            title += &format!(" ({ABOUT_MEMORY})");
        }
        if let Some(max) = self.max {
            let tokens = estimate_tokens(content);
            let percent = (tokens as f64 * 100.0 / max as f64).round();
            title += &format!(" [{percent}% — {tokens}/{max} tokens]");
        }
        title += match self.kind {
            Kind::Text => " [readonly]",
            Kind::Note | Kind::Stored => " [writable]",
            Kind::Skills => " [loadable]",
            Kind::Knowledge | Kind::History => " [searchable]",
        };
        let rule = "═".repeat(46);
        format!("{rule}\n{title}\n{rule}")
    }
}

/// The source of a block outside the store.
#[derive(Debug, Default)]
struct Note {
    state: Mutex<NoteState>,
}

#[derive(Debug, Default)]
struct NoteState {
    content: String,
    /// The number of the call that will fail, from 1.
    fails_in: Option<u8>,
    has_failed: bool,
    /// The session that gets another owner when the note is read next.
    moves: Option<(Session, &'static str)>,
}

impl Note {
    fn state(&self) -> MutexGuard<'_, NoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) -> std::result::Result<MutexGuard<'_, NoteState>, BoxError> {
        let mut state = self.state();
        state.fails_in = state.fails_in.and_then(|calls| calls.checked_sub(1));
        if state.fails_in == Some(0) {
            state.has_failed = true;
            return Err("out of ink".into());
        }
        Ok(state)
    }
}

struct Handle(Arc<Note>);

impl ReadProvider for Handle {
    fn init(&self, label: &str) -> std::result::Result<(), BoxError> {
        assert_eq!(label, "note");
        self.0.call().map(drop)
    }

    fn get(&self) -> std::result::Result<String, BoxError> {
        let mut state = self.0.call()?;
        let (content, moves) = (state.content.clone(), state.moves.take());
        drop(state);
        if let Some((chat, owner)) = moves {
            chat.set_details(&owned_by(owner))?;
        }
        Ok(content)
    }
}

impl WriteProvider for Handle {
    fn set(&self, content: &str) -> std::result::Result<(), BoxError> {
        content.clone_into(&mut self.0.call()?.content);
        Ok(())
    }
}

fn owned_by(owner: &str) -> SessionDetails {
    SessionDetails { owner: Some(owner.to_owned()), ..SessionDetails::default() }
}

#[derive(Debug, Clone)]
enum Step {
    Set(&'static str, &'static str),
    Append(&'static str, &'static str),
    SetDocuments(&'static str, Vec<Document>),
    AppendDocument(&'static str, Document),
    RemoveDocument(&'static str, &'static str),
    Restore(&'static str, Option<&'static str>, u64),
    Own(&'static str),
    Prompt,
    Refresh,
    /// Reads the prompt, fresh or not, while the session gets another owner.
    PromptWhileOwned(&'static str, bool),
    Clear,
    Say,
    Compact,
    Fork(Pick),
    Forget,
    /// Removes a block from the handle, or adds it again after the others.
    Take(&'static str),
    Give(&'static str),
    Reopen {
        is_readonly: bool,
    },
}

#[derive(Debug, Clone)]
struct Move {
    chat: Pick,
    step: Step,
    /// The call of the provider that fails in this step.
    fails_in: Option<u8>,
}

fn label() -> impl Strategy<Value = &'static str> {
    let unknown = Just("nobody");
    let known = prop::sample::select(SPECS.iter().map(|spec| spec.label).collect::<Vec<_>>());
    prop_oneof![6 => Just("memory"), 20 => known, 1 => unknown]
}

fn text() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "tea",
        "coffee",
        "tea\ngreen",
        "\nmore",
        "词 tea",
        "one two three four five six seven eight nine ten",
    ])
}

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "A", "é x", ""])
}

fn document() -> impl Strategy<Value = Document> {
    let about = prop::option::of(prop::sample::select(vec!["Drinks", "drinks", "What\n to drink"]));
    (key(), text(), about.clone(), about).prop_map(|(key, content, title, description)| {
        let mut document = Document::new(key, content);
        (document.title, document.description) =
            (title.map(str::to_owned), description.map(str::to_owned));
        document
    })
}

fn owner() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ann", "bob"])
}

fn keyed() -> impl Strategy<Value = &'static str> {
    prop_oneof![10 => prop::sample::select(vec!["skills", "facts", "lore", "habits"]), 1 => label()]
}

fn step() -> impl Strategy<Value = Step> {
    let restore = prop_oneof![
        (label(), 1..4_u64).prop_map(|(label, version)| Step::Restore(label, None, version)),
        (keyed(), key(), 1..4_u64).prop_map(|(label, key, n)| Step::Restore(label, Some(key), n)),
    ];
    prop_oneof![
        8 => (label(), text()).prop_map(|(label, text)| Step::Set(label, text)),
        6 => (label(), text()).prop_map(|(label, text)| Step::Append(label, text)),
        8 => (keyed(), prop::collection::vec(document(), 1..4))
            .prop_map(|(label, all)| Step::SetDocuments(label, all)),
        4 => (keyed(), document()).prop_map(|(label, mut document)| {
            // Without a key it would be a new document each time.
            if document.key.is_empty() {
                document.key = "a".to_owned();
            }
            Step::AppendDocument(label, document)
        }),
        4 => (keyed(), key()).prop_map(|(label, key)| Step::RemoveDocument(label, key)),
        5 => restore,
        4 => owner().prop_map(Step::Own),
        5 => Just(Step::Prompt),
        3 => (owner(), any::<bool>())
            .prop_map(|(owner, is_fresh)| Step::PromptWhileOwned(owner, is_fresh)),
        2 => Just(Step::Refresh),
        1 => Just(Step::Clear),
        3 => Just(Step::Say),
        2 => Just(Step::Compact),
        2 => any::<Pick>().prop_map(Step::Fork),
        1 => Just(Step::Forget),
        1 => label().prop_map(Step::Take),
        1 => label().prop_map(Step::Give),
        2 => prop::bool::weighted(0.4).prop_map(|is_readonly| Step::Reopen { is_readonly }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Move>> {
    let one = (any::<Pick>(), step(), prop::option::weighted(0.25, 1..4_u8));
    let one = one.prop_map(|(chat, step, fails_in)| Move { chat, step, fails_in });
    prop::collection::vec(one, 1..40)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Words {
    title: Option<String>,
    description: Option<String>,
    content: String,
}

/// The versions of a text, the current one last; `None` is a removal.
type Versions = Vec<(u64, Option<Words>)>;
type Texts = BTreeMap<(&'static str, String), Versions>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Section {
    label: &'static str,
    header: String,
    content: String,
}

/// A session and its handle in the model.
#[derive(Debug, Clone, Default)]
struct Chat {
    id: String,
    is_there: bool,
    owner: Option<&'static str>,
    texts: Texts,
    frozen: Option<Vec<Section>>,
    messages: Vec<String>,
    /// The blocks of the handle, in order.
    blocks: Vec<&'static Spec>,
}

#[derive(Debug, Default)]
struct Model {
    chats: Vec<Chat>,
    shared: Texts,
    /// Of sessions without an owner: always empty.
    of_nobody: Texts,
    owned: BTreeMap<&'static str, Texts>,
    note: String,
    is_readonly: bool,
    count: usize,
}

/// The result of a step: success, or the name of an error.
type Outcome = std::result::Result<(), &'static str>;

fn joined(content: &str, text: &str) -> String {
    let between = if content.is_empty() || text.starts_with('\n') { "" } else { "\n" };
    format!("{content}{between}{text}")
}

fn present<'a>(texts: &'a Texts, label: &'static str, key: &str) -> Option<&'a Words> {
    texts.get(&(label, key.to_owned()))?.last()?.1.as_ref()
}

impl Model {
    fn new() -> Self {
        let chat = |id: &str| Chat {
            id: id.to_owned(),
            blocks: SPECS.iter().collect(),
            ..Chat::default()
        };
        Self { chats: vec![chat("memory"), chat("memory_s")], ..Self::default() }
    }

    fn texts(&self, chat: usize, spec: &Spec) -> &Texts {
        let of_owner = || self.owned.get(self.chats[chat].owner?);
        match spec.scope {
            BlockScope::Shared => &self.shared,
            BlockScope::Owner => of_owner().unwrap_or(&self.of_nobody),
            _ => &self.chats[chat].texts,
        }
    }

    fn spec(&self, chat: usize, label: &str) -> std::result::Result<&'static Spec, &'static str> {
        let found = self.chats[chat].blocks.iter().find(|spec| spec.label == label);
        found.copied().ok_or("UnknownBlock")
    }

    fn documents(&self, chat: usize, spec: &Spec) -> Vec<(&str, u64, &Words)> {
        let own = self.texts(chat, spec).iter();
        own.filter(|((label, key), _)| *label == spec.label && !key.is_empty())
            .filter_map(|((_, key), versions)| {
                let (version, words) = versions.last()?;
                Some((key.as_str(), *version, words.as_ref()?))
            })
            .collect()
    }

    fn content(&self, chat: usize, spec: &Spec) -> String {
        let count = |count: usize, one: &str, many: &str| match count {
            1 => format!("1 {one}."),
            count => format!("{count} {many}."),
        };
        match spec.kind {
            Kind::Text => SOUL.to_owned(),
            Kind::Note => self.note.clone(),
            Kind::Stored => {
                let words = present(self.texts(chat, spec), spec.label, "");
                words.map(|words| words.content.clone()).unwrap_or_default()
            }
            Kind::Skills => {
                let documents = self.documents(chat, spec);
                let lines = documents.iter().map(|(key, _, words)| {
                    let about = words.description.as_ref().or(words.title.as_ref());
                    match about {
                        None => format!("- {key}"),
                        Some(about) => {
                            let about: Vec<_> = about.split_whitespace().collect();
                            format!("- {key}: {}", about.join(" "))
                        }
                    }
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            Kind::Knowledge => {
                count(self.documents(chat, spec).len(), "entry indexed", "entries indexed")
            }
            Kind::History => "What was said in this conversation.".to_owned(),
        }
    }

    fn sections(&self, chat: usize) -> Vec<Section> {
        let blocks = self.chats[chat].blocks.iter();
        let sections = blocks.map(|spec| {
            let content = self.content(chat, spec);
            Section { label: spec.label, header: spec.header(&content), content }
        });
        // The text of the soul is never empty, so that all are shown.
        sections.collect()
    }

    /// Returns label, frozen text and current text of each block that differs.
    fn drift(&self, chat: usize) -> Vec<(String, Option<String>, Option<String>)> {
        let Some(frozen) = &self.chats[chat].frozen else { return Vec::new() };
        let now = self.sections(chat);
        let in_frozen = |label| frozen.iter().find(|section| section.label == label);
        let moved = now.iter().filter_map(|section| match in_frozen(section.label) {
            Some(was) if was.content == section.content => None,
            was => Some((section.label, was.map(|was| &was.content), Some(&section.content))),
        });
        let gone = frozen.iter().filter(|was| now.iter().all(|section| section.label != was.label));
        let gone = gone.map(|was| (was.label, Some(&was.content), None));
        let all = moved.chain(gone);
        all.map(|(label, was, now)| (label.to_owned(), was.cloned(), now.cloned())).collect()
    }

    fn reminder(&self, chat: usize) -> Option<String> {
        let frozen = self.chats[chat].frozen.as_ref()?;
        let now = self.sections(chat);
        let marked = now.iter().filter(|section| matches!(section.label, "memory" | "note"));
        let texts = marked.filter_map(|section| {
            let was = frozen.iter().find(|was| was.label == section.label);
            let was = was.map(|was| was.content.as_str()).unwrap_or_default();
            let head = format!("{} has changed since the prompt was written. It ", section.label);
            match section.content.as_str() {
                now if now == was => None,
                "" => Some(format!("{head}is empty now.")),
                now => Some(format!("{head}now reads:\n{now}")),
            }
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        (!text.is_empty()).then_some(text)
    }

    fn can_write(&self) -> Outcome {
        if self.is_readonly { Err("ReadOnly") } else { Ok(()) }
    }

    fn own(&mut self, chat: usize, owner: &'static str) {
        let chat = &mut self.chats[chat];
        chat.is_there = true;
        if chat.owner != Some(owner) {
            (chat.owner, chat.frozen) = (Some(owner), None);
        }
    }

    fn put(
        &mut self,
        chat: usize,
        spec: &'static Spec,
        key: &str,
        words: Option<Words>,
    ) -> Outcome {
        let place = (spec.label, key.to_owned());
        let texts = match spec.scope {
            BlockScope::Shared => &mut self.shared,
            BlockScope::Owner => {
                self.owned.entry(self.chats[chat].owner.ok_or("NoOwner")?).or_default()
            }
            _ => &mut self.chats[chat].texts,
        };
        let present = texts.get(&place).and_then(|versions| versions.last()).cloned();
        let (version, is_same) = match present {
            None => (0, words.is_none()),
            Some((version, present)) => (version, present == words),
        };
        if !is_same {
            texts.entry(place).or_default().push((version + 1, words));
            self.chats[chat].is_there |= spec.scope == BlockScope::Session;
        }
        Ok(())
    }

    /// Replaces a text or adds to it.
    fn write(&mut self, chat: usize, label: &str, text: &str, is_added: bool) -> Outcome {
        let spec = self.spec(chat, label)?;
        if !spec.is_writable() {
            return Err("BlockReadOnly");
        }
        if spec.is_keyed() {
            return Err("BlockKeyed");
        }
        let content = match is_added {
            true => joined(&self.content(chat, spec), text),
            false => text.to_owned(),
        };
        if spec.kind == Kind::Note {
            check_limit(spec, &content)?;
            self.note = content;
            return Ok(());
        }
        self.can_write()?;
        check_limit(spec, &content)?;
        // A text that was never written reads as empty, but writing an empty text is a version.
        self.put(chat, spec, "", Some(Words { title: None, description: None, content }))
    }

    fn set_documents(&mut self, chat: usize, label: &str, all: &[Document]) -> Outcome {
        let spec = self.spec(chat, label)?;
        match spec.kind {
            Kind::History => return Err("BlockReadOnly"),
            _ if !spec.is_keyed() => return Err("BlockCannot"),
            _ => {}
        }
        self.can_write()?;
        all.iter().try_for_each(|document| check_limit(spec, &document.content))?;
        for document in all {
            let Document { title, description, content, .. } = document.clone();
            self.put(chat, spec, &document.key, Some(Words { title, description, content }))?;
        }
        Ok(())
    }

    fn append_document(&mut self, chat: usize, label: &str, more: &Document) -> Outcome {
        let spec = self.spec(chat, label)?;
        match spec.kind {
            Kind::History => return Err("BlockReadOnly"),
            _ if !spec.is_keyed() => return Err("BlockCannot"),
            _ => {}
        }
        let was = present(self.texts(chat, spec), spec.label, &more.key).cloned();
        let was = was.unwrap_or(Words { title: None, description: None, content: String::new() });
        let words = Words {
            title: more.title.clone().or(was.title),
            description: more.description.clone().or(was.description),
            content: joined(&was.content, &more.content),
        };
        self.can_write()?;
        check_limit(spec, &words.content)?;
        self.put(chat, spec, &more.key, Some(words))
    }

    fn remove_document(&mut self, chat: usize, label: &str, key: &str) -> Outcome {
        let spec = self.spec(chat, label)?;
        if !spec.is_keyed() {
            return Err("BlockCannot");
        }
        if key.is_empty() {
            return Ok(());
        }
        self.can_write()?;
        self.put(chat, spec, key, None)
    }

    fn restore(&mut self, chat: usize, label: &str, key: Option<&str>, version: u64) -> Outcome {
        let spec = self.spec(chat, label)?;
        if !spec.is_stored() {
            return Err("BlockCannot");
        }
        let key = key.unwrap_or_default();
        let versions = self.texts(chat, spec).get(&(spec.label, key.to_owned()));
        let found = versions.into_iter().flatten().find(|(number, _)| *number == version);
        let (_, words) = found.cloned().ok_or("UnknownVersion")?;
        self.can_write()?;
        self.put(chat, spec, key, words)
    }

    /// Runs a step; a failed one has no effect.
    fn run(&mut self, chat: usize, step: &Step) -> Outcome {
        match step {
            Step::Set(label, text) => self.write(chat, label, text, false),
            Step::Append(label, text) => self.write(chat, label, text, true),
            Step::SetDocuments(label, all) => self.set_documents(chat, label, all),
            Step::AppendDocument(label, more) => self.append_document(chat, label, more),
            Step::RemoveDocument(label, key) => self.remove_document(chat, label, key),
            Step::Restore(label, key, version) => self.restore(chat, label, *key, *version),
            Step::Own(owner) => {
                self.can_write()?;
                self.own(chat, owner);
                Ok(())
            }
            Step::PromptWhileOwned(_, is_fresh) => {
                self.run(chat, if *is_fresh { &Step::Refresh } else { &Step::Prompt })
            }
            Step::Prompt => {
                // A prompt that cannot be stored is still returned.
                if self.chats[chat].frozen.is_none() && !self.is_readonly {
                    self.chats[chat].frozen = Some(self.sections(chat));
                    self.chats[chat].is_there = true;
                }
                Ok(())
            }
            Step::Refresh => {
                self.can_write()?;
                self.chats[chat].frozen = Some(self.sections(chat));
                self.chats[chat].is_there = true;
                Ok(())
            }
            Step::Clear => {
                self.can_write()?;
                self.chats[chat].frozen = None;
                self.chats[chat].messages.clear();
                Ok(())
            }
            Step::Say => {
                self.can_write()?;
                let id = format!("m{}", self.count);
                self.chats[chat].messages.push(id);
                self.chats[chat].is_there = true;
                Ok(())
            }
            Step::Compact => {
                self.can_write()?;
                self.chats[chat].frozen = None;
                Ok(())
            }
            Step::Fork(at) => {
                self.can_write()?;
                let mut fork = self.chats[chat].clone();
                fork.id = format!("f{}", self.count);
                fork.messages.truncate(usize::from(*at) % fork.messages.len() + 1);
                fork.frozen = None;
                for versions in fork.texts.values_mut() {
                    let last = versions.pop().filter(|(_, words)| words.is_some());
                    *versions = last.into_iter().collect();
                }
                fork.texts.retain(|_, versions| !versions.is_empty());
                self.chats.push(fork);
                Ok(())
            }
            Step::Forget => {
                self.can_write()?;
                let Chat { id, is_there, blocks, .. } = std::mem::take(&mut self.chats[chat]);
                self.chats[chat] = Chat { id, blocks, ..Chat::default() };
                if is_there { Ok(()) } else { Err("UnknownSession") }
            }
            Step::Take(label) => {
                self.chats[chat].blocks.retain(|spec| spec.label != *label);
                Ok(())
            }
            Step::Give(label) => match self.spec(chat, label) {
                Ok(_) => Err("BlockExists"),
                Err(_) => {
                    self.chats[chat].blocks.extend(Spec::of(label));
                    Ok(())
                }
            },
            Step::Reopen { is_readonly } => {
                self.is_readonly = *is_readonly;
                for chat in &mut self.chats {
                    chat.blocks = SPECS.iter().collect();
                }
                Ok(())
            }
        }
    }
}

fn check_limit(spec: &Spec, content: &str) -> Outcome {
    match spec.max {
        Some(max) if estimate_tokens(content) > max => Err("BlockOverLimit"),
        _ => Ok(()),
    }
}

fn as_text(sections: &[Section]) -> String {
    let texts = sections.iter().map(|section| format!("{}\n{}", section.header, section.content));
    texts.collect::<Vec<_>>().join("\n\n")
}

fn name(error: &Error) -> &'static str {
    match error {
        Error::UnknownBlock { .. } => "UnknownBlock",
        Error::BlockReadOnly { .. } => "BlockReadOnly",
        Error::BlockKeyed { .. } => "BlockKeyed",
        Error::BlockCannot { .. } => "BlockCannot",
        Error::BlockExists { .. } => "BlockExists",
        Error::BlockOverLimit { .. } => "BlockOverLimit",
        Error::UnknownVersion { .. } => "UnknownVersion",
        Error::UnknownSession { .. } => "UnknownSession",
        Error::NoOwner { .. } => "NoOwner",
        Error::ReadOnly => "ReadOnly",
        other => panic!("an error that nothing here leads to: {other}"),
    }
}

/// A store and its model.
struct World {
    scratch: Scratch,
    note: Arc<Note>,
    handles: Vec<Session>,
    model: Model,
}

impl World {
    fn new() -> Result<Self> {
        let mut world = Self {
            scratch: Scratch::new()?,
            note: Arc::default(),
            handles: Vec::new(),
            model: Model::new(),
        };
        world.open_handles()?;
        Ok(world)
    }

    fn open_handles(&mut self) -> Result<()> {
        self.handles.clear();
        let all: Vec<&Spec> = SPECS.iter().collect();
        for chat in &self.model.chats {
            let handle = self.open_handle(&chat.id, &all)?;
            self.handles.push(handle);
        }
        Ok(())
    }

    fn open_handle(&self, id: &str, blocks: &[&Spec]) -> Result<Session> {
        let mut builder = self.scratch.store.session_builder(id);
        for spec in blocks {
            builder = builder.block(spec.label, spec.block(&self.note));
        }
        builder.cached_prompt().open()
    }

    /// Another handle of a session's context, with all blocks.
    fn context(&self, id: &str) -> Result<Context> {
        let builder = self.scratch.store.session_builder(id);
        let with = |builder: talktree::SessionBuilder, spec: &Spec| {
            builder.block(spec.label, spec.block(&self.note))
        };
        Ok(SPECS.iter().fold(builder, with).cached_prompt().open()?.context().clone())
    }

    fn run(&mut self, Move { chat, step, fails_in }: &Move) -> Result<()> {
        self.model.count += 1;
        let at = usize::from(*chat) % self.model.chats.len();
        let is_silent = self.model.chats[at].messages.is_empty();
        let is_full = self.model.chats.len() >= 4;
        match step {
            Step::Compact | Step::Fork(_) if is_silent => return Ok(()),
            Step::Fork(_) if is_full => return Ok(()),
            Step::Give("nobody") => return Ok(()),
            Step::PromptWhileOwned(..) if self.model.is_readonly => return Ok(()),
            _ => {}
        }
        let is_move = matches!(step, Step::PromptWhileOwned(..));
        self.note.state().fails_in = fails_in.filter(|_| !is_move);
        let mut step = step.clone();
        let answer = self.perform(at, &mut step);
        let mut state = self.note.state();
        state.fails_in = None;
        let has_failed = std::mem::take(&mut state.has_failed);
        drop(state);
        if has_failed {
            assert!(
                matches!(&answer, Err(Error::Provider { label, .. }) if label == "note"),
                "{answer:?}"
            );
            return Ok(());
        }
        let answer = answer.map_err(|error| name(&error));
        assert_eq!(answer, self.model.run(at, &step), "{step:?}");
        Ok(())
    }

    /// Runs a step on the store; documents get their generated keys.
    fn perform(&mut self, at: usize, step: &mut Step) -> Result<()> {
        let handle = self.handles[at].clone();
        let (context, chat) = (handle.context(), &self.model.chats[at]);
        match step {
            Step::Set(label, text) => {
                let info = context.set(label, text)?;
                assert_eq!((info.label.as_str(), info.content.as_str()), (*label, *text));
            }
            Step::Append(label, text) => {
                let info = context.append(label, text)?;
                assert!(info.content.ends_with(*text), "{info:?}");
                assert_eq!(info.tokens, estimate_tokens(&info.content));
            }
            Step::SetDocuments(label, all) => {
                let keys = context.set_documents(label, all.clone())?;
                assert_eq!(keys.len(), all.len());
                for (document, key) in all.iter_mut().zip(keys) {
                    assert!(!key.is_empty() && (document.key.is_empty() || document.key == key));
                    document.key = key;
                }
            }
            Step::AppendDocument(label, more) => {
                assert_eq!(context.append_document(label, more)?, more.key);
            }
            Step::RemoveDocument(label, key) => {
                let was = Spec::of(label).and_then(|spec| {
                    present(self.model.texts(at, spec), spec.label, key).filter(|_| !key.is_empty())
                });
                let was = was.is_some();
                assert_eq!(context.remove_document(label, key)?, was);
            }
            Step::Restore(label, key, version) => context.restore(label, *key, *version)?,
            Step::Own(owner) => handle.set_details(&owned_by(owner))?,
            Step::PromptWhileOwned(owner, is_fresh) => {
                self.note.state().moves = Some((handle.clone(), owner));
                let prompt = if *is_fresh { handle.refresh_prompt()? } else { handle.prompt()? };
                if self.note.state().moves.take().is_none() {
                    self.model.own(at, owner);
                }
                let frozen = self.model.chats[at].frozen.as_ref().filter(|_| !*is_fresh);
                let sections = self.model.sections(at);
                assert_eq!(prompt, as_text(frozen.unwrap_or(&sections)));
            }
            Step::Prompt => {
                let prompt = handle.prompt()?;
                let sections = self.model.sections(at);
                let frozen = chat.frozen.as_ref().unwrap_or(&sections);
                assert_eq!(prompt, as_text(frozen));
            }
            Step::Refresh => {
                let prompt = handle.refresh_prompt()?;
                assert_eq!(prompt, as_text(&self.model.sections(at)));
            }
            Step::Clear => handle.clear()?,
            Step::Say => {
                let id = format!("m{}", self.model.count);
                handle.append(Message::user("hello").with_id(id))?;
            }
            Step::Compact => {
                let ends = [chat.messages.first(), chat.messages.last()];
                let [first, last] = ends.map(|id| MessageId::from(id.unwrap().as_str()));
                handle.add_compaction("They greeted.", &first, &last)?;
            }
            Step::Fork(pick) => {
                let at = chat.messages[usize::from(*pick) % chat.messages.len()].as_str();
                let id = format!("f{}", self.model.count);
                self.handles.push(handle.fork_as(&id.as_str().into(), &at.into(), "A fork")?);
            }
            Step::Forget => {
                self.scratch.store.remove(&chat.id.as_str().into())?;
                // The old one does not write any more.
                self.handles[at] = self.open_handle(&chat.id, &chat.blocks)?;
            }
            Step::Take(label) => {
                let was = chat.blocks.iter().any(|spec| spec.label == *label);
                assert_eq!(context.remove(label), was);
            }
            Step::Give(label) => {
                let block = Spec::of(label).map(|spec| spec.block(&self.note));
                context.add(label, block.unwrap_or(Block::stored()))?;
            }
            Step::Reopen { is_readonly } => {
                self.handles.clear();
                self.scratch.reopen()?;
                if *is_readonly {
                    let path = self.scratch.folder.path().join("talk.db");
                    self.scratch.store = Store::open_read_only(path)?;
                }
                self.open_handles()?;
            }
        }
        Ok(())
    }

    fn compare(&self) -> Result<()> {
        let there = self.model.chats.iter().filter(|chat| chat.is_there);
        let there: BTreeSet<&str> = there.map(|chat| chat.id.as_str()).collect();
        let found = self.scratch.store.sessions()?;
        assert_eq!(found.iter().map(|info| info.id.as_str()).collect::<BTreeSet<_>>(), there);
        assert_eq!(self.note.state().content, self.model.note);
        (0..self.handles.len()).try_for_each(|at| self.compare_one(at))
    }

    fn compare_one(&self, at: usize) -> Result<()> {
        let (handle, chat) = (&self.handles[at], &self.model.chats[at]);
        let read = handle.blocks()?;
        let read =
            read.iter().map(|info| (info.label.as_str(), info.content.as_str(), info.tokens));
        let sections = self.model.sections(at);
        let known = sections.iter().map(|section| {
            (section.label, section.content.as_str(), estimate_tokens(&section.content))
        });
        assert_eq!(read.collect::<Vec<_>>(), known.collect::<Vec<_>>());

        let drift = handle.drift()?;
        let drift = drift.into_iter().map(|drift| (drift.label, drift.frozen, drift.current));
        assert_eq!(drift.collect::<Vec<_>>(), self.model.drift(at));
        assert_eq!(handle.reminder()?, self.model.reminder(at));

        let context = self.context(&chat.id)?;
        let frozen = chat.frozen.as_deref().map(as_text);
        assert_eq!(context.frozen_prompt()?, frozen);
        for spec in SPECS.iter().filter(|spec| spec.is_keyed()) {
            let read = context.documents(spec.label)?;
            let read = read.into_iter().map(|info| -> Result<_> {
                let content = context.load(spec.label, &info.key)?.unwrap_or_default();
                let words = Words { title: info.title, description: info.description, content };
                Ok((info.key, info.version, words))
            });
            let known = self.model.documents(at, spec).into_iter();
            let known = known.map(|(key, version, words)| (key.to_owned(), version, words.clone()));
            assert_eq!(read.collect::<Result<Vec<_>>>()?, known.collect::<Vec<_>>());
        }
        for spec in SPECS.iter().filter(|spec| spec.kind == Kind::Knowledge) {
            let read = context.search(spec.label, "tea", 100)?;
            let read: BTreeSet<_> = read.iter().map(|found| found.key.as_str()).collect();
            let known = self.model.documents(at, spec).into_iter();
            let known = known.filter(|(key, _, words)| {
                words.content.contains("tea") || key.split('-').any(|word| word == "tea")
            });
            assert_eq!(read, known.map(|(key, ..)| key).collect::<BTreeSet<_>>());
        }
        for spec in SPECS.iter().filter(|spec| spec.is_stored()) {
            let texts = self.model.texts(at, spec).iter();
            for ((_, key), known) in texts.filter(|((label, _), _)| *label == spec.label) {
                let key = Some(key.as_str()).filter(|key| !key.is_empty());
                let read = context.versions(spec.label, key)?.into_iter().map(|version| {
                    let (title, description) = (version.title, version.description);
                    let words =
                        version.content.map(|content| Words { title, description, content });
                    (version.version, words)
                });
                assert_eq!(read.collect::<Vec<_>>(), *known, "{} {key:?}", spec.label);
            }
        }
        Ok(())
    }
}

fn check(moves: &[Move]) -> Result<()> {
    let mut world = World::new()?;
    for one in moves {
        world.run(one)?;
        world.compare()?;
    }
    let reopen = Step::Reopen { is_readonly: false };
    world.run(&Move { chat: 0, step: reopen, fails_in: None })?;
    world.compare()?;
    let verified = world.scratch.store.verify(|_| {})?;
    assert!(verified.damages.is_empty(), "{:?}", verified.damages);
    Ok(())
}

#[test]
fn random_steps_leave_the_contexts_equal_to_the_model() -> std::result::Result<(), String> {
    random::check_all(random::cases(64), &steps(), |moves| check(&moves))
}
