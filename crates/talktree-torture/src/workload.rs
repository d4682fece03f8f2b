//! Random verbs that write: what a store goes through before it is broken.
//!
//! Ids and times come from the seed, too, and a workload looks only at its own sessions. So a seed repeats the same workload, in another
//! store and beside others: two stores with the same one have equal [snapshots](crate::snapshot()).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use fastrand::Rng;
use talktree::{
    Block, Compaction, CompactionId, Durability, Erasure, Json, Message, MessageId, Part, Session,
    SessionDetails, SessionManager, Store, TranscriptKey, Usage,
};
use talktree_claude::SessionStore;

use crate::compaction::{brief, by_words, compaction, options};

const SESSIONS: [&str; 3] = ["ann", "bob", "cy"];
const WORDS: [&str; 12] = [
    "deploy",
    "friday",
    "coffee",
    "故宫",
    "rollback",
    "quarterly",
    "budget",
    "한국어",
    "naïve",
    "zebra",
    "latency",
    "garden",
];

/// The verbs, with the weight of each.
const VERBS: &[(&str, u32)] = &[
    ("append", 30),
    ("append-all", 6),
    ("append-to", 8),
    ("upsert", 5),
    ("update", 8),
    ("delete", 6),
    ("delete-branch", 2),
    ("import-compaction", 6),
    ("remove-compaction", 3),
    ("compact-by-summarizer", 6),
    ("stale-plan", 2),
    ("append-and-compact", 6),
    ("split", 1),
    ("branch-summary", 3),
    ("tokens", 4),
    ("tokens-by-words", 2),
    ("recount", 1),
    ("label", 4),
    ("unlabel", 1),
    ("checkout", 4),
    ("undo-head", 2),
    ("fork", 2),
    ("import", 3),
    ("details", 2),
    ("search", 5),
    ("rebuild", 1),
    ("clear", 1),
    ("remove-session", 1),
    ("note", 3),
    ("bind", 2),
    ("usage", 2),
    ("entries", 4),
    ("erase", 1),
    ("reopen", 5),
];

/// The token limit after which the session compacts automatically.
const THRESHOLD: u64 = 1_500;

/// Called with the store after the first commit of a verb that has several.
type Observer = Arc<dyn Fn(&Store) + Send + Sync>;

/// A store and the verbs that run on it.
pub struct Workload {
    store: Option<Store>,
    /// What is opened again; nothing if the store is shared.
    file: Option<(PathBuf, Durability)>,
    place: Place,
    observer: Observer,
}

/// The state of a workload that its sessions do not hold.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// How the names of its sessions, keys and owners begin.
    pub(crate) name: String,
    pub(crate) dice: Rng,
    /// How many messages and names it has made.
    pub(crate) made: u64,
}

impl Place {
    pub(crate) fn new(name: &str, seed: u64) -> Self {
        Self { name: name.to_owned(), dice: Rng::with_seed(seed), made: 0 }
    }
}

