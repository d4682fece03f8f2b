//! The same random verbs of a whole store, on SQLite and on PostgreSQL, have equal outcomes and end in equal content.
//!
//! Keys and owners, contexts, compactions, forks and splits, the trash, usage, transcripts, the inbox, retention and erasures. What the
//! verbs on one tree do is compared beside a model: see the tests of `tree`.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::json;
use talktree::{
    Author, BindingFilter, Block, BoxError, CompactionOptions, Document, Erasure, InboxItem, Json,
    Message, MessageFilter, MessageId, Result, Retention, RetentionRule, Session, SessionChange,
    SessionFilter, SessionManager, SessionState, Store, TranscriptFilter, TranscriptKey, Usage,
    UsageGroup,
};
use talktree_claude::SessionStore;

use crate::common::content::{content, found, without_ids};
use crate::common::{Scratch, random};

/// Selects one of the existing things, however many there are.
type Pick = u8;

#[derive(Debug, Clone, Copy)]
enum Verb {
    Resume,
    Append,
    AppendMany,
    AppendTo,
    Update,
    Delete,
    DeleteBranch,
    Clear,
    Import,
    Stream,
    Checkout,
    Undo,
    Label,
    TagMessage,
    Fork,
    Split,
    SummarizeBranch,
    Compact,
    AddCompaction,
    RemoveCompaction,
    Set,
    AppendText,
    RemoveText,
    SetDocument,
    RemoveDocument,
    Prompt,
    RefreshPrompt,
    Rename,
    Own,
    Tag,
    Pin,
    End,
    Trash,
    Restore,
    Remove,
    Unbind,
    Usage,
    Entries,
    DeleteTranscript,
    Receive,
    Done,
    Retain,
    EraseMessages,
    EraseSession,
    EraseOwner,
    EraseAuthor,
    EraseKey,
    EraseTranscript,
    Search,
}

const VERBS: [(u32, Verb); 49] = [
    (8, Verb::Resume),
    (20, Verb::Append),
    (4, Verb::AppendMany),
    (4, Verb::AppendTo),
    (4, Verb::Update),
    (3, Verb::Delete),
    (1, Verb::DeleteBranch),
    (1, Verb::Clear),
    (2, Verb::Import),
    (2, Verb::Stream),
    (3, Verb::Checkout),
    (1, Verb::Undo),
    (1, Verb::Label),
    (2, Verb::TagMessage),
    (4, Verb::Fork),
    (2, Verb::Split),
    (2, Verb::SummarizeBranch),
    (2, Verb::Compact),
    (3, Verb::AddCompaction),
    (1, Verb::RemoveCompaction),
    (5, Verb::Set),
    (3, Verb::AppendText),
    (1, Verb::RemoveText),
    (4, Verb::SetDocument),
    (1, Verb::RemoveDocument),
    (2, Verb::Prompt),
    (1, Verb::RefreshPrompt),
    (1, Verb::Rename),
    (1, Verb::Own),
    (1, Verb::Tag),
    (1, Verb::Pin),
    (1, Verb::End),
    (2, Verb::Trash),
    (2, Verb::Restore),
    (1, Verb::Remove),
    (1, Verb::Unbind),
    (2, Verb::Usage),
    (3, Verb::Entries),
    (1, Verb::DeleteTranscript),
    (2, Verb::Receive),
    (2, Verb::Done),
    (1, Verb::Retain),
    (1, Verb::EraseMessages),
    (1, Verb::EraseSession),
    (1, Verb::EraseOwner),
    (1, Verb::EraseAuthor),
    (1, Verb::EraseKey),
    (1, Verb::EraseTranscript),
    (2, Verb::Search),
];

fn step() -> impl Strategy<Value = (Verb, Pick, Pick, Pick)> {
    let verbs = VERBS.map(|(weight, verb)| (weight, Just(verb)));
    (
        prop::strategy::Union::new_weighted(verbs.to_vec()),
        any::<Pick>(),
        any::<Pick>(),
        any::<Pick>(),
    )
}

const TEXTS: [&str; 6] = [
    "the red fox den",
    "an owl in 北京",
    "deploying config.rs to deploy-2",
    "foxes were running from dens",
    "Die Füchse wohnten in Häusern",
    "seven owls, 7 dens",
];
const OWNERS: [&str; 3] = ["ann", "bob", "eve"];
const KEYS: [&str; 4] = ["telegram:1", "telegram:2", "slack:3", "a key of 北京"];
const BLOCKS: [&str; 3] = ["memory", "notes", "house"];

