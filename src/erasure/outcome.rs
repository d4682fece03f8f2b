//! What an erasure did.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::id::{MessageId, SessionId};
use crate::transcript::TranscriptKey;

/// What an erasure removes, or removed, and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ErasureExtent {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// How many messages, copies included.
    pub messages: u64,
    /// How many texts of context blocks, not counting their versions.
    pub texts: u64,
    /// How many summaries of compactions. Summaries that are messages count as messages.
    pub summaries: u64,
    /// How many frozen prompts.
    pub prompts: u64,
    /// How many bindings of outside keys, former ones included.
    pub bindings: u64,
    /// How many pending items of inboxes.
    pub items: u64,
    /// How many details of sessions that stay: copies of names and metadata, and names that were made from an erased message,
    /// as imports make them.
    pub details: u64,
    /// How many rows of usage, those that stay in totals included.
    pub usage: u64,
    /// The transcripts of agents.
    pub transcripts: Vec<TranscriptKey>,
    /// How many entries they have.
    pub entries: u64,
    /// The copies of erased messages, and of what else an erased session had, that are left, by session;
    /// [`with_forks`](crate::Erasure::with_forks) erases them.
    pub copies_left: Vec<ErasureCopies>,
    /// The summaries that cover an erased message and are left, also those with which a session begins that continues an erased
    /// one; [`with_summaries`](crate::Erasure::with_summaries) erases them.
    pub summaries_left: Vec<ErasureSummary>,
}

impl ErasureExtent {
    /// Returns how many copies and summaries of what is erased are left.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// let store = Store::open_in_memory()?;
    /// let chat = store.session("s")?;
    /// let secret = chat.append(Message::user("The vault opens with 7-1-9-4."))?.id;
    /// chat.fork(&secret, "Fork")?;
    /// let erasure = Erasure::session("s");
    /// let extent = store.erasure_extent(&erasure)?;
    /// assert_eq!((extent.left(), extent.copies_left[0].count()), (1, 1));
    /// assert_eq!(store.erasure_extent(&erasure.with_forks())?.left(), 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    #[must_use]
    pub fn left(&self) -> u64 {
        let copies: u64 = self.copies_left.iter().map(ErasureCopies::count).sum();
        copies + self.summaries_left.len() as u64
    }
}

/// Copies in another session: of erased messages, and of the texts and details of an erased session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ErasureCopies {
    /// The session.
    pub session: SessionId,
    /// How many messages of it are copies.
    pub messages: u64,
    /// These messages, in the order in which they were stored.
    pub ids: Vec<MessageId>,
    /// The labels of its own context blocks that have a text, or an earlier version of one, of an erased session.
    pub blocks: Vec<String>,
    /// Which of its details are those of an erased session: `name`, `metadata`.
    pub details: Vec<String>,
}

impl ErasureCopies {
    /// Returns how many copies there are: messages, blocks, details. [`ErasureExtent::left`] has an example.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.messages + (self.blocks.len() + self.details.len()) as u64
    }
}

/// A summary that covers an erased message.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct ErasureSummary {
    /// The session.
    pub session: SessionId,
    /// Its id in a history: of a compaction [`as_message`](crate::CompactionId::as_message), of a
    /// [branch summary](crate::BranchSummaryPlan) and of the opening of a session that of its message.
    pub id: MessageId,
}

/// The outcome of an erasure.
///
/// [`Erasure`](crate::Erasure) has an example.
#[derive(Clone, Default)]
#[non_exhaustive]
#[must_use = "it lists the copies and summaries that were not erased"]
pub struct Erased {
    /// What was erased, and which copies and summaries were left.
    pub extent: ErasureExtent,
    /// The erased messages of sessions that stay, copies included.
    pub messages: Vec<(SessionId, MessageId)>,
    /// Whether the write-ahead log still contains erased text, because another reader used it for longer than the store's
    /// busy timeout.
    /// [`Store::finish_erasure`](crate::Store::finish_erasure) empties it.
    pub is_log_in_use: bool,
    /// Whether the whole file was rewritten.
    pub is_rewritten: bool,
    pub(crate) prover: Option<Prover>,
}

