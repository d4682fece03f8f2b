//! Change events: after each commit, the subscribers of this process are called.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Serialize;

use crate::id::{CompactionId, MessageId, SessionId};

/// A committed change to a session.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let (sender, events) = mpsc::channel();
/// let _subscription = chat.subscribe(move |event| { let _ = sender.send(event.clone()); });
/// chat.append(Message::user("hello").with_id("m1"))?;
///
/// let json = serde_json::to_string(&events.try_recv().unwrap()).unwrap();
/// assert_eq!(json, r#"{"session":"s","change":"append","ids":["m1"]}"#);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The session that changed.
    pub session: SessionId,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// The kinds of change.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Change, Message, Store};
///
/// let chat = Store::open_in_memory()?.session("s")?;
/// let hello = chat.append(Message::user("hello"))?.id;
/// let (sender, changes) = mpsc::channel();
/// let _subscription = chat.subscribe(move |event| { let _ = sender.send(event.change.clone()); });
///
/// let compaction = chat.add_compaction("A greeting.", &hello, &hello)?.id;
/// chat.checkout_start()?;
/// let heard: Vec<Change> = changes.try_iter().collect();
/// assert_eq!(heard, [Change::Compact { id: compaction }, Change::Head { id: None }]);
/// # Ok::<(), talktree::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Messages were appended.
    Append {
        /// Their ids, in order.
        ids: Vec<MessageId>,
    },
    /// The content of a message was replaced.
    Update {
        /// The message.
        id: MessageId,
    },
    /// Messages were deleted.
    Delete {
        /// Their ids.
        ids: Vec<MessageId>,
    },
    /// All messages were deleted.
    Clear,
    /// A compaction was added.
    Compact {
        /// The compaction.
        id: CompactionId,
    },
    /// A compaction was removed.
    RemoveCompaction {
        /// The removed compaction.
        id: CompactionId,
    },
    /// Messages were imported.
    Import {
        /// The number of messages.
        messages: u64,
    },
    /// The head was moved by checkout, undo or redo.
    Head {
        /// The new head; `None` before the first message.
        id: Option<MessageId>,
    },
    /// The size of the window, in a session with a compaction threshold. Sent after each append, and when a compaction
    /// starts or ends.
    Window {
        /// Whether a compaction is in progress.
        phase: Phase,
        /// The tokens of the prompt and the history.
        tokens: u64,
        /// The threshold, in tokens.
        threshold: u64,
    },
    /// The window is over its threshold, but nothing more can be compacted: the prompt or the protected messages are
    /// too long. Sent once, until the window is within its threshold again.
    CannotShorten {
        /// The tokens of the prompt and the history.
        tokens: u64,
        /// The threshold, in tokens.
        threshold: u64,
        /// The reason.
        why: String,
    },
    /// An automatic compaction failed. Compactions that it added before remain.
    CompactionFailed {
        /// The reason.
        why: String,
    },
    /// The session was removed.
    Remove,
}

/// The state of automatic compaction.
///
/// ```
/// use talktree::{Change, Phase};
///
/// let change = Change::Window { phase: Phase::Compacting, tokens: 120_000, threshold: 100_000 };
/// let json = serde_json::to_string(&change).unwrap();
/// assert_eq!(json, r#"{"change":"window","phase":"compacting","tokens":120000,"threshold":100000}"#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// No compaction is in progress.
    Idle,
    /// A summarizer is running.
    Compacting,
}

type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// The subscribers of a store. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Registry>);

#[derive(Default)]
struct Registry {
    listeners: Mutex<Vec<(u64, Listener)>>,
    next_key: AtomicU64,
    /// Without listeners a write does not take the lock.
    count: AtomicUsize,
}

impl Events {
    pub(crate) fn subscribe(
        &self,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Subscription {
        let key = self.0.next_key.fetch_add(1, Ordering::Relaxed);
        let mut listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.push((key, Arc::new(listener)));
        self.0.count.store(listeners.len(), Ordering::Release);
        Subscription { key, registry: Arc::downgrade(&self.0) }
    }

    /// Calls every listener in the current thread. `change` is only evaluated if there is a listener.
    pub(crate) fn emit(&self, session: &SessionId, change: impl FnOnce() -> Change) {
        if self.0.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let event = Event { session: session.clone(), change: change() };
        // Called outside the lock: a listener may subscribe, unsubscribe or write.
        let listeners: Vec<Listener> = {
            let listeners = self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().map(|(_, listener)| Arc::clone(listener)).collect()
        };
        for listener in listeners {
            // The change is committed: a panic of one listener must not make it look failed, nor keep
            // the event from the others. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(&event)));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("listeners", &self.0.count).finish()
    }
}

/// A subscription to the changes of a store. Dropping it ends the subscription.
///
/// ```
/// use std::sync::mpsc;
/// use talktree::{Message, Store};
///
/// let store = Store::open_in_memory()?;
/// let (sender, heard) = mpsc::channel();
/// let subscription = store.subscribe(move |event| { let _ = sender.send(event.session.clone()); });
/// drop(subscription);
///
/// store.session("s")?.append(Message::user("hello"))?;
/// assert!(heard.try_recv().is_err());
/// # Ok::<(), talktree::Error>(())
/// ```
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    key: u64,
    registry: Weak<Registry>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            let mut listeners = registry.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.retain(|(key, _)| *key != self.key);
            registry.count.store(listeners.len(), Ordering::Release);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("key", &self.key).finish_non_exhaustive()
    }
}