fn pick<T>(from: &[T], pick: Pick) -> Option<&T> {
    from.get(usize::from(pick) % from.len().max(1))
}

struct World {
    scratch: Scratch,
    bot: SessionManager,
}

impl World {
    fn over(scratch: Scratch) -> Result<Self> {
        let bot = SessionManager::builder(&scratch.store)
            .block("memory", Block::stored().per_owner())
            .block("notes", Block::stored())
            .block("house", Block::stored().across_sessions())
            .block("facts", Block::knowledge())
            .cached_prompt()
            .summarizer(|_: &str| -> std::result::Result<&str, BoxError> { Ok("foxes, in short") })
            .compaction_options(CompactionOptions::default().keep_recent_tokens(20))
            .build()?;
        Ok(Self { scratch, bot })
    }

    fn store(&self) -> &Store {
        &self.scratch.store
    }

    fn sessions(&self) -> Result<Vec<Session>> {
        let mut ids: Vec<_> = self.store().sessions()?.into_iter().map(|info| info.id).collect();
        ids.sort();
        ids.into_iter().map(|id| self.bot.session(id)).collect()
    }

    /// Runs a verb; returns what it said, if there is something to say. `n` makes ids.
    fn run(&self, n: usize, (verb, a, b, c): (Verb, Pick, Pick, Pick)) -> Result<String> {
        let store = self.store();
        let sessions = self.sessions()?;
        let (key, owner) = (KEYS[usize::from(b) % 4], OWNERS[usize::from(b) % 3]);
        let text = format!("{} {n}", TEXTS[usize::from(c) % TEXTS.len()]);
        let Some(chat) = pick(&sessions, a).filter(|_| !matches!(verb, Verb::Resume)) else {
            let resumed = self.bot.resume(key).owner(OWNERS[usize::from(b) % 2]);
            let chat = resumed.new_id(format!("s{n}")).open()?;
            return Ok(chat.id().to_string());
        };
        let all: Vec<MessageId> =
            chat.all_messages().map(|message| Ok(message?.id)).collect::<Result<_>>()?;
        let (at, other) = (pick(&all, b), pick(&all, c));
        let author = Author::new(OWNERS[usize::from(c) % 3]);
        let message = Message::user(&*text).with_id(format!("m{n}")).from(&author);
        let context = chat.context();
        let block = BLOCKS[usize::from(b) % 3];
        let change = |change| store.change_session(chat.id(), &change);
        let entry = TranscriptKey::new("project", format!("shown{}", b % 3));
        let inbox = store.inbox("telegram");
        let erase = |erasure: Erasure| -> Result<String> {
            let erasure = if c % 2 == 0 { erasure.with_forks() } else { erasure };
            let erasure = if c % 3 == 0 { erasure.with_summaries() } else { erasure };
            let erasure = if c % 5 == 0 { erasure.forbid_import() } else { erasure };
            let mut extent = store.erase(&erasure)?.extent;
            extent.sessions.sort();
            extent.transcripts.sort();
            Ok(format!(
                "{:?}",
                (
                    extent.messages,
                    extent.summaries,
                    extent.texts,
                    extent.usage,
                    extent.bindings,
                    extent.entries,
                    extent.sessions,
                    extent.transcripts
                )
            ))
        };
        Ok(match (verb, at, other) {
            (Verb::Append, ..) => format!("{:?}", chat.append(message)?),
            (Verb::AppendMany, ..) => {
                let more = (0..4).map(|i| Message::assistant(&*text).with_id(format!("m{n}-{i}")));
                format!("{:?}", chat.append_all(std::iter::once(message).chain(more))?)
            }
            (Verb::AppendTo, Some(at), _) => format!("{:?}", chat.append_to(at, message)?),
            (Verb::Update, Some(at), _) => {
                format!("{:?}", chat.update(Message::user(&*text).with_id(at.clone()))?.is_changed)
            }
            (Verb::Delete, Some(at), Some(other)) => {
                format!("{:?}", chat.delete([at, other])?.messages)
            }
            (Verb::DeleteBranch, Some(at), _) => format!("{:?}", chat.delete_branch(at)?.messages),
            (Verb::Clear, ..) => format!("{:?}", chat.clear()?),
            (Verb::Import, ..) => format!("{:?}", chat.import_message(at, message)?),
            (Verb::Stream, ..) => {
                let reply = Message::assistant("so").with_id(format!("m{n}"));
                chat.begin(reply.clone())?;
                match c % 3 {
                    0 => chat.discard(&reply.id)?,
                    1 => chat.save(Message::assistant(&*text).with_id(reply.id))?,
                    _ => chat.finish(Message::assistant(&*text).with_id(reply.id))?,
                }
                format!("{}", chat.unfinished()?.len())
            }
            (Verb::Checkout, Some(at), _) => format!("{:?}", chat.checkout(at)?),
            (Verb::Undo, ..) if c % 2 == 0 => format!("{:?}", chat.redo_head()?),
            (Verb::Undo, ..) => format!("{:?}", chat.undo_head()?),
            (Verb::Label, Some(at), _) => format!("{:?}", chat.label(owner, at)?),
            (Verb::TagMessage, Some(at), _) if c % 4 == 0 => {
                format!("{:?}", chat.untag(at, owner)?)
            }
            (Verb::TagMessage, Some(at), _) => format!("{:?}", chat.tag(at, owner)?),
            (Verb::Fork, Some(at), _) if sessions.len() < 9 => {
                let fork = chat.fork_as(&format!("f{n}").as_str().into(), at, &text)?;
                format!("{}", fork.path_length()?)
            }
            (Verb::Split, ..) if sessions.len() < 9 => {
                let next = chat.compact_and_split_as(&format!("n{n}").as_str().into(), &*text)?;
                format!("{}", next.path_length()?)
            }
            (Verb::SummarizeBranch, Some(at), _) => {
                let plan = chat.plan_branch_summary(at, &CompactionOptions::default())?;
                let summarized = plan.map(|plan| chat.checkout_with_summary(plan, &*text));
                format!("{}", summarized.transpose()?.is_some())
            }
            (Verb::Compact, ..) => match chat.compact()? {
                Ok(compacted) => format!("{:?}", (compacted.tokens_before, compacted.tokens_after)),
                Err(nothing) => format!("{nothing:?}"),
            },
            (Verb::AddCompaction, Some(at), Some(other)) => {
                chat.add_compaction(&*text, at.min(other), at.max(other))?;
                String::new()
            }
            (Verb::RemoveCompaction, ..) => {
                if let Some(compaction) = pick(&chat.compactions()?, b) {
                    chat.remove_compaction(&compaction.id)?;
                }
                String::new()
            }
            (Verb::Set, ..) => format!("{:?}", context.set(block, &text)?.content),
            (Verb::AppendText, ..) => format!("{:?}", context.append(block, &text)?.content),
            (Verb::RemoveText, ..) => format!("{:?}", context.remove_text(block)?),
            (Verb::SetDocument, ..) => {
                let document = Document::new(owner, &*text).titled(key);
                format!("{:?}", context.set_document("facts", &document)?)
            }
            (Verb::RemoveDocument, ..) => format!("{:?}", context.remove_document("facts", owner)?),
            (Verb::Prompt, ..) => chat.prompt()?,
            (Verb::RefreshPrompt, ..) => chat.refresh_prompt()?,
            (Verb::Rename, ..) => format!("{:?}", change(SessionChange::Name(Some(text)))?),
            (Verb::Own, ..) => {
                format!("{:?}", change(SessionChange::Owner(Some(owner.to_owned())))?)
            }
            (Verb::Tag, ..) if c % 3 == 0 => {
                format!("{:?}", change(SessionChange::Untag(owner.to_owned()))?)
            }
            (Verb::Tag, ..) => format!("{:?}", change(SessionChange::Tag(owner.to_owned()))?),
            (Verb::Pin, ..) => format!("{:?}", change(SessionChange::Pin(c % 2 == 0))?),
            (Verb::End, ..) if c % 3 == 0 => format!("{:?}", change(SessionChange::Reopen)?),
            (Verb::End, ..) => format!("{:?}", change(SessionChange::End("done".to_owned()))?),
            (Verb::Trash, ..) => format!("{:?}", change(SessionChange::Delete)?),
            (Verb::Restore, ..) => {
                let trash =
                    SessionFilter { state: SessionState::Trash, ..SessionFilter::default() };
                let mut all = store.list().filter(trash).run()?.sessions;
                all.sort_by(|a, b| a.info.id.cmp(&b.info.id));
                if let Some(listed) = pick(&all, b) {
                    store.change_session(&listed.info.id, &SessionChange::Restore)?;
                }
                format!("{}", all.len())
            }
            (Verb::Remove, ..) => format!("{:?}", store.remove(chat.id())?),
            (Verb::Unbind, ..) => format!("{:?}", self.bot.unbind(key)?),
            (Verb::Usage, ..) => {
                let usage = Usage { input: n as u64, model: Some(text), ..Usage::default() };
                format!("{:?}", chat.add_usage(at.filter(|_| c % 2 == 0), &usage)?)
            }
            (Verb::Entries, ..) => {
                let said = |i: usize| {
                    let message = json!({"role": "user", "content": text});
                    let parent = (n > 3 && i == 0).then(|| format!("e{}-1", n - 3));
                    json!({"type": "user", "uuid": format!("e{n}-{i}"), "parentUuid": parent, "message": message})
                };
                let entries = [said(0), said(1)].map(Json::from);
                let owned = SessionStore::new(store).projecting().owned_by(owner);
                format!("{:?}", owned.append(&entry, &entries)?)
            }
            (Verb::DeleteTranscript, ..) => format!("{:?}", store.transcripts().delete(&entry)?),
            (Verb::Receive, ..) => {
                let item = |i| InboxItem::new(format!("{}", n / 2 + i), key, &*text).owner(owner);
                format!("{:?}", inbox.receive(&[item(0), item(1)], Some(n as i64))?)
            }
            (Verb::Done, ..) => match inbox.next(key)? {
                Some(item) => format!("{} {}", item.id, inbox.done(&item.id)?),
                None => String::new(),
            },
            (Verb::Retain, ..) => {
                let rule = RetentionRule::new("long").more_messages_than(25);
                let retention =
                    Retention::new().rule(if c % 2 == 0 { rule.remove() } else { rule });
                format!("{:?}", store.retention(retention).run()?.messages())
            }
            (Verb::EraseMessages, Some(at), Some(other)) => {
                erase(Erasure::messages(chat.id(), [at, other]))?
            }
            (Verb::EraseSession, ..) => erase(Erasure::session(chat.id()))?,
            (Verb::EraseOwner, ..) => erase(Erasure::owner(owner).keep_totals())?,
            (Verb::EraseAuthor, ..) => erase(Erasure::author(owner))?,
            (Verb::EraseKey, ..) => erase(Erasure::key(key))?,
            (Verb::EraseTranscript, ..) => erase(Erasure::transcript(&entry))?,
            (Verb::Search, ..) => found(store.search(&*text))?,
            _ => String::new(),
        })
    }

