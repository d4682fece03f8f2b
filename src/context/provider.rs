//! Providers: sources of context blocks that a program implements; and how a block under its label calls its own.
//!
//! Every provider can be read; its trait says what else it can do. `init` is called before anything else.
//!
//! No transaction is open while a provider is called, and only calls to its own block wait for it. So it may be slow and
//! call the library. A panic is an [`Error::Provider`].
//!
//! One thread at a time writes to a block over a provider; others wait up to the store's busy timeout. A provider that
//! writes to its own block while it is written is refused with [`Error::BlockBusy`], and so is a
//! call to its block from its own `init`. At most eight callbacks run inside each other: a provider that reads its own
//! prompt would never end.
//!
//! Invariant: no content is kept here. Each call reads it from the source, so that handles, threads and processes never
//! disagree, and a failed write changes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use super::Backing;
use super::block::{Block, BlockInfo, Source};
use super::key::check_label;
use crate::callback;
use crate::error::{self, BoxError, Error};
use crate::sql::BackendResult;
use crate::storage::context::{BlockScope, Document, StoredText};
use crate::storage::sqlite::{Reading, SqliteContext, Texts};

/// A source that a context block is read from.
///
/// It may call the library, but not its own block in `init`. A panic is an error.
///
/// ```
/// use talktree::{Block, BoxError, ReadProvider};
///
/// struct Motd;
///
/// impl ReadProvider for Motd {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok(std::fs::read_to_string("/etc/motd")?)
///     }
/// }
///
/// let block = Block::read(Motd).describe("Message of the day");
/// ```
pub trait ReadProvider: Send + Sync {
    /// Is called once with the label of the block, before anything else.
    ///
    /// # Errors
    /// Whatever keeps the provider from working.
    fn init(&self, label: &str) -> Result<(), BoxError> {
        let _ = label;
        Ok(())
    }

    /// Returns the current content of the block.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn get(&self) -> Result<String, BoxError>;
}

/// A source that a context block is read from and written to.
///
/// One thread at a time writes. While it does, the provider may not write to its own block:
/// [`Error::BlockBusy`].
///
/// ```
/// use std::sync::Mutex;
/// use talktree::{Block, BoxError, ReadProvider, WriteProvider};
///
/// struct Note(Mutex<String>);
///
/// impl ReadProvider for Note {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok(self.0.lock().map_err(|_| "another thread panicked")?.clone())
///     }
/// }
///
/// impl WriteProvider for Note {
///     fn set(&self, content: &str) -> Result<(), BoxError> {
///         *self.0.lock().map_err(|_| "another thread panicked")? = content.to_owned();
///         Ok(())
///     }
/// }
///
/// let block = Block::write(Note(Mutex::default())).max_tokens(500);
/// ```
pub trait WriteProvider: ReadProvider {
    /// Replaces the content.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the content must then be unchanged.
    fn set(&self, content: &str) -> Result<(), BoxError>;
}

/// A source of documents that are loaded by key. Its content lists them.
///
/// ```
/// use talktree::{Block, BoxError, ReadProvider, SkillProvider};
///
/// struct Greeting;
///
/// impl ReadProvider for Greeting {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok("- hello: how to greet".to_owned())
///     }
/// }
///
/// impl SkillProvider for Greeting {
///     fn load(&self, key: &str) -> Result<Option<String>, BoxError> {
///         Ok((key == "hello").then(|| "Say hello.".to_owned()))
///     }
/// }
///
/// let block = Block::skills(Greeting);
/// ```
pub trait SkillProvider: ReadProvider {
    /// Returns the document of this key; `None` if there is none.
    ///
    /// # Errors
    /// Whatever keeps it from being read.
    fn load(&self, key: &str) -> Result<Option<String>, BoxError>;

    /// Returns whether documents can be written.
    fn is_writable(&self) -> bool {
        false
    }

    /// Stores a document under its key; one with the same key is replaced.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the default implementation always fails.
    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        Err(refused(document))
    }
}

/// A source that is searched. Its content says what there is to find.
///
/// ```
/// use talktree::{Block, BoxError, Document, ReadProvider, SearchProvider};
///
/// struct Capitals;
///
/// impl ReadProvider for Capitals {
///     fn get(&self) -> Result<String, BoxError> {
///         Ok("1 country".to_owned())
///     }
/// }
///
/// impl SearchProvider for Capitals {
///     fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>, BoxError> {
///         let all = [Document::new("France", "Paris")];
///         Ok(all.into_iter().filter(|country| country.key.contains(query)).take(limit).collect())
///     }
/// }
///
/// let block = Block::searchable(Capitals);
/// ```
pub trait SearchProvider: ReadProvider {
    /// Returns at most `limit` documents that match, best first.
    ///
    /// # Errors
    /// Whatever keeps it from being searched.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>, BoxError>;

    /// Returns whether documents can be written.
    fn is_writable(&self) -> bool {
        false
    }

