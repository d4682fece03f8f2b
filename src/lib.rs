//! An embedded, synchronous library that stores conversations on SQLite as trees of messages.
//!
//! ```
//! use talktree::{Message, Store};
//!
//! let store = Store::open_in_memory()?; // Store::open("bot.db")? keeps it in a file
//! let chat = store.session("telegram:4711")?;
//!
//! let question = chat.append(Message::user("Can we deploy on Friday?"))?.id;
//! let answer = chat.append(Message::assistant("Yes, after the backup."))?.id;
//! chat.append_to(&question, Message::assistant("Rather on Monday."))?; // another answer: a branch
//! assert_eq!(chat.branches(&question)?.len(), 2);
//!
//! chat.checkout(&answer)?; // back on the first; stored, survives a restart
//! chat.add_compaction("They will deploy on Friday.", &question, &answer)?;
//! assert_eq!(chat.history()?.len(), 1); // what the model should see
//! assert_eq!(chat.raw_history()?.len(), 2); // everything, always
//!
//! let hits = store.search("deploy friday").run()?.hits;
//! assert_eq!(hits[0].id, question);
//! # Ok::<(), talktree::Error>(())
//! ```
//!
//! Where to begin, by what you want to do:
//!
//! - keep a conversation: [`Store`], [`Session`], [`Message`], [`Part`]; read it: [`Path`], [`Budget`], [`Tree`]
//! - keep it within a model's window: [`SessionBuilder`], [`CompactionOptions`], [`Summarizer`], [`Compaction`]
//! - tell a model what it should know: [`Block`], [`Context`], [`Tools`]
//! - find something: [`Search`], [`Hit`]
//! - serve many people: [`SessionManager`], [`Usage`], [`Retention`]
//! - forget: [`Erasure`], [`Erased`]
//! - keep the transcripts of agents: [`Transcripts`]
//! - store elsewhere: [`SessionProvider`]

// First, so that its macros are in scope below.
#[macro_use]
mod sql;

mod callback;
mod catalog;
mod clock;
mod compaction;
mod context;
mod embedding;
mod erasure;
mod error;
mod event;
mod id;
mod inbox;
mod manager;
mod message;
mod outcome;
mod report;
mod retention;
pub mod search;
mod session;
mod storage;
mod store;
mod tokens;
mod tools;
mod transcript;
mod tree;
mod usage;
mod view;

#[doc(hidden)]
pub mod records;

pub use catalog::{
    Binding, BindingEnd, BindingFilter, ListedMessage, ListedSession, MessageFilter, MessagePage,
    OwnerInfo, SessionChange, SessionFilter, SessionPage, SessionState,
};
pub use compaction::policy::{
    CompactionOptions, CompactionPlan, CompactionPolicy, CompactionWindow, Extract,
    NothingToCompact, RangeSummary, RequestTokens, Summarized, Summarizer, WindowUsage,
};
pub use compaction::{Compaction, CompactionStatus, Stale, Summary, SummaryRefused};
pub use context::{
    Block, BlockInfo, Context, Drift, ReadProvider, SearchProvider, SkillProvider, WriteProvider,
};
pub use embedding::{Embedder, Embedding};
pub use erasure::{Erased, Erasure, ErasureCopies, ErasureExtent, ErasureProof, ErasureSummary};
pub use error::{BoxError, Error, Result};
pub use event::{Change, Event, Phase, Subscription};
pub use id::{CompactionId, MAX_ID_BYTES, MessageId, SessionId};
pub use inbox::InboxItem;
pub use manager::{Resume, ResumedSession, SessionManager};
pub use message::{
    Author, AuthorLine, Extra, File, Json, Message, Pairing, Part, Reasoning, Role, Text, Tool,
    ToolPairs,
};
pub use outcome::{
    Appended, Deleted, HeadEntry, Label, MessageTag, Page, Recent, Record, RowStat, SessionDetails,
    SessionInfo, Updated,
};
pub use report::{Damage, Progress, StoreStats, Verified};
pub use retention::{
    DiscardedSession, Retention, RetentionAction, RetentionReport, RetentionRule, RuleReport,
};
pub use search::{Hit, Matched, Query, Search, SearchResults, SessionHit, Snippet};
pub use session::{
    BranchSummaryPlan, Compacted, Messages, PageBuilder, Path, ProviderSession, Session,
    SessionBuilder, ToolStats,
};
pub use storage::SessionProvider;
pub use storage::context::{Document, StoredText};
pub use store::{
    Durability, Inbox, InterruptHandle, RetentionRun, SessionList, Store, StoreOptions,
    Transcripts, UsageReport,
};
pub use tokens::{TokenCounter, estimate_tokens};
pub use tools::{ToolCall, ToolDefinition, Tools};
pub use transcript::{AppendedEntries, Derived, StoredTranscript, TranscriptFilter, TranscriptKey};
pub use tree::{DrawOptions, Landmark, PieceKind, Segment, Tree, TreeLine};
pub use usage::{Cost, Usage, UsageFilter, UsageGroup, UsageTotal};
pub use view::{Budget, Parent};

/// Runs the examples of the documents that need the library alone; those of the others run in `talktree-model`,
/// `talktree-import` and `talktree-tokio`.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../docs/context.md")]
    mod context {}
    #[cfg(feature = "sqlcipher")]
    #[doc = include_str!("../docs/encryption.md")]
    mod encryption {}
    #[doc = include_str!("../docs/search.md")]
    mod search {}
}