    /// Returns all that can be read, in one order.
    fn picture(&self) -> Result<String> {
        let store = self.store();
        let mut out = content(store)?;
        let mut add = |what: &str, found: String| {
            let _ = write!(out, "\n{what}: {}", without_times(&without_ids(&found)));
        };
        for chat in self.sessions()? {
            let id = chat.id();
            let texts = |all: Vec<Message>| {
                all.into_iter().map(|it| (it.text(), it.id)).collect::<Vec<_>>()
            };
            add("history", format!("{id} {:?}", texts(chat.history()?)));
            add("raw history", format!("{id} {:?}", texts(chat.raw_history()?)));
            add("head", format!("{id} {:?} {}", chat.head()?, chat.visible_tokens()?));
            add("tags", format!("{id} {:?} {:?}", chat.all_tags()?, chat.labels()?));
            add("blocks", format!("{id} {:?}", chat.blocks()?));
            add("documents", format!("{id} {:?}", chat.context().documents("facts")?));
            add("prompt", format!("{id} {:?} {:?}", chat.drift()?, chat.reminder()?));
            add("usage", format!("{id} {:?}", chat.usage()?));
            for query in TEXTS {
                let facts = chat.context().search("facts", query, 5)?;
                add(query, format!("{id} {facts:?}"));
                add(query, found(chat.search(query))?);
                add(query, found(chat.search(query).on_path())?);
            }
        }
        for query in QUERIES {
            add(query, found(store.search(query))?);
            add(query, found(store.search(query).owner("ann"))?);
            add(query, found(store.search(query).author("bob"))?);
            add(query, found(store.search(query).tag("eve").without_hidden())?);
            add(query, found(store.search(query).plain())?);
            let sessions = store.search(query).run_by_session()?.hits;
            let of = |hit: &talktree::SessionHit| (hit.session.clone(), hit.hits.len());
            add(query, format!("{:?}", sessions.iter().map(of).collect::<Vec<_>>()));
        }
        for run in ["fox den", "CONFIG.rs", "北京", "s, 7"] {
            add(run, found(store.search("").exact(run))?);
        }
        let mut sessions = Vec::new();
        for state in [SessionState::Present, SessionState::Trash] {
            let filter = SessionFilter { state, ..SessionFilter::default() };
            let listed = store.list().filter(filter).limit(100).run()?.sessions;
            sessions.extend(listed.into_iter().map(|it| format!("{:?}", it.info)));
        }
        sessions.sort();
        add("sessions", sessions.join("\n"));
        let mut bindings: Vec<String> = store
            .bindings(&BindingFilter::default(), None, 100)?
            .into_iter()
            .map(|it| format!("{:?}", (it.key, it.session, it.end)))
            .collect();
        bindings.sort();
        add("bindings", bindings.join("\n"));
        add("owners", format!("{:?}", store.owners(None, 9)?));
        for group in [UsageGroup::All, UsageGroup::Owner, UsageGroup::Model] {
            add("usage", format!("{:?}", store.usage().by(group).run()?));
        }
        let mut transcripts: Vec<String> = store
            .transcripts()
            .list(&TranscriptFilter::default(), None, 99)?
            .into_iter()
            .map(|it| format!("{:?}", (it.key, it.owner)))
            .collect();
        transcripts.sort();
        add("transcripts", transcripts.join("\n"));
        let inbox = store.inbox("telegram");
        add("inbox", format!("{:?} {}", inbox.keys()?, inbox.pending()?));
        let written = store.list_messages(&MessageFilter::written_by("ann"), None, 500)?.messages;
        let mut written: Vec<String> =
            written.into_iter().map(|it| format!("{:?}", (it.session, it.message.id))).collect();
        written.sort();
        add("written", written.join("\n"));
        add("stats", format!("{:?}", store.stats()?.messages));
        Ok(out)
    }
}

