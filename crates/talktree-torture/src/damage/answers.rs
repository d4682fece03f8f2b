//! Every read of a store, and its result.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use chrono::DateTime;
use talktree::{
    BindingFilter, Budget, CompactionPlan, DrawOptions, Error, Message, Session, Store,
    TranscriptFilter, Tree, UsageGroup,
};
use talktree_import::export::{export_jsonl, export_markdown};

use super::fixture::session;
use crate::compaction::options;

/// The queries that are run.
const QUERIES: &[&str] = &["rollb*", "in:all look", "\"garden 故宫\"", "故宫 branch role:user"];

/// The path of every n-th leaf is read as a whole.
const LEAVES_READ_WHOLE: usize = 5;

/// The results of all reads: a digest of the value, or the error.
pub(super) struct Answers(BTreeMap<String, Answer>);

/// One result.
type Answer = Result<u64, ReportedError>;

/// An error that a verb returned.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportedError {
    /// The text of the error.
    pub(super) text: String,
    /// Whether the error says that the store is damaged or is not a store, or that something does not exist.
    pub(super) is_about_damage: bool,
}

impl From<&Error> for ReportedError {
    fn from(error: &Error) -> Self {
        Self {
            text: error.to_string(),
            is_about_damage: error.is_unknown()
                || matches!(
                    error,
                    Error::Corrupt { .. } | Error::NotAStore { .. } | Error::NewerStore { .. }
                ),
        }
    }
}

impl Answers {
    /// Reads everything of a store and of these sessions.
    pub(super) fn of(store: &Store, sessions: &[String]) -> Self {
        let mut answers = Self(BTreeMap::new());
        answers.add("sessions", "", store.sessions());
        answers.add(
            "stats",
            "",
            store.stats().map(|stats| (stats.sessions, stats.messages, stats.max_depth)),
        );
        for (at, id) in sessions.iter().enumerate() {
            match session(store, at, id) {
                Ok(chat) => answers.session(&chat, id),
                Err(error) => answers.add::<()>("session", id, Err(error)),
            }
        }
        answers.add("bindings", "", store.bindings(&BindingFilter::default(), None, 100));
        answers.add("owners", "", store.owners(None, 100));
        answers.add("usage", "", store.usage().by(UsageGroup::Session).run());
        let transcripts = talktree_claude::SessionStore::new(store);
        let listed = transcripts.log().list(&TranscriptFilter::default(), None, 100);
        for listed in listed.iter().flatten() {
            let of = format!("{:?}", listed.key);
            answers.add("transcript", &of, transcripts.log().load(&listed.key));
            answers.add("infos", &of, transcripts.infos(&listed.key.project));
            let session = transcripts.messages(&listed.key.project, &listed.key.session);
            answers.add("transcript_messages", &of, session);
        }
        answers.add("transcripts", "", listed);
        // Newer hits rank higher, so all searches use the same time.
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap_or_default();
        for query in QUERIES {
            answers.add("search", query, store.search(*query).now(now).run());
        }
        answers.add("search_sessions", "", store.search(QUERIES[0]).now(now).run_by_session());
        let mut digest = Digest(DefaultHasher::new());
        let exported = export_jsonl(store, &mut digest);
        answers.add("export", "", exported.map(|()| digest.0.finish()));
        answers
    }

    fn session(&mut self, chat: &Session, id: &str) {
        self.add("info", id, chat.info());
        self.add("head", id, chat.head());
        self.add("head_log", id, chat.head_log());
        self.add("labels", id, chat.labels());
        let compactions = chat.compactions();
        for compaction in compactions.iter().flatten() {
            let of = format!("{} of {id}", compaction.id);
            self.add("compaction_status", &of, chat.compaction_status(&compaction.id));
            self.add_messages("expand", &of, chat.expand(&compaction.id));
        }
        self.add("compactions", id, compactions);
        self.add("window_usage", id, chat.window_usage());
        let prompt = |plan: CompactionPlan| plan.prompt().to_owned();
        self.add("plan", id, chat.plan_compaction(&options()).map(|plan| plan.map(prompt)));
        self.add("visible_tokens", id, chat.visible_tokens());
        self.add_messages("roots", id, chat.roots());
        self.add("row_stats", id, chat.row_stats());
        self.add_messages("history", id, chat.history());
        self.add_messages("raw_history", id, chat.raw_history());
        self.add_messages("all_messages", id, chat.all_messages().collect());
        self.add_messages("iter_rev", id, chat.iter_rev().collect());
        self.add("recent", id, chat.recent(Budget::tokens(200)));
        self.add("page", id, chat.page().limit(5).run());
        let drawn = |tree: Tree| tree.lines(&DrawOptions::everything()).collect::<Vec<_>>();
        self.add("tree", id, chat.tree().map(drawn));
        let leaves = chat.leaves();
        for (number, leaf) in leaves.iter().flatten().enumerate() {
            let at = format!("{id} at {leaf}");
            self.add("row_stats_at", &at, chat.at(leaf).row_stats());
            // The paths share most of their messages, so only a few are read as a whole.
            if number % LEAVES_READ_WHOLE == 0 {
                self.add_messages("history_at", &at, chat.at(leaf).history());
                self.add_messages("raw_history_at", &at, chat.at(leaf).raw_history());
            }
        }
        self.add("leaves", id, leaves);
        let mut digest = Digest(DefaultHasher::new());
        let markdown = export_markdown(&chat.path(), &mut digest);
        self.add("markdown", id, markdown.map(|()| digest.0.finish()));
    }

    fn add<T: fmt::Debug>(&mut self, verb: &str, of: &str, answer: talktree::Result<T>) {
        let answer = answer.as_ref().map_err(ReportedError::from).map(|value| {
            let mut digest = Digest(DefaultHasher::new());
            // Writing to a digest cannot fail.
            let _ = write!(digest, "{value:?}");
            digest.0.finish()
        });
        self.0.insert(format!("{verb} {of}"), answer);
    }

    /// Adds messages by their JSON, which is much faster to write than their debug text.
    fn add_messages(&mut self, verb: &str, of: &str, answer: talktree::Result<Vec<Message>>) {
        let answer = answer.as_ref().map_err(ReportedError::from).map(|messages| {
            let mut digest = Digest(DefaultHasher::new());
            // Writing to a digest cannot fail, and a message that was read can be serialized.
            let _ = serde_json::to_writer(&mut digest, messages);
            digest.0.finish()
        });
        self.0.insert(format!("{verb} {of}"), answer);
    }

    /// Returns the number of reads.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the reads that failed, with their errors.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&str, &ReportedError)> {
        self.0.iter().filter_map(|(asked, answer)| Some((asked.as_str(), answer.as_ref().err()?)))
    }

    /// Returns the reads that succeeded with another value than in the sound store.
    pub(super) fn different(&self, sound: &Self) -> Vec<&str> {
        let differs = |(asked, answer): &(&String, &Answer)| {
            answer.is_ok() && sound.0.get(*asked) != Some(answer)
        };
        self.0.iter().filter(differs).map(|(asked, _)| asked.as_str()).collect()
    }

    /// Returns whether the messages of a session read as in the sound store.
    pub(super) fn reads(&self, sound: &Self, id: &str) -> bool {
        ["history", "raw_history", "all_messages"].iter().all(|verb| {
            let asked = format!("{verb} {id}");
            self.0.get(&asked) == sound.0.get(&asked)
        })
    }
}

/// A hasher that text can be written to.
struct Digest(DefaultHasher);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl std::io::Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