impl std::fmt::Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workload").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Workload {
    /// Creates a store in a file.
    ///
    /// # Errors
    /// As opening.
    pub fn open(path: &Path, durability: Durability, seed: u64) -> talktree::Result<Self> {
        let store = Store::options().durability(durability).open(path)?;
        let file = Some((path.to_owned(), durability));
        Ok(Self { file, ..Self::resume(store, Place::new("", seed)) })
    }

    /// Goes on from a place, in a store that has the sessions of the workload.
    pub(crate) fn resume(store: Store, place: Place) -> Self {
        Self { store: Some(store), file: None, place, observer: Arc::new(|_| ()) }
    }

    /// Returns what [`Workload::resume`] needs to go on.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Calls `observer` between the append and its automatic compaction.
    pub fn observe(&mut self, observer: impl Fn(&Store) + Send + Sync + 'static) {
        self.observer = Arc::new(observer);
    }

    /// Returns the store.
    ///
    /// # Errors
    /// If it was closed and could not be opened again.
    pub fn store(&self) -> talktree::Result<&Store> {
        self.store.as_ref().ok_or(talktree::Error::Unsupported { what: "a closed store" })
    }

    /// Runs one random verb; returns its name and result. A refused verb changes nothing.
    pub fn step(&mut self) -> (&'static str, talktree::Result<()>) {
        let sum: u32 = VERBS.iter().map(|verb| verb.1).sum();
        let mut roll = self.place.dice.u32(..sum);
        let drawn = VERBS.iter().find(|verb| {
            let is_drawn = roll < verb.1;
            roll = roll.wrapping_sub(verb.1);
            is_drawn
        });
        let verb = drawn.map_or("append", |verb| verb.0);
        (verb, self.run(verb))
    }

    fn run(&mut self, verb: &str) -> talktree::Result<()> {
        if verb == "reopen" {
            if let Some((path, durability)) = &self.file {
                self.store = None;
                self.store = Some(Store::options().durability(*durability).open(path)?);
            }
            return Ok(());
        }
        let store = self.store()?.clone();
        let at = self.place.dice.usize(..SESSIONS.len());
        let name = self.own(SESSIONS[at]);
        let session = store.session(name.as_str())?;
        match verb {
            "append" => drop(session.append(self.message())?),
            "append-all" => {
                let count = self.place.dice.usize(2..40);
                let messages: Vec<Message> = (0..count).map(|_| self.message()).collect();
                drop(session.append_all(messages)?);
            }
            "append-to" => {
                let Some(parent) = self.any(&session)? else { return Ok(()) };
                drop(session.append_to(&parent, self.message())?);
            }
            "upsert" | "update" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                let message = self.message().with_id(id);
                match verb {
                    "upsert" => drop(session.upsert(message)?),
                    _ => drop(session.update(message)?),
                }
            }
            "delete" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                drop(session.delete([&id])?);
            }
            "delete-branch" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                drop(session.delete_branch(&id)?);
            }
            "import-compaction" => self.import_compaction(&session)?,
            "compact-by-summarizer" => drop(compaction(&store, &name)?.compact()?),
            "stale-plan" => self.commit_stale(&session)?,
            "append-and-compact" => self.append_and_compact(&store, &name)?,
            "split" => {
                let number = self.number();
                let child = self.own(&format!("split {number}"));
                session.compact_and_split_as(&child.as_str().into(), "What came before.")?;
            }
            "branch-summary" => {
                let Some(to) = self.any(&session)? else { return Ok(()) };
                drop(compaction(&store, &name)?.checkout_summarized(&to)?);
            }
            "tokens" => drop(session.visible_tokens()?),
            "tokens-by-words" => drop(by_words(&store, &name)?.visible_tokens()?),
            "recount" => store.recount_tokens()?,
            "remove-compaction" => {
                if let Some(compaction) = session.compactions()?.first() {
                    session.remove_compaction(&compaction.id)?;
                }
            }
            "label" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                session.label(["best", "start", "todo"][self.place.dice.usize(..3)], &id)?;
            }
            "unlabel" => {
                if let Some(label) = session.labels()?.first() {
                    session.unlabel(&label.name)?;
                }
            }
            "checkout" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                session.checkout(&id)?;
            }
            "undo-head" => drop(session.undo_head()?),
            "fork" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                let number = self.number();
                let fork = self.own(&format!("fork {number}"));
                session.fork_as(&fork.as_str().into(), &id, "A fork")?;
            }
            "import" => {
                let mut parent = self.any(&session)?;
                let mut records = Vec::new();
                for _ in 0..self.place.dice.usize(1..12) {
                    let message = self.message();
                    let id = message.id.clone();
                    records.push((parent.replace(id), message));
                }
                drop(session.import_messages(records)?);
            }
            "details" => {
                let metadata = serde_json::json!({ "n": self.number() });
                session.set_details(&SessionDetails {
                    metadata: Some(metadata.into()),
                    ..SessionDetails::default()
                })?;
            }
            "search" => drop(store.search(WORDS[self.place.dice.usize(..WORDS.len())]).run()?),
            "rebuild" => store.rebuild_search()?,
            "clear" => session.clear()?,
            "note" => {
                let chat = store.session_builder(name).block("note", Block::stored()).open()?;
                let number = self.number();
                chat.context().set("note", &format!("Note {number} of it"))?;
            }
            "bind" => {
                let number = self.number();
                let [key, id] = ["key", "bound"].map(|it| self.own(&format!("{it} {number}")));
                SessionManager::builder(&store).build()?.resume(key).new_id(id).open()?;
            }
            "usage" => {
                let usage = Usage { input: self.number(), ..Usage::default() };
                session.add_usage(None, &usage)?;
            }
            "entries" => {
                // Now and then another one: what was erased cannot be imported again.
                let id = self.own(&format!("log {}", self.place.made / 100));
                let entries: Vec<Json> =
                    (0..self.place.dice.usize(1..8)).map(|_| self.entry()).collect();
                let log = SessionStore::new(&store).owned_by(self.own("owner")).projecting();
                log.append(&TranscriptKey::new("project", id), &entries)?;
            }
            "erase" => drop(store.erase(&Erasure::owner(self.own("owner")))?),
            // Removes a fork; copies of its messages remain in the session it was forked from.
            _ => {
                let mut forks = store.sessions()?;
                forks.retain(|it| {
                    it.parent_session.is_some() && it.id.as_str().starts_with(&self.place.name)
                });
                if let Some(fork) = forks.iter().min_by_key(|fork| &fork.id) {
                    store.remove(&fork.id)?;
                }
            }
        }
        Ok(())
    }

    fn import_compaction(&mut self, session: &Session) -> talktree::Result<()> {
        let history = session.history()?;
        if history.len() < 4 {
            return Ok(());
        }
        let from = self.place.dice.usize(..history.len() / 2);
        let to = self.place.dice.usize(from + 1..history.len());
        let is_summary = |id: &MessageId| id.as_str().starts_with(CompactionId::PREFIX);
        let (first, last) = (history[from].id.clone(), history[to].id.clone());
        if is_summary(&first) || is_summary(&last) {
            return Ok(());
        }
        let number = self.number();
        let mut compaction = Compaction::new(format!("Summary {number} of it"), first, last);
        compaction.id = CompactionId::from(format!("{}{number}", CompactionId::PREFIX));
        compaction.created_at = self.time();
        session.import_compaction(&compaction)
    }

    /// Plans a compaction, changes its first message and commits the stale plan.
    fn commit_stale(&mut self, session: &Session) -> talktree::Result<()> {
        let Ok(plan) = session.plan_compaction(&options())? else { return Ok(()) };
        let first = plan.first().clone();
        match CompactionId::from_message(&first) {
            Some(summary) => drop(session.remove_compaction(&summary)?),
            None => drop(session.update(self.message().with_id(first))?),
        }
        session.commit(plan, "Of what was.").map(drop)
    }

    /// Appends to a session that compacts automatically.
    fn append_and_compact(&mut self, store: &Store, name: &str) -> talktree::Result<()> {
        let (observer, observed) = (Arc::clone(&self.observer), store.clone());
        let chat = store
            .session_builder(name)
            .summarizer(move |prompt: &str| {
                observer(&observed);
                brief(prompt)
            })
            .compact_after(THRESHOLD)
            .open()?;
        chat.append(self.message()).map(drop)
    }

    /// Returns a name of its own.
    fn own(&self, name: &str) -> String {
        format!("{}{name}", self.place.name)
    }

    fn number(&mut self) -> u64 {
        self.place.made += 1;
        self.place.made
    }

    fn time(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + self.place.made as i64, 0).unwrap_or_default()
    }

    /// Returns an entry of a transcript.
    fn entry(&mut self) -> Json {
        let message = self.message();
        let (uuid, time) = (message.id.to_string(), message.created_at.to_rfc3339());
        let said = serde_json::json!({"role": "user", "content": message.text()});
        serde_json::json!({"type": "user", "uuid": uuid, "timestamp": time, "message": said}).into()
    }

    fn message(&mut self) -> Message {
        let number = self.number();
        // Now and then a long message, so that the log grows past a checkpoint.
        let count = match self.place.dice.u32(..40) {
            0 => 4_000,
            1..10 => 150,
            _ => 12,
        };
        let words = (0..count).map(|_| WORDS[self.place.dice.usize(..WORDS.len())]);
        let text = format!("w{number} {}", words.collect::<Vec<_>>().join(" "));
        let message = match self.place.dice.u32(..3) {
            0 => Message::user(text),
            1 => Message::assistant(text),
            _ => {
                let input = serde_json::json!({ "q": number });
                Message::assistant(text).with_part(Part::tool_call(
                    "look",
                    format!("c{number}"),
                    input,
                ))
            }
        };
        message.with_id(format!("m{number}")).at(self.time())
    }

    /// Returns a random message of the session.
    fn any(&mut self, session: &Session) -> talktree::Result<Option<MessageId>> {
        let ids: Vec<MessageId> = session
            .all_messages()
            .map(|message| Ok(message?.id))
            .collect::<talktree::Result<_>>()?;
        Ok((!ids.is_empty()).then(|| ids[self.place.dice.usize(..ids.len())].clone()))
    }
}