const QUERIES: [&str; 14] = [
    "fox",
    "foxes dens",
    "\"red fox\"",
    "北京",
    "red OR owl",
    "fox -den",
    "conf*",
    "deploy-2",
    "role:user den",
    "what is a fox?",
    "fox nowhere",
    "confog",
    "Haus",
    "7",
];

/// Returns a text without its times.
fn without_times(text: &str) -> String {
    let is_time = |text: &str| {
        text.as_bytes().get(10) == Some(&b'T')
            && text.get(..4).is_some_and(|year| year.parse::<u16>().is_ok())
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.char_indices().map(|(at, _)| at).find(|at| is_time(&rest[*at..])) {
        out += &rest[..at];
        rest = rest[at..].split_once('Z').map_or("", |(_, after)| after);
    }
    out + rest
}

fn check(steps: &[(Verb, Pick, Pick, Pick)]) -> Result<()> {
    let Some(server) = Scratch::on_server()? else { return Ok(()) };
    let (file, server) = (World::over(Scratch::in_file()?)?, World::over(server)?);
    let said = |world: &World, n, step| match world.run(n, step) {
        Ok(said) => without_ids(&said),
        Err(error) => without_ids(&error.to_string()),
    };
    for (n, step) in steps.iter().enumerate() {
        assert_eq!(said(&file, n, *step), said(&server, n, *step), "{step:?}");
    }
    let (one, other) = (file.picture()?, server.picture()?);
    for (one, other) in one.lines().zip(other.lines()) {
        assert_eq!(one, other);
    }
    assert_eq!(one.lines().count(), other.lines().count());
    for world in [&file, &server] {
        assert_eq!(world.store().verify(|_| {})?.damages, []);
    }
    Ok(())
}

#[test]
fn any_verbs_end_equal_on_both_engines() -> std::result::Result<(), String> {
    let steps = prop::collection::vec(step(), 30..120);
    random::check_all(random::cases(40), &steps, |steps| check(&steps))
}