    /// Stores a document under its key; one with the same key is replaced.
    ///
    /// # Errors
    /// Whatever keeps it from being written; the default implementation always fails.
    fn set_keyed(&self, document: &Document) -> Result<(), BoxError> {
        Err(refused(document))
    }
}

fn refused(document: &Document) -> BoxError {
    format!("document {:?} cannot be written: its provider only reads", document.key).into()
}

/// A block under its label. A session and its forks share it.
#[derive(Debug)]
pub(crate) struct LabelledBlock {
    pub(crate) label: String,
    pub(crate) block: Block,
    /// Whether the `init` of the provider has succeeded.
    is_begun: AtomicBool,
    /// Locked while that `init` runs: no other call may come before it.
    beginning: CallLock,
    /// Locked while the provider is written. An append reads before it writes; a write of another thread in between would
    /// be lost.
    writing: CallLock,
}

impl LabelledBlock {
    pub(super) fn new(label: &str, block: Block) -> error::Result<Self> {
        check_label(label)?;
        let label = label.to_owned();
        if block.scope != BlockScope::Session && !block.source.has_scope() {
            let what = "be shared across sessions: it is not kept in the store";
            return Err(Error::BlockCannot { label, what });
        }
        let (beginning, writing) = (CallLock::default(), CallLock::default());
        Ok(Self { label, block, is_begun: AtomicBool::new(false), beginning, writing })
    }

    pub(super) fn info(&self, backing: &Backing) -> error::Result<BlockInfo> {
        Ok(self.block.info(&self.label, self.content(backing)?))
    }

    /// Returns what the block can do, with an empty content: no provider is called.
    pub(crate) fn kind(&self) -> BlockInfo {
        self.block.info(&self.label, String::new())
    }

    pub(super) fn content(&self, backing: &Backing) -> error::Result<String> {
        if let Some(provider) = self.block.source.provider() {
            return self.ask(&backing.store, || provider.get());
        }
        match &self.block.source {
            Source::Text(text) => Ok(text.to_string()),
            Source::History => {
                // A count would change with each message, and the prompt would drift.
                let whose = match self.block.scope {
                    BlockScope::Session => "this conversation",
                    BlockScope::Owner => "this and earlier conversations with the same person",
                    BlockScope::Shared => "all conversations",
                };
                Ok(format!("What was said in {whose}."))
            }
            _ => backing.store.read(|reading| self.stored_content(reading)),
        }
    }

    /// Returns the content of a block that is kept in the store; nothing for any other.
    pub(super) fn stored_content(&self, reading: &Reading<'_>) -> BackendResult<String> {
        let texts = self.texts(reading)?;
        match &self.block.source {
            Source::Stored => Ok(texts.text("")?.and_then(|text| text.content).unwrap_or_default()),
            Source::StoredSkills => {
                let lines = texts.documents()?.into_iter().map(|text| {
                    let StoredText { key, title, description, .. } = text;
                    Document { key, title, description, content: String::new() }.list_line()
                });
                Ok(lines.collect::<Vec<_>>().join("\n"))
            }
            Source::Knowledge => match texts.count()? {
                1 => Ok("1 entry indexed.".to_owned()),
                count => Ok(format!("{count} entries indexed.")),
            },
            _ => Ok(String::new()),
        }
    }

    /// Returns the stored texts of the block.
    pub(super) fn texts<'c>(&self, reading: &'c Reading<'_>) -> BackendResult<Texts<'c>> {
        reading.texts(self.block.scope, &self.label)
    }

    pub(crate) fn cannot(&self, what: &'static str) -> Error {
        Error::BlockCannot { label: self.label.clone(), what }
    }

    pub(super) fn check_stored(&self) -> error::Result<()> {
        match self.block.source.is_stored() {
            true => Ok(()),
            false => Err(self.cannot("be asked for its versions: it is not kept in the store")),
        }
    }

    /// Checks that documents of the block are kept in the store.
    pub(super) fn check_documents(&self) -> error::Result<()> {
        match self.block.source {
            Source::StoredSkills | Source::Knowledge => Ok(()),
            _ => Err(self.cannot("list documents: it keeps none in the store")),
        }
    }

    pub(super) fn check_writable(&self) -> error::Result<()> {
        match self.block.is_writable() {
            true => Ok(()),
            false => Err(Error::BlockReadOnly { label: self.label.clone() }),
        }
    }

    /// Checks that the block is one text and can be written.
    pub(super) fn check_plain(&self) -> error::Result<()> {
        self.check_writable()?;
        match self.block.source.is_keyed() {
            true => Err(Error::BlockKeyed { label: self.label.clone(), call: "set_document" }),
            false => Ok(()),
        }
    }

    pub(super) fn check_keyed(&self) -> error::Result<()> {
        match self.block.source.is_keyed() {
            true => Ok(()),
            false => Err(self.cannot("hold documents: it is one text")),
        }
    }