impl Erased {
    /// Returns whether the write-ahead log contains no erased text.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.is_log_in_use
    }

    /// Reads every byte of the file, of its log and of its shared memory, and looks for the erased texts.
    ///
    /// It looks for each sequence of 16 bytes of the erased texts, in the form in which they were stored, and for
    /// shorter texts of eight bytes or more as a whole. A sequence that other stored content also contains is counted as
    /// [`kept`](ErasureProof::kept); so is one that differs from the beginning or the end of a stored text in its first or last
    /// bytes, a quarter at most, because what is stored before and after a text may look like letters. If the texts are very long, it looks for a sample of the sequences.
    ///
    /// ```
    /// use talktree::{Erasure, Message, Store};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("bot.db");
    /// let store = Store::open(&path)?;
    /// let chat = store.session("s")?;
    /// let secret = chat.append(Message::user("The vault opens with 7-1-9-4."))?.id;
    ///
    /// let proof = chat.erase([&secret])?.prove()?;
    /// assert!(proof.bytes > 0 && proof.sequences > 0);
    /// # Ok::<(), talktree::Error>(())
    /// ```
    ///
    /// What is found beside another erasure, or while others write, may be theirs. So it is looked for again until the store
    /// did not change meanwhile, for as long as the busy timeout.
    ///
    /// # Errors
    /// [`Error::NotErased`] if erased text was found; [`Error::Busy`] if others wrote until that was over; [`Error::NotProved`] if a part of what was named was unknown while an
    /// interrupted erasure was to be finished; [`Error::Unsupported`] for a store in memory;
    /// as every read.
    pub fn prove(&self) -> Result<ErasureProof> {
        let proof = self.scan()?;
        match proof.occurrences.first() {
            None => Ok(proof),
            Some((path, offset)) => Err(Error::NotErased {
                occurrences: proof.found,
                path: path.clone(),
                offset: *offset,
            }),
        }
    }

    /// Returns what [`prove`](Self::prove) found, and is no error if that is erased text.
    ///
    /// # Errors
    /// As [`prove`](Self::prove), except [`Error::NotErased`].
    pub fn scan(&self) -> Result<ErasureProof> {
        match &self.prover {
            Some(prove) => Ok(ErasureProof { left: self.extent.left(), ..prove()? }),
            None => Err(Error::Unsupported { what: "a proof of erasure" }),
        }
    }
}

impl fmt::Debug for Erased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Erased")
            .field("extent", &self.extent)
            .field("is_log_in_use", &self.is_log_in_use)
            .field("is_rewritten", &self.is_rewritten)
            .finish_non_exhaustive()
    }
}

/// The result of a search for erased texts in the files of a store.
///
/// [`Erased::prove`](crate::Erased::prove) has an example.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ErasureProof {
    /// How many bytes were read, of the file, its log and its shared memory.
    pub bytes: u64,
    /// How many texts were erased.
    pub texts: u64,
    /// How many of them are shorter than eight bytes, and were not looked for.
    pub too_short: u64,
    /// How many different sequences of bytes were looked for.
    pub sequences: u64,
    /// Whether the texts were so long that only a sample of their sequences was looked for.
    pub is_sample: bool,
    /// How many of the sequences other stored content also contains, or all but a few bytes of them at the edge of a text.
    pub kept: u64,
    /// How many copies and summaries the erasure has left; their texts count as kept.
    pub left: u64,
    /// How many times a sequence was found that no stored content contains.
    pub found: u64,
    /// The first of these places, a hundred at most: the file, and where the sequence begins in it.
    pub occurrences: Vec<(PathBuf, u64)>,
}

/// Looks for erased texts in the files of a store.
pub(crate) type Prover = Arc<dyn Fn() -> Result<ErasureProof> + Send + Sync>;
