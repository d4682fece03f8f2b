//! Random verbs that write: what a store goes through before it is broken.
//!
//! Ids and times come from the seed, too, so a seed repeats the same workload; only the ids and times of compactions that
//! the library creates differ.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use fastrand::Rng;
use talktree::{
    Compaction, CompactionId, Durability, Message, MessageId, Part, Session, SessionDetails, Store,
};

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
    ("reopen", 5),
];

/// The token limit after which the session compacts automatically.
const THRESHOLD: u64 = 1_500;

/// Called with the store after the first commit of a verb that has several.
type Observer = Arc<dyn Fn(&Store) + Send + Sync>;

/// A store and the verbs that run on it.
pub struct Workload {
    store: Option<Store>,
    path: std::path::PathBuf,
    durability: Durability,
    dice: Rng,
    made: u64,
    observer: Observer,
}

impl std::fmt::Debug for Workload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workload").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Workload {
    /// Creates a store in a file.
    ///
    /// # Errors
    /// As opening.
    pub fn open(path: &Path, durability: Durability, seed: u64) -> talktree::Result<Self> {
        let store = Store::options().durability(durability).open(path)?;
        let (path, dice) = (path.to_owned(), Rng::with_seed(seed));
        let observer = Arc::new(|_: &Store| ());
        Ok(Self { store: Some(store), path, durability, dice, made: 0, observer })
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// As opening.
    pub fn in_memory(seed: u64) -> talktree::Result<Self> {
        let (store, dice) = (Some(Store::open_in_memory()?), Rng::with_seed(seed));
        let (path, durability) = (Default::default(), Durability::Normal);
        Ok(Self { store, path, durability, dice, made: 0, observer: Arc::new(|_| ()) })
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
        let mut roll = self.dice.u32(..sum);
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
            if self.path.as_os_str().is_empty() {
                return Ok(());
            }
            self.store = None;
            let options = Store::options().durability(self.durability);
            self.store = Some(options.open(&self.path)?);
            return Ok(());
        }
        let store = self.store()?.clone();
        let name = SESSIONS[self.dice.usize(..SESSIONS.len())];
        let session = store.session(name)?;
        match verb {
            "append" => drop(session.append(self.message())?),
            "append-all" => {
                let count = self.dice.usize(2..40);
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
            "compact-by-summarizer" => drop(compaction(&store, name)?.compact()?),
            "stale-plan" => self.commit_stale(&session)?,
            "append-and-compact" => self.append_and_compact(&store, name)?,
            "split" => {
                let child = format!("split {}", self.number());
                session.compact_and_split_as(&child.as_str().into(), "What came before.")?;
            }
            "branch-summary" => {
                let Some(to) = self.any(&session)? else { return Ok(()) };
                drop(compaction(&store, name)?.checkout_summarized(&to)?);
            }
            "tokens" => drop(session.visible_tokens()?),
            "tokens-by-words" => drop(by_words(&store, name)?.visible_tokens()?),
            "recount" => store.recount_tokens()?,
            "remove-compaction" => {
                if let Some(compaction) = session.compactions()?.first() {
                    session.remove_compaction(&compaction.id)?;
                }
            }
            "label" => {
                let Some(id) = self.any(&session)? else { return Ok(()) };
                session.label(["best", "start", "todo"][self.dice.usize(..3)], &id)?;
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
                let name = format!("fork {}", self.number());
                session.fork_as(&name.as_str().into(), &id, "A fork")?;
            }
            "import" => {
                let mut parent = self.any(&session)?;
                let mut records = Vec::new();
                for _ in 0..self.dice.usize(1..12) {
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
            "search" => drop(store.search(WORDS[self.dice.usize(..WORDS.len())]).run()?),
            "rebuild" => store.rebuild_search()?,
            "clear" => session.clear()?,
            // Removes a fork; copies of its messages remain in the session it was forked from.
            _ => {
                let sessions = store.sessions()?;
                let fork = sessions.iter().find(|info| info.parent_session.is_some());
                if let Some(fork) = fork {
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
        let from = self.dice.usize(..history.len() / 2);
        let to = self.dice.usize(from + 1..history.len());
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

    fn number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn time(&self) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + self.made as i64, 0).unwrap_or_default()
    }

    fn message(&mut self) -> Message {
        let number = self.number();
        // Now and then a long message, so that the log grows past a checkpoint.
        let count = match self.dice.u32(..40) {
            0 => 4_000,
            1..10 => 150,
            _ => 12,
        };
        let words = (0..count).map(|_| WORDS[self.dice.usize(..WORDS.len())]);
        let text = words.collect::<Vec<_>>().join(" ");
        let message = match self.dice.u32(..3) {
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
        Ok((!ids.is_empty()).then(|| ids[self.dice.usize(..ids.len())].clone()))
    }
}