    pub(super) fn check_tokens(&self, content: &str) -> error::Result<()> {
        self.block.check_tokens(&self.label, crate::tokens::estimate_tokens(content))
    }

    /// Waits until no other thread writes to the provider.
    pub(super) fn lock_writes(&self, store: &SqliteContext) -> error::Result<CallGuard<'_>> {
        self.lock(&self.writing, store)
    }

    fn lock<'a>(&self, lock: &'a CallLock, store: &SqliteContext) -> error::Result<CallGuard<'a>> {
        let timeout = store.busy_timeout();
        lock.lock(timeout).ok_or_else(|| Error::BlockBusy {
            label: self.label.clone(),
            waited_ms: match lock.is_own() {
                true => 0,
                false => u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            },
        })
    }

    /// Makes a call to the provider, after its `init`. A panic is an error.
    pub(super) fn ask<T>(
        &self,
        store: &SqliteContext,
        call: impl FnOnce() -> Result<T, BoxError>,
    ) -> error::Result<T> {
        if !self.is_begun.load(Ordering::Acquire) {
            let _guard = self.lock(&self.beginning, store)?;
            if let Some(provider) = self.block.source.provider()
                && !self.is_begun.load(Ordering::Acquire)
            {
                self.call(|| provider.init(&self.label))?;
                self.is_begun.store(true, Ordering::Release);
            }
        }
        self.call(call)
    }

    fn call<T>(&self, call: impl FnOnce() -> Result<T, BoxError>) -> error::Result<T> {
        let answer = callback::call(call).unwrap_or_else(|failed| Err(failed.into()));
        answer.map_err(|source| Error::Provider { label: self.label.clone(), source })
    }
}

/// A lock on the calls to a provider that must not overlap: its `init`, and a write, which reads before it writes.
///
/// Unlike a mutex it refuses the thread that holds it, because a provider may call the library: a write to its own block
/// would wait for itself. It also has a timeout, because a provider may wait for another thread that writes to its block,
/// which cannot be known.
#[derive(Debug, Default)]
struct CallLock {
    holder: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

/// Unlocks when it is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct CallGuard<'a>(&'a CallLock);

impl CallLock {
    /// Waits for the lock; `None` after `timeout`, or at once if this thread holds it.
    fn lock(&self, timeout: Duration) -> Option<CallGuard<'_>> {
        let own = std::thread::current().id();
        let holder = self.holder();
        if *holder == Some(own) {
            return None;
        }
        let waited = self.freed.wait_timeout_while(holder, timeout, |holder| holder.is_some());
        let (mut holder, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if holder.is_some() {
            return None;
        }
        *holder = Some(own);
        Some(CallGuard(self))
    }

    /// Returns whether this thread holds it.
    fn is_own(&self) -> bool {
        *self.holder() == Some(std::thread::current().id())
    }

    fn holder(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        *self.0.holder() = None;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    struct Fixed;

    impl ReadProvider for Fixed {
        fn get(&self) -> Result<String, BoxError> {
            Ok(String::new())
        }
    }

    impl SkillProvider for Fixed {
        fn load(&self, _: &str) -> Result<Option<String>, BoxError> {
            Ok(None)
        }
    }

    impl SearchProvider for Fixed {
        fn search(&self, _: &str, _: usize) -> Result<Vec<Document>, BoxError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_provider_that_only_reads_refuses_documents() -> Result<(), BoxError> {
        let (skills, search): (&dyn SkillProvider, &dyn SearchProvider) = (&Fixed, &Fixed);
        assert!(!skills.is_writable() && !search.is_writable());
        let document = Document::new("k", "text");
        let text = "document \"k\" cannot be written: its provider only reads";
        assert_eq!(skills.set_keyed(&document).unwrap_err().to_string(), text);
        assert_eq!(search.set_keyed(&document).unwrap_err().to_string(), text);
        skills.init("label")
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_that_holds_the_lock_is_refused_and_may_lock_again_after_it() {
        let lock = CallLock::default();
        let guard = lock.lock(LONG).unwrap();
        assert!(lock.is_own() && lock.lock(LONG).is_none());
        drop(guard);
        assert!(!lock.is_own() && lock.lock(LONG).is_some());
    }

    #[test]
    fn another_thread_waits_for_the_lock_up_to_the_timeout() {
        let lock = CallLock::default();
        std::thread::scope(|scope| {
            let guard = lock.lock(LONG).unwrap();
            let other = scope.spawn(|| lock.lock(Duration::from_millis(1)).is_none());
            assert!(other.join().unwrap());
            let other = scope.spawn(|| lock.lock(LONG).is_some());
            drop(guard);
            assert!(other.join().unwrap());
        });
    }

    #[test]
    fn a_panic_unlocks() {
        let lock = CallLock::default();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock(LONG);
            panic!("boom")
        }));
        assert!(panicked.is_err() && lock.lock(LONG).is_some());
    }
}
